//! Where sums of columns are: see [`even`](crate::fused::even).
//!
//! Additions to one element of global memory queue up, 3 ns each on an H200, so that the most frequent columns of
//! skewed data hold up all others. A table of [`slots`] columns in shared memory tells them apart as entries come, without marks
//! in X: a column's slot follows from the high bits of its product with a multiplier, and the slot has the column, or another one,
//! or [`NO_COLUMN`]. Whoever makes the table leaves the more frequent of two columns that want one slot. A slot has an element
//! of y and a sum. Of the [busiest](BUSY) columns each warp has sums of its own, since rows of many warps meet there.

use super::EvenArgs;
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::scalar::Real;
use crate::verbs::{each_of_block, zero_shared};

/// Marks an index as a place in shared memory, and a column of the table as one of which each warp has a sum.
pub const BUSY: u32 = 1 << 31;
/// What a slot has that has no column.
pub const NO_COLUMN: u32 = u32::MAX;
/// Sums of its own that each warp has: of busy columns, whose slots are unlike modulo this number.
pub const BUSIEST: u32 = 64;

/// Slots of the table for elements of `size` bytes, a power of two.
pub const fn slots(size: u32) -> u32 {
    1 << slot_bits(size)
}

const fn slot_bits(size: u32) -> u32 {
    if size == 4 { 13 } else { 12 }
}

/// The slot of a column.
#[inline(always)]
pub const fn slot_of(column: u32, multiplier: u32, size: u32) -> u32 {
    column.wrapping_mul(multiplier) >> (32 - slot_bits(size))
}

