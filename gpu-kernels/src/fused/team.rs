//! Who works on a row together: some lanes of a warp, or a whole block.

use crate::cta::{Cta, Shared, Shuffle, WARP};
use crate::describe::TeamSize;
use crate::scalar::Real;
use crate::verbs::{FULL, lane, sum_lanes};

/// [`TeamSize`] as a type. A *group* (a warp or a block) runs in lockstep through the rows; it holds
/// `TEAMS` teams, which take neighbouring rows, so that a group's loads are contiguous.
pub trait Team: 'static {
    /// The size as a value.
    const SIZE: TeamSize;
    /// Teams per group.
    const TEAMS: u32;
    /// Threads per team.
    fn size<C: Cta>(cta: &C) -> u32;
    /// This thread's number in its team.
    fn rank<C: Cta>(cta: &C) -> u32;
    /// This team's number in its group.
    fn team<C: Cta>(cta: &C) -> u32;
    /// Groups per block.
    fn groups<C: Cta>(cta: &C) -> u32;
    /// This group's number in its block.
    fn group<C: Cta>(cta: &C) -> u32;
    /// Scratch elements that `sum` needs for R rows in blocks of `block` threads.
    fn scratch(block: u32, rows: u32) -> u32;
    /// Sums R values over the team, in every thread of it. `turn` alternates between calls, so that one
    /// barrier per call is enough.
    fn sum<C: Cta, T: Real, const R: usize>(
        cta: &C,
        values: [T; R],
        scratch: Shared<T>,
        turn: u32,
    ) -> [T; R];
}

/// VS lanes of a warp; the warp is the group.
pub struct Lanes<const VS: u32>;

impl<const VS: u32> Team for Lanes<VS> {
    const SIZE: TeamSize = TeamSize::Lanes(VS);
    const TEAMS: u32 = WARP / VS;

    #[inline(always)]
    fn size<C: Cta>(_: &C) -> u32 {
        VS
    }

    #[inline(always)]
    fn rank<C: Cta>(cta: &C) -> u32 {
        lane(cta) % VS
    }

    #[inline(always)]
    fn team<C: Cta>(cta: &C) -> u32 {
        lane(cta) / VS
    }

    #[inline(always)]
    fn groups<C: Cta>(cta: &C) -> u32 {
        cta.threads() / WARP
    }

    #[inline(always)]
    fn group<C: Cta>(cta: &C) -> u32 {
        cta.thread() / WARP
    }

    #[inline(always)]
    fn scratch(_: u32, _: u32) -> u32 {
        0
    }

    #[inline(always)]
    fn sum<C: Cta, T: Real, const R: usize>(
        cta: &C,
        values: [T; R],
        _: Shared<T>,
        _: u32,
    ) -> [T; R] {
        values.map(|value| sum_lanes::<C, T, VS>(cta, value))
    }
}

/// The block: team and group in one.
pub struct WholeBlock;

impl Team for WholeBlock {
    const SIZE: TeamSize = TeamSize::Block;
    const TEAMS: u32 = 1;

    #[inline(always)]
    fn size<C: Cta>(cta: &C) -> u32 {
        cta.threads()
    }

    #[inline(always)]
    fn rank<C: Cta>(cta: &C) -> u32 {
        cta.thread()
    }

    #[inline(always)]
    fn team<C: Cta>(_: &C) -> u32 {
        0
    }

    #[inline(always)]
    fn groups<C: Cta>(_: &C) -> u32 {
        1
    }

    #[inline(always)]
    fn group<C: Cta>(_: &C) -> u32 {
        0
    }

    #[inline(always)]
    fn scratch(block: u32, rows: u32) -> u32 {
        2 * rows * (block / WARP)
    }

    #[inline(always)]
    fn sum<C: Cta, T: Real, const R: usize>(
        cta: &C,
        values: [T; R],
        scratch: Shared<T>,
        turn: u32,
    ) -> [T; R] {
        let of_warp = values.map(|value| sum_lanes::<C, T, WARP>(cta, value));
        let warps = cta.threads() / WARP;
        let half = (turn % 2) * warps * R as u32;
        let at = |warp: u32, row: usize| (half + warp * R as u32) as usize + row;
        if lane(cta) == 0 {
            for (row, sum) in of_warp.into_iter().enumerate() {
                cta.shared_write(scratch, at(cta.thread() / WARP, row), sum);
            }
        }
        cta.sync();
        let mut sums = [T::ZERO; R];
        for warp in 0..warps {
            for (row, sum) in sums.iter_mut().enumerate() {
                *sum = *sum + cta.shared_read(scratch, at(warp, row));
            }
        }
        sums
    }
}

/// Sums a value over the teams of a warp: over the lanes that have the same rank.
#[inline(always)]
pub(super) fn sum_teams<C: Cta, T: Real, G: Team>(cta: &C, mut value: T) -> T {
    let mut distance = WARP / G::TEAMS;
    while distance < WARP && G::TEAMS > 1 {
        value = value + cta.shuffle(value, Shuffle::Xor(distance), WARP, FULL);
        distance *= 2;
    }
    value
}
