//! Seven sums over a block, and the state, of which each lane has one number.
//!
//! A butterfly of each sum over 32 lanes is five exchanges, 35 in all. Here a lane keeps half of the sums at each of the first three,
//! and passes on the others: nine exchanges, with the pairs of the butterfly, and so its bits. Then four neighbouring lanes have the same
//! sum, and each of them adds up what the warps have of it.

use super::{Sums, state};
use crate::cta::{Cta, Shared, Shuffle, WARP};
use crate::memory::Out;
use crate::verbs::{FULL, lane};

/// Lanes that have the same sum.
const ALIKE: u32 = 4;

/// The sum that this lane has, where it is the first of those that do.
#[inline(always)]
pub(super) fn number_of_lane<C: Cta>(cta: &C) -> Option<usize> {
    let number = (lane(cta) / ALIKE) as usize;
    (lane(cta).is_multiple_of(ALIKE) && number < Sums::COUNT).then_some(number)
}

/// The sums over the block, each in the lanes of its number: a butterfly in each warp, and warps in order.
#[inline(always)]
pub(super) fn sum_block_by_lanes<C: Cta>(
    cta: &C,
    values: [f64; Sums::COUNT],
    scratch: Shared<f64>,
) -> f64 {
    let of_warp = sum_warp_by_lanes(cta, values);
    let (warps, warp) = (cta.threads() / WARP, cta.thread() / WARP);
    cta.sync();
    if let Some(number) = number_of_lane(cta) {
        cta.shared_write(scratch, number * warps as usize + warp as usize, of_warp);
    }
    cta.sync();
    // The last lanes have no sum of their own.
    let number = (lane(cta) / ALIKE).min(Sums::COUNT as u32 - 1);
    let mut sum = 0.0;
    for warp in 0..warps {
        sum += cta.shared_read(scratch, (number * warps + warp) as usize);
    }
    sum
}

/// What all lanes have by themselves, in each of them.
#[inline(always)]
pub(super) fn of_all_lanes<C: Cta>(cta: &C, own: f64) -> [f64; Sums::COUNT] {
    core::array::from_fn(|number| {
        cta.shuffle(own, Shuffle::Index(number as u32 * ALIKE), WARP, FULL)
    })
}

/// The sums over the warp, each in the lanes of its number.
#[inline(always)]
fn sum_warp_by_lanes<C: Cta>(cta: &C, [a, b, c, d, e, f, g]: [f64; Sums::COUNT]) -> f64 {
    let of = |distance: u32, [low, high]: [f64; 2]| {
        let is_high = lane(cta) & distance != 0;
        let (own, passed) = if is_high { (high, low) } else { (low, high) };
        own + cta.shuffle(passed, Shuffle::Xor(distance), WARP, FULL)
    };
    let [a, b, c, d] = [
        of(16, [a, e]),
        of(16, [b, f]),
        of(16, [c, g]),
        of(16, [d, 0.0]),
    ];
    let [a, b] = [of(8, [a, c]), of(8, [b, d])];
    let mut sum = of(4, [a, b]);
    for distance in [2, 1] {
        sum += cta.shuffle(sum, Shuffle::Xor(distance), WARP, FULL);
    }
    sum
}

/// This lane's number of a state: held in each lane, all of it would leave no registers for elements on their way.
#[inline(always)]
pub(super) fn state_of_lane<C: Cta>(cta: &C, from: Out<'_, f64>) -> f64 {
    cta.read(from, (lane(cta) as usize).min(state::LEN - 1))
}

/// The state, in every lane.
#[inline(always)]
pub(super) fn state_of_lanes<C: Cta>(cta: &C, own: f64) -> [f64; state::LEN] {
    core::array::from_fn(|i| cta.shuffle(own, Shuffle::Index(i as u32), WARP, FULL))
}
