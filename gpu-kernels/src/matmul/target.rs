//! Where a block writes its tile of C.

use super::pipeline::Piece;
use super::{MatmulArgs, scaled};
use crate::cta::Cta;
use crate::scalar::{Pack, Real, Words};

/// A tile of C, in the matrix of its part.
#[derive(Clone, Copy)]
pub struct Target {
    /// Rows of C above the part's first.
    above: u64,
    /// Whether all of the tile lies in C, rows of C start at multiples of 16 bytes, and β = 0.
    is_plain: bool,
}

impl Target {
    /// The tile of a piece.
    #[inline(always)]
    pub fn of<T: Real>(args: &MatmulArgs<'_, T>, piece: &Piece, tile: (u32, u32)) -> Target {
        Target {
            above: piece.part as u64 * args.m as u64,
            is_plain: piece.row + tile.0 <= args.m
                && piece.column + tile.1 <= args.n
                && args.ldc.is_multiple_of(T::Pack::LANES as u64)
                && args.beta == T::ZERO,
        }
    }

    #[inline(always)]
    fn at<T>(&self, args: &MatmulArgs<'_, T>, row: u32, column: u32) -> usize {
        ((self.above + row as u64) * args.ldc + column as u64) as usize
    }

    /// Writes `α · sum + β · C(row, column)` where there is such an element.
    #[inline(always)]
    pub fn write<C: Cta, T: Real>(
        &self,
        cta: &C,
        args: &MatmulArgs<'_, T>,
        (row, column): (u32, u32),
        sum: T,
    ) {
        if row < args.m && column < args.n {
            let at = self.at(args, row, column);
            cta.write(args.c, at, scaled(cta, args, at, sum));
        }
    }

    /// As [`write`](Self::write), four neighbours, the first of which is at a multiple of four.
    #[inline(always)]
    pub fn write_four<C: Cta, T: Real>(
        &self,
        cta: &C,
        args: &MatmulArgs<'_, T>,
        (row, column): (u32, u32),
        sums: [T; 4],
    ) {
        if !self.is_plain {
            for (i, sum) in sums.into_iter().enumerate() {
                self.write(cta, args, (row, column + i as u32), sum);
            }
            return;
        }
        let at = self.at(args, row, column);
        let lanes = T::Pack::LANES;
        for first in (0..4).step_by(lanes) {
            let mut pack = T::Pack::ZERO;
            for l in 0..lanes {
                pack.as_mut()[l] = args.alpha * sums[first + l];
            }
            cta.write_pack(args.c, at + first, pack);
        }
    }
}
