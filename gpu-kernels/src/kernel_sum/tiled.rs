//! Any number of dimensions, up to [`VECTORS`] weight vectors: tiles of 64 targets by 64 sources.
//!
//! Formula: `partials[slice][v][i] = Σⱼ k(xᵢ, yⱼ) · wᵥⱼ` over the slice's sources.
//!
//! Mapping: 256 threads as 16 × 16; a thread has 4 targets by 4 sources. Coordinates are staged through shared memory
//! [`DEPTH`] dimensions at a time and enter s as in a matrix product, with differences in the place of products.
//! At the end the 16 threads of a row of the tile add up over shuffles.
//!
//! Shared bytes: [`SHARED_ELEMENTS`] elements. Sums of a slice are of type T in each thread, over every 16th source.
//! Determinism: the same bits for the same launch.

use super::{Function, KernelSumArgs, Radial, slice_of};
use crate::cta::{Cache, Cta, Shared};
use crate::memory::In;
use crate::scalar::Words;
use crate::verbs::{each_of_block, sum_lanes};

/// Targets of a tile, and sources.
pub const TILE: u32 = 64;
/// Dimensions that are staged at a time.
pub const DEPTH: u32 = 16;
/// Weight vectors of a launch, at most.
pub const VECTORS: usize = 4;
/// Threads of a block.
pub const THREADS: u32 = SIDE * SIDE;
/// Shared memory of a block: two panels of coordinates, and weights.
pub const SHARED_ELEMENTS: u32 = 2 * DEPTH * TILE + VECTORS as u32 * TILE;

/// Threads along each side of a tile.
const SIDE: u32 = 16;
/// Targets, and sources, of a thread.
pub(super) const EACH: usize = 4;

/// The tile of one block.
pub(super) struct Tile<T> {
    /// First target.
    pub targets: u32,
    /// Thread's place in the tile: its targets start at `4 · row`, its sources at `4 · column`.
    pub row: u32,
    /// See `row`.
    pub column: u32,
    /// Staged dimensions of the targets, `DEPTH` rows of `TILE`.
    pub x: Shared<T>,
    /// Staged dimensions of the sources.
    pub y: Shared<T>,
}

impl<T: Radial> Tile<T> {
    #[inline(always)]
    pub fn new<C: Cta>(cta: &C, tile: u32) -> Self {
        Tile {
            targets: tile * TILE,
            row: cta.thread() / SIDE,
            column: cta.thread() % SIDE,
            x: Shared::at(0, DEPTH * TILE),
            y: Shared::at(DEPTH * TILE * T::SIZE, DEPTH * TILE),
        }
    }

    /// s of the thread's pairs, with the sources from `at` on.
    #[inline(always)]
    pub fn separations<C: Cta, K: Function<T>>(
        &self,
        cta: &C,
        args: &KernelSumArgs<'_, T>,
        at: u32,
    ) -> [[T; EACH]; EACH] {
        let mut s = [[T::ZERO; EACH]; EACH];
        let mut first = 0;
        while first < args.dims {
            cta.sync();
            stage_points(
                cta,
                self.x,
                args.x,
                (args.targets, args.dims),
                (self.targets, first),
            );
            stage_points(cta, self.y, args.y, (args.sources, args.dims), (at, first));
            cta.sync();
            let depth = (args.dims - first).min(DEPTH);
            for k in 0..depth {
                let x = read_four(cta, self.x, k * TILE + self.row * EACH as u32);
                let y = read_four(cta, self.y, k * TILE + self.column * EACH as u32);
                for r in 0..EACH {
                    for c in 0..EACH {
                        s[r][c] = K::accumulate(x[r] - y[c], s[r][c]);
                    }
                }
            }
            first += DEPTH;
        }
        s
    }
}

/// Loads [`DEPTH`] dimensions from `first` on of [`TILE`] points from `at` on; what is not there is zero.
#[inline(always)]
pub(super) fn stage_points<C: Cta, T: Radial>(
    cta: &C,
    to: Shared<T>,
    points: In<'_, T>,
    (len, dims): (u32, u32),
    (at, first): (u32, u32),
) {
    each_of_block(cta, DEPTH * TILE, |k| {
        let (d, i) = (first + k as u32 / TILE, at + k as u32 % TILE);
        let value = if d < dims && i < len {
            cta.load(points, d as usize * len as usize + i as usize, Cache::Keep)
        } else {
            T::ZERO
        };
        cta.shared_write(to, k, value);
    });
}

