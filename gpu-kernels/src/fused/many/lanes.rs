//! Sums of many values over a team, shared out: each lane gets some of the sums, and all of them again.
//!
//! V values per lane are summed over VS lanes in log₂ VS steps; in each a lane gives half of its values away and adds
//! those that it gets to the other half. That takes V shuffles where summing each value by itself takes V · log₂ VS.

use crate::cta::{Cta, Shared, Shuffle, WARP};
use crate::fused::{Lanes, Team, WholeBlock};
use crate::scalar::Real;
use crate::verbs::{FULL, lane};

/// A [`Team`] that can share sums out. V and the lanes are powers of two.
pub(super) trait Spread: Team {
    /// Lanes that share the sums out.
    const LANES: u32;

    /// Sums V values over the team. The first [`held`] of the result belong to the values from
    /// [`first_held`] on.
    fn spread<C: Cta, T: Real, const V: usize>(
        cta: &C,
        values: [T; V],
        scratch: Shared<T>,
        turn: u32,
    ) -> [T; V];

    /// Elements that `spread` needs in shared memory in blocks of `block` threads.
    fn spread_scratch(block: u32, values: u32) -> u32;

    /// Whether this lane writes what it holds: of several with the same values one does.
    fn writes<C: Cta, const V: usize>(cta: &C) -> bool;
}

/// Values that a lane holds when V have been shared out among `lanes`.
pub(super) const fn held(lanes: u32, values: usize) -> usize {
    let each = values / lanes as usize;
    if each == 0 { 1 } else { each }
}

/// The first value that this lane holds. Where there are fewer values than lanes, neighbours hold the same.
#[inline(always)]
pub(super) fn first_held<C: Cta>(cta: &C, lanes: u32, values: usize) -> u32 {
    (lane(cta) % lanes) * values as u32 / lanes
}

/// All V values in every lane, from those that the lanes hold.
#[inline(always)]
pub(super) fn gather<C: Cta, T: Real, const V: usize>(cta: &C, lanes: u32, own: &[T; V]) -> [T; V] {
    let each = held(lanes, V);
    let copies = (lanes as usize / V).max(1);
    core::array::from_fn(|v| {
        let from = (v / each * copies) as u32;
        cta.shuffle(own[v % each], Shuffle::Index(from), lanes, FULL)
    })
}

/// One step: lanes `distance` apart halve the `len` values that both have.
#[inline(always)]
fn halve<C: Cta, T: Real, const V: usize>(
    cta: &C,
    values: &mut [T; V],
    len: usize,
    distance: u32,
) -> usize {
    let exchange = |value: T| cta.shuffle(value, Shuffle::Xor(distance), WARP, FULL);
    if len == 1 {
        values[0] = values[0] + exchange(values[0]);
        return 1;
    }
    let half = len / 2;
    let takes_upper = lane(cta) & distance != 0;
    for i in 0..half {
        let (lower, upper) = (values[i], values[half + i]);
        let (mine, theirs) = if takes_upper {
            (upper, lower)
        } else {
            (lower, upper)
        };
        values[i] = mine + exchange(theirs);
    }
    half
}

/// [`Spread::spread`] over VS lanes.
#[inline(always)]
pub(super) fn spread_lanes<C: Cta, T: Real, const VS: u32, const V: usize>(
    cta: &C,
    mut values: [T; V],
) -> [T; V] {
    // Written out: every length is a constant, and so is every index.
    let mut len = V;
    if VS > 16 {
        len = halve(cta, &mut values, len, 16);
    }
    if VS > 8 {
        len = halve(cta, &mut values, len, 8);
    }
    if VS > 4 {
        len = halve(cta, &mut values, len, 4);
    }
    if VS > 2 {
        len = halve(cta, &mut values, len, 2);
    }
    if VS > 1 {
        halve(cta, &mut values, len, 1);
    }
    values
}

/// Whether this lane is the first of those that hold the same value.
#[inline(always)]
fn is_first_copy<C: Cta>(cta: &C, lanes: u32, values: usize) -> bool {
    let copies = (lanes / values as u32).max(1);
    (lane(cta) % lanes).is_multiple_of(copies)
}

impl<const VS: u32> Spread for Lanes<VS> {
    const LANES: u32 = VS;

    #[inline(always)]
    fn spread<C: Cta, T: Real, const V: usize>(
        cta: &C,
        values: [T; V],
        _: Shared<T>,
        _: u32,
    ) -> [T; V] {
        spread_lanes::<C, T, VS, V>(cta, values)
    }

    #[inline(always)]
    fn spread_scratch(_: u32, _: u32) -> u32 {
        0
    }

    #[inline(always)]
    fn writes<C: Cta, const V: usize>(cta: &C) -> bool {
        is_first_copy(cta, VS, V)
    }
}

impl Spread for WholeBlock {
    const LANES: u32 = WARP;

    /// Every warp adds all warps' sums, so that one barrier is enough; `turn` alternates between calls.
    #[inline(always)]
    fn spread<C: Cta, T: Real, const V: usize>(
        cta: &C,
        values: [T; V],
        scratch: Shared<T>,
        turn: u32,
    ) -> [T; V] {
        let of_warp = spread_lanes::<C, T, WARP, V>(cta, values);
        let warps = cta.threads() / WARP;
        let half = turn % 2 * warps * V as u32;
        let first = first_held(cta, WARP, V);
        let at = |warp: u32, i: usize| (half + warp * V as u32 + first) as usize + i;
        if is_first_copy(cta, WARP, V) {
            for (i, value) in of_warp.iter().enumerate().take(held(WARP, V)) {
                cta.shared_write(scratch, at(cta.thread() / WARP, i), *value);
            }
        }
        cta.sync();
        let mut sums = [T::ZERO; V];
        for warp in 0..warps {
            for (i, sum) in sums.iter_mut().enumerate().take(held(WARP, V)) {
                *sum = *sum + cta.shared_read(scratch, at(warp, i));
            }
        }
        sums
    }

    #[inline(always)]
    fn spread_scratch(block: u32, values: u32) -> u32 {
        2 * values * (block / WARP)
    }

    #[inline(always)]
    fn writes<C: Cta, const V: usize>(cta: &C) -> bool {
        cta.thread() < WARP && is_first_copy(cta, WARP, V)
    }
}
