//! Groups made chunks of: how many, and what each of them holds.

use super::groups::{Group, Groups, PER_LANE};
use super::part::Part;
use super::{PanelMakingArgs, WORK_WORDS};
use crate::cta::{Cache, Cta, Shuffle, WARP};
use crate::fused::panels::CHUNK;
use crate::scalar::Real;
use crate::verbs::{FULL, lane};

/// What a warp has found in groups of one panel.
struct Found {
    chunks: u64,
    sectors: u64,
}

impl Found {
    #[inline(always)]
    fn flush<C: Cta, T>(&mut self, cta: &C, args: &PanelMakingArgs<'_, T>, panel: u32) {
        let at = (panel * WORK_WORDS) as usize;
        if lane(cta) == 0 {
            if self.chunks != 0 {
                cta.add_wrapping(args.work, at, self.chunks);
            }
            if self.sectors != 0 {
                cta.add_wrapping(args.work, at + 1, self.sectors);
            }
        }
        (self.chunks, self.sectors) = (0, 0);
    }
}

/// [`PanelMakingVariant::Measure`](super::PanelMakingVariant::Measure).
#[inline(always)]
pub(super) fn measure<C: Cta, T: Real>(cta: &C, args: &PanelMakingArgs<'_, T>) {
    let mut groups = Groups::of(cta, args);
    let mut found = Found {
        chunks: 0,
        sectors: 0,
    };
    while groups.next < groups.end {
        let panel = groups.panel;
        if groups.enter(cta, args) {
            found.flush(cta, args, panel);
        }
        let group = Group::load(cta, args, groups.next);
        let is_first = groups.next == groups.first;
        found.sectors += sectors(cta, args, &group, (groups.next, is_first)) as u64;
        let mut from = 0;
        while from < group.len {
            from = group.reach(cta, from, group.base(cta, args, from));
            found.chunks += (from < group.len) as u64;
        }
        groups.next += 1;
    }
    found.flush(cta, args, groups.panel);
}

/// How many entries of a group want another sector than the entry before.
#[inline(always)]
fn sectors<C: Cta, T>(
    cta: &C,
    args: &PanelMakingArgs<'_, T>,
    group: &Group,
    (number, is_first): (u32, bool),
) -> u32 {
    let mut last = u32::MAX;
    if !is_first {
        let before: u64 = cta.load(
            args.given,
            number as usize * CHUNK as usize - 1,
            Cache::Once,
        );
        last = (before >> 16) as u32 / args.in_sector;
    }
    let mut sectors = 0;
    for k in 0..PER_LANE {
        let sector = group.inputs[k] / args.in_sector;
        let mut before = cta.shuffle(sector, Shuffle::Up(1), WARP, FULL);
        if lane(cta) == 0 {
            before = last;
        }
        let is_other = Group::number(cta, k) < group.len && sector != before;
        sectors += cta.ballot(is_other, FULL).count_ones();
        last = cta.shuffle(sector, Shuffle::Index(WARP - 1), WARP, FULL);
    }
    sectors
}

/// [`PanelMakingVariant::Pack`](super::PanelMakingVariant::Pack).
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "iterators over registers put them into local memory"
)]
pub(super) fn pack<C: Cta, T: Real>(cta: &C, args: &PanelMakingArgs<'_, T>) {
    let mut groups = Groups::of(cta, args);
    while groups.next < groups.end {
        groups.enter(cta, args);
        let group = Group::load(cta, args, groups.next);
        let mut values = [T::ONE; PER_LANE];
        if args.given_values.is_some() {
            for k in 0..PER_LANE {
                let at = groups.next as usize * CHUNK as usize + Group::number(cta, k) as usize;
                values[k] = cta.load(args.given_values, at, Cache::Once);
            }
        }
        let first: u32 = cta.load(args.chunks, groups.panel as usize, Cache::Keep);
        let mut from = 0;
        while from < group.len {
            let base = group.base(cta, args, from);
            let end = group.reach(cta, from, base);
            let behind = match from {
                0 => groups.next - groups.first,
                _ => groups.behind - groups.first + ticket(cta, args, groups.panel),
            };
            let part = Part {
                group: &group,
                from,
                end,
                base,
            };
            part.write(cta, args, first + behind, &values);
            from = end;
        }
        groups.next += 1;
    }
}

/// How many chunks behind the first of their groups have been placed of a panel, which is one more from now on.
#[inline(always)]
fn ticket<C: Cta, T>(cta: &C, args: &PanelMakingArgs<'_, T>, panel: u32) -> u32 {
    let mut drawn = 0;
    if lane(cta) == 0 {
        drawn = cta.ticket(args.placed, panel as usize, u32::MAX);
    }
    cta.shuffle(drawn, Shuffle::Index(0), WARP, FULL)
}
