//! The last step of a product whose k was divided: adds the parts in order, `C = α · Σₚ A(p·m + i, j) + β · C`.
//!
//! A holds parts · m rows of n elements; a thread has one element of C. Determinism: the same bits for the same parts.

use super::{MatmulArgs, THREADS, scaled};
use crate::cta::{Cache, Cta};
use crate::scalar::Real;

/// One element per thread.
#[inline(always)]
pub fn combine<C: Cta, T: Real>(cta: &C, args: &MatmulArgs<'_, T>) {
    let element = cta.block() as u64 * THREADS as u64 + cta.thread() as u64;
    if element >= args.m as u64 * args.n as u64 {
        return;
    }
    let (row, column) = (element / args.n as u64, element % args.n as u64);
    let mut from = row * args.lda + column;
    let mut sum = T::ZERO;
    for _ in 0..args.parts {
        sum = sum + cta.load(args.a, from as usize, Cache::Once);
        from += args.m as u64 * args.lda;
    }
    let at = (row * args.ldc + column) as usize;
    cta.write(args.c, at, scaled(cta, args, at, sum));
}
