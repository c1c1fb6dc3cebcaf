//! The gradient with respect to the targets, in the scaled coordinates u: `∂f/∂uᵢ = Σⱼ wⱼ · ∂k(uᵢ, vⱼ)/∂uᵢ`.
//!
//! A launch computes the `vectors` dimensions from `first` on, at most [`WINDOW`], of any number of dimensions in all:
//! `partials[slice][d][i]`, d counted from `first`. Differences are taken between the coordinates
//! themselves, so that nothing cancels between near points, and functions of other norms need nothing special.
//!
//! Mapping: the factors wⱼ · slope of a tile are computed as in `tiled`, 4 × 4 per thread, and put in
//! shared memory; then a thread has one target and a quarter of the window.
//!
//! Shared bytes: [`SHARED_ELEMENTS`] elements. Sums of a tile are of type T, those of tiles f64.
//! Determinism: the same bits for the same launch.

use super::tiled::{DEPTH, EACH, THREADS, TILE, Tile, stage_points};
use super::{Function, KernelSumArgs, Radial, slice_of};
use crate::cta::{Cache, Cta, Shared};

/// Dimensions of a launch.
pub const WINDOW: u32 = DEPTH;
/// Shared memory of a block: what [`tiled`](super::tiled) stages, and the factors, padded by a column.
pub const SHARED_ELEMENTS: u32 = 2 * DEPTH * TILE + TILE * PITCH;

/// Elements between the factors of two sources.
const PITCH: u32 = TILE + 1;
/// Dimensions of a thread.
const PER_THREAD: usize = (WINDOW * TILE / THREADS) as usize;

/// The window of one tile of targets over one slice of the sources.
#[inline(always)]
pub fn window<C: Cta, T: Radial, K: Function<T>>(cta: &C, args: &KernelSumArgs<'_, T>) {
    let tiles = args.targets.div_ceil(TILE);
    let slice = cta.block() / tiles;
    let tile = Tile::new(cta, cta.block() % tiles);
    let own = Own::new(cta, args, &tile);
    let factors = Shared::at(2 * DEPTH * TILE * T::SIZE, TILE * PITCH);
    let (mut at, end) = slice_of(args.sources, args.slices, slice);
    let mut sums = [0.0; PER_THREAD];
    while at < end {
        write_factors::<C, T, K>(cta, args, &tile, factors, (at, end));
        cta.sync();
        stage_points(
            cta,
            tile.y,
            args.y,
            (args.sources, args.dims),
            (at, args.first),
        );
        cta.sync();
        let mut part = [T::ZERO; PER_THREAD];
        for j in 0..TILE {
            let factor = cta.shared_read(factors, (j * PITCH + own.target) as usize);
            for m in 0..PER_THREAD {
                let place = (own.dim + m as u32) * TILE + j;
                let y = cta.shared_read(tile.y, place as usize);
                part[m] = factor.fma(K::direction(own.x[m] - y), part[m]);
            }
        }
        for m in 0..PER_THREAD {
            sums[m] += part[m].to_f64();
        }
        at += TILE;
    }
    let i = tile.targets + own.target;
    for (m, sum) in sums.into_iter().enumerate() {
        let d = own.dim + m as u32;
        if i < args.targets && d < args.vectors {
            let row = slice as usize * args.vectors as usize + d as usize;
            cta.write(args.partials, row * args.targets as usize + i as usize, sum);
        }
    }
}

/// A thread's target and dimensions in the second half.
struct Own<T> {
    /// In the tile.
    target: u32,
    /// First of the thread's dimensions, in the window.
    dim: u32,
    x: [T; PER_THREAD],
}

impl<T: Radial> Own<T> {
    #[inline(always)]
    fn new<C: Cta>(cta: &C, args: &KernelSumArgs<'_, T>, tile: &Tile<T>) -> Self {
        let (target, dim) = (cta.thread() % TILE, cta.thread() / TILE * PER_THREAD as u32);
        let i = tile.targets + target;
        let x = core::array::from_fn(|m| {
            let d = args.first + dim + m as u32;
            if d < args.dims && i < args.targets {
                cta.load(
                    args.x,
                    d as usize * args.targets as usize + i as usize,
                    Cache::Keep,
                )
            } else {
                T::ZERO
            }
        });
        Own { target, dim, x }
    }
}

/// wⱼ · slope of all pairs of the tile, to shared memory; sources behind `end` have weight zero.
#[inline(always)]
fn write_factors<C: Cta, T: Radial, K: Function<T>>(
    cta: &C,
    args: &KernelSumArgs<'_, T>,
    tile: &Tile<T>,
    factors: Shared<T>,
    (at, end): (u32, u32),
) {
    let s = tile.separations::<C, K>(cta, args, at);
    for c in 0..EACH {
        let column = tile.column * EACH as u32 + c as u32;
        let j = at + column;
        let weight = if j < end {
            cta.load(args.w, j as usize, Cache::Keep)
        } else {
            T::ZERO
        };
        for r in 0..EACH {
            let row = tile.row * EACH as u32 + r as u32;
            let factor = weight * K::slope(s[r][c]);
            cta.shared_write(factors, (column * PITCH + row) as usize, factor);
        }
    }
}
