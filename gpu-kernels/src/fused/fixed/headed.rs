//! Fixed-point sums of rows whose most frequent columns are kept apart, as [`head`](crate::fused::head) does it for floats.
//!
//! Integers of all columns in global memory queue up at the addresses of those that are in nearly every row. Here a marked
//! index names a place: y and sums of the places are in a block's shared memory, whose integer additions are native, and are
//! added to those of all when the block has walked its rows. The bits are those of every other place for sums.

use crate::cta::{Cache, Cta, Shared};
use crate::fused::Product;
use crate::fused::fixed::point::FixedPoint;
use crate::fused::fixed::sums::SharedSums;
use crate::fused::fixed::{FixedArgs, InGlobal, Sums};
use crate::fused::head::HEAD;
use crate::verbs::each_of_block;

/// Dynamic shared memory for `places` places: sums, and elements of y where a product takes them.
pub(crate) const fn shared_bytes(product: Product, places: u32, (size, words): (u32, u32)) -> u64 {
    let input = match product {
        Product::Transposed => 0,
        _ => size,
    };
    places as u64 * (input + 4 * words) as u64
}

/// y and sums of a head in shared memory, all others in global memory; with `Y` false there is no y.
pub(crate) struct InHead<T, const Y: bool> {
    input: Shared<T>,
    sums: SharedSums<T>,
}

impl<T: FixedPoint, const Y: bool> Sums<T> for InHead<T, Y> {
    #[inline(always)]
    fn open<C: Cta>(cta: &C, args: &FixedArgs<'_, T>) -> Self {
        let places = args.order.len() as u32;
        // y first: its elements may need the alignment of 8 bytes.
        let input = Shared::at(0, if Y { places } else { 0 });
        if Y {
            each_of_block(cta, places, |place| {
                let column: u32 = cta.load(args.order, place, Cache::Once);
                let y = cta.load(args.x.input, column as usize, Cache::Keep);
                cta.shared_write(input, place, y);
            });
        }
        let sums = SharedSums::open(cta, input.end(), (places, 0));
        cta.sync();
        InHead { input, sums }
    }

    #[inline(always)]
    fn input<C: Cta>(&self, cta: &C, args: &FixedArgs<'_, T>, index: u32) -> T {
        if index & HEAD != 0 {
            cta.shared_read(self.input, (index ^ HEAD) as usize)
        } else {
            cta.load(args.x.input, index as usize, Cache::Keep)
        }
    }

    #[inline(always)]
    fn add<C: Cta>(&self, cta: &C, args: &FixedArgs<'_, T>, index: u32, value: T) {
        if index & HEAD != 0 {
            self.sums.add(cta, index ^ HEAD, value);
        } else {
            InGlobal.add(cta, args, index, value);
        }
    }

    #[inline(always)]
    fn column<C: Cta>(cta: &C, args: &FixedArgs<'_, T>, index: u32) -> usize {
        if index & HEAD != 0 {
            let column: u32 = cta.load(args.order, (index ^ HEAD) as usize, Cache::Keep);
            column as usize
        } else {
            index as usize
        }
    }

    #[inline(always)]
    fn flush<C: Cta>(self, cta: &C, args: &FixedArgs<'_, T>) {
        cta.sync();
        let column_of = |place: usize| -> usize {
            let column: u32 = cta.load(args.order, place, Cache::Once);
            column as usize
        };
        self.sums
            .flush_added_as(cta, args.sums, args.order.len() as u32, column_of);
    }
}
