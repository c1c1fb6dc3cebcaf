//! The hot entries of a slice dealt out to its lanes, turn after turn.
//!
//! Shared memory has 32 banks, each of which serves one lane at a time, so that entries that meet in a turn are to be of
//! different banks. A lane has a hand of its row's entries: with L lanes every L-th of them. Two lanes at a time
//! take one: that whose bank has been taken least in this turn, of those one whose bank has most entries left. With 20 entries
//! a row drawn at random the busiest bank of a turn has 2.13 lanes in the mean; one lane after the other, as on the host,
//! it has 2.04, four lanes at a time 2.6, and in no order 3.5.
//!
//! What did not help: a second choice where two lanes want one bank, so that they choose as one after the other would. `Xᵀ·p` over
//! 40,000 columns in f64 takes 694 to 696 µs of an H100 instead of 696 to 698, and as long where neighbours are the two.

use crate::cta::{Cta, Shared, WARP};
use crate::forms::hot::{MakingArgs, StoredAs, spare};
use crate::fused::fixed::point::FixedPoint;
use crate::fused::hot::HELD;
use crate::fused::hot::narrow::to_bf16;
use crate::verbs::lane;

/// Entries of a hand, at most.
pub(super) const HAND: u32 = 2 * HELD;
/// Entries of all hands.
pub(super) const HANDS: u32 = HAND * WARP;
/// Entries that are held at most: of a long row those that came with the last of all hands wait for the next.
const MOST_HELD: u32 = HANDS + WARP;
/// Lanes that take an entry at once.
const AT_ONCE: u32 = 2;

/// Bits of an entry's number in a hand, and the bit at which lanes are counted: see the host's
/// `layout/hot/deal.rs`.
const LEFT: u32 = 6;
const TAKEN: u32 = 26;
const MOST_LEFT: u32 = (1 << (TAKEN - LEFT)) - 1;

/// Shared memory of a warp for elements of `size` bytes.
pub(super) const fn bytes_of_warp(size: u32) -> u32 {
    MOST_HELD * (4 + size) + WARP * 4
}

/// What a warp has in shared memory.
#[derive(Clone, Copy)]
pub(super) struct Table<T> {
    values: Shared<T>,
    places: Shared<u32>,
    banks: Shared<u32>,
}

/// The entries of a lane: from `first` on every `step`-th, `left` of them.
#[derive(Clone, Copy)]
pub(super) struct Hand {
    pub first: u32,
    pub step: u32,
    pub left: u32,
}

impl Hand {
    /// This lane's, of a row whose `count` entries are held from `base` on, and which has `lanes` lanes.
    #[inline(always)]
    pub fn of<C: Cta>(cta: &C, (base, count): (u32, u32), lanes: u32) -> Self {
        let own = lane(cta) % lanes;
        Hand {
            first: base + own,
            step: lanes,
            left: (count + lanes - 1 - own) / lanes,
        }
    }

    #[inline(always)]
    fn at(&self, number: u32) -> usize {
        (self.first + number * self.step) as usize
    }
}

/// The turns of a deal: half a step each, the first of which is even.
#[derive(Clone, Copy)]
pub(super) struct Turns {
    pub first: u64,
    pub count: u32,
}

impl<T: FixedPoint> Table<T> {
    /// This warp's.
    #[inline(always)]
    pub fn of<C: Cta>(cta: &C) -> Self {
        let first = cta.thread() / WARP * bytes_of_warp(T::SIZE);
        let values = Shared::at(first, MOST_HELD);
        let places: Shared<u32> = Shared::at(values.end(), MOST_HELD);
        Table {
            values,
            places,
            banks: Shared::at(places.end(), WARP),
        }
    }

    /// Holds an entry.
    #[inline(always)]
    pub fn hold<C: Cta>(&self, cta: &C, at: u32, place: u32) {
        cta.shared_write(self.places, at as usize, place);
    }

    /// Holds its value.
    #[inline(always)]
    pub fn hold_value<C: Cta>(&self, cta: &C, at: u32, value: T) {
        cta.shared_write(self.values, at as usize, value);
    }

    /// Moves what is held behind all hands, `rest` entries, to the front; the whole warp calls.
    #[inline(always)]
    pub fn move_rest<C: Cta>(&self, cta: &C, rest: u32, with_values: bool) {
        let (own, from) = (lane(cta) as usize, (HANDS + lane(cta)) as usize);
        if lane(cta) < rest {
            let place = cta.shared_read(self.places, from);
            cta.shared_write(self.places, own, place);
            if with_values {
                let value = cta.shared_read(self.values, from);
                cta.shared_write(self.values, own, value);
            }
        }
        cta.sync_warp();
    }

