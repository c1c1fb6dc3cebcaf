//! One row after the other: its dot product with y, and its axpy to w.

use std::marker::PhantomData;
use std::ops::Range;

use pulp::Simd;

use crate::cpu::lanes::{Lanes, prefetch_elements};
use crate::cpu::matrix::Csr;
use crate::cpu::scalar::Scalar;

/// Entries of a dot product that are added up in T before they go to f64.
pub const TILE: usize = 4096;

/// Entries that are taken together, with sums of their own so that additions do not wait for one another.
const GROUP: usize = 4;

/// How many entries ahead of their use are requested: 2 KB of indices.
const AHEAD: usize = 512;

/// Entries that are requested together.
const STRIDE: usize = 64;

/// Where the elements of y are.
pub trait Gather<T> {
    /// Element `column` of y.
    ///
    /// # Safety
    /// `column` is an index of the matrix that `self` was made for.
    unsafe fn y(&self, column: u32) -> T;
}

/// Where the elements of w are.
pub trait Scatter {
    /// What they are added up in.
    type Sum: Scalar;

    /// Element `column` of w.
    ///
    /// # Safety
    /// `column` is an index of the matrix that `self` was made for.
    unsafe fn w(&mut self, column: u32) -> &mut Self::Sum;
}

/// y, an element for every column of a matrix.
pub struct Inputs<'a, T>(&'a [T]);

impl<'a, T: Scalar> Inputs<'a, T> {
    /// For `x`.
    pub fn new(x: &Csr<T>, y: &'a [T]) -> Self {
        assert_eq!(y.len(), x.cols(), "y needs one element per column of X");
        Inputs(y)
    }
}

impl<T: Scalar> Gather<T> for Inputs<'_, T> {
    #[inline(always)]
    unsafe fn y(&self, column: u32) -> T {
        // SAFETY: indices of the matrix are below its number of columns, which is the length of y.
        unsafe { *self.0.get_unchecked(column as usize) }
    }
}

/// w, an element for every column of a matrix.
pub struct Sums<'a>(&'a mut [f64]);

impl<'a> Sums<'a> {
    /// For `x`.
    pub fn new<T: Scalar>(x: &Csr<T>, w: &'a mut [f64]) -> Self {
        assert_eq!(w.len(), x.cols(), "w needs one element per column of X");
        Sums(w)
    }
}

impl Scatter for Sums<'_> {
    type Sum = f64;

    #[inline(always)]
    unsafe fn w(&mut self, column: u32) -> &mut f64 {
        // SAFETY: indices of the matrix are below its number of columns, which is the length of w.
        unsafe { self.0.get_unchecked_mut(column as usize) }
    }
}

/// y and w where their owners keep them.
pub struct Apart<'a, T> {
    y: Inputs<'a, T>,
    w: Sums<'a>,
}

impl<'a, T: Scalar> Apart<'a, T> {
    /// For `x`.
    pub fn new(x: &Csr<T>, y: &'a [T], w: &'a mut [f64]) -> Self {
        Apart {
            y: Inputs::new(x, y),
            w: Sums::new(x, w),
        }
    }
}

impl<T: Scalar> Gather<T> for Apart<'_, T> {
    #[inline(always)]
    unsafe fn y(&self, column: u32) -> T {
        // SAFETY: the caller's promise.
        unsafe { self.y.y(column) }
    }
}

impl<T: Scalar> Scatter for Apart<'_, T> {
    type Sum = f64;

    #[inline(always)]
    unsafe fn w(&mut self, column: u32) -> &mut f64 {
        // SAFETY: the caller's promise.
        unsafe { self.w.w(column) }
    }
}

/// The entries of a row: pointers and a number, as rows are short and slices cost instructions.
#[derive(Clone, Copy)]
pub struct Entries<'a, T> {
    // Valid for reads of as many elements as the length.
    indices: *const u32,
    values: *const T,
    len: usize,
    matrix: PhantomData<&'a T>,
}

impl<T: Copy> Entries<'_, T> {
    /// The column and the value of an entry.
    ///
    /// # Safety
    /// `entry` is below the number of entries.
    #[inline(always)]
    unsafe fn get(&self, entry: usize) -> (u32, T) {
        // SAFETY: the entry is one of those that the pointers are valid for.
        unsafe { (*self.indices.add(entry), *self.values.add(entry)) }
    }

    /// The columns and values of a group of entries.
    ///
    /// # Safety
    /// `start + GROUP` is not above the number of entries.
    #[inline(always)]
    unsafe fn group(&self, start: usize) -> [(u32, T); GROUP] {
        // SAFETY: the caller's promise. Two indices are read as one number, which any bytes are: what bounds a
        // pass is the number of loads.
        unsafe {
            let pairs = self.indices.add(start).cast::<u64>();
            let (first, second) = (pairs.read_unaligned(), pairs.add(1).read_unaligned());
            let columns = [first, first >> 32, second, second >> 32];
            let columns = if cfg!(target_endian = "little") {
                columns
            } else {
                [first >> 32, first, second >> 32, second]
            };
            let values = self.values.add(start);
            std::array::from_fn(|i| (columns[i] as u32, *values.add(i)))
        }
    }
}

