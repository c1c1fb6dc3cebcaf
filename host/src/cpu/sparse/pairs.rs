//! y and w side by side: the access to an element of y brings the element of w along.
//!
//! Where y and w do not fit in the nearest cache, every entry costs a line for its element of y and one for
//! its element of w, which also has to be written back. As pairs they are one line.

use std::ops::Range;
use std::slice;

use crate::cpu::matrix::Csr;
use crate::cpu::scalar::Scalar;
use crate::cpu::scratch::{Memory, Pool};

use super::rows::{Gather, Scatter, TILE};

/// An element of y and the one of w.
#[repr(C)]
#[derive(Clone, Copy)]
struct Pair<T, W> {
    y: T,
    w: W,
}

/// Pairs that take more would not stay in the second-level cache; memory is not spent on them.
const MAX_BYTES: usize = 2 << 20;

/// Entries per column that repay writing the pairs and reading them again.
const MIN_USES: usize = 4;

/// Most rows whose contributions to w are added up in T before they go to f64; the fewest are [`TILE`].
pub(in crate::cpu) const BLOCK: usize = 4 * TILE;

/// Columns for each entry of a block of rows, at most: with more, adding the block's w in f64 costs more than pairs of half
/// the size save.
const COLUMNS_PER_ENTRY: usize = 2;

/// Where y and w are best kept during a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Where their owners keep them.
    Apart,
    /// As pairs, with w in f64.
    Pairs,
    /// As pairs, with w in T, which goes to f64 after this many rows.
    Blocks(usize),
}

impl Layout {
    /// For a pass over rows of `x`; by their shape alone.
    pub fn of<T: Scalar>(x: &Csr<T>, rows: &Range<usize>) -> Layout {
        let entries = (x.offsets()[rows.end] - x.offsets()[rows.start]) as usize;
        let stays = |bytes: usize| x.cols().saturating_mul(bytes) <= MAX_BYTES;
        if entries == 0 || entries / MIN_USES < x.cols() {
            return Layout::Apart;
        }
        let of_row = (entries / rows.len()).max(1);
        let block = (x.cols().saturating_mul(MIN_USES) / of_row).clamp(TILE, BLOCK);
        let of_block = entries.min(block.saturating_mul(of_row));
        if size_of::<T>() < size_of::<f64>()
            && of_block.saturating_mul(COLUMNS_PER_ENTRY) >= x.cols()
            && stays(size_of::<Pair<T, T>>())
        {
            Layout::Blocks(block)
        } else if stays(size_of::<Pair<T, f64>>()) {
            Layout::Pairs
        } else {
            Layout::Apart
        }
    }
}

/// y and w as pairs, one for every column of a matrix; w is added up in W.
pub struct Paired<'a, T, W>(&'a mut [Pair<T, W>]);

impl<'a, T: Scalar, W: Scalar> Paired<'a, T, W> {
    /// Memory for the pairs of `x`; `None` when the system has none.
    pub fn memory(x: &Csr<T>, pool: &Pool) -> Option<Memory> {
        pool.take(x.cols().checked_mul(size_of::<Pair<T, W>>())?)
    }

    /// For `x`; what they hold is not defined before [`fill`](Self::fill).
    pub fn new(x: &Csr<T>, memory: &'a mut Memory) -> Self {
        let bytes = memory.bytes();
        assert!(
            bytes.len() / size_of::<Pair<T, W>>() >= x.cols(),
            "memory for the pairs"
        );
        // SAFETY: the memory is as long as that, as aligned as a page, borrowed mutably for as long as the
        // pairs, and any bytes are floating-point numbers.
        let pairs = unsafe { slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), x.cols()) };
        Paired(pairs)
    }

    /// Makes the pairs of `y` and zeros.
    #[inline(always)]
    pub fn fill(&mut self, y: &[T]) {
        for (pair, &y) in self.0.iter_mut().zip(y) {
            let w = W::default();
            *pair = Pair { y, w };
        }
    }

    /// Adds the pairs' w to `w`; they are zeros afterwards.
    #[inline(always)]
    pub fn drain_to(&mut self, w: &mut [f64]) {
        for (w, pair) in w.iter_mut().zip(&mut *self.0) {
            *w += pair.w.into();
            pair.w = W::default();
        }
    }

    /// The same pairs, for a pass over some rows.
    pub fn reborrow(&mut self) -> Paired<'_, T, W> {
        Paired(self.0)
    }
}

impl<T: Scalar, W: Scalar> Gather<T> for Paired<'_, T, W> {
    #[inline(always)]
    unsafe fn y(&self, column: u32) -> T {
        // SAFETY: indices of the matrix are below its number of columns, which is that of the pairs.
        unsafe { self.0.get_unchecked(column as usize).y }
    }
}

impl<T: Scalar, W: Scalar> Scatter for Paired<'_, T, W> {
    type Sum = W;

    #[inline(always)]
    unsafe fn w(&mut self, column: u32) -> &mut W {
        // SAFETY: as for y.
        unsafe { &mut self.0.get_unchecked_mut(column as usize).w }
    }
}
