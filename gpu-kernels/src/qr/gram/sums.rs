//! Sums of warps, of blocks, and of groups of blocks, each in the order of its members.

use super::{GRAM_BLOCK, GROUP, OWN, SUMS, Sums, WARPS, groups};
use crate::cta::{Cta, Shared, WARP};
use crate::qr::args::QrArgs;
use crate::verbs::lane;

/// The sums of all warps, element `thread` + [`GRAM_BLOCK`] · m of them.
#[inline(always)]
#[track_caller]
pub(super) fn of_block<C: Cta>(cta: &C, sums: &Sums) -> [f64; OWN] {
    let all = Shared::<f64>::at(0, WARPS * SUMS);
    let first = cta.thread() / WARP * SUMS + lane(cta);
    cta.sync();
    for (tile, sums) in sums.iter().enumerate() {
        for (i, sum) in sums.iter().enumerate() {
            let at = first + (tile * 4 + i) as u32 * WARP;
            cta.shared_write(all, at as usize, *sum);
        }
    }
    cta.sync();
    three(
        #[inline(always)]
        |m| {
            let mut sum = 0.0;
            for warp in 0..WARPS {
                let at = warp * SUMS + cta.thread() + m * GRAM_BLOCK;
                sum += cta.shared_read(all, at as usize);
            }
            sum
        },
    )
}

/// f(0) to f(2): a thread's own sums stay in registers.
#[inline(always)]
#[track_caller]
fn three<R>(mut f: impl FnMut(u32) -> R) -> [R; OWN] {
    [f(0), f(1), f(2)]
}

/// The sums of all blocks, in the block that comes last.
#[inline(always)]
#[track_caller]
pub(super) fn of_grid<C: Cta>(
    cta: &C,
    args: &QrArgs<'_, f32>,
    sums: [f64; OWN],
) -> Option<[f64; OWN]> {
    let (blocks, group) = (cta.blocks(), cta.block() / GROUP);
    let members = (blocks - group * GROUP).min(GROUP);
    put(cta, args, cta.block(), &sums);
    if !is_last(cta, args, (1 + group, members)) {
        return None;
    }
    let sums = of_slots(cta, args, (group * GROUP, members));
    let groups = groups(blocks);
    put(cta, args, blocks + group, &sums);
    if !is_last(cta, args, (1 + groups, groups)) {
        return None;
    }
    let mut all = [0.0; OWN];
    let mut first = 0;
    while first < groups {
        let some = of_slots(cta, args, (blocks + first, (groups - first).min(GROUP)));
        all = [all[0] + some[0], all[1] + some[1], all[2] + some[2]];
        first += GROUP;
    }
    Some(all)
}

/// Writes the thread's sums to slot `slot`.
#[inline(always)]
#[track_caller]
fn put<C: Cta>(cta: &C, args: &QrArgs<'_, f32>, slot: u32, sums: &[f64; OWN]) {
    for (m, sum) in sums.iter().enumerate() {
        let at = slot * SUMS + cta.thread() + m as u32 * GRAM_BLOCK;
        cta.write(args.sums, at as usize, *sum);
    }
}

/// The sums of up to [`GROUP`] slots, in their order: all are read before any is added.
#[inline(always)]
#[track_caller]
fn of_slots<C: Cta>(cta: &C, args: &QrArgs<'_, f32>, (first, count): (u32, u32)) -> [f64; OWN] {
    three(
        #[inline(always)]
        |m| {
            let mut slots = [0.0; GROUP as usize];
            for (i, slot) in slots.iter_mut().enumerate() {
                let at = (first + i as u32) * SUMS + cta.thread() + m * GRAM_BLOCK;
                if (i as u32) < count {
                    *slot = cta.read(args.sums, at as usize);
                }
            }
            let mut sum = 0.0;
            for slot in &slots {
                sum += *slot;
            }
            sum
        },
    )
}

/// Whether the block is the last of `members` that draw ticket `counter`.
#[inline(always)]
#[track_caller]
fn is_last<C: Cta>(cta: &C, args: &QrArgs<'_, f32>, (counter, members): (u32, u32)) -> bool {
    let drawn = Shared::<u32>::at(0, 1);
    cta.sync();
    if cta.thread() == 0 {
        let ticket = cta.ticket(args.verdict, counter as usize, members - 1);
        cta.shared_write(drawn, 0, ticket);
    }
    cta.sync();
    let is_last = cta.shared_read(drawn, 0) == members - 1;
    cta.sync();
    is_last
}
