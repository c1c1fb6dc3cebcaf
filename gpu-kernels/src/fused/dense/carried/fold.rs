//! What the threads of each chunk have of w, added up as the kernel does whose order it is.

use super::CarriedArgs;
use crate::cta::{Cta, Shuffle, WARP};
use crate::scalar::{Pack, Real};
use crate::verbs::{FULL, global_warp, global_warps, lane};

/// Adds up what the threads of each chunk have: a warp takes as many threads' elements at a time.
#[inline(always)]
pub(super) fn fold<C: Cta, T: Real, P: Pack<T>>(cta: &C, args: &CarriedArgs<'_, T>) {
    let (order, width) = (&args.order, P::LANES as u32);
    let (cols, panels) = (args.x.cols, order.panels(args.x.cols, width) as u64);
    // Threads of a block share a row, and have different columns.
    let warps = match order.lanes {
        0 => order.threads / WARP,
        _ => 1,
    };
    let elements = (order.packs * width) as u64;
    let items = order.chunks as u64 * panels * elements * warps as u64;
    let mut item = global_warp(cta) as u64;
    while item < items {
        let (rest, warp) = (item / warps as u64, (item % warps as u64) as u32);
        let (part, element) = (rest / elements, (rest % elements) as u32);
        let (chunk, panel) = (part / panels, (part % panels) as u32);
        let (k, j) = (element / width, element % width);
        let base = (part * elements + element as u64) * order.threads as u64;
        let rank = match order.lanes {
            0 => warp * WARP + lane(cta),
            lanes => lane(cta) % lanes,
        };
        let sum = match order.lanes {
            0 => cta.read(args.state, base as usize + rank as usize),
            lanes => sum_of_groups(cta, args, base as usize, lanes),
        };
        let before = panel * order.size() * order.packs;
        let column = (before + order.pack(k, rank)) * width + j;
        let is_first = order.lanes == 0 || lane(cta) < order.lanes;
        if is_first && column < cols {
            cta.write(
                args.sums,
                (chunk * cols as u64) as usize + column as usize,
                sum,
            );
        }
        item += global_warps(cta) as u64;
    }
}

/// Of each group the sum over its teams, neighbours first, then the groups one after the other.
#[inline(always)]
fn sum_of_groups<C: Cta, T: Real>(
    cta: &C,
    args: &CarriedArgs<'_, T>,
    base: usize,
    lanes: u32,
) -> T {
    let mut sum = T::ZERO;
    for group in 0..args.order.groups() {
        let at = base + (group * WARP + lane(cta)) as usize;
        let mut value = cta.read(args.state, at);
        let mut distance = lanes;
        while distance < WARP {
            value = value + cta.shuffle(value, Shuffle::Xor(distance), WARP, FULL);
            distance *= 2;
        }
        sum = sum + value;
    }
    sum
}
