//! The first three rungs: one element per thread, a block of elements in registers, tiles in shared memory.
//!
//! Mapping: blocks of 16 × 16 threads, one tile of C each, tiles row by row; neighbouring threads have neighbouring
//! columns. [`registers`] gives a thread rows and columns 16 apart. Shared bytes: none, none, two tiles of 16 × 16.
//! Source: [`shared`] is the matrix product of the CUDA C Programming Guide, §3.2.4.

use super::operand::Operand;
use super::{MatmulArgs, store};
use crate::cta::{Cta, Shared};
use crate::scalar::Real;

/// Threads along each side of a block.
pub const SIDE: u32 = 16;
/// Rows, and columns, of a thread of [`registers`].
pub const EACH: usize = 4;

/// Thread's row and column in the block, and the block's tile.
#[inline(always)]
fn place<C: Cta, T>(cta: &C, args: &MatmulArgs<'_, T>, tile: u32) -> [u32; 4] {
    let tiles = args.n.div_ceil(tile);
    let (thread, block) = (cta.thread(), cta.block());
    [
        thread / SIDE,
        thread % SIDE,
        block / tiles * tile,
        block % tiles * tile,
    ]
}

/// One element per thread.
#[inline(always)]
pub fn naive<C: Cta, T: Real>(cta: &C, args: &MatmulArgs<'_, T>) {
    let [y, x, first_row, first_column] = place(cta, args, SIDE);
    let (row, column) = (first_row + y, first_column + x);
    let (a, b) = (Operand::a(args), Operand::b(args));
    let mut sum = T::ZERO;
    for k in 0..args.k {
        sum = a.get(cta, row, k).fma(b.get(cta, column, k), sum);
    }
    store(cta, args, row, column, sum);
}

/// 4 × 4 elements per thread.
#[inline(always)]
pub fn registers<C: Cta, T: Real>(cta: &C, args: &MatmulArgs<'_, T>) {
    let [y, x, first_row, first_column] = place(cta, args, SIDE * EACH as u32);
    let row = |r: usize| first_row + y + r as u32 * SIDE;
    let column = |c: usize| first_column + x + c as u32 * SIDE;
    let (a, b) = (Operand::a(args), Operand::b(args));
    let mut sums = [[T::ZERO; EACH]; EACH];
    for k in 0..args.k {
        let left: [T; EACH] = core::array::from_fn(|r| a.get(cta, row(r), k));
        let right: [T; EACH] = core::array::from_fn(|c| b.get(cta, column(c), k));
        for r in 0..EACH {
            for c in 0..EACH {
                sums[r][c] = left[r].fma(right[c], sums[r][c]);
            }
        }
    }
    for r in 0..EACH {
        for c in 0..EACH {
            store(cta, args, row(r), column(c), sums[r][c]);
        }
    }
}

/// Tiles of 16 × 16 in shared memory.
#[inline(always)]
pub fn shared<C: Cta, T: Real>(cta: &C, args: &MatmulArgs<'_, T>) {
    let [y, x, first_row, first_column] = place(cta, args, SIDE);
    let (a, b) = (Operand::a(args), Operand::b(args));
    let left: Shared<T> = Shared::at(0, SIDE * SIDE);
    let right: Shared<T> = Shared::at(left.end(), SIDE * SIDE);
    let mut sum = T::ZERO;
    let mut k = 0;
    while k < args.k {
        cta.shared_write(
            left,
            (y * SIDE + x) as usize,
            a.get(cta, first_row + y, k + x),
        );
        cta.shared_write(
            right,
            (y * SIDE + x) as usize,
            b.get(cta, first_column + x, k + y),
        );
        cta.sync();
        for step in 0..SIDE {
            let value = cta.shared_read(left, (y * SIDE + step) as usize);
            sum = value.fma(cta.shared_read(right, (step * SIDE + x) as usize), sum);
        }
        cta.sync();
        k += SIDE;
    }
    store(cta, args, first_row + y, first_column + x, sum);
}
