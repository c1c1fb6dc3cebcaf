//! One set of points in few dimensions, one weight vector: every pair once.
//!
//! Formula: `partials[i] += Σⱼ k(xᵢ, xⱼ) · wⱼ`.
//!
//! Mapping: as [`narrow`](super::narrow). Tiles of targets are paired with themselves and the T/2 tiles behind them, cyclically.
//! Within a warp sources go round: in turn t lane l works on source (l + t) mod 32 of a group, whose sum it passes on with a
//! shuffle; after 32 turns the sum is back with its owner. So k(xᵢ, xⱼ) is computed once for both i and j, for one
//! more multiply-add, a shuffle for each [`HELD`] pairs and no atomics within the block. A target's sums over the
//! two or four stages of a tile are added in T: as f64 they take eight registers more, and 7 % of the time.
//!
//! Shared bytes: the staged records, and as many elements per warp. Determinism: none: sums meet in f64 atomics, in any order.
//! Source: the rotating sums are ours.

use core::marker::PhantomData;

use super::narrow::{HELD, Held, Stage, UNROLLED};
use super::{Function, KernelSumArgs, Radial};
use crate::cta::{Cta, Shared, Shuffle, WARP};
use crate::verbs::{FULL, each_of_block, lane};

/// x = y: every pair once.
#[inline(always)]
pub fn symmetric<C: Cta, T: Radial, K: Function<T>, const D: usize>(
    cta: &C,
    args: &KernelSumArgs<'_, T>,
) {
    in_tiles::<C, T, K, D>(cta, args, |targets, sources| {
        let pairs = Differences {
            targets,
            stage: Stage::new(cta),
            weights: targets.weights(cta, args),
            function: PhantomData::<K>,
        };
        exchange(cta, args, &pairs, sources)
    });
}

/// x = y: adds the sums of a block's tile of targets over another tile, which [`exchange`]s with it by `exchanged`, or over
/// itself. Of an even number of tiles, opposite ones would meet twice: one of the two blocks has nothing to do.
#[inline(always)]
pub(super) fn in_tiles<C: Cta, T: Radial, K: Function<T>, const D: usize>(
    cta: &C,
    args: &KernelSumArgs<'_, T>,
    exchanged: impl FnOnce(&Held<T, D>, (u32, u32)) -> [f64; HELD],
) {
    let per_tile = cta.threads() * HELD as u32;
    let tiles = args.targets.div_ceil(per_tile);
    let (own, ahead) = (cta.block() % tiles, cta.block() / tiles);
    if ahead * 2 == tiles && own >= ahead {
        return;
    }
    let other = (own + ahead) % tiles;
    let targets = Held::<T, D>::load(cta, args, own);
    let from = other * per_tile;
    let end = from.saturating_add(per_tile).min(args.sources);
    let sums = if ahead == 0 {
        targets.sum_over::<C, K>(cta, args, from, end)
    } else {
        exchanged(&targets, (from, end))
    };
    for (r, sum) in sums.into_iter().enumerate() {
        let i = targets.index(cta, r);
        if i < args.targets {
            cta.add(args.partials, i as usize, sum);
        }
    }
}

