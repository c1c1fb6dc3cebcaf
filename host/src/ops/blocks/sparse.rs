//! A block of sparse rows as the arguments of kernels.

use std::ops::Range;

use gpu_kernels::fused::SparseArgs;
use gpu_kernels::{In, Out, Real};

use crate::ops::Number;
use crate::ops::forms::site::{BlockVectors, Call};

/// Rows `first_row .. first_row + rows` in CSR with offsets of their own.
#[derive(Clone, Copy)]
pub(in crate::ops) struct SparseBlock<'a, T> {
    /// Its first row; a multiple of 32, so that parts of vectors are aligned.
    pub first_row: usize,
    /// Its number of rows.
    pub rows: usize,
    /// `rows + 1` offsets, the first 0.
    pub offsets: In<'a, u32>,
    /// The column of each entry.
    pub indices: In<'a, u32>,
    /// Its value.
    pub values: In<'a, T>,
}

impl<'a, T: Number> SparseBlock<'a, T> {
    /// Its rows among all.
    pub(in crate::ops) fn range(&self) -> Range<usize> {
        self.first_row..self.first_row + self.rows
    }

    /// Its entries.
    pub(in crate::ops) fn entries(&self) -> usize {
        self.indices.len() as usize
    }

    /// The arrays without vectors; there are this many columns.
    pub(in crate::ops) fn arrays(&self, cols: usize) -> SparseArgs<'a, T> {
        SparseArgs {
            rows: self.rows as u32,
            cols: cols as u32,
            offsets: self.offsets,
            indices: self.indices,
            values: self.values,
            ..no_matrix()
        }
    }

    /// The arguments of a product.
    pub(in crate::ops) fn args(&self, cols: usize, call: Call<'a, 'a, T>) -> SparseArgs<'a, T> {
        let BlockVectors {
            input,
            weights,
            shift,
            addend,
            solve,
            output,
            alpha,
            beta,
        } = call.of_rows(&self.range());
        SparseArgs {
            input,
            weights,
            shift,
            addend,
            solve,
            output,
            alpha,
            beta,
            ..self.arrays(cols)
        }
    }
}

/// Arguments without anything.
pub(in crate::ops) fn no_matrix<'a, T: Number>() -> SparseArgs<'a, T> {
    SparseArgs {
        rows: 0,
        cols: 0,
        offsets: In::none(),
        indices: In::none(),
        values: In::none(),
        input: In::none(),
        weights: In::none(),
        shift: In::none(),
        addend: In::none(),
        solve: In::none(),
        output: Out::none(),
        alpha: <T as Real>::ONE,
        beta: T::ZERO,
    }
}
