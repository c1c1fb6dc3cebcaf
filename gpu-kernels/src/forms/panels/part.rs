//! A chunk, and the order of its entries.
//!
//! Which entry of a chunk comes in which step of a warp is free. Two orders, as the host has them: where the entries' inputs lie in
//! few lines, one of each bank of shared memory after the other, which take turns in steps ([`by_banks`](Part::by_banks)); else whole
//! lines, each where its banks are wanted least ([`by_lines`](Part::by_lines)). As they come a step of 32 random sums has 3.6 in its
//! busiest bank, by banks 2.2, but then each line is wanted in every step; by lines 2.3 to 2.9, and no line is wanted twice. Of
//! elements of 8 bytes, half a warp is served at a time: a *go* is a step of as many lanes as are served together.

use super::PanelMakingArgs;
use super::counting::count_one;
use super::groups::{Group, PER_LANE};
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

/// Lanes of a go, which are as many as banks.
const fn lanes_of_go<T: Word>() -> u32 {
    LINE / T::SIZE
}

/// Goes of a warp over a chunk.
const fn goes<T: Word>() -> u32 {
    CHUNK / lanes_of_go::<T>()
}

/// The place of the entry with this many others before it in a go.
#[inline(always)]
fn place<T: Word>(go: u32, before: u32) -> u32 {
    let steps = PER_LANE as u32;
    (go / steps * lanes_of_go::<T>() + before) * steps + go % steps
}

/// The next of the entries that begin lines after this one, or the end of all.
#[inline(always)]
fn next_line(begins: &[u32; PER_LANE], after: u32, end: u32) -> u32 {
    let mut next = end;
    for k in (0..PER_LANE).rev() {
        let skipped = (after + 1).saturating_sub(k as u32 * WARP);
        let later = begins[k] & u32::MAX.checked_shl(skipped).unwrap_or(0);
        if later != 0 {
            next = k as u32 * WARP + later.trailing_zeros();
        }
    }
    next
}

/// The goes of a chunk that lines are put into; each lane looks at one of them, together with its neighbours.
struct Goes {
    /// How often each bank is wanted in each go.
    wanted: Shared<u32>,
    /// The bank of each entry.
    banks: Shared<u32>,
    /// The lane's go, and which of the lanes that look at it this is.
    own: (u32, u32),
    /// Entries in it.
    used: u32,
}

impl Goes {
    /// Lanes that look at a go.
    const fn lookers<T: Word>() -> u32 {
        WARP / goes::<T>()
    }

    #[inline(always)]
    fn of<C: Cta, T: Word>(cta: &C) -> Self {
        let first = 2 * 4 * CHUNK * (cta.thread() / WARP);
        let wanted = Shared::at(first, CHUNK);
        let lookers = Self::lookers::<T>();
        Goes {
            wanted,
            banks: Shared::at(wanted.end(), CHUNK),
            own: (lane(cta) / lookers, lane(cta) % lookers),
            used: 0,
        }
    }

    /// The go that wants the banks of these entries least and has room for all of them, and the entries in it; none where no go
    /// has. The same in every lane; the whole warp calls.
    #[inline(always)]
    fn least_wanted<C: Cta, T: Word>(&self, cta: &C, entries: (u32, u32)) -> Option<(u32, u32)> {
        let (lanes, lookers) = (lanes_of_go::<T>(), Self::lookers::<T>());
        let mut wanted = 0;
        let mut entry = entries.0 + self.own.1;
        while entry < entries.1 {
            let bank: u32 = cta.shared_read(self.banks, entry as usize);
            let counter = (self.own.0 * lanes + bank) as usize;
            wanted += cta.shared_read(self.wanted, counter);
            entry += lookers;
        }
        // Counters change when all have read them.
        cta.sync_warp();
        let mut distance = lookers / 2;
        while distance > 0 {
            wanted += cta.shuffle(wanted, Shuffle::Xor(distance), WARP, FULL);
            distance /= 2;
        }
        let mut best = match self.used + (entries.1 - entries.0) <= lanes {
            true => wanted << 16 | self.used << 8 | self.own.0,
            false => u32::MAX,
        };
        let mut distance = lookers;
        while distance < WARP {
            let other = cta.shuffle(best, Shuffle::Xor(distance), WARP, FULL);
            best = best.min(other);
            distance *= 2;
        }
        (best != u32::MAX).then_some((best & 0xff, best >> 8 & 0xff))
    }

