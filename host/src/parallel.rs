//! Parallel loops that are compiled once.
//!
//! Every parallel iterator of `rayon` is a type of its own, and each kind of loop brings some fifty functions of splitting,
//! stealing and panicking. Here the loop itself is compiled once, over a task that is called through a pointer; what a caller
//! adds is its task. So a task should be worth some microseconds: a block of elements, not an element.
//!
//! Results come in the order of the tasks, whatever thread ran them.

pub(crate) mod checksum;
pub(crate) mod chunks;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Elements that one task converts or looks at.
const BLOCK: usize = 1 << 14;
/// Blocks that the calling thread converts or looks at before another would have woken.
const FEW: usize = 2;

/// The value of a mutex that holds memory for work, or a table whose entries are whole at every moment: a panic elsewhere
/// has not spoilt it.
pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `task` with every number below `count`, on all threads.
pub(crate) fn for_each(count: usize, task: impl Fn(usize) + Sync) {
    match count {
        0 => (),
        1 => task(0),
        _ => for_each_of(count, &task),
    }
}

/// Runs `task` on a thread of the pool. Each loop that another thread begins wakes one first: many short loops that follow
/// each other begin faster inside.
pub(crate) fn inside<R: Send>(task: impl FnOnce() -> R + Send) -> R {
    rayon::scope(|_| task())
}

/// The one parallel loop.
fn for_each_of(count: usize, task: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(task);
}

/// What `task` makes of every number below `count`, in order.
pub(crate) fn map<R: Send>(count: usize, task: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let results: Vec<Mutex<Option<R>>> = (0..count).map(|_| Mutex::new(None)).collect();
    for_each(count, |i| put(&results[i], task(i)));
    results.into_iter().map(took).collect()
}

/// What `task` makes of the number and the value of every item, in order.
pub(crate) fn map_items<I: Send, R: Send>(
    items: impl IntoIterator<Item = I>,
    task: impl Fn(usize, I) -> R + Sync,
) -> Vec<R> {
    let items: Vec<Mutex<Option<I>>> = items.into_iter().map(|i| Mutex::new(Some(i))).collect();
    map(items.len(), |i| task(i, take(&items[i])))
}

/// Calls `task` with the number and the value of every item.
pub(crate) fn for_each_item<I: Send>(
    items: impl IntoIterator<Item = I>,
    task: impl Fn(usize, I) + Sync,
) {
    let items: Vec<Mutex<Option<I>>> = items.into_iter().map(|i| Mutex::new(Some(i))).collect();
    for_each(items.len(), |i| task(i, take(&items[i])));
}

/// `convert` of every element, in order.
pub(crate) fn convert<T: Sync, U: Send + Clone + Default>(
    values: &[T],
    convert: impl Fn(&T) -> U + Sync,
) -> Vec<U> {
    let length = block_of(values.len());
    let mut out = vec![U::default(); values.len()];
    for_each_item(out.chunks_mut(length), |block, out| {
        let values = &values[block * length..];
        out.iter_mut()
            .zip(values)
            .for_each(|(out, value)| *out = convert(value));
    });
    out
}

/// What `make` gives for every number below `len`, in order.
pub(crate) fn filled<T: Send + Clone + Default>(
    len: usize,
    make: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let mut out = vec![T::default(); len];
    update(&mut out, |i, out| *out = make(i));
    out
}

/// Calls `change` with the number and the place of every element.
pub(crate) fn update<T: Send>(values: &mut [T], change: impl Fn(usize, &mut T) + Sync) {
    let length = block_of(values.len());
    for_each_item(values.chunks_mut(length), |block, values| {
        let numbers = block * length..;
        numbers.zip(values).for_each(|(i, value)| change(i, value));
    });
}

/// The sum of `term` over the numbers below `len`, added in an order that `len` decides.
pub(crate) fn sum(len: usize, term: impl Fn(usize) -> f64 + Sync) -> f64 {
    of_blocks(len, |numbers| numbers.map(&term).sum::<f64>())
        .into_iter()
        .sum()
}

/// The least `value` of the numbers below `len`, without those that are NaN; infinite where there are none.
pub(crate) fn least(len: usize, value: impl Fn(usize) -> f64 + Sync) -> f64 {
    let least = |all: &mut dyn Iterator<Item = f64>| all.fold(f64::INFINITY, f64::min);
    let blocks = of_blocks(len, |numbers| least(&mut numbers.map(&value)));
    least(&mut blocks.into_iter())
}

/// What `f` makes of blocks of the numbers below `len`, in order.
fn of_blocks<R: Send>(len: usize, f: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
    let length = block_of(len);
    map(len.div_ceil(length), |block| {
        f(block * length..len.min((block + 1) * length))
    })
}

/// Elements of a block of `len`.
fn block_of(len: usize) -> usize {
    match len <= FEW * BLOCK {
        true => len.max(1),
        false => BLOCK,
    }
}

/// How many of the numbers below `count` `find` puts into each of `cells`.
pub(crate) fn counts(
    count: usize,
    cells: usize,
    find: impl Fn(usize) -> Option<usize> + Sync,
) -> Vec<u64> {
    let chunks = of_blocks(count, |numbers| {
        let mut counts = vec![0; cells];
        for cell in numbers.filter_map(&find) {
            counts[cell] += 1;
        }
        counts
    });
    let mut total = vec![0; cells];
    for (cell, count) in chunks.iter().flat_map(|counts| counts.iter().enumerate()) {
        total[cell] += count;
    }
    total
}

