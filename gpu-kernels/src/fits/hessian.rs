//! X̃ᵀDX̃ of 32 rows after the other, a block of 32 × 32 of it, in a warp's registers.
//!
//! With g = lane / 4 and t = lane mod 4, a lane has columns g and g + 8 of each 16, of rows t, t + 4, t + 8 and t + 12 of each
//! 16: [`Cta::multiply_f64`]. Beside the products it adds up X̃ᵀg and X̃ᵀd of its own columns and rows.

use super::rows::{Chunk, Fit};
use crate::cta::{Cta, Shared, WARP};
use crate::math::Elementary;
use crate::scalar::Real;
use crate::verbs::{lane, sum_lanes};

/// Rows and columns of a block.
pub(super) const SIDE: u32 = 32;
/// Rows of a tile.
const TALL: u32 = 16;
/// Columns of a tile.
const WIDE: u32 = 8;
/// Tiles of a block side by side.
const ACROSS: usize = (SIDE / WIDE) as usize;

/// Which columns of X̃ are the rows, and the columns, of the block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub row: u32,
    pub col: u32,
}

impl Place {
    #[inline(always)]
    fn is_diagonal(self) -> bool {
        self.row == self.col
    }
}

/// A lane's part of the sums of its warp.
pub(super) struct Sums {
    /// Tiles: the first 16 rows, then the others.
    tiles: [[[f64; 4]; ACROSS]; 2],
    /// X̃ᵀg of columns g, g + 8, g + 16 and g + 24.
    gradient: [f64; 4],
    /// X̃ᵀd.
    edge: [f64; 4],
}

/// Slopes and curvatures of the lane's four rows.
#[derive(Clone, Copy)]
struct Slopes {
    slope: [f64; 4],
    curvature: [f64; 4],
}

/// Columns of 16 rows: `[i]` is of row t + 4·(i / 2) and column g + 8·(i mod 2).
type Fragment = [f64; 8];

impl Sums {
    pub const ZERO: Sums = Sums {
        tiles: [[[0.0; 4]; ACROSS]; 2],
        gradient: [0.0; 4],
        edge: [0.0; 4],
    };

    /// Adds 32 rows; the whole warp calls.
    #[inline(always)]
    #[track_caller]
    pub fn add<C: Cta, T: Elementary>(
        &mut self,
        cta: &C,
        chunk: &Chunk<T>,
        place: Place,
        slopes: Shared<f64>,
    ) {
        // Once after the other: numbers of both halves are more than there are registers.
        let mut half = cta.fresh(0);
        while half < WARP {
            self.add_tiles::<C, T, 0>(cta, chunk, place, (slopes, half));
            if place.row + TALL < chunk.cols {
                self.add_tiles::<C, T, 1>(cta, chunk, place, (slopes, half));
            }
            half += TALL;
        }
    }

    /// Adds the 16 rows from `half` on to the first tiles, or the others.
    #[inline(always)]
    #[track_caller]
    fn add_tiles<C: Cta, T: Elementary, const TALL_TILE: usize>(
        &mut self,
        cta: &C,
        chunk: &Chunk<T>,
        place: Place,
        (slopes, half): (Shared<f64>, u32),
    ) {
        // What follows from it is computed again for each 16 rows, instead of waiting in registers.
        let own = cta.fresh(lane(cta));
        let (g, t) = (own / 4, own % 4);
        let row = |k: usize| half + t + 4 * k as u32;
        let read = |k: usize| cta.shared_read(slopes, row(k) as usize);
        let curved = |k: usize| cta.shared_read(slopes, (WARP + row(k)) as usize);
        let of_rows = Slopes {
            slope: core::array::from_fn(read),
            curvature: core::array::from_fn(curved),
        };
        let first = place.row + TALL_TILE as u32 * TALL + g;
        let left = self.fragment(cta, chunk, (TALL_TILE, first), (half + t, of_rows));
        for j in 0..ACROSS {
            let start = place.col + j as u32 * WIDE;
            // What is above the diagonal is not wanted.
            let is_above = TALL_TILE == 0 && j >= 2 && place.is_diagonal();
            if start < chunk.cols && !is_above {
                let right: [f64; 4] =
                    core::array::from_fn(|k| chunk.or_zero(cta, row(k), start + g));
                let sums = &mut self.tiles[TALL_TILE][j];
                *sums = cta.multiply_f64(left, right, *sums);
            }
        }
    }

    /// Columns of the block's tile number `tile`, the first of the lane being `col`, times curvatures.
    #[inline(always)]
    #[track_caller]
    fn fragment<C: Cta, T: Elementary>(
        &mut self,
        cta: &C,
        chunk: &Chunk<T>,
        (tile, col): (usize, u32),
        (row, of): (u32, Slopes),
    ) -> Fragment {
        let mut curved = [0.0; 8];
        for (i, curved) in curved.iter_mut().enumerate() {
            let (k, h) = (i / 2, i % 2);
            let x = chunk.or_zero(cta, row + 4 * k as u32, col + h as u32 * WIDE);
            let sum = 2 * tile + h;
            *curved = x * of.curvature[k];
            self.gradient[sum] = x.fma(of.slope[k], self.gradient[sum]);
            self.edge[sum] += *curved;
        }
        curved
    }

    /// Adds the warp's sums to the block's, or begins them; the whole warp calls.
    #[inline(always)]
    #[track_caller]
    pub fn flush<C: Cta, T: Elementary>(
        &self,
        cta: &C,
        fit: &Fit<'_, '_, T>,
        place: Place,
        begins: bool,
    ) {
        let own = cta.fresh(lane(cta));
        let (g, t) = (own / 4, own % 4);
        for (tall, tiles) in self.tiles.iter().enumerate() {
            for (across, tile) in tiles.iter().enumerate() {
                for (e, value) in tile.iter().enumerate() {
                    let row = place.row + tall as u32 * TALL + g + e as u32 / 2 * WIDE;
                    let col = place.col + across as u32 * WIDE + 2 * t + e as u32 % 2;
                    if row < fit.cols && col <= row {
                        put(cta, fit.layout(cta).row(row + 1), col + 1, (*value, begins));
                    }
                }
            }
        }
        if !place.is_diagonal() {
            return;
        }
        let last = fit.layout(cta).row(fit.layout(cta).order);
        for i in 0..4 {
            let col = place.row + g + i as u32 * WIDE;
            let gradient = sum_lanes::<C, f64, 4>(cta, self.gradient[i]);
            let edge = sum_lanes::<C, f64, 4>(cta, self.edge[i]);
            if t == 0 && col < fit.cols {
                put(cta, last, col + 1, (gradient, begins));
                put(cta, fit.layout(cta).row(col + 1), 0, (edge, begins));
            }
        }
    }
}

/// Adds to an element, or begins it.
#[inline(always)]
#[track_caller]
pub(super) fn put<C: Cta>(cta: &C, row: Shared<f64>, i: u32, (value, begins): (f64, bool)) {
    let before = match begins {
        true => 0.0,
        false => cta.shared_read(row, i as usize),
    };
    cta.shared_write(row, i as usize, before + value);
}
