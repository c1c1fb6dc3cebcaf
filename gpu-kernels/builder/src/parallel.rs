//! Several programs at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::BuildError;

/// Applies a function to all items, by this many threads; the results are in the items' order.
///
/// # Errors
/// The first error in that order. Items that nobody has begun then are left out.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    workers: usize,
    work: impl Fn(&T) -> Result<R, BuildError> + Sync,
) -> Result<Vec<R>, BuildError> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<R, BuildError>)>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..workers.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let result = work(item);
                    if result.is_err() {
                        next.store(items.len(), Ordering::Relaxed);
                    }
                    // Pushing cannot leave the list half-changed.
                    let mut done = done.lock().unwrap_or_else(|poison| poison.into_inner());
                    done.push((at, result));
                }
            });
        }
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner());
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_an_error_is_one() {
        let items: Vec<u32> = (0..100).collect();
        let squares = in_parallel(&items, 4, |item| Ok(item * item)).expect("no error");
        assert_eq!(squares[99], 99 * 99);
        assert!(in_parallel(&[], 4, |item: &u32| Ok(*item)).is_ok_and(|none| none.is_empty()));
        let failed = in_parallel(&items, 4, |item| match item {
            50 => Err(BuildError::UnknownArch { name: "x".into() }),
            other => Ok(*other),
        });
        assert!(matches!(failed, Err(BuildError::UnknownArch { .. })));
    }
}