/// Rows in their order; asks memory for what follows.
pub struct Walk<'a, T> {
    x: Csr<'a, T>,
    rows: Range<usize>,
    // Where the next row starts.
    start: usize,
    // The first entry from which on what lies ahead has not been requested.
    asked: usize,
}

impl<'a, T: Scalar> Walk<'a, T> {
    /// The rows `rows` of `x`.
    pub fn new(x: &Csr<'a, T>, rows: Range<usize>) -> Self {
        assert!(rows.start <= rows.end && rows.end <= x.rows(), "rows of X");
        let start = x.offsets()[rows.start] as usize;
        Walk {
            start,
            asked: start,
            x: *x,
            rows,
        }
    }
}

impl<'a, T: Scalar> Iterator for Walk<'a, T> {
    type Item = (usize, Entries<'a, T>);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next()?;
        // SAFETY: there is one offset more than rows.
        let end = unsafe { *self.x.offsets().get_unchecked(row + 1) } as usize;
        let range = self.start..end;
        self.start = end;
        while self.asked < end {
            prefetch_elements::<_, STRIDE>(self.x.indices(), self.asked + AHEAD);
            prefetch_elements::<_, STRIDE>(self.x.values(), self.asked + AHEAD);
            self.asked += STRIDE;
        }
        let entries = Entries {
            // Within the slices: offsets ascend up to the number of indices and of values.
            indices: self.x.indices().as_ptr().wrapping_add(range.start),
            values: self.x.values().as_ptr().wrapping_add(range.start),
            len: range.len(),
            matrix: PhantomData,
        };
        Some((row, entries))
    }
}

/// `Σ values[k]·y[indices[k]]`.
///
/// # Safety
/// `columns` were made for the matrix that the row is of.
#[inline(always)]
pub unsafe fn dot<T: Scalar, S: Simd>(simd: S, row: Entries<T>, columns: &impl Gather<T>) -> f64 {
    let mut start = 0;
    let mut total = 0.0;
    loop {
        let end = row.len.min(start + TILE);
        // SAFETY: the caller's promise, and entries of the row.
        total += unsafe { dot_tile(simd, row, start..end, columns) }.into();
        if end == row.len {
            return total;
        }
        start = end;
    }
}

/// As [`dot`], over some entries of the row, in T.
///
/// # Safety
/// As [`dot`]; and there are such entries.
#[inline(always)]
unsafe fn dot_tile<T: Scalar, S: Simd>(
    simd: S,
    row: Entries<T>,
    entries: Range<usize>,
    columns: &impl Gather<T>,
) -> T {
    let mut sums = [T::default(); GROUP];
    let mut entry = entries.start;
    while entry + GROUP <= entries.end {
        // SAFETY: within the row, as the loop's condition says.
        let group = unsafe { row.group(entry) };
        for (sum, (column, value)) in sums.iter_mut().zip(group) {
            // SAFETY: the caller's promise.
            *sum = T::mul_add_one(simd, value, unsafe { columns.y(column) }, *sum);
        }
        entry += GROUP;
    }
    while entry < entries.end {
        // SAFETY: within the row, as the loop's condition says.
        let (column, value) = unsafe { row.get(entry) };
        // SAFETY: the caller's promise.
        sums[0] = T::mul_add_one(simd, value, unsafe { columns.y(column) }, sums[0]);
        entry += 1;
    }
    let [a, b, c, d] = sums;
    T::add_one(T::add_one(a, b), T::add_one(c, d))
}

/// `w[indices[k]] += factor·values[k]`.
///
/// # Safety
/// `columns` were made for the matrix that the row is of.
#[inline(always)]
pub unsafe fn axpy<T: Scalar, C: Scatter, S: Simd>(
    simd: S,
    row: Entries<T>,
    factor: f64,
    columns: &mut C,
) {
    let factor = C::Sum::narrow(factor);
    let mut add = |(column, value): (u32, T)| {
        // SAFETY: the caller's promise.
        let w = unsafe { columns.w(column) };
        *w = C::Sum::mul_add_one(simd, C::Sum::narrow(value.into()), factor, *w);
    };
    let mut entry = 0;
    while entry + GROUP <= row.len {
        // SAFETY: within the row, as the loop's condition says.
        let group = unsafe { row.group(entry) };
        group.into_iter().for_each(&mut add);
        entry += GROUP;
    }
    while entry < row.len {
        // SAFETY: within the row, as the loop's condition says.
        add(unsafe { row.get(entry) });
        entry += 1;
    }
}
