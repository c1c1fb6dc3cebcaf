//! Entries put where lanes find them: a warp has a slice.
//!
//! The entries of a row are read by all lanes, its hot ones held in shared memory until the rows of the slice are there,
//! and dealt out; of a long row as many at a time as all hands hold. Cold ones go where they belong at once. Shared memory:
//! places and values of the entries that are held, and a word for each bank.

use crate::cta::{Cache, Cta, Shuffle, WARP};
use crate::forms::hot::deal::{HAND, HANDS, Hand, Table, Turns};
use crate::forms::hot::{MakingArgs, Rounding, StoredAs, place_of, row_at};
use crate::fused::fixed::point::{FixedPoint, column_exponent};
use crate::fused::hot::NONE;
use crate::fused::hot::lengths::place_of_slice;
use crate::fused::hot::narrow::{of_bf16, to_bf16};
use crate::verbs::{FULL, global_warp, global_warps, lane};

/// [`MakingVariant::Copied`](super::MakingVariant::Copied).
#[inline(always)]
pub(super) fn copied<C: Cta, T: FixedPoint>(cta: &C, args: &MakingArgs<'_, T>) {
    let table = Table::of(cta);
    let [.., slices] = args.slices;
    let mut number = global_warp(cta);
    while number < slices {
        let slice = Slice::of(cta, args, number);
        if slice.bits == 0 {
            slice.copy_long(cta, args, &table);
        } else {
            slice.copy(cta, args, &table);
        }
        number += global_warps(cta);
    }
}

/// Some rows, each with as many lanes, and what a lane knows of its own.
struct Slice {
    /// Rows, as a power of two.
    bits: u32,
    hot: Steps,
    cold: Steps,
    /// The entries of this lane's row.
    start: u32,
    end: u32,
    /// Its cold entries among those of all positions.
    cold_start: u32,
}

/// The first step of a slice, and their number.
#[derive(Clone, Copy)]
struct Steps {
    first: u32,
    count: u32,
}

/// Entries of a row so far.
#[derive(Clone, Copy, Default)]
struct Filled {
    hot: u32,
    cold: u32,
}

/// Where entries of a row go.
#[derive(Clone, Copy)]
struct Target {
    /// Its number in the slice.
    number: u32,
    /// Where its hot ones are held.
    base: u32,
    /// Its first cold one.
    cold_start: u32,
}

impl Slice {
    #[inline(always)]
    fn of<C: Cta, T: FixedPoint>(cta: &C, args: &MakingArgs<'_, T>, number: u32) -> Self {
        let (bits, first) = place_of_slice(args.slices, number);
        let from: u64 = cta.load(args.steps, number as usize, Cache::Keep);
        let to: u64 = cta.load(args.steps, number as usize + 1, Cache::Keep);
        let steps = |from: u32, to: u32| Steps {
            first: from,
            count: to - from,
        };
        let position = first + (lane(cta) >> (5 - bits));
        let row = row_at(cta, args.order, position);
        let (mut start, mut end) = (0, 0);
        if row < args.rows {
            start = cta.load(args.offsets, row as usize, Cache::Keep);
            end = cta.load(args.offsets, row as usize + 1, Cache::Keep);
        }
        let slice = Slice {
            bits,
            hot: steps(from as u32, to as u32),
            cold: steps((from >> 32) as u32, (to >> 32) as u32),
            start,
            end,
            cold_start: cta.load(args.cold_offsets, position as usize, Cache::Keep),
        };
        slice.write_constant(cta, args, position);
        slice
    }

    /// What the values of this lane's row are, where they are equal.
    #[inline(always)]
    fn write_constant<C: Cta, T: FixedPoint>(
        &self,
        cta: &C,
        args: &MakingArgs<'_, T>,
        position: u32,
    ) {
        let is_first = lane(cta).is_multiple_of(WARP >> self.bits);
        if args.to_constants.is_some() && is_first {
            let mut constant = T::ZERO;
            if self.start < self.end {
                let value: T = cta.load(args.values, self.start as usize, Cache::Keep);
                constant = value.scaled(-column_exponent::<T>(args.field));
            }
            cta.write(args.to_constants, position as usize, constant);
        }
    }

    /// Rows of which all hands hold the hot entries at once.
    #[inline(always)]
    fn copy<C: Cta, T: FixedPoint>(&self, cta: &C, args: &MakingArgs<'_, T>, table: &Table<T>) {
        let lanes = WARP >> self.bits;
        let own = lane(cta) / lanes;
        let mut filled = Filled::default();
        for number in 0..1 << self.bits {
            let of_row =
                |value: u32| cta.shuffle(value, Shuffle::Index(number * lanes), WARP, FULL);
            let (mut entry, end) = (of_row(self.start), of_row(self.end));
            let target = Target {
                number,
                base: number * lanes * HAND,
                cold_start: of_row(self.cold_start),
            };
            let mut of_row = Filled::default();
            while entry < end {
                of_row = self.split(cta, args, table, (entry, end), (target, of_row, of_row.hot));
                entry += WARP.min(end - entry);
            }
            if own == number {
                filled = of_row;
            }
        }
        cta.sync_warp();
        let hand = Hand::of(cta, (own * lanes * HAND, filled.hot), lanes);
        table.deal(cta, args, (hand, self.turns(0)));
        self.write_absent(cta, args, filled.cold);
        cta.sync_warp();
    }