    /// Deals everything out; the whole warp calls, after a barrier.
    #[inline(always)]
    pub fn deal<C: Cta>(
        &self,
        cta: &C,
        args: &MakingArgs<'_, T>,
        (mut hand, turns): (Hand, Turns),
    ) {
        self.count_left(cta, hand);
        let (mut pair, mut halves) = (0, 0);
        for turn in 0..turns.count {
            self.begin_turn(cta);
            let mut taken = (spare(args.hot_columns, lane(cta)), T::ZERO);
            for round in 0..WARP / AT_ONCE {
                let is_turn = lane(cta) % (WARP / AT_ONCE) == round;
                let best = if is_turn {
                    self.best(cta, &hand)
                } else {
                    u32::MAX
                };
                cta.sync_warp();
                if best != u32::MAX {
                    taken = self.take(cta, args, &mut hand, best % (1 << LEFT));
                }
                cta.sync_warp();
            }
            let at = turns.first + turn as u64;
            let shift = 16 * (turn % 2);
            pair = if turn % 2 == 0 {
                taken.0
            } else {
                pair | taken.0 << shift
            };
            let half = (to_half(args, taken.1) as u32) << shift;
            halves = if turn % 2 == 0 { half } else { halves | half };
            put(cta, args, at, (pair, halves, taken.1));
        }
    }

    /// How many entries each bank has.
    #[inline(always)]
    fn count_left<C: Cta>(&self, cta: &C, hand: Hand) {
        cta.shared_write(self.banks, lane(cta) as usize, MOST_LEFT << LEFT);
        cta.sync_warp();
        for number in 0..hand.left {
            let place = cta.shared_read(self.places, hand.at(number));
            let one_less = 0_u32.wrapping_sub(1 << LEFT);
            cta.shared_fetch_add(self.banks, bank(place), one_less);
        }
        cta.sync_warp();
    }

    /// No lane has taken anything.
    #[inline(always)]
    fn begin_turn<C: Cta>(&self, cta: &C) {
        let own = lane(cta) as usize;
        let key = cta.shared_read(self.banks, own);
        cta.shared_write(self.banks, own, key & ((1 << TAKEN) - 1));
        cta.sync_warp();
    }

    /// The key of the entry that a lane wants most, with its number in the hand; all ones without any.
    #[inline(always)]
    fn best<C: Cta>(&self, cta: &C, hand: &Hand) -> u32 {
        let mut best = u32::MAX;
        for number in 0..HAND {
            if number < hand.left {
                let place = cta.shared_read(self.places, hand.at(number));
                let key = cta.shared_read(self.banks, bank(place)) + number;
                best = best.min(key);
            }
        }
        best
    }

    /// Takes an entry out of the hand.
    #[inline(always)]
    fn take<C: Cta>(
        &self,
        cta: &C,
        args: &MakingArgs<'_, T>,
        hand: &mut Hand,
        number: u32,
    ) -> (u32, T) {
        hand.left -= 1;
        let (at, last) = (hand.at(number), hand.at(hand.left));
        let place = cta.shared_read(self.places, at);
        let moved = cta.shared_read(self.places, last);
        cta.shared_write(self.places, at, moved);
        cta.shared_fetch_add(self.banks, bank(place), (1 << TAKEN) + (1 << LEFT));
        if args.stored == StoredAs::Constant {
            return (place, T::ZERO);
        }
        let value = cta.shared_read(self.values, at);
        let moved = cta.shared_read(self.values, last);
        cta.shared_write(self.values, at, moved);
        (place, value)
    }
}

/// The bank of a place.
#[inline(always)]
fn bank(place: u32) -> usize {
    (place % WARP) as usize
}

/// A value as half of a word, where it is stored so.
#[inline(always)]
fn to_half<T: FixedPoint>(args: &MakingArgs<'_, T>, value: T) -> u16 {
    if args.stored == StoredAs::Bf16 {
        to_bf16(value.to_f64())
    } else {
        0
    }
}

/// Writes what a lane has taken in a turn: words of two turns after the second of them.
#[inline(always)]
fn put<C: Cta, T: FixedPoint>(
    cta: &C,
    args: &MakingArgs<'_, T>,
    turn: u64,
    (pair, halves, value): (u32, u32, T),
) {
    let of = |row: u64| (row * WARP as u64) as usize + lane(cta) as usize;
    match args.stored {
        StoredAs::Whole => cta.write(args.to_values, of(turn), value),
        StoredAs::Single => {
            let bits = (value.to_f64() as f32).to_bits();
            cta.write(args.to_packed, of(turn), bits);
        }
        StoredAs::Bf16 | StoredAs::Constant => {}
    }
    if turn % 2 == 1 {
        cta.write(args.to_places, of(turn / 2), pair);
        if args.stored == StoredAs::Bf16 {
            cta.write(args.to_packed, of(turn / 2), halves);
        }
    }
}
