//! Rows of a dense matrix as SIMD vectors.

use pulp::Simd;

use crate::cpu::lanes::{MAX_LANES, prefetch};
use crate::cpu::matrix::Dense;
use crate::cpu::scalar::Scalar;

/// n elements as vectors: all but the last, and the last, with zeros beyond the n-th element.
#[derive(Clone, Copy)]
pub struct Vectors<'a, T: Scalar, S: Simd> {
    pub full: &'a [T::Vector<S>],
    pub last: T::Vector<S>,
}

/// A row of which the last vector is still to be read (by [`RowReader::last`], in its turn).
#[derive(Clone, Copy)]
pub struct Row<'a, T: Scalar, S: Simd> {
    pub full: &'a [T::Vector<S>],
    /// What follows in memory: the rest of the row, and the next rows.
    tail: &'a [T],
}

/// Reads rows of a matrix with at least one column as vectors.
pub struct RowReader<'a, T: Scalar, S: Simd> {
    pub simd: S,
    x: Dense<'a, T>,
    /// Vectors before the last one.
    full: usize,
    /// The lanes of the last vector that belong to the row.
    mask: T::Mask<S>,
}

impl<'a, T: Scalar, S: Simd> RowReader<'a, T, S> {
    #[inline(always)]
    pub fn new(simd: S, x: Dense<'a, T>) -> Self {
        let full = (x.cols() - 1) / T::count::<S>();
        let mask = T::first(simd, x.cols() - full * T::count::<S>());
        RowReader {
            simd,
            x,
            full,
            mask,
        }
    }

    /// Vectors per row, the last one included.
    #[inline(always)]
    pub fn vectors_per_row(&self) -> usize {
        self.full + 1
    }

    /// Asks for as much as a row beyond the start of row `row`.
    #[inline(always)]
    pub fn prefetch(&self, row: usize) {
        let start = self.x.values().as_ptr().wrapping_add(row * self.x.stride());
        prefetch(
            start.cast(),
            self.vectors_per_row() * size_of::<T::Vector<S>>(),
        );
    }

    /// Row `row`, to be read.
    #[inline(always)]
    pub fn row(&self, row: usize) -> Row<'a, T, S> {
        self.split(&self.x.values()[row * self.x.stride()..])
    }

    /// Row `row` of `V` vectors, read.
    #[inline(always)]
    pub fn load<const V: usize>(&self, row: usize) -> [T::Vector<S>; V] {
        let values = &self.x.values()[row * self.x.stride()..];
        match T::vectors::<S>(values).first_chunk::<V>() {
            Some(&vectors) => {
                let mut vectors = vectors;
                vectors[V - 1] = T::keep(self.simd, self.mask, vectors[V - 1]);
                vectors
            }
            None => self.vectors(values).to_array(),
        }
    }

    /// The first n elements of `values`, the last vector read.
    #[inline(always)]
    pub fn vectors<'b>(&self, values: &'b [T]) -> Vectors<'b, T, S> {
        let row = self.split(values);
        Vectors {
            full: row.full,
            last: self.last(row),
        }
    }

    #[inline(always)]
    fn split<'b>(&self, values: &'b [T]) -> Row<'b, T, S> {
        let (head, tail) = values.split_at(self.full * T::count::<S>());
        Row {
            full: T::vectors::<S>(head),
            tail,
        }
    }

    /// The last vector of a row. May read, but does not use, elements of the next rows.
    #[inline(always)]
    pub fn last(&self, row: Row<T, S>) -> T::Vector<S> {
        match T::vectors::<S>(row.tail).first() {
            Some(&vector) => T::keep(self.simd, self.mask, vector),
            None => self.padded(&row.tail[..self.x.cols() - self.full * T::count::<S>()]),
        }
    }

    /// The last elements of the last rows, where a whole vector would reach beyond the matrix.
    #[inline(always)]
    fn padded(&self, tail: &[T]) -> T::Vector<S> {
        let mut buffer = [T::default(); MAX_LANES];
        buffer[..tail.len()].copy_from_slice(tail);
        T::vectors::<S>(&buffer)[0]
    }
}

impl<T: Scalar, S: Simd> Vectors<'_, T, S> {
    /// All `V` vectors.
    #[inline(always)]
    pub fn to_array<const V: usize>(self) -> [T::Vector<S>; V] {
        let mut vectors = [self.last; V];
        vectors[..V - 1].copy_from_slice(self.full);
        vectors
    }
}
