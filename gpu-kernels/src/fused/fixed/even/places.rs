//! Where fixed-point sums of columns are while shares of entries are walked: see [`even`](crate::fused::fixed::even).

use crate::cta::{Cache, Cta, Shared, WARP};
use crate::fused::EvenArgs;
use crate::fused::even::Window;
use crate::fused::even::sums::{BUSY, Columns, NO_COLUMN, Place, slot_of, slots};
use crate::fused::fixed::FixedArgs;
use crate::fused::fixed::point::FixedPoint;
use crate::fused::fixed::sums::SharedSums;
use crate::verbs::{each_of_block, lane};

/// Sums that nobody reads, one for each lane: where it has no entry, it adds there.
pub(crate) const SPARE: u32 = WARP;

/// The sums of a block.
pub(in crate::fused::fixed) trait EvenSums<T: FixedPoint>:
    Columns<T>
{
    /// Makes them zero, from a byte on; ends with a barrier.
    fn open<C: Cta, const DOTS: bool>(cta: &C, args: &FixedArgs<'_, T>, byte: u32) -> Self;
    /// A lane's spare sum, as [`find`](Columns::find) gives others.
    fn spare<C: Cta>(&self, cta: &C) -> u32;
    /// The column whose sum this is.
    fn column<C: Cta>(&self, cta: &C, sum: u32) -> usize;
    /// Adds to sums, of which some may be one.
    fn add<C: Cta, const N: usize>(
        &self,
        cta: &C,
        args: &FixedArgs<'_, T>,
        sums: [u32; N],
        values: [T; N],
    );
    /// Adds the sums to those of all, after a barrier.
    fn flush<C: Cta>(self, cta: &C, args: &FixedArgs<'_, T>);
}

/// Those of all columns of the window in shared memory.
pub(crate) struct OfAll<T> {
    sums: SharedSums<T>,
    window: Window,
}

impl<T: FixedPoint> Columns<T> for OfAll<T> {
    #[inline(always)]
    fn find<C: Cta>(&self, _: &C, _: &EvenArgs<'_, T>, column: u32) -> Place {
        Place {
            sum: column.wrapping_sub(self.window.first),
            column,
            slot: 0,
        }
    }

    #[inline(always)]
    fn input<C: Cta>(&self, cta: &C, args: &EvenArgs<'_, T>, place: Place) -> T {
        cta.load(args.x.input, place.column as usize, Cache::Keep)
    }
}

impl<T: FixedPoint> EvenSums<T> for OfAll<T> {
    #[inline(always)]
    fn open<C: Cta, const DOTS: bool>(cta: &C, args: &FixedArgs<'_, T>, byte: u32) -> Self {
        let window = args.window.of_product::<DOTS>(args.x.cols);
        let sums = SharedSums::open(cta, byte, (window.columns, SPARE));
        cta.sync();
        OfAll { sums, window }
    }

    #[inline(always)]
    fn spare<C: Cta>(&self, cta: &C) -> u32 {
        self.window.columns + lane(cta)
    }

    #[inline(always)]
    fn column<C: Cta>(&self, _: &C, sum: u32) -> usize {
        (self.window.first + sum) as usize
    }

    #[inline(always)]
    fn add<C: Cta, const N: usize>(
        &self,
        cta: &C,
        _: &FixedArgs<'_, T>,
        sums: [u32; N],
        values: [T; N],
    ) {
        self.sums.add_each(cta, sums, values);
    }

    #[inline(always)]
    fn flush<C: Cta>(self, cta: &C, args: &FixedArgs<'_, T>) {
        cta.sync();
        let Window { first, columns } = self.window;
        self.sums
            .flush_added_as(cta, args.sums, columns, |j| first as usize + j);
    }
}

/// Those of frequent columns in shared memory, with their elements of y, as [the table](crate::fused::even::sums) has them; the
/// others in global memory. Integers do not queue up at the [busiest](BUSY) columns as loops of compare-and-swap do: they have
/// one sum, too.
pub(crate) struct OfFrequent<T> {
    keys: Shared<u32>,
    input: Shared<T>,
    sums: SharedSums<T>,
}

impl<T: FixedPoint> OfFrequent<T> {
    const SLOTS: u32 = slots(T::SIZE);
}

impl<T: FixedPoint> Columns<T> for OfFrequent<T> {
    #[inline(always)]
    fn find<C: Cta>(&self, cta: &C, args: &EvenArgs<'_, T>, column: u32) -> Place {
        let slot = slot_of(column, args.multiplier, T::SIZE);
        let key = cta.shared_read(self.keys, slot as usize);
        let is_there = key & !BUSY == column;
        Place {
            sum: if is_there { BUSY | slot } else { column },
            column,
            slot,
        }
    }

    /// Both elements are requested, as [`even`](crate::fused::even) does it.
    #[inline(always)]
    fn input<C: Cta>(&self, cta: &C, args: &EvenArgs<'_, T>, place: Place) -> T {
        let is_here = place.sum & BUSY != 0;
        let elsewhere = if is_here { 0 } else { place.column };
        let here = cta.shared_read(self.input, place.slot as usize);
        let there = cta.load(args.x.input, elsewhere as usize, Cache::Keep);
        if is_here { here } else { there }
    }
}

impl<T: FixedPoint> EvenSums<T> for OfFrequent<T> {
    #[inline(always)]
    fn open<C: Cta, const DOTS: bool>(cta: &C, args: &FixedArgs<'_, T>, byte: u32) -> Self {
        // y first: its elements may need the alignment of 8 bytes.
        let input = Shared::at(byte, Self::SLOTS);
        let keys = Shared::at(input.end(), Self::SLOTS);
        let sums = SharedSums::open(cta, keys.end(), (Self::SLOTS, SPARE));
        each_of_block(cta, Self::SLOTS, |slot| {
            let key: u32 = cta.load(args.order, slot, Cache::Once);
            cta.shared_write(keys, slot, key);
            let mut y = T::ZERO;
            if DOTS && key != NO_COLUMN {
                y = cta.load(args.x.input, (key & !BUSY) as usize, Cache::Keep);
            }
            cta.shared_write(input, slot, y);
        });
        cta.sync();
        OfFrequent { keys, input, sums }
    }

    #[inline(always)]
    fn spare<C: Cta>(&self, cta: &C) -> u32 {
        BUSY | (Self::SLOTS + lane(cta))
    }

    #[inline(always)]
    fn column<C: Cta>(&self, cta: &C, sum: u32) -> usize {
        if sum & BUSY == 0 {
            return sum as usize;
        }
        let key = cta.shared_read(self.keys, (sum ^ BUSY) as usize);
        (key & !BUSY) as usize
    }

    #[inline(always)]
    fn add<C: Cta, const N: usize>(
        &self,
        cta: &C,
        args: &FixedArgs<'_, T>,
        sums: [u32; N],
        values: [T; N],
    ) {
        let spare = Self::SLOTS + lane(cta);
        let here = |k: usize| sums[k] & BUSY != 0;
        let slots = core::array::from_fn(|k| if here(k) { sums[k] ^ BUSY } else { spare });
        let of_slots = core::array::from_fn(|k| if here(k) { values[k] } else { T::ZERO });
        self.sums.add_each::<C, N>(cta, slots, of_slots);
        for k in 0..N {
            if !here(k) {
                add_elsewhere(cta, args, sums[k], values[k]);
            }
        }
    }

    #[inline(always)]
    fn flush<C: Cta>(self, cta: &C, args: &FixedArgs<'_, T>) {
        cta.sync();
        // Nothing was added to a slot without a column.
        self.sums
            .flush_added_as(cta, args.sums, Self::SLOTS, |slot| {
                (cta.shared_read(self.keys, slot) & !BUSY) as usize
            });
    }
}

/// Adds to a sum in global memory.
#[inline(always)]
fn add_elsewhere<C: Cta, T: FixedPoint>(cta: &C, args: &FixedArgs<'_, T>, column: u32, value: T) {
    let (fixed, at) = (value.to_fixed(), column as usize * T::LIMBS);
    cta.add_wrapping(args.sums, at, fixed.high as u64);
    if T::LIMBS == 2 && fixed.low != 0 {
        cta.add_wrapping(args.sums, at + 1, fixed.low as u64);
    }
}
