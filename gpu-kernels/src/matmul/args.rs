//! The family of matrix products, its arguments, and how an element of C is written.

use crate::cta::Cta;
use crate::memory::{In, Out};
use crate::scalar::Real;

/// The family of matrix products.
pub struct Matmul<T>(core::marker::PhantomData<T>);

/// Arguments of every matrix product.
#[repr(C)]
pub struct MatmulArgs<'a, T> {
    /// Rows of C.
    pub m: u32,
    /// Columns of C.
    pub n: u32,
    /// Columns of op(A), rows of op(B).
    pub k: u32,
    /// 1 where A is stored transposed (k × m), else 0.
    pub a_transposed: u32,
    /// 1 where B is stored transposed (n × k), else 0.
    pub b_transposed: u32,
    /// Into how many parts k is divided. Beyond one, C is this many matrices of m × n below one another, each of one part.
    pub parts: u32,
    /// α.
    pub alpha: T,
    /// β.
    pub beta: T,
    /// Elements between the starts of two stored rows of A.
    pub lda: u64,
    /// The same of B.
    pub ldb: u64,
    /// The same of C.
    pub ldc: u64,
    /// A.
    pub a: In<'a, T>,
    /// B.
    pub b: In<'a, T>,
    /// C.
    pub c: Out<'a, T>,
}

impl<T: Copy> Clone for MatmulArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for MatmulArgs<'_, T> {}

/// Threads of a block of the rungs that do not say otherwise.
pub const THREADS: u32 = 256;

/// The most rows, columns and products: tiles may run past the end before 32 bits overflow.
pub const MAX_SIZE: u32 = i32::MAX as u32;

/// Writes `α · sum + β · C(row, column)` where there is such an element.
#[inline(always)]
pub(crate) fn store<C: Cta, T: Real>(
    cta: &C,
    args: &MatmulArgs<'_, T>,
    row: u32,
    column: u32,
    sum: T,
) {
    if row < args.m && column < args.n {
        let at = (row as u64 * args.ldc + column as u64) as usize;
        cta.write(args.c, at, scaled(cta, args, at, sum));
    }
}

/// `α · sum + β · C(at)`.
#[inline(always)]
pub(crate) fn scaled<C: Cta, T: Real>(cta: &C, args: &MatmulArgs<'_, T>, at: usize, sum: T) -> T {
    let value = args.alpha * sum;
    if args.beta == T::ZERO {
        return value;
    }
    args.beta.fma(cta.read(args.c, at), value)
}
