//! How large the vectors of a product with fixed-point sums are: found by one launch, read by the next.

use crate::cta::{Cache, Cta, Shared, WARP};
use crate::fused::fixed::point::{FixedPoint, Ranges, range};
use crate::memory::{In, Out};
use crate::scalar::Words;
use crate::verbs::{each_of_grid, global_thread, lane, load_or, max_lanes};

/// Words that a block finds: the largest exponent field of y′ or p, and that of v.
pub(crate) const RANGE_WORDS: u32 = 2;

/// Shared memory of a block of `block` threads that [writes](write_ranges) what it has found.
pub(crate) const fn shared_bytes(block: u32) -> u64 {
    (4 * RANGE_WORDS * (block / WARP)) as u64
}

/// The largest exponent field of this thread's share of a vector of `len` elements.
#[inline(always)]
pub(crate) fn range_of_vector<C: Cta, T: FixedPoint>(cta: &C, vector: In<'_, T>, len: u64) -> u32 {
    let lanes = T::Pack::LANES as u64;
    let mut most = 0;
    each_of_grid(cta, len / lanes, |i| {
        let pack: T::Pack = cta.load_pack(vector, i * T::Pack::LANES, Cache::Keep);
        for value in pack.as_ref() {
            most = range(most, *value);
        }
    });
    let rest = len / lanes * lanes + global_thread(cta);
    if rest < len {
        most = range(most, cta.load(vector, rest as usize, Cache::Keep));
    }
    most
}

/// [`range_of_vector`] of v; that of ones where there is none.
#[inline(always)]
pub(crate) fn range_of_weights<C: Cta, T: FixedPoint>(
    cta: &C,
    weights: In<'_, T>,
    len: u64,
) -> u32 {
    if weights.is_some() {
        range_of_vector(cta, weights, len)
    } else {
        T::BIAS as u32 + 1
    }
}

/// The largest of each over the block, to this block's place.
#[inline(always)]
pub(crate) fn write_ranges<C: Cta>(cta: &C, ranges: Out<'_, u32>, mine: [u32; 2]) {
    let warps = cta.threads() / WARP;
    let scratch = Shared::<u32>::at(0, RANGE_WORDS * warps);
    let of_warp = mine.map(|field| max_lanes(cta, field));
    if lane(cta) == 0 {
        let at = (RANGE_WORDS * (cta.thread() / WARP)) as usize;
        cta.shared_write(scratch, at, of_warp[0]);
        cta.shared_write(scratch, at + 1, of_warp[1]);
    }
    cta.sync();
    if cta.thread() < RANGE_WORDS {
        let which = cta.thread() as usize;
        let mut most = 0;
        for warp in 0..warps as usize {
            most = most.max(cta.shared_read(scratch, RANGE_WORDS as usize * warp + which));
        }
        let at = cta.block() as usize * RANGE_WORDS as usize + which;
        cta.write(ranges, at, most);
    }
}

/// S, from what the blocks have found. Every warp looks at all of it: no barrier, and it comes from cache.
#[inline(always)]
pub(crate) fn scale<C: Cta, T: FixedPoint>(
    cta: &C,
    ranges: Out<'_, u32>,
    shift: In<'_, T>,
    (rows, longest): (u64, u32),
) -> i32 {
    let (mut input, mut weights) = (0, 0);
    let mut i = lane(cta) as usize;
    while i < ranges.len() as usize / 2 {
        input = input.max(cta.read(ranges, 2 * i));
        weights = weights.max(cta.read(ranges, 2 * i + 1));
        i += WARP as usize;
    }
    let shift = load_or(cta, shift, 0, T::ZERO);
    let ranges = Ranges {
        input: max_lanes(cta, input),
        weights: max_lanes(cta, weights),
        shift: range(0, shift),
        longest,
        rows,
    };
    ranges.scale::<T>()
}
