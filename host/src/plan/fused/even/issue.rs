//! What the instructions of even shares take: those of tiles, and of the rows of a tile.

use gpu_kernels::fused::even::TILE;

use super::super::candidate::{Candidate, Team};
use super::super::cost::precision;
use super::{is_fixed, of_sums};
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::{Problem, Product};

/// What a tile takes besides what its entries do, in the time of as many instructions of a warp: loads, exchange, sums and additions wait for
/// each other, however few entries there are. Of sums of floats in f32 and in f64, then of fixed-point ones: fitted. A row of 8 entries or
/// fewer leaves its part of a tile's 256 places empty: 3,000,000 rows of 8 and 6,100,000 of 5 take an H200 91 and 170 µs (f32).
const PER_TILE: [f64; 4] = [160.0, 180.0, 86.0, 370.0];
/// How many times as much `Xᵀ·p` takes, which finds the rows of a tile as it goes: of floats, and of fixed-point sums.
const TILE_OF_TRANSPOSED: [f64; 2] = [1.3, 1.6];
/// The same for the rows whose sums have an order that lanes add up at a time, and for each of their steps, in f32 and in f64: 2,170,000 rows
/// of 11 take 284 µs with 32 lanes, and 52,500 of 395 in f64 184 with four, 154 with eight and 136 with 32.
const PER_GROUP: [f64; 2] = [34.0, 70.0];
const PER_STEP: [f64; 2] = [4.4, 9.1];
/// Entries that a tile has no room for where a row would be cut, of those of the longest of a warp of rows: fitted.
const LEFT_OF_TILE: f64 = 0.102;
/// Rows of a tile, at most.
const ROWS: f64 = 32.0;

/// Seconds in which the SMs issue the instructions of this number of walks.
pub(super) fn issue(
    limits: &DeviceLimits,
    kernel: &Candidate,
    (problem, product): (&Problem, Product),
    walks: f64,
) -> f64 {
    let times = match product {
        Product::Transposed => TILE_OF_TRANSPOSED[usize::from(is_fixed(kernel))],
        _ => 1.0,
    };
    let of_tiles = times * tiles(problem, product) * PER_TILE[of_sums(kernel, problem)];
    let instructions = of_tiles + of_rows(kernel, problem, product);
    walks * instructions / (limits.rates.issue * 1e9)
}

/// Tiles of all shares, each of up to [`TILE`] entries and up to a warp of rows.
fn tiles(problem: &Problem, product: Product) -> f64 {
    let by_rows = problem.rows as f64 / ROWS;
    let by_entries = match product {
        Product::Fused => of_whole_rows(problem, by_rows),
        _ => problem.nnz.unwrap_or(0) as f64 / f64::from(TILE),
    };
    // Some tiles of uneven rows are full of entries, some of rows.
    let fourth = |tiles: f64| (tiles * tiles) * (tiles * tiles);
    (fourth(by_rows) + fourth(by_entries)).sqrt().sqrt()
}

/// Tiles that entries fill in products with y, of whole rows: where the next one has no room, places are left.
fn of_whole_rows(problem: &Problem, warps_of_rows: f64) -> f64 {
    let (tile, mean) = (f64::from(TILE), problem.mean_row().max(1.0));
    let are_alike = problem.longest() <= mean + 1.0;
    if are_alike && mean <= tile {
        return problem.rows as f64 / (tile / mean).floor();
    }
    let longest_of_warp = problem.steps(1) / warps_of_rows.max(1.0);
    let left = (LEFT_OF_TILE * longest_of_warp).min(tile / 2.0);
    problem.nnz.unwrap_or(0) as f64 / (tile - left)
}

/// Instructions of warps for rows whose sums have an order: as many rows of a tile at a time as their lanes let a warp have, which steps
/// over them together.
fn of_rows(kernel: &Candidate, problem: &Problem, product: Product) -> f64 {
    let (true, Team::Lanes(lanes), Product::Fused) = (is_fixed(kernel), kernel.team, product)
    else {
        return 0.0;
    };
    let groups = problem.rows as f64 * f64::from(lanes) / ROWS;
    let of = precision(problem.dtype);
    groups * PER_GROUP[of] + problem.steps(lanes) * PER_STEP[of]
}
