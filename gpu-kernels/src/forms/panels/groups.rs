//! Groups of entries of one panel, as a warp takes them one after the other.

use super::PanelMakingArgs;
use crate::cta::{Cache, Cta, Shuffle, WARP};
use crate::fused::panels::CHUNK;
use crate::verbs::{FULL, global_warp, global_warps, lane};

/// Entries of a lane: of each 32 that follow one another one.
pub(super) const PER_LANE: usize = (CHUNK / WARP) as usize;
/// The distance of an input from the base of its chunk has 16 bits.
const REACH: u32 = 0xffff;

/// The groups of a warp, and the panel of the next one.
pub(super) struct Groups {
    pub next: u32,
    pub end: u32,
    pub panel: u32,
    /// The first group of the panel, and the one behind its last.
    pub first: u32,
    pub behind: u32,
}

impl Groups {
    #[inline(always)]
    pub fn of<C: Cta, T>(cta: &C, args: &PanelMakingArgs<'_, T>) -> Self {
        let panels = args.groups.len() as u32 - 1;
        let group = |panel: u32| -> u32 { cta.load(args.groups, panel as usize, Cache::Keep) };
        let all = group(panels);
        let share = all.div_ceil(global_warps(cta));
        let next = (global_warp(cta) as u64 * share as u64).min(all as u64) as u32;
        let (mut low, mut high) = (0, panels);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if group(middle) <= next {
                low = middle;
            } else {
                high = middle;
            }
        }
        Groups {
            next,
            end: next + share.min(all - next),
            panel: low,
            first: group(low),
            behind: group(low + 1),
        }
    }

    /// Goes to the panel of the next group; whether it is another one.
    #[inline(always)]
    pub fn enter<C: Cta, T>(&mut self, cta: &C, args: &PanelMakingArgs<'_, T>) -> bool {
        let before = self.panel;
        while self.next >= self.behind {
            self.panel += 1;
            self.first = self.behind;
            self.behind = cta.load(args.groups, self.panel as usize + 1, Cache::Keep);
        }
        self.panel != before
    }
}

/// The entries of a group: lane l has numbers l, l + 32, …
pub(super) struct Group {
    pub inputs: [u32; PER_LANE],
    pub sums: [u32; PER_LANE],
    /// How many there are.
    pub len: u32,
}

impl Group {
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "iterators over registers put them into local memory"
    )]
    pub fn load<C: Cta, T>(cta: &C, args: &PanelMakingArgs<'_, T>, group: u32) -> Self {
        let first = group as usize * CHUNK as usize + lane(cta) as usize;
        let (mut inputs, mut sums, mut len) = ([0; PER_LANE], [0; PER_LANE], 0);
        let mut words = [0_u64; PER_LANE];
        for k in 0..PER_LANE {
            words[k] = cta.load(args.given, first + k * WARP as usize, Cache::Once);
        }
        for k in 0..PER_LANE {
            inputs[k] = (words[k] >> 16) as u32;
            sums[k] = words[k] as u32 & 0xffff;
            len += cta.ballot(words[k] != 0, FULL).count_ones();
        }
        Group { inputs, sums, len }
    }

    /// The number of entry k of this lane.
    #[inline(always)]
    pub fn number<C: Cta>(cta: &C, k: usize) -> u32 {
        k as u32 * WARP + lane(cta)
    }

    /// The input of an entry, in every lane; the whole warp calls.
    #[inline(always)]
    fn input<C: Cta>(&self, cta: &C, number: u32) -> u32 {
        let mut input = self.inputs[0];
        for k in 1..PER_LANE {
            if number / WARP == k as u32 {
                input = self.inputs[k];
            }
        }
        cta.shuffle(input, Shuffle::Index(number % WARP), WARP, FULL)
    }

    /// The base of a chunk that begins with an entry: no input of it or of an entry behind it is less. The whole warp calls.
    #[inline(always)]
    pub fn base<C: Cta, T>(&self, cta: &C, args: &PanelMakingArgs<'_, T>, number: u32) -> u32 {
        self.input(cta, number) >> args.shift << args.shift
    }

    /// The entry behind the last one of the chunk with this base that begins with entry `from`.
    #[inline(always)]
    pub fn reach<C: Cta>(&self, cta: &C, from: u32, base: u32) -> u32 {
        let mut end = from;
        for k in 0..PER_LANE {
            let number = Self::number(cta, k);
            let is_near = from <= number && number < self.len && self.inputs[k] - base <= REACH;
            end += cta.ballot(is_near, FULL).count_ones();
        }
        end
    }
}
