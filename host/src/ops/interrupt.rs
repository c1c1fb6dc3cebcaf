//! Ending long work early: whoever waits for it is asked now and then.

use std::cell::RefCell;
use std::rc::Rc;

use super::OpError;

type Wanted = Rc<dyn Fn() -> bool>;

thread_local! {
    static WANTED: RefCell<Option<Wanted>> = const { RefCell::new(None) };
}

/// Does `work`, which ends with [`OpError::Interrupted`] soon after `is_wanted` has returned true.
///
/// It is asked on this thread, before each product of a solve: often where X is small, so that it should be quick to
/// answer. What had been found until then is dropped. Work inside work is requested by the innermost alone.
///
/// ```
/// use ndarray::Array2;
/// use warpfuse::device::Device;
/// use warpfuse::learning::{FitError, Ridge};
/// use warpfuse::matrix::Features;
/// use warpfuse::ops::{OpError, interruptible};
///
/// let x = Features::Dense(Array2::from_shape_fn((20, 3), |(i, j)| ((i * j) % 7) as f64));
/// let t: Vec<f64> = (0..20).map(f64::from).collect();
/// let ended = interruptible(|| true, || Ridge::params().fit(&Device::cpu(), x, &t));
/// assert_eq!(ended.unwrap_err(), FitError::Op(OpError::Interrupted));
/// ```
pub fn interruptible<R>(is_wanted: impl Fn() -> bool + 'static, work: impl FnOnce() -> R) -> R {
    let _restored = Restored(WANTED.replace(Some(Rc::new(is_wanted))));
    work()
}

/// [`interruptible`] of work whose end may be wanted by whoever was asked until now as well.
pub(crate) fn interruptible_too<R>(
    is_wanted: impl Fn() -> bool + 'static,
    work: impl FnOnce() -> R,
) -> R {
    let before = WANTED.with_borrow(Clone::clone);
    let outer = move || before.as_ref().is_some_and(|before| before());
    interruptible(move || is_wanted() || outer(), work)
}

/// Puts back who was asked before, also when the work panics.
struct Restored(Option<Wanted>);

impl Drop for Restored {
    fn drop(&mut self) {
        WANTED.set(self.0.take());
    }
}

/// Whether to go on.
///
/// # Errors
/// [`OpError::Interrupted`] if not.
pub(crate) fn proceed() -> Result<(), OpError> {
    let wanted = WANTED.with_borrow(Clone::clone);
    match wanted {
        Some(is_wanted) if is_wanted() => Err(OpError::Interrupted),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_is_asked_and_none_afterwards() {
        assert_eq!(proceed(), Ok(()));
        let outer = interruptible(
            || true,
            || {
                let inner = interruptible(|| false, proceed);
                (inner, proceed())
            },
        );
        assert_eq!(outer, (Ok(()), Err(OpError::Interrupted)));
        assert_eq!(proceed(), Ok(()));
    }

    #[test]
    fn a_panic_leaves_nobody_to_ask() {
        let panicked =
            std::panic::catch_unwind(|| interruptible(|| true, || panic!("of the work")));
        assert!(panicked.is_err());
        assert_eq!(proceed(), Ok(()));
    }
}
