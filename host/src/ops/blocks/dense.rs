//! A block of dense rows as the arguments of kernels.

use std::ops::Range;

use gpu_kernels::fused::DenseArgs;
use gpu_kernels::{In, Out, Real};

use crate::ops::Number;
use crate::ops::forms::site::{BlockVectors, Call};

/// Rows `first_row .. first_row + rows`, `ld` elements apart.
#[derive(Clone, Copy)]
pub(in crate::ops) struct DenseBlock<'a, T> {
    /// Its first row; a multiple of 32, so that parts of vectors are aligned.
    pub first_row: usize,
    /// Its number of rows.
    pub rows: usize,
    /// Elements from one row to the next.
    pub ld: usize,
    /// `rows · ld` elements.
    pub values: In<'a, T>,
}

impl<'a, T: Number> DenseBlock<'a, T> {
    /// No rows.
    pub(in crate::ops) fn empty() -> Self {
        DenseBlock {
            first_row: 0,
            rows: 0,
            ld: 0,
            values: In::none(),
        }
    }

    /// Its rows among all.
    pub(in crate::ops) fn range(&self) -> Range<usize> {
        self.first_row..self.first_row + self.rows
    }

    /// The array without vectors; there are this many columns.
    pub(in crate::ops) fn arrays(&self, cols: usize) -> DenseArgs<'a, T> {
        DenseArgs {
            rows: self.rows as u32,
            cols: cols as u32,
            chunks: 0,
            ld: self.ld as u64,
            x: self.values,
            input: In::none(),
            weights: In::none(),
            shift: In::none(),
            addend: In::none(),
            output: Out::none(),
            alpha: <T as Real>::ONE,
            beta: T::ZERO,
        }
    }

    /// The arguments of a product.
    pub(in crate::ops) fn args(&self, cols: usize, call: Call<'a, 'a, T>) -> DenseArgs<'a, T> {
        let BlockVectors {
            input,
            weights,
            shift,
            addend,
            output,
            alpha,
            beta,
            ..
        } = call.of_rows(&self.range());
        DenseArgs {
            input,
            weights,
            shift,
            addend,
            output,
            alpha,
            beta,
            ..self.arrays(cols)
        }
    }
}
