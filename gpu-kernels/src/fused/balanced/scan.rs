//! The sums of a piece's rows: see [`balanced`](crate::fused::balanced).

use super::{FLAG_WORDS, HELD, PIECE};
use crate::cta::{Cta, Shared, Shuffle, WARP};
use crate::scalar::Real;
use crate::verbs::{FULL, lane};

/// Nonzeros of a piece by lanes: as many words of flags say after which a row ends.
const PER_LANE: u32 = HELD as u32;

/// What a warp has of a piece in shared memory: products, and where rows end.
///
/// Behind each 128 bytes of products are 16 that are not used: lanes read what they add up, eight products that follow each other, in
/// words of 16 bytes, and without the gaps two lanes (four in f64) would want the same banks.
pub(super) struct Exchange<T> {
    products: Shared<T>,
    flags: Shared<u32>,
}

/// Elements of a piece's products with their gaps: 16 of each 144 bytes.
pub(super) const PRODUCTS: u32 = PIECE + PIECE / 8;

impl<T: Real> Exchange<T> {
    /// Bytes of a warp.
    pub const BYTES: u32 = bytes(T::SIZE);

    /// That of warp number `warp` of the block.
    #[inline(always)]
    pub fn of_warp(warp: u32) -> Self {
        let products = Shared::at(warp * Self::BYTES, PRODUCTS);
        Exchange {
            products,
            flags: Shared::at(products.end(), FLAG_WORDS),
        }
    }

    /// Where a product is.
    #[inline(always)]
    fn place(product: u32) -> usize {
        (product + product / (128 / T::SIZE) * (16 / T::SIZE)) as usize
    }

    #[inline(always)]
    pub fn write<C: Cta>(&self, cta: &C, product: u32, value: T) {
        cta.shared_write(self.products, Self::place(product), value);
    }

    #[inline(always)]
    pub fn read<C: Cta>(&self, cta: &C, product: u32) -> T {
        cta.shared_read(self.products, Self::place(product))
    }

    /// No row ends.
    #[inline(always)]
    pub fn clear_ends<C: Cta>(&self, cta: &C) {
        if lane(cta) < FLAG_WORDS {
            cta.shared_write(self.flags, lane(cta) as usize, 0);
        }
    }

    /// A row ends with this product: no other one does, so that adding is setting.
    #[inline(always)]
    pub fn end_row<C: Cta>(&self, cta: &C, product: u32) {
        cta.shared_fetch_add(self.flags, (product / 32) as usize, 1 << (product % 32));
    }

    /// The lane's products, in order.
    #[inline(always)]
    fn own<C: Cta>(&self, cta: &C) -> [T; HELD] {
        let first = Self::place(lane(cta) * PER_LANE);
        let mut own = [T::ZERO; HELD];
        let lanes = (16 / T::SIZE) as usize;
        for pack in 0..HELD / lanes {
            let read = cta.shared_read_pack(self.products, first + pack * lanes);
            let read: &[T] = read.as_ref();
            for i in 0..lanes {
                own[pack * lanes + i] = read[i];
            }
        }
        own
    }

    /// After which of the lane's products rows end.
    #[inline(always)]
    fn own_ends<C: Cta>(&self, cta: &C) -> u32 {
        let word = cta.shared_read(self.flags, (lane(cta) / 4) as usize);
        word >> (lane(cta) % 4 * PER_LANE) & ((1 << PER_LANE) - 1)
    }

    /// Writes the sum of each row that ends in the piece to the place of its last product. `open` is what earlier pieces have of the
    /// row that the piece begins with; returned is what is open after it. The whole warp calls, with barriers before and after.
    #[inline(always)]
    pub fn sum_rows<C: Cta>(&self, cta: &C, open: T) -> T {
        let (mut sums, ends) = (self.own(cta), self.own_ends(cta));
        let mut sum = T::ZERO;
        for (k, own) in sums.iter_mut().enumerate() {
            sum = sum + *own;
            *own = sum;
            if ends >> k & 1 != 0 {
                sum = T::ZERO;
            }
        }
        let sum = sum_open(cta, (sum, ends != 0), open);
        let before = cta.shuffle(sum, Shuffle::Up(1), WARP, FULL);
        let before = if lane(cta) == 0 { open } else { before };
        // The first of them began in lanes before this one.
        let mut carried = before;
        for (k, own) in sums.into_iter().enumerate() {
            if ends >> k & 1 != 0 {
                self.write(cta, lane(cta) * PER_LANE + k as u32, own + carried);
                carried = T::ZERO;
            }
        }
        cta.shuffle(sum, Shuffle::Index(WARP - 1), WARP, FULL)
    }
}

/// Bytes of a warp for elements of `size` bytes.
pub(super) const fn bytes(size: u32) -> u32 {
    PRODUCTS * size + FLAG_WORDS * 4
}

/// What is open after each lane, from what it adds to that and whether a row ends in it, and what is open before the first: sums over
/// lanes back to the last in which one ends.
#[inline(always)]
fn sum_open<C: Cta, T: Real>(cta: &C, (own, ends): (T, bool), open: T) -> T {
    let so_far = u32::MAX >> (WARP - 1 - lane(cta));
    let ending = cta.ballot(ends, FULL) & so_far;
    // Lanes back to that one, or to the first.
    let back = lane(cta) - ending.checked_ilog2().unwrap_or(0);
    let mut sum = own;
    let mut distance = 1;
    while distance < WARP {
        let before = cta.shuffle(sum, Shuffle::Up(distance), WARP, FULL);
        if distance <= back {
            sum = sum + before;
        }
        distance *= 2;
    }
    if ending == 0 { sum + open } else { sum }
}
