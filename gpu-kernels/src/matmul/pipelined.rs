//! Fused multiply-adds from panels that were copied ahead.
//!
//! Mapping: warps as many `DOWN` and `RIGHT` as make the tile, lanes as 4 × 8. A thread has `4·H` × 8 elements of C in
//! groups of 4 × 4: groups are 16 rows and 32 columns apart, so that a warp has 16·H × 64 elements and reads its part
//! of a row of a panel in accesses of 64 and 128 bytes without conflicts. A step of k is the outer product of 4·H
//! elements of A and 8 of B, column by column, down one and up the next: an instruction can then keep an operand of the
//! one before, and needs two reads of registers instead of three, which is what the register file can do in a cycle.
//!
//! Source: V. Volkov and J. Demmel, "Benchmarking GPUs to tune dense linear algebra", SC 2008; the arrangement of the
//! lanes of a warp is that of CUTLASS.

use super::MatmulArgs;
use super::panel::{DEPTH, place};
use super::pipeline::{Multiply, Panels, Piece, each_panel};
use super::target::Target;
use crate::cta::{Cta, Shared, WARP};
use crate::scalar::{Real, Words};

/// Threads of a block.
pub const THREADS: u32 = 128;
/// Rows, and columns, of a group.
const GROUP: usize = 4;
/// Groups of a thread along a row of C.
const WIDE: usize = 2;
/// Rows between the groups of a thread: four lanes with a group each.
const DOWN: u32 = 16;
/// Columns between them: eight lanes.
const ACROSS: u32 = 32;

/// A thread's elements of C, and where they are: `[group right][column][group down][row]`.
struct Thread<T, const H: usize, const M: u32, const N: u32> {
    /// First row in the tile.
    row: u32,
    /// First column in the tile.
    column: u32,
    sums: [[[[T; GROUP]; H]; GROUP]; WIDE],
}

impl<T: Real, const H: usize, const M: u32, const N: u32> Thread<T, H, M, N> {
    /// The thread's place where `right` warps are beside one another.
    #[inline(always)]
    fn new<C: Cta>(cta: &C, right: u32) -> Self {
        let (warp, lane) = (cta.thread() / WARP, cta.thread() % WARP);
        Thread {
            row: warp / right * DOWN * H as u32 + lane / 8 * GROUP as u32,
            column: warp % right * ACROSS * WIDE as u32 + lane % 8 * GROUP as u32,
            sums: [[[[T::ZERO; GROUP]; H]; GROUP]; WIDE],
        }
    }

    /// The thread's elements of A and B at step `k`.
    #[inline(always)]
    fn read<C: Cta>(&self, cta: &C, panels: Panels<T>, k: u32) -> Factors<T, H> {
        Factors {
            a: core::array::from_fn(|h| {
                four(cta, panels.a, place(M, self.row + h as u32 * DOWN, k))
            }),
            b: core::array::from_fn(|g| {
                four(cta, panels.b, place(N, self.column + g as u32 * ACROSS, k))
            }),
        }
    }

    /// Adds the outer product.
    #[inline(always)]
    fn add(&mut self, factors: &Factors<T, H>) {
        for g in 0..WIDE {
            for c in 0..GROUP {
                let b = factors.b[g][c];
                for i in 0..H * GROUP {
                    let r = if c % 2 == 0 { i } else { H * GROUP - 1 - i };
                    let sum = &mut self.sums[g][c][r / GROUP][r % GROUP];
                    *sum = factors.a[r / GROUP][r % GROUP].fma(b, *sum);
                }
            }
        }
    }

    #[inline(always)]
    fn store<C: Cta>(&self, cta: &C, args: &MatmulArgs<'_, T>, piece: &Piece) {
        let target = Target::of(args, piece, (M, N));
        for h in 0..H {
            for r in 0..GROUP {
                let row = piece.row + self.row + h as u32 * DOWN + r as u32;
                for g in 0..WIDE {
                    let column = piece.column + self.column + g as u32 * ACROSS;
                    let values = core::array::from_fn(|c| self.sums[g][c][h][r]);
                    target.write_four(cta, args, (row, column), values);
                }
            }
        }
    }
}

/// What a step of k multiplies.
struct Factors<T, const H: usize> {
    a: [[T; GROUP]; H],
    b: [[T; GROUP]; WIDE],
}

/// Four neighbours.
#[inline(always)]
fn four<C: Cta, T: Real>(cta: &C, panel: Shared<T>, at: u32) -> [T; GROUP] {
    let lanes = T::Pack::LANES;
    let mut values = [T::ZERO; GROUP];
    for first in 0..GROUP / lanes {
        let pack = cta.shared_read_pack(panel, at as usize + first * lanes);
        for l in 0..lanes {
            values[first * lanes + l] = pack.as_ref()[l];
        }
    }
    values
}

impl<C: Cta, T: Real, const H: usize, const M: u32, const N: u32> Multiply<C, T>
    for Thread<T, H, M, N>
{
    type First = Factors<T, H>;

    #[inline(always)]
    fn first(&self, cta: &C, panels: Panels<T>) -> Self::First {
        self.read(cta, panels, 0)
    }

    #[inline(always)]
    fn multiply(&mut self, cta: &C, panels: Panels<T>, first: Self::First) {
        self.add(&first);
        for k in 1..DEPTH {
            let factors = self.read(cta, panels, k);
            self.add(&factors);
        }
    }
}

/// A tile of M × N elements, `RIGHT` warps beside one another.
#[inline(always)]
pub fn pipelined<C: Cta, T: Real, const H: usize, const RIGHT: u32, const M: u32, const N: u32>(
    cta: &C,
    args: &MatmulArgs<'_, T>,
) {
    let piece = Piece::of(cta, args, (M, N));
    let mut thread = Thread::<T, H, M, N>::new(cta, RIGHT);
    each_panel::<C, T, M, N, THREADS>(cta, args, &piece, &mut thread);
    thread.store(cta, args, &piece);
}