/// Where a block has what belongs to columns.
pub(in crate::fused) trait Columns<T: Real>: Sized {
    /// Where the sum of a column is, and where its element of y is, as [`input`](Self::input) and [`Sums::add`] take it.
    fn find<C: Cta>(&self, cta: &C, args: &EvenArgs<'_, T>, column: u32) -> Place;
    /// The element of y of a column.
    fn input<C: Cta>(&self, cta: &C, args: &EvenArgs<'_, T>, place: Place) -> T;
}

/// The sums of a block.
pub(super) trait Sums<T: Real>: Columns<T> {
    /// Makes them zero; ends with a barrier.
    fn open<C: Cta, const DOTS: bool>(cta: &C, args: &EvenArgs<'_, T>) -> Self;
    /// The byte after the last.
    fn end(&self) -> u32;
    /// Adds to the sum of a column.
    fn add<C: Cta>(&self, cta: &C, args: &EvenArgs<'_, T>, sum: u32, value: T);
    /// Adds the sums to w, after a barrier.
    fn flush<C: Cta>(self, cta: &C, args: &EvenArgs<'_, T>);
}

/// What is known of a column.
#[derive(Clone, Copy)]
pub(in crate::fused) struct Place {
    /// Where its sum is.
    pub sum: u32,
    /// Where its element of y is, in global memory.
    pub column: u32,
    /// Where that is in shared memory.
    pub slot: u32,
}

/// Of all columns of the window.
pub(super) struct AllShared<T> {
    sums: Shared<T>,
    /// The first of them.
    first: u32,
}

impl<T: Real> Columns<T> for AllShared<T> {
    #[inline(always)]
    fn find<C: Cta>(&self, _: &C, _: &EvenArgs<'_, T>, column: u32) -> Place {
        Place {
            sum: column.wrapping_sub(self.first),
            column,
            slot: 0,
        }
    }

    #[inline(always)]
    fn input<C: Cta>(&self, cta: &C, args: &EvenArgs<'_, T>, place: Place) -> T {
        cta.load(args.x.input, place.column as usize, Cache::Keep)
    }
}

impl<T: Real> Sums<T> for AllShared<T> {
    #[inline(always)]
    fn open<C: Cta, const DOTS: bool>(cta: &C, args: &EvenArgs<'_, T>) -> Self {
        let window = args.window.of_product::<DOTS>(args.x.cols);
        let sums = Shared::at(0, window.columns);
        zero_shared(cta, sums);
        cta.sync();
        AllShared {
            sums,
            first: window.first,
        }
    }

    #[inline(always)]
    fn end(&self) -> u32 {
        self.sums.end()
    }

    #[inline(always)]
    fn add<C: Cta>(&self, cta: &C, _: &EvenArgs<'_, T>, sum: u32, value: T) {
        cta.shared_add(self.sums, sum as usize, value);
    }

    #[inline(always)]
    fn flush<C: Cta>(self, cta: &C, args: &EvenArgs<'_, T>) {
        cta.sync();
        let (output, first) = (args.x.output, self.first as usize);
        each_of_block(cta, self.sums.len(), |j| {
            cta.add(output, first + j, cta.shared_read(self.sums, j));
        });
    }
}

/// Of frequent columns.
pub(super) struct OfFrequent<T> {
    keys: Shared<u32>,
    input: Shared<T>,
    /// One of each slot, then those of busy columns, warp after warp.
    sums: Shared<T>,
}

impl<T: Real> OfFrequent<T> {
    const SLOTS: u32 = slots(T::SIZE);

    /// Where this warp's sum of a busy column is, beyond its slot modulo their number.
    #[inline(always)]
    fn of_warp(warp: u32) -> u32 {
        Self::SLOTS + warp * BUSIEST
    }
}

impl<T: Real> Columns<T> for OfFrequent<T> {
    #[inline(always)]
    fn find<C: Cta>(&self, cta: &C, args: &EvenArgs<'_, T>, column: u32) -> Place {
        let slot = slot_of(column, args.multiplier, T::SIZE);
        let key = cta.shared_read(self.keys, slot as usize);
        let own = Self::of_warp(cta.thread() / WARP) + slot % BUSIEST;
        let sum = if key & BUSY != 0 { own } else { slot };
        let is_there = key & !BUSY == column;
        Place {
            sum: if is_there { BUSY | sum } else { column },
            column,
            slot,
        }
    }

    /// Both elements are requested, since a load that depends on a condition waits for others: of a frequent column the first of
    /// y, which one request brings to all lanes.
    #[inline(always)]
    fn input<C: Cta>(&self, cta: &C, args: &EvenArgs<'_, T>, place: Place) -> T {
        let is_here = place.sum & BUSY != 0;
        let elsewhere = if is_here { 0 } else { place.column };
        let here = cta.shared_read(self.input, place.slot as usize);
        let there = cta.load(args.x.input, elsewhere as usize, Cache::Keep);
        if is_here { here } else { there }
    }
}

impl<T: Real> Sums<T> for OfFrequent<T> {
    #[inline(always)]
    fn open<C: Cta, const DOTS: bool>(cta: &C, args: &EvenArgs<'_, T>) -> Self {
        let keys = Shared::at(0, Self::SLOTS);
        let input = Shared::at(keys.end(), Self::SLOTS);
        let sums = Shared::at(input.end(), Self::of_warp(cta.threads() / WARP));
        each_of_block(cta, Self::SLOTS, |slot| {
            let key: u32 = cta.load(args.keys, slot, Cache::Once);
            cta.shared_write(keys, slot, key);
            let mut y = T::ZERO;
            if DOTS && key != NO_COLUMN {
                y = cta.load(args.x.input, (key & !BUSY) as usize, Cache::Keep);
            }
            cta.shared_write(input, slot, y);
        });
        zero_shared(cta, sums);
        cta.sync();
        OfFrequent { keys, input, sums }
    }

    #[inline(always)]
    fn end(&self) -> u32 {
        self.sums.end()
    }

    #[inline(always)]
    fn add<C: Cta>(&self, cta: &C, args: &EvenArgs<'_, T>, sum: u32, value: T) {
        if sum & BUSY != 0 {
            cta.shared_add(self.sums, (sum ^ BUSY) as usize, value);
        } else {
            cta.add(args.x.output, sum as usize, value);
        }
    }

    #[inline(always)]
    fn flush<C: Cta>(self, cta: &C, args: &EvenArgs<'_, T>) {
        cta.sync();
        each_of_block(cta, Self::SLOTS, |slot| {
            let key = cta.shared_read(self.keys, slot);
            let mut sum = cta.shared_read(self.sums, slot);
            if key & BUSY != 0 {
                for warp in 0..cta.threads() / WARP {
                    let own = Self::of_warp(warp) + slot as u32 % BUSIEST;
                    sum = sum + cta.shared_read(self.sums, own as usize);
                }
            }
            if key != NO_COLUMN && sum != T::ZERO {
                cta.add(args.x.output, (key & !BUSY) as usize, sum);
            }
        });
    }
}
