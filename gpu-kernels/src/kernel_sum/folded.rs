//! One set of points in any number of dimensions, up to [`VECTORS`] weight vectors: every pair of tiles once.
//!
//! Formula: `partials[slice][v][i] += Σⱼ k(xᵢ, xⱼ) · wᵥⱼ` over the pairs of the slice.
//!
//! Mapping: as [`tiled`], a block a tile of 64 targets; it meets the tiles that lie 0, 1, … half of all
//! ahead of it, in a ring; a slice is a run of these distances. What k(xᵢ, xⱼ)·wᵢ adds to the points ahead is added
//! up over the rows of the tile, by shuffles within a warp and in shared memory between warps.
//!
//! Shared bytes: [`SHARED_ELEMENTS`] elements.
//! Determinism: none: sums meet in shared atomics of type T, of 8 terms each, and in f64 atomics.

use super::tiled::{self, EACH, TILE, Tile, VECTORS, each_sum, place_of, read_four, stage_weights};
use super::{Function, KernelSumArgs, Radial, slice_of};
use crate::cta::{Cta, Shared, Shuffle, WARP};
use crate::verbs::{FULL, each_of_block, lane};

/// Shared memory of a block: that of a plain tile, its own weights, and what goes back to the tile ahead.
pub const SHARED_ELEMENTS: u32 = tiled::SHARED_ELEMENTS + 2 * VECTORS as u32 * TILE;

/// Distances in a ring of `tiles`, 0 among them.
pub const fn distances(tiles: u32) -> u32 {
    tiles / 2 + 1
}

/// Weights, and sums, of a tile's points.
#[inline(always)]
fn vectors_at<T: Radial>(place: u32) -> Shared<T> {
    let first = 2 * tiled::DEPTH * TILE + place * VECTORS as u32 * TILE;
    Shared::at(first * T::SIZE, VECTORS as u32 * TILE)
}

/// The pairs of one tile of targets with those ahead of it, over one slice of the distances.
#[inline(always)]
pub fn sums<C: Cta, T: Radial, K: Function<T>>(cta: &C, args: &KernelSumArgs<'_, T>) {
    let tiles = args.targets.div_ceil(TILE);
    let (slice, own) = (cta.block() / tiles, cta.block() % tiles);
    let tile = Tile::new(cta, own);
    let [ahead_weights, own_weights, returns] = [0, 1, 2].map(vectors_at::<T>);
    stage_weights(cta, own_weights, args, (tile.targets, args.sources));
    let (mut distance, end) = slice_of(distances(tiles), args.slices, slice);
    let mut sums = [[T::ZERO; EACH]; VECTORS];
    // Of an even number of tiles, opposite ones would meet twice.
    while distance < end && !(distance * 2 == tiles && own >= distance) {
        let at = (own + distance) % tiles * TILE;
        cta.sync();
        // The barriers of the separations stand between this and its use.
        stage_weights(cta, ahead_weights, args, (at, args.sources));
        each_of_block(cta, args.vectors * TILE, |i| {
            cta.shared_write(returns, i, T::ZERO)
        });
        let mut k = tile.separations::<C, K>(cta, args, at);
        for s in k.as_flattened_mut() {
            *s = K::value(*s);
        }
        for (v, sums) in sums.iter_mut().enumerate() {
            if (v as u32) < args.vectors {
                let place = v as u32 * TILE;
                let w = read_four(cta, ahead_weights, place + tile.column * EACH as u32);
                for r in 0..EACH {
                    for c in 0..EACH {
                        sums[r] = k[r][c].fma(w[c], sums[r]);
                    }
                }
                if distance > 0 {
                    give_back(cta, &tile, &k, place, (own_weights, returns));
                }
            }
        }
        if distance > 0 {
            cta.sync();
            flush(cta, args, slice, at, returns);
        }
        distance += 1;
    }
    each_sum(cta, args, &tile, slice, &sums, |place, sum| {
        cta.add(args.partials, place, sum)
    });
}

/// Adds what the thread's targets give to its sources; the two rows of a warp are added first.
#[inline(always)]
fn give_back<C: Cta, T: Radial>(
    cta: &C,
    tile: &Tile<T>,
    k: &[[T; EACH]; EACH],
    place: u32,
    (weights, returns): (Shared<T>, Shared<T>),
) {
    let w = read_four(cta, weights, place + tile.row * EACH as u32);
    for c in 0..EACH {
        let mut sum = T::ZERO;
        for r in 0..EACH {
            sum = k[r][c].fma(w[r], sum);
        }
        sum = sum + cta.shuffle(sum, Shuffle::Xor(WARP / 2), WARP, FULL);
        if lane(cta) < WARP / 2 {
            let at = place + tile.column * EACH as u32 + c as u32;
            cta.shared_add(returns, at as usize, sum);
        }
    }
}

/// Adds what went back to the tile that begins at point `at`.
#[inline(always)]
fn flush<C: Cta, T: Radial>(
    cta: &C,
    args: &KernelSumArgs<'_, T>,
    slice: u32,
    at: u32,
    returns: Shared<T>,
) {
    each_of_block(cta, args.vectors * TILE, |i| {
        let (v, j) = (i as u32 / TILE, at + i as u32 % TILE);
        if j < args.targets {
            let sum = cta.shared_read(returns, i).to_f64();
            cta.add(args.partials, place_of(args, slice, v, j), sum);
        }
    });
}
