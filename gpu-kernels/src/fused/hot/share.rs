//! What a lane has in registers of a slice: some hot steps and some cold ones.

use crate::cta::{Cache, Cta, Shared};
use crate::fused::fixed::point::FixedPoint;
use crate::fused::hot::values::{Load, element};
use crate::fused::hot::{HELD, HELD_COLD, HotArgs, NONE};
use crate::verbs::lane;

const HOT: usize = HELD as usize;
const COLD: usize = HELD_COLD as usize;
/// Hot entries of a part.
pub(crate) const ENTRIES: usize = 2 * HOT;

/// The steps of a slice: from and to, hot and cold.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    hot: (u32, u32),
    cold: (u32, u32),
}

impl Steps {
    /// Those of a slice; none of one that is not there.
    #[inline(always)]
    pub(crate) fn of<C: Cta, T: FixedPoint>(
        cta: &C,
        args: &HotArgs<'_, T>,
        (slice, end): (u32, u32),
    ) -> Self {
        let (mut from, mut to) = (0, 0);
        if slice < end {
            let at = slice as usize;
            from = cta.load(args.steps, at, Cache::Keep);
            to = cta.load(args.steps, at + 1, Cache::Keep);
        }
        Steps {
            hot: (from as u32, to as u32),
            cold: ((from >> 32) as u32, (to >> 32) as u32),
        }
    }

    /// Into how many parts that registers hold they fall: 1 at least.
    #[inline(always)]
    pub(crate) fn parts(&self) -> u32 {
        let hot = (self.hot.1 - self.hot.0).div_ceil(HELD);
        let cold = (self.cold.1 - self.cold.0).div_ceil(HELD_COLD);
        hot.max(cold).max(1)
    }

    /// Part number `i`.
    #[inline(always)]
    fn part(&self, i: u32) -> Self {
        Steps {
            hot: (self.hot.0 + i * HELD, self.hot.1),
            cold: (self.cold.0 + i * HELD_COLD, self.cold.1),
        }
    }
}

/// A pair of places where this lane has no entry.
#[inline(always)]
fn absent<C: Cta, T>(cta: &C, args: &HotArgs<'_, T>) -> u32 {
    (args.columns.len() as u32 + lane(cta)) * 0x1_0001
}

/// Whether a place is one of a column.
#[inline(always)]
pub(crate) fn is_place<T>(args: &HotArgs<'_, T>, place: u32) -> bool {
    place < args.columns.len() as u32
}

/// A lane's entries of one part of a slice. Absent ones have a value, too: what is behind their places is 0.
pub(crate) struct Share<T> {
    /// Hot steps that there are, in all lanes alike.
    steps: u32,
    places: [u32; HOT],
    values: [[T; 2]; HOT],
    ranks: [u32; COLD],
    cold_values: [T; COLD],
}

impl<T: FixedPoint> Share<T> {
    /// Loads the hot entries of a part, and the cold ones where rows are multiplied by y.
    #[inline(always)]
    pub(crate) fn load<C: Cta, V: Load<T>, const WITH_COLD: bool>(
        cta: &C,
        args: &HotArgs<'_, T>,
        (steps, part, cache): (&Steps, u32, Cache),
    ) -> Self {
        let part = steps.part(part);
        let mut share = Share {
            steps: part.hot.1.saturating_sub(part.hot.0).min(HELD),
            places: [absent(cta, args); HOT],
            values: [[T::ZERO; 2]; HOT],
            ranks: [NONE; COLD],
            cold_values: [T::ONE; COLD],
        };
        let (hot, cold) = (part.hot.0 as usize, part.cold.0 as usize);
        for k in 0..COLD {
            if WITH_COLD && part.cold.0 + (k as u32) < part.cold.1 {
                let at = element(cta, cold, 1, k);
                share.ranks[k] = cta.load(args.ranks, at, cache);
                if !V::IS_CONSTANT {
                    share.cold_values[k] = cta.load(args.cold_values, at, cache);
                }
            }
        }
        for k in 0..HOT {
            if part.hot.0 + (k as u32) < part.hot.1 {
                share.places[k] = cta.load(args.places, element(cta, hot, 1, k), cache);
                share.values[k] = V::load(cta, args, (hot, k), cache);
            } else if V::IS_CONSTANT {
                share.values[k] = [T::ONE; 2];
            }
        }
        share
    }

    /// The entries times y, `inputs` the hot elements and zeros. All elements are requested before one is used. To keep L1 for
    /// the most frequent cold ones, by another kind of load for all others, took 600 µs instead of 480 (20,000,000 columns by
    /// Zipf's law): loads that depend on conditions wait for each other.
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "iterators over registers put them into local memory"
    )]
    pub(crate) fn dot<C: Cta>(
        &self,
        cta: &C,
        args: &HotArgs<'_, T>,
        (inputs, mut sum): (Shared<T>, T),
    ) -> T {
        let mut cold = [T::ZERO; COLD];
        for k in 0..COLD {
            if self.ranks[k] != NONE {
                cold[k] = cta.load(args.cold_input, self.ranks[k] as usize, Cache::Keep);
            }
        }
        let mut hot = [[T::ZERO; 2]; HOT];
        for k in 0..HOT {
            let [first, second] = self.pair(k);
            hot[k] = [
                cta.shared_read(inputs, first as usize),
                cta.shared_read(inputs, second as usize),
            ];
        }
        for k in 0..HOT {
            sum = self.values[k][0].fma(hot[k][0], sum);
            sum = self.values[k][1].fma(hot[k][1], sum);
        }
        for k in 0..COLD {
            sum = self.cold_values[k].fma(cold[k], sum);
        }
        sum
    }

    /// Whether there is a step `k`, in all lanes alike: most slices have fewer steps than are held.
    #[inline(always)]
    pub(crate) fn has(&self, k: usize) -> bool {
        (k as u32) < self.steps
    }

    /// The places of a pair.
    #[inline(always)]
    pub(crate) fn pair(&self, k: usize) -> [u32; 2] {
        [self.places[k] & 0xffff, self.places[k] >> 16]
    }

    /// All places.
    #[inline(always)]
    pub(crate) fn places(&self) -> [u32; ENTRIES] {
        let mut all = [0; ENTRIES];
        for k in 0..HOT {
            [all[2 * k], all[2 * k + 1]] = self.pair(k);
        }
        all
    }

    /// The values of a pair, times a factor.
    #[inline(always)]
    pub(crate) fn products_of_pair(&self, k: usize, factor: T) -> [T; 2] {
        [self.values[k][0] * factor, self.values[k][1] * factor]
    }

    /// The values at [`places`](Self::places), times a factor.
    #[inline(always)]
    pub(crate) fn products(&self, factor: T) -> [T; ENTRIES] {
        let mut all = [T::ZERO; ENTRIES];
        for k in 0..HOT {
            [all[2 * k], all[2 * k + 1]] = self.products_of_pair(k, factor);
        }
        all
    }
}