    /// A row that has the slice for itself.
    #[inline(always)]
    fn copy_long<C: Cta, T: FixedPoint>(
        &self,
        cta: &C,
        args: &MakingArgs<'_, T>,
        table: &Table<T>,
    ) {
        let target = Target {
            number: 0,
            base: 0,
            cold_start: self.cold_start,
        };
        let (mut filled, mut held, mut done) = (Filled::default(), 0, 0);
        let mut entry = self.start;
        while entry < self.end {
            let before = filled.hot;
            filled = self.split(cta, args, table, (entry, self.end), (target, filled, held));
            held += filled.hot - before;
            entry += WARP.min(self.end - entry);
            if held >= HANDS {
                cta.sync_warp();
                let hand = Hand::of(cta, (0, HANDS), WARP);
                let turns = Turns {
                    count: HAND,
                    ..self.turns(done)
                };
                table.deal(cta, args, (hand, turns));
                done += HAND;
                held -= HANDS;
                table.move_rest(cta, held, args.stored != StoredAs::Constant);
            }
        }
        cta.sync_warp();
        let hand = Hand::of(cta, (0, held), WARP);
        table.deal(cta, args, (hand, self.turns(done)));
        self.write_absent(cta, args, filled.cold);
        cta.sync_warp();
    }

    /// The turns that are left when this many are done.
    #[inline(always)]
    fn turns(&self, done: u32) -> Turns {
        Turns {
            first: 2 * self.hot.first as u64 + done as u64,
            count: 2 * self.hot.count - done,
        }
    }

    /// Splits 32 entries of a row, of which some came before and `held` hot ones are held; the whole warp calls.
    #[inline(always)]
    fn split<C: Cta, T: FixedPoint>(
        &self,
        cta: &C,
        args: &MakingArgs<'_, T>,
        table: &Table<T>,
        (entry, end): (u32, u32),
        (target, before, held): (Target, Filled, u32),
    ) -> Filled {
        let is_there = lane(cta) < end - entry;
        let at = entry as usize + lane(cta) as usize;
        let (mut column, mut place) = (0, None);
        if is_there {
            column = cta.load(args.indices, at, Cache::Once);
            place = place_of(cta, (args.members, args.places), column);
        }
        let hot = cta.ballot(place.is_some(), FULL);
        let cold = cta.ballot(is_there && place.is_none(), FULL);
        let below = (1_u32 << lane(cta)) - 1;
        let mut value = T::ZERO;
        if is_there && args.stored != StoredAs::Constant {
            value = cta.load(args.values, at, Cache::Once);
        }
        if let Some(place) = place {
            let to = target.base + held + (hot & below).count_ones();
            table.hold(cta, to, place);
            if args.stored != StoredAs::Constant {
                table.hold_value(cta, to, stored(cta, args, (column, value)).0);
            }
        } else if is_there {
            let number = before.cold + (cold & below).count_ones();
            self.write_cold(cta, args, (target, number), (column, value));
        }
        Filled {
            hot: before.hot + hot.count_ones(),
            cold: before.cold + cold.count_ones(),
        }
    }

    /// Writes cold entry `number` of a row.
    #[inline(always)]
    fn write_cold<C: Cta, T: FixedPoint>(
        &self,
        cta: &C,
        args: &MakingArgs<'_, T>,
        (target, number): (Target, u32),
        (column, value): (u32, T),
    ) {
        let rank: u32 = cta.load(args.labels, column as usize, Cache::Keep);
        let (step, within) = (number >> (5 - self.bits), number % (WARP >> self.bits));
        let first = (self.cold.first as u64 + step as u64) * WARP as u64;
        let at = first as usize + (target.number * (WARP >> self.bits) + within) as usize;
        let of_row = target.cold_start as usize + number as usize;
        cta.write(args.to_ranks, at, rank);
        cta.write(args.cold_ranks, of_row, rank);
        if args.stored != StoredAs::Constant {
            let (stored, exponent) = stored(cta, args, (column, value));
            cta.write(args.to_cold_values, at, stored);
            cta.write(args.cold_entries, of_row, stored.scaled(exponent));
        }
    }

    /// Writes that this lane's row has no cold entries but these.
    #[inline(always)]
    fn write_absent<C: Cta, T: FixedPoint>(&self, cta: &C, args: &MakingArgs<'_, T>, cold: u32) {
        let lanes = WARP >> self.bits;
        let mut step = 0;
        while step < self.cold.count {
            if step * lanes + lane(cta) % lanes >= cold {
                let first = (self.cold.first as u64 + step as u64) * WARP as u64;
                let at = first as usize + lane(cta) as usize;
                cta.write(args.to_ranks, at, NONE);
                if args.stored != StoredAs::Constant {
                    cta.write(args.to_cold_values, at, T::ZERO);
                }
            }
            step += 1;
        }
    }
}

/// A value as it is stored: brought below 1, and rounded where that was wanted; and the power of two that it is larger by.
#[inline(always)]
fn stored<C: Cta, T: FixedPoint>(
    cta: &C,
    args: &MakingArgs<'_, T>,
    (column, value): (u32, T),
) -> (T, i32) {
    let field: u32 = cta.load(args.fields, column as usize, Cache::Keep);
    let exponent = column_exponent::<T>(field);
    let scaled = value.scaled(-exponent);
    let stored = match args.rounding {
        Rounding::Exact => scaled,
        Rounding::Single => T::of_f64(scaled.to_f64() as f32 as f64),
        Rounding::Bf16 => T::of_f64(of_bf16(to_bf16(scaled.to_f64()))),
    };
    (stored, exponent)
}