/// Whether `holds` is true of every piece of `length` elements.
pub(crate) fn all_chunks<T: Sync>(
    values: &[T],
    length: usize,
    holds: impl Fn(&[T]) -> bool + Sync,
) -> bool {
    let fails = |i: usize| (!holds(chunk(values, length, i))).then_some(());
    first(values.len().div_ceil(length), fails).is_none()
}

/// The number of the first element of which `holds` is true.
pub(crate) fn position<T: Sync>(values: &[T], holds: impl Fn(&T) -> bool + Sync) -> Option<usize> {
    let length = block_of(values.len());
    first(values.len().div_ceil(length), |block| {
        let found = chunk(values, length, block).iter().position(&holds);
        found.map(|at| block * length + at)
    })
}

/// The result of the first task that has one. Tasks behind one that has are not begun.
pub(crate) fn first<R: Send>(count: usize, task: impl Fn(usize) -> Option<R> + Sync) -> Option<R> {
    let found = AtomicUsize::new(usize::MAX);
    let best: Mutex<Option<(usize, R)>> = Mutex::new(None);
    for_each(count, |i| {
        if i > found.load(Ordering::Relaxed) {
            return;
        }
        let Some(result) = task(i) else { return };
        if found.fetch_min(i, Ordering::Relaxed) > i {
            let mut best = best.lock().expect(UNPOISONED);
            if best.as_ref().is_none_or(|(at, _)| *at > i) {
                *best = Some((i, result));
            }
        }
    });
    best.into_inner()
        .expect(UNPOISONED)
        .map(|(_, result)| result)
}

/// Piece `number` of `length` elements, the last one shorter.
pub(crate) fn chunk<T>(values: &[T], length: usize, number: usize) -> &[T] {
    let start = number * length;
    &values[start..values.len().min(start + length)]
}

/// A lock is held while a value is moved, which does not panic.
const UNPOISONED: &str = "nothing panics while it holds the lock";

fn put<R>(slot: &Mutex<Option<R>>, result: R) {
    *slot.lock().expect(UNPOISONED) = Some(result);
}

fn take<I>(slot: &Mutex<Option<I>>) -> I {
    let item = slot.lock().expect(UNPOISONED).take();
    item.expect("every item has one task")
}

fn took<R>(slot: Mutex<Option<R>>) -> R {
    let result = slot.into_inner().expect(UNPOISONED);
    result.expect("every task has run")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
        for count in [0, 1, 2, 1000] {
            let squares = map(count, |i| i * i);
            assert!(
                squares
                    .iter()
                    .enumerate()
                    .all(|(i, square)| *square == i * i)
            );
            assert_eq!(squares.len(), count);
        }
        let items = map_items(vec!["a", "b", "c"], |i, item| format!("{item}{i}"));
        assert_eq!(items, ["a0", "b1", "c2"]);
    }

    #[test]
    fn inside_is_a_thread_of_the_pool() {
        assert!(inside(|| rayon::current_thread_index().is_some()));
    }

    #[test]
    fn items_are_written_where_they_lie() {
        let mut values = vec![0; 10];
        for_each_item(values.chunks_mut(4), |i, piece| piece.fill(i));
        assert_eq!(values, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn elements_are_converted_over_the_ends_of_blocks() {
        for len in [0, 1, FEW * BLOCK, FEW * BLOCK + 1, 3 * BLOCK + 5] {
            let values: Vec<u32> = (0..len as u32).collect();
            let doubled = convert(&values, |v| u64::from(*v) * 2);
            assert!((0..).zip(&doubled).all(|(i, v)| *v == 2 * i));
            assert_eq!(doubled.len(), len);
        }
    }

    #[test]
    fn sums_and_the_least_are_of_all_elements_over_the_ends_of_blocks() {
        for len in [0, 1, FEW * BLOCK, FEW * BLOCK + 1, 3 * BLOCK + 5] {
            let mut values = filled(len, |i| i as f64);
            update(&mut values, |i, value| *value -= 2.0 * i as f64);
            let total = sum(len, |i| values[i]);
            assert_eq!(total, -((len * len.saturating_sub(1) / 2) as f64));
            let expected = if len == 0 {
                f64::INFINITY
            } else {
                1.0 - len as f64
            };
            assert_eq!(least(len, |i| values[i]), expected);
        }
    }

    #[test]
    fn of_several_the_first_is_found() {
        let values: Vec<usize> = (0..5 * BLOCK).collect();
        for _ in 0..20 {
            assert_eq!(position(&values, |v| *v >= BLOCK + 7), Some(BLOCK + 7));
        }
        assert_eq!(position(&values, |v| *v > 5 * BLOCK), None);
        assert!(all_chunks(&values, 100, |piece| piece.len() == 100
            || piece[0] > 5 * BLOCK - 100));
        assert!(!all_chunks(&values, 100, |piece| piece[0] < BLOCK));
    }

    #[test]
    #[should_panic(expected = "of task 7")]
    fn a_panic_reaches_the_caller() {
        for_each(100, |i| assert!(i != 7, "of task {i}"));
    }
}
