//! A chunk, and the order of its entries.
//!
//! Which entry of a chunk comes in which step of a warp is free. Two orders, of which each chunk has the better one: as they
//! come, so that few sectors of inputs are wanted together, or one of each bank of shared memory after the other, which take turns
//! in steps; the second pays where the entries' inputs lie in few lines. In the first a step of 32 random sums has 3.6 in its
//! busiest bank, in the second 2.2; there each line is wanted in every step. Of elements of 8 bytes, half a warp is served at a
//! time: a *go* is a step of as many lanes as are served together.

use super::counting::count_one;
use super::groups::{Group, PER_LANE};
use super::{BANKS, PanelMakingArgs};
use crate::cta::{Cta, Shared, Shuffle, WARP};
use crate::fused::panels::{CHUNK, SPARE};
use crate::scalar::{Real, Word};
use crate::verbs::{FULL, lane};

/// Lines of inputs up to which entries are dealt out by banks: an addition more takes as long as 5 requests of lines, so that
/// 4 steps of 1.4 additions less are worth 3 requests more of each of 9 lines.
const FEW_LINES: u32 = 9;
/// Bytes of a line, and of all banks.
const LINE: u32 = 128;

/// The entries of a group that make a chunk.
pub(super) struct Part<'g> {
    pub group: &'g Group,
    pub from: u32,
    pub end: u32,
    /// No input of theirs is less.
    pub base: u32,
}

/// Where the entry of a position comes: the position of neighbouring lanes, or of neighbouring goes of a lane.
#[inline(always)]
fn place<T: Word>(position: u32, is_dealt: bool) -> u32 {
    let (lanes, steps) = (LINE / T::SIZE, PER_LANE as u32);
    let goes = CHUNK / lanes;
    let (go, before) = match is_dealt {
        true => (position % goes, position / goes),
        false => (position / lanes, position % lanes),
    };
    (go / steps * lanes + before) * steps + go % steps
}

impl Part<'_> {
    #[inline(always)]
    fn has<C: Cta>(&self, cta: &C, k: usize) -> bool {
        let number = Group::number(cta, k);
        self.from <= number && number < self.end
    }

    /// Writes chunk number `chunk`; what is left over adds zeros behind all sums.
    #[inline(always)]
    pub fn write<C: Cta, T: Real>(
        &self,
        cta: &C,
        args: &PanelMakingArgs<'_, T>,
        chunk: u32,
        values: &[T; PER_LANE],
    ) {
        let is_dealt = self.lines::<C, T>(cta) <= FEW_LINES;
        let mut positions = self.as_they_come(cta);
        if is_dealt {
            self.deal_out::<C, T>(cta, &mut positions);
        }
        let first = chunk as usize * CHUNK as usize;
        for k in 0..PER_LANE {
            let at = place::<T>(positions[k], is_dealt);
            let mut key = (args.width + at * SPARE / CHUNK) << 16;
            let mut value = T::ZERO;
            if self.has(cta, k) {
                key = self.group.sums[k] << 16 | (self.group.inputs[k] - self.base);
                value = values[k];
            }
            cta.write(args.keys, first + at as usize, key);
            if args.given_values.is_some() {
                cta.write(args.packed, first + at as usize, value);
            }
        }
        if lane(cta) == 0 {
            cta.write(args.bases, chunk as usize, self.base);
        }
    }

    /// How many lines the inputs lie in.
    #[inline(always)]
    fn lines<C: Cta, T: Word>(&self, cta: &C) -> u32 {
        let (mut lines, mut last) = (0, u32::MAX);
        for k in 0..PER_LANE {
            let line = self.group.inputs[k] / (LINE / T::SIZE);
            let mut before = cta.shuffle(line, Shuffle::Up(1), WARP, FULL);
            if lane(cta) == 0 {
                before = last;
            }
            let is_other = line != before || Group::number(cta, k) == self.from;
            lines += cta.ballot(self.has(cta, k) && is_other, FULL).count_ones();
            last = cta.shuffle(line, Shuffle::Index(WARP - 1), WARP, FULL);
        }
        lines
    }

    /// The positions of entries in their order; those that are missing lie behind them.
    #[inline(always)]
    fn as_they_come<C: Cta>(&self, cta: &C) -> [u32; PER_LANE] {
        core::array::from_fn(|k| {
            let number = Group::number(cta, k);
            match number < self.from {
                true => self.end - self.from + number,
                false if number < self.end => number - self.from,
                false => number,
            }
        })
    }

    /// Puts the entries in the order of their banks.
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "iterators over registers put them into local memory"
    )]
    fn deal_out<C: Cta, T: Word>(&self, cta: &C, positions: &mut [u32; PER_LANE]) {
        let counters = Shared::at(4 * BANKS * (cta.thread() / WARP), BANKS);
        let own = lane(cta) as usize;
        let bank = |k: usize| self.group.sums[k] % (LINE / T::SIZE);
        cta.shared_write(counters, own, 0);
        cta.sync_warp();
        let mut before = [0; PER_LANE];
        for k in 0..PER_LANE {
            let counter = (bank(k), BANKS.trailing_zeros());
            before[k] = count_one(cta, counters, counter, self.has(cta, k));
        }
        let count = cta.shared_read(counters, own);
        let first = sum_of_lower(cta, count);
        cta.sync_warp();
        cta.shared_write(counters, own, first);
        cta.sync_warp();
        for k in 0..PER_LANE {
            if self.has(cta, k) {
                positions[k] = before[k] + cta.shared_read(counters, bank(k) as usize);
            }
        }
        cta.sync_warp();
    }
}

/// The sum of the numbers of lower lanes.
#[inline(always)]
fn sum_of_lower<C: Cta>(cta: &C, number: u32) -> u32 {
    let (mut sum, mut distance) = (number, 1);
    while distance < WARP {
        let of = cta.shuffle(sum, Shuffle::Up(distance), WARP, FULL);
        if lane(cta) >= distance {
            sum += of;
        }
        distance *= 2;
    }
    sum - number
}