/// How pairs of a thread's targets with staged sources are computed.
pub(super) trait Pairs<C: Cta, T: Radial, const D: usize> {
    /// Sources of a stage, and the end of their records in shared memory.
    fn staged(&self) -> (u32, u32);
    /// Stages the sources from `at` on, between two barriers; behind `end` there are points without weight.
    fn fill(&self, cta: &C, args: &KernelSumArgs<'_, T>, at: u32, end: u32);
    /// The source that this lane has in a turn over the 32 sources from `group` on.
    fn source(&self, cta: &C, group: u32, turn: u32) -> ([T; D], T);
    /// k of target `r` and a source.
    fn value(&self, r: usize, point: &[T; D]) -> T;
    /// The weight of target `r`.
    fn weight(&self, r: usize) -> T;
    /// What source `j` gets, of what the targets have added up.
    #[inline(always)]
    fn returned(&self, _cta: &C, _args: &KernelSumArgs<'_, T>, _j: u32, sum: f64) -> f64 {
        sum
    }
}

/// The sums of a thread's targets over the sources `from..end`; what those get from the block's targets is added to theirs.
#[inline(always)]
pub(super) fn exchange<C: Cta, T: Radial, P: Pairs<C, T, D>, const D: usize>(
    cta: &C,
    args: &KernelSumArgs<'_, T>,
    pairs: &P,
    (from, end): (u32, u32),
) -> [f64; HELD] {
    let (staged, records_end) = pairs.staged();
    let warps = cta.threads() / WARP;
    let returns = Shared::at(records_end, warps * staged);
    let own_returns = (cta.thread() / WARP * staged + lane(cta)) as usize;
    let mut sums = [T::ZERO; HELD];
    let mut at = from;
    while at < end {
        pairs.fill(cta, args, at, end);
        let mut part = [T::ZERO; HELD];
        let mut group = 0;
        while group < staged {
            let back = rotate(cta, pairs, group, &mut part);
            cta.shared_write(returns, own_returns + group as usize, back);
            group += WARP;
        }
        for r in 0..HELD {
            sums[r] = sums[r] + part[r];
        }
        cta.sync();
        let present = (end - at).min(staged);
        each_of_block(cta, present, |j| {
            let mut sum = 0.0;
            for warp in 0..warps {
                let place = (warp * staged) as usize + j;
                sum += cta.shared_read(returns, place).to_f64();
            }
            let sum = pairs.returned(cta, args, at + j as u32, sum);
            cta.add(args.partials, at as usize + j, sum);
        });
        at += staged;
    }
    sums.map(|sum| sum.to_f64())
}

/// 32 turns over the 32 sources from `group` on; returns the sum for source `group + lane`.
#[inline(always)]
fn rotate<C: Cta, T: Radial, P: Pairs<C, T, D>, const D: usize>(
    cta: &C,
    pairs: &P,
    group: u32,
    part: &mut [T; HELD],
) -> T {
    let mut back = T::ZERO;
    let next = Shuffle::Index((lane(cta) + 1) % WARP);
    // As many turns as a warp has lanes, by a bound that the compiler does not know: unrolled 32 times, the
    // loop takes 255 registers.
    let turns = WARP.min(cta.threads());
    let mut turn = 0;
    while turn < turns {
        for unrolled in 0..UNROLLED {
            let (point, weight) = pairs.source(cta, group, turn + unrolled);
            for r in 0..HELD {
                let k = pairs.value(r, &point);
                part[r] = k.fma(weight, part[r]);
                back = k.fma(pairs.weight(r), back);
            }
            back = cta.shuffle(back, next, WARP, FULL);
        }
        turn += UNROLLED;
    }
    back
}

/// [`Pairs`] by differences of coordinates.
struct Differences<'h, T, K, const D: usize> {
    targets: &'h Held<T, D>,
    stage: Stage<T, D>,
    weights: [T; HELD],
    function: PhantomData<K>,
}

impl<C: Cta, T: Radial, K: Function<T>, const D: usize> Pairs<C, T, D>
    for Differences<'_, T, K, D>
{
    #[inline(always)]
    fn staged(&self) -> (u32, u32) {
        (self.stage.len, self.stage.records.end())
    }

    #[inline(always)]
    fn fill(&self, cta: &C, args: &KernelSumArgs<'_, T>, at: u32, end: u32) {
        self.stage.fill(cta, args, at, end);
    }

    #[inline(always)]
    fn source(&self, cta: &C, group: u32, turn: u32) -> ([T; D], T) {
        self.stage.read(cta, group + (lane(cta) + turn) % WARP)
    }

    #[inline(always)]
    fn value(&self, r: usize, point: &[T; D]) -> T {
        self.targets.pair::<K>(r, point)
    }

    #[inline(always)]
    fn weight(&self, r: usize) -> T {
        self.weights[r]
    }
}