    /// Go and place of what is left over, number `missing` of it. The whole warp calls.
    #[inline(always)]
    fn left<C: Cta, T: Word>(&self, cta: &C, missing: u32) -> u32 {
        let (mut before, mut found) = (0, 0);
        for go in 0..goes::<T>() {
            let from = Shuffle::Index(go * Self::lookers::<T>());
            let used = cta.shuffle(self.used, from, WARP, FULL);
            let room = lanes_of_go::<T>() - used;
            if before <= missing && missing < before + room {
                found = place::<T>(go, used + missing - before);
            }
            before += room;
        }
        found
    }
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
        let begins = self.begins::<C, T>(cta);
        let lines: u32 = begins.map(u32::count_ones).into_iter().sum();
        let places = match lines <= FEW_LINES {
            true => self.by_banks::<C, T>(cta),
            false => self.by_lines::<C, T>(cta, &begins),
        };
        let first = chunk as usize * CHUNK as usize;
        for k in 0..PER_LANE {
            let at = places[k];
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

    /// A bit for each entry whose input lies in another line than that of the entry before.
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "iterators over registers put them into local memory"
    )]
    fn begins<C: Cta, T: Word>(&self, cta: &C) -> [u32; PER_LANE] {
        let (mut begins, mut last) = ([0; PER_LANE], u32::MAX);
        for k in 0..PER_LANE {
            let line = self.group.inputs[k] / lanes_of_go::<T>();
            let mut before = cta.shuffle(line, Shuffle::Up(1), WARP, FULL);
            if lane(cta) == 0 {
                before = last;
            }
            let is_other = line != before || Group::number(cta, k) == self.from;
            begins[k] = cta.ballot(self.has(cta, k) && is_other, FULL);
            last = cta.shuffle(line, Shuffle::Index(WARP - 1), WARP, FULL);
        }
        begins
    }

    #[inline(always)]
    fn bank<T: Word>(&self, k: usize) -> u32 {
        self.group.sums[k] % lanes_of_go::<T>()
    }

    /// Which of those that are left over entry k of this lane is, if it is one of them.
    #[inline(always)]
    fn missing<C: Cta>(&self, cta: &C, k: usize) -> u32 {
        let number = Group::number(cta, k);
        match number < self.from {
            true => number,
            false => number.saturating_sub(self.end - self.from),
        }
    }

    /// Places of entries in the order of their banks, one for each go in turn; what is left over lies behind them.
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "iterators over registers put them into local memory"
    )]
    fn by_banks<C: Cta, T: Word>(&self, cta: &C) -> [u32; PER_LANE] {
        let counters = Goes::of::<C, T>(cta).wanted;
        let own = lane(cta) as usize;
        cta.shared_write(counters, own, 0);
        cta.sync_warp();
        let mut positions = [0; PER_LANE];
        for k in 0..PER_LANE {
            let counter = (self.bank::<T>(k), WARP.trailing_zeros());
            positions[k] = count_one(cta, counters, counter, self.has(cta, k));
        }
        let count = cta.shared_read(counters, own);
        let first = sum_of_lower(cta, count);
        cta.sync_warp();
        cta.shared_write(counters, own, first);
        cta.sync_warp();
        for k in 0..PER_LANE {
            positions[k] = match self.has(cta, k) {
                true => positions[k] + cta.shared_read(counters, self.bank::<T>(k) as usize),
                false => self.end - self.from + self.missing(cta, k),
            };
        }
        cta.sync_warp();
        positions.map(|position| place::<T>(position % goes::<T>(), position / goes::<T>()))
    }

    /// Places of entries line by line, those of several entries first; what is left over lies where there is room. The entries of a
    /// line come in one go as long as one has room for them.
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "iterators over registers put them into local memory"
    )]
    fn by_lines<C: Cta, T: Word>(&self, cta: &C, begins: &[u32; PER_LANE]) -> [u32; PER_LANE] {
        let mut goes = Goes::of::<C, T>(cta);
        for k in 0..PER_LANE {
            let number = Group::number(cta, k) as usize;
            cta.shared_write(goes.wanted, number, 0);
            cta.shared_write(goes.banks, number, self.bank::<T>(k));
        }
        cta.sync_warp();
        let mut places = [0; PER_LANE];
        for is_single in [false, true] {
            let mut from = self.from;
            while from < self.end {
                let most = from + lanes_of_go::<T>();
                let end = next_line(begins, from, self.end).min(most);
                if (end - from == 1) == is_single {
                    self.put_line::<C, T>(cta, &mut goes, (from, end), &mut places);
                }
                from = end;
            }
        }
        for k in 0..PER_LANE {
            let left = goes.left::<C, T>(cta, self.missing(cta, k));
            if !self.has(cta, k) {
                places[k] = left;
            }
        }
        cta.sync_warp();
        places
    }

    /// Puts entries of a line into a go, or one after the other where none has room for all.
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "iterators over registers put them into local memory"
    )]
    fn put_line<C: Cta, T: Word>(
        &self,
        cta: &C,
        goes: &mut Goes,
        (mut from, line_end): (u32, u32),
        places: &mut [u32; PER_LANE],
    ) {
        let mut end = line_end;
        while from < line_end {
            let Some((go, used)) = goes.least_wanted::<C, T>(cta, (from, end)) else {
                end = from + 1;
                continue;
            };
            for k in 0..PER_LANE {
                let number = Group::number(cta, k);
                if from <= number && number < end {
                    places[k] = place::<T>(go, used + number - from);
                    let counter = go * lanes_of_go::<T>() + self.bank::<T>(k);
                    cta.shared_fetch_add(goes.wanted, counter as usize, 1);
                }
            }
            if goes.own.0 == go {
                goes.used += end - from;
            }
            cta.sync_warp();
            (from, end) = (end, line_end);
        }
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