/// Four elements of shared memory from a multiple of four on.
#[inline(always)]
pub(super) fn read_four<C: Cta, T: Radial>(cta: &C, from: Shared<T>, at: u32) -> [T; EACH] {
    let mut four = [T::ZERO; EACH];
    for part in 0..EACH / T::Pack::LANES {
        let pack = cta.shared_read_pack(from, at as usize + part * T::Pack::LANES);
        for l in 0..T::Pack::LANES {
            four[part * T::Pack::LANES + l] = pack.as_ref()[l];
        }
    }
    four
}

/// Weights of the [`TILE`] sources from `at` on; those behind `end` have none.
#[inline(always)]
pub(super) fn stage_weights<C: Cta, T: Radial>(
    cta: &C,
    to: Shared<T>,
    args: &KernelSumArgs<'_, T>,
    (at, end): (u32, u32),
) {
    each_of_block(cta, args.vectors * TILE, |k| {
        let (v, j) = (k as u32 / TILE, at + k as u32 % TILE);
        let weight = if j < end {
            cta.load(
                args.w,
                v as usize * args.sources as usize + j as usize,
                Cache::Keep,
            )
        } else {
            T::ZERO
        };
        cta.shared_write(to, k, weight);
    });
}

/// The sums of one tile of targets over one slice of the sources.
#[inline(always)]
pub fn sums<C: Cta, T: Radial, K: Function<T>>(cta: &C, args: &KernelSumArgs<'_, T>) {
    let tiles = args.targets.div_ceil(TILE);
    let slice = cta.block() / tiles;
    let tile = Tile::new(cta, cta.block() % tiles);
    let weights = Shared::at(2 * DEPTH * TILE * T::SIZE, VECTORS as u32 * TILE);
    let (mut at, end) = slice_of(args.sources, args.slices, slice);
    let mut sums = [[T::ZERO; EACH]; VECTORS];
    while at < end {
        cta.sync();
        // The barriers of the separations stand between this and its use.
        stage_weights(cta, weights, args, (at, end));
        let mut k = tile.separations::<C, K>(cta, args, at);
        for s in k.as_flattened_mut() {
            *s = K::value(*s);
        }
        for (v, sums) in sums.iter_mut().enumerate() {
            if (v as u32) < args.vectors {
                let w = read_four(cta, weights, v as u32 * TILE + tile.column * EACH as u32);
                for r in 0..EACH {
                    for c in 0..EACH {
                        sums[r] = k[r][c].fma(w[c], sums[r]);
                    }
                }
            }
        }
        at += TILE;
    }
    each_sum(cta, args, &tile, slice, &sums, |place, sum| {
        cta.write(args.partials, place, sum)
    });
}

/// Adds the threads of each row of the tile, and calls `each(place, sum)` for what they have together.
#[inline(always)]
pub(super) fn each_sum<C: Cta, T: Radial>(
    cta: &C,
    args: &KernelSumArgs<'_, T>,
    tile: &Tile<T>,
    slice: u32,
    sums: &[[T; EACH]; VECTORS],
    each: impl Fn(usize, f64),
) {
    for (v, sums) in sums.iter().enumerate() {
        if (v as u32) < args.vectors {
            for (r, sum) in sums.iter().enumerate() {
                let sum = sum_lanes::<C, f64, SIDE>(cta, sum.to_f64());
                let i = tile.targets + tile.row * EACH as u32 + r as u32;
                if tile.column == 0 && i < args.targets {
                    each(place_of(args, slice, v as u32, i), sum);
                }
            }
        }
    }
}

/// Where the sum of vector `v` at point `i` is.
#[inline(always)]
pub(super) fn place_of<T: Radial>(
    args: &KernelSumArgs<'_, T>,
    slice: u32,
    v: u32,
    i: u32,
) -> usize {
    let vector = slice as usize * args.vectors as usize + v as usize;
    vector * args.targets as usize + i as usize
}
