//! Sums of many values over a team, shared out: each lane gets some of the sums, and all of them again.
//!
//! V values per lane are summed over VS lanes in log₂ VS steps; in each a lane gives half of its values away and adds
//! those that it gets to the other half. That takes V shuffles where summing each value by itself takes V · log₂ VS.

use crate::cta::{Cta, Shared, Shuffle, WARP};
use crate::fused::{Lanes, Team, WholeBlock};
use crate::scalar::Real;
use crate::verbs::{FULL, lane};

/// Which lanes of a team share sums out: this many, `stride` apart. Those in between do the same with sums of their own.
#[derive(Clone, Copy)]
pub(super) struct Among {
    pub lanes: u32,
    pub stride: u32,
}

impl Among {
    /// Those of a team's lanes that are `stride` apart.
    #[inline(always)]
    pub(super) const fn apart(lanes: u32, stride: u32) -> Among {
        Among {
            lanes: lanes / stride,
            stride,
        }
    }

    /// Values that a lane holds when V have been shared out.
    #[inline(always)]
    pub(super) const fn held(self, values: usize) -> usize {
        let each = values / self.lanes as usize;
        if each == 0 { 1 } else { each }
    }

    /// This lane's number among them.
    #[inline(always)]
    fn rank<C: Cta>(self, cta: &C) -> u32 {
        lane(cta) / self.stride % self.lanes
    }

    /// The first value that this lane holds. Where there are fewer values than lanes, neighbours hold the same.
    #[inline(always)]
    pub(super) fn first_held<C: Cta>(self, cta: &C, values: usize) -> u32 {
        self.rank(cta) * values as u32 / self.lanes
    }

    /// Lanes that hold the same value.
    #[inline(always)]
    fn copies(self, values: usize) -> u32 {
        (self.lanes / values as u32).max(1)
    }

    /// Whether this lane is the first of those that hold the same value.
    #[inline(always)]
    fn is_first_copy<C: Cta>(self, cta: &C, values: usize) -> bool {
        self.rank(cta).is_multiple_of(self.copies(values))
    }
}

/// A [`Team`] that can share sums out. V and the lanes are powers of two.
pub(super) trait Spread: Team {
    /// Lanes of a warp that belong to the team.
    const LANES: u32;

    /// Sums V values over those lanes of the team that are S apart. The first [`Among::held`] of the result belong to the values from
    /// [`Among::first_held`] on.
    fn spread<C: Cta, T: Real, const S: u32, const V: usize>(
        cta: &C,
        values: [T; V],
        scratch: Shared<T>,
        turn: u32,
    ) -> [T; V];

    /// Elements that `spread` needs in shared memory in blocks of `block` threads, where all lanes together have this many
    /// values.
    fn spread_scratch(block: u32, values: u32) -> u32;

    /// Whether this lane writes what it holds: of several with the same values one does.
    fn writes<C: Cta, const V: usize>(cta: &C, among: Among) -> bool;
}

/// All V values in every lane, from those that the lanes hold.
#[inline(always)]
pub(super) fn gather<C: Cta, T: Real, const V: usize>(
    cta: &C,
    among: Among,
    own: &[T; V],
) -> [T; V] {
    if among.lanes == 1 {
        return *own;
    }
    let (each, copies) = (among.held(V), among.copies(V));
    let offset = lane(cta) % among.stride;
    core::array::from_fn(|v| {
        let from = (v / each) as u32 * copies * among.stride + offset;
        let width = among.lanes * among.stride;
        cta.shuffle(own[v % each], Shuffle::Index(from), width, FULL)
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

/// [`Spread::spread`] over those of N lanes of a warp that are S apart.
#[inline(always)]
pub(super) fn spread_lanes<C: Cta, T: Real, const N: u32, const S: u32, const V: usize>(
    cta: &C,
    mut values: [T; V],
) -> [T; V] {
    // Written out: every length is a constant, and so is every index.
    let mut len = V;
    if N > 16 * S {
        len = halve(cta, &mut values, len, 16 * S);
    }
    if N > 8 * S {
        len = halve(cta, &mut values, len, 8 * S);
    }
    if N > 4 * S {
        len = halve(cta, &mut values, len, 4 * S);
    }
    if N > 2 * S {
        len = halve(cta, &mut values, len, 2 * S);
    }
    if N > S {
        halve(cta, &mut values, len, S);
    }
    values
}

impl<const VS: u32> Spread for Lanes<VS> {
    const LANES: u32 = VS;

    #[inline(always)]
    fn spread<C: Cta, T: Real, const S: u32, const V: usize>(
        cta: &C,
        values: [T; V],
        _: Shared<T>,
        _: u32,
    ) -> [T; V] {
        spread_lanes::<C, T, VS, S, V>(cta, values)
    }

    #[inline(always)]
    fn spread_scratch(_: u32, _: u32) -> u32 {
        0
    }

    #[inline(always)]
    fn writes<C: Cta, const V: usize>(cta: &C, among: Among) -> bool {
        among.is_first_copy(cta, V)
    }
}

impl Spread for WholeBlock {
    const LANES: u32 = WARP;

    /// Every warp adds all warps' sums, so that one barrier is enough; `turn` alternates between calls.
    #[inline(always)]
    fn spread<C: Cta, T: Real, const S: u32, const V: usize>(
        cta: &C,
        values: [T; V],
        scratch: Shared<T>,
        turn: u32,
    ) -> [T; V] {
        let among = Among::apart(WARP, S);
        let of_warp = spread_lanes::<C, T, WARP, S, V>(cta, values);
        let (warps, all) = (cta.threads() / WARP, V as u32 * among.stride);
        let half = turn % 2 * warps * all;
        let first = among.first_held(cta, V);
        let offset = lane(cta) % among.stride;
        let at = |warp: u32, i: usize| {
            (half + warp * all + (first + i as u32) * among.stride + offset) as usize
        };
        if among.is_first_copy(cta, V) {
            for (i, value) in of_warp.iter().enumerate().take(among.held(V)) {
                cta.shared_write(scratch, at(cta.thread() / WARP, i), *value);
            }
        }
        cta.sync();
        let mut sums = [T::ZERO; V];
        for warp in 0..warps {
            for (i, sum) in sums.iter_mut().enumerate().take(among.held(V)) {
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
    fn writes<C: Cta, const V: usize>(cta: &C, among: Among) -> bool {
        cta.thread() < WARP && among.is_first_copy(cta, V)
    }
}
