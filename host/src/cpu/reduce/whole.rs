//! Whole arrays.

use gpu_kernels::Words;
use gpu_kernels::reduce::{Element, Reduction, Total};
use pulp::Arch;
use rayon::prelude::*;

use super::{BLOCK, total_of_parts, total_of_threads};

/// How an array is cut up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunks {
    /// Rows (256 packs of 16 bytes) of a chunk.
    pub rows_per_chunk: usize,
}

/// What is reduced: an array, or two of one length.
trait Values<V>: Sync {
    fn len(&self) -> usize;
    fn first(&self, start: usize) -> V;
    /// Calls `each(slot, value)` for the values from `start` on, as many as there are slots or values left.
    fn row<S>(&self, start: usize, slots: &mut [S], each: impl FnMut(&mut S, V, usize));
}

struct One<'a, T>(&'a [T]);

impl<T: Element> Values<T> for One<'_, T> {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn first(&self, start: usize) -> T {
        self.0[start]
    }
    #[inline(always)]
    fn row<S>(&self, start: usize, slots: &mut [S], mut each: impl FnMut(&mut S, T, usize)) {
        for (i, (slot, x)) in slots.iter_mut().zip(&self.0[start..]).enumerate() {
            each(slot, *x, start + i);
        }
    }
}

struct Two<'a, T>(&'a [T], &'a [T]);

impl<T: Element> Values<(T, T)> for Two<'_, T> {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn first(&self, start: usize) -> (T, T) {
        (self.0[start], self.1[start])
    }
    #[inline(always)]
    fn row<S>(&self, start: usize, slots: &mut [S], mut each: impl FnMut(&mut S, (T, T), usize)) {
        let values = self.0[start..].iter().zip(&self.1[start..]);
        for (i, (slot, (x, y))) in slots.iter_mut().zip(values).enumerate() {
            each(slot, (*x, *y), start + i);
        }
    }
}

/// ⊕ lift(xᵢ).
///
/// ```
/// use gpu_kernels::reduce::{Additive, Term};
/// use warpfuse::cpu::reduce::{Chunks, elements};
/// let chunks = Chunks { rows_per_chunk: 4 };
/// assert_eq!(elements(Additive(Term::Value), &[1.5_f32, 2.0], chunks).0, 3.5);
/// ```
pub fn elements<T: Element, R: Reduction<T>>(reduction: R, x: &[T], chunks: Chunks) -> R::Total {
    whole::<T, T, R>(reduction, &One(x), chunks)
}

/// ⊕ lift(xᵢ, yᵢ).
///
/// # Panics
/// When the lengths differ.
pub fn pairs<T: Element, R: Reduction<(T, T)>>(
    reduction: R,
    (x, y): (&[T], &[T]),
    chunks: Chunks,
) -> R::Total {
    assert_eq!(x.len(), y.len(), "arrays of different lengths");
    whole::<T, (T, T), R>(reduction, &Two(x, y), chunks)
}

fn whole<T: Element, V: Copy, R: Reduction<V>>(
    reduction: R,
    values: &impl Values<V>,
    chunks: Chunks,
) -> R::Total {
    if values.len() == 0 {
        return R::Total::NONE;
    }
    let width = BLOCK * T::Pack::LANES;
    let len = width * chunks.rows_per_chunk.max(1);
    let arch = Arch::new();
    let of_chunk = |chunk: usize| {
        arch.dispatch(
            #[inline(always)]
            || total_of_chunk::<T, V, R>(reduction, values, chunk * len, len),
        )
    };
    let count = values.len().div_ceil(len);
    let totals: Vec<R::Total> = if count <= 4 {
        (0..count).map(of_chunk).collect()
    } else {
        (0..count).into_par_iter().map(of_chunk).collect()
    };
    total_of_parts(&totals)
}

#[inline(always)]
fn total_of_chunk<T: Element, V: Copy, R: Reduction<V>>(
    reduction: R,
    values: &impl Values<V>,
    start: usize,
    len: usize,
) -> R::Total {
    let lanes = T::Pack::LANES;
    let pivot = values.first(start);
    let end = values.len().min(start + len);
    let mut slots = vec![reduction.start(); BLOCK * lanes];
    for row in (start..end).step_by(slots.len()) {
        let left = slots.len().min(end - row);
        values.row(row, &mut slots[..left], |slot, value, index| {
            reduction.step(slot, value, pivot, index as u64);
        });
    }
    let of_thread = |lanes: &[R::Running]| {
        let mut totals = lanes.iter().map(|&lane| reduction.finish(lane, pivot));
        let mut pair = || {
            let first = totals.next()?;
            Some(first.with(totals.next()?))
        };
        let low = pair().expect("packs have two lanes or four");
        pair().map_or(low, |high| low.with(high))
    };
    total_of_threads(slots.chunks(lanes).map(of_thread).collect())
}
