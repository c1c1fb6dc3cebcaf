//! What the launches of a check left in memory, bit by bit: two devices that run the same check can be
//! compared without the check knowing of it.

use std::cell::RefCell;

use anyhow::{Result, ensure};
use gpu_kernels::{Launch, Word};

use crate::launcher::GUARD;

thread_local! {
    static TAPE: RefCell<Option<Tape>> = const { RefCell::new(None) };
}

#[derive(Debug, Default)]
struct Tape {
    last: Option<(&'static str, Launch)>,
    downloads: Vec<Download>,
}

/// An array that a check read back.
#[derive(Debug, Clone, PartialEq)]
pub struct Download {
    /// The kernel that was launched last, and how; none before the first launch.
    pub after: Option<(&'static str, Launch)>,
    /// Type of the elements.
    pub element: &'static str,
    /// Their bits.
    pub bits: Vec<u64>,
}

/// Runs `check` and returns every array that it read back on this thread.
///
/// # Errors
/// Those of `check`.
pub fn recorded(check: impl FnOnce() -> Result<()>) -> Result<Vec<Download>> {
    TAPE.set(Some(Tape::default()));
    let outcome = check();
    let tape = TAPE.take().unwrap_or_default();
    outcome.map(|()| tape.downloads)
}

pub(crate) fn note_launch(kernel: &'static str, shape: Launch) {
    TAPE.with_borrow_mut(|tape| {
        if let Some(tape) = tape {
            tape.last = Some((kernel, shape));
        }
    });
}

pub(crate) fn note_values<T: Word>(values: &[T]) {
    TAPE.with_borrow_mut(|tape| {
        if let Some(tape) = tape {
            tape.downloads.push(Download {
                after: tape.last,
                element: T::NAME,
                bits: values.iter().map(|value| value.to_bits()).collect(),
            });
        }
    });
}

/// How well two tapes agree.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Agreement {
    /// Arrays compared.
    pub arrays: usize,
    /// Arrays of which all bits are the same.
    pub identical: usize,
    /// The largest difference of two elements over the largest magnitude of their array, guards left out.
    pub worst_relative: f64,
}

/// Compares what two devices left in the same check.
///
/// # Errors
/// When they did not do the same: other launches, or arrays of another length or type.
pub fn compare(one: &[Download], other: &[Download]) -> Result<Agreement> {
    let (arrays, others) = (one.len(), other.len());
    ensure!(
        arrays == others,
        "{arrays} arrays on one device, {others} on the other"
    );
    let mut agreement = Agreement {
        arrays,
        ..Agreement::default()
    };
    for (a, b) in one.iter().zip(other) {
        ensure!(
            a.after == b.after && a.element == b.element && a.bits.len() == b.bits.len(),
            "the devices did different things: {:?} and {:?}",
            a.after,
            b.after
        );
        agreement.identical += usize::from(a.bits == b.bits);
        agreement.worst_relative = agreement.worst_relative.max(relative(a, b));
    }
    Ok(agreement)
}

/// Infinite where one device has a number and the other has not.
fn relative(a: &Download, b: &Download) -> f64 {
    let (a, b) = (a.numbers(), b.numbers());
    let finite = a.iter().filter(|x| x.is_finite());
    let largest = finite.fold(f64::MIN_POSITIVE, |max, x| max.max(x.abs()));
    let differences = a.iter().zip(&b).map(|(a, b)| match (a - b).abs() {
        _ if a == b || (a.is_nan() && b.is_nan()) => 0.0,
        difference if difference.is_finite() => difference / largest,
        _ => f64::INFINITY,
    });
    differences.fold(0.0, f64::max)
}

impl Download {
    fn numbers(&self) -> Vec<f64> {
        let number = |&bits: &u64| match self.element {
            "f32" => f64::from(f32::from_bits(bits as u32)),
            "f64" => f64::from_bits(bits),
            _ => bits as f64,
        };
        // What lies behind the end of an array would hide how small its elements are.
        let own = match self.bits.len() {
            len if len > GUARD => len - GUARD,
            len => len,
        };
        self.bits[..own].iter().map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn download(values: &[f32]) -> Vec<Download> {
        let noted = recorded(|| {
            note_values(values);
            Ok(())
        });
        noted.expect("nothing fails")
    }

    #[test]
    fn differences_are_seen() {
        let agreement = |a: &[f32], b: &[f32]| compare(&download(a), &download(b));
        let same = agreement(&[1.0, f32::NAN], &[1.0, f32::NAN]).expect("the same length");
        assert_eq!((same.identical, same.worst_relative), (1, 0.0));
        let other = agreement(&[4.0, 1.0], &[4.0, 2.0]).expect("the same length");
        assert_eq!((other.identical, other.worst_relative), (0, 0.25));
        let nan = agreement(&[1.0], &[f32::NAN]).expect("the same length");
        assert_eq!(nan.worst_relative, f64::INFINITY);
        assert!(agreement(&[1.0], &[1.0, 2.0]).is_err());
    }

    #[test]
    fn nothing_is_kept_without_a_recording() {
        note_values(&[1.0f32]);
        assert_eq!(download(&[2.0]).len(), 1);
    }
}
