//! [`rows`](super::rows) by a block each, where there are too few of them for all SMs: its warps take every eighth k, and add up
//! their sums in shared memory, in the order of warps, each what it then writes.

use super::super::args::QrArgs;
use super::super::pieces::four;
use super::product::{Square, Tensor};
use super::rows::{Rows, column, column_of, square};
use super::{SHARED_BLOCK, SIDE, panels};
use crate::cta::{Cta, Shared, WARP};
use crate::scalar::Words;
use crate::verbs::lane;

/// Warps of a block.
pub const SHARERS: u32 = SHARED_BLOCK / WARP;
/// Sums of a lane.
const SUMS: u32 = 32;

/// Shared memory of a block.
pub const fn shared_rows_bytes(bytes: u32) -> u32 {
    SHARERS * SUMS * WARP * bytes
}

/// See the head of the file.
#[inline(always)]
pub fn shared_rows<C: Cta, T: Tensor>(cta: &C, args: &QrArgs<'_, T>) {
    cta.launch_bounds::<SHARED_BLOCK, 1>();
    let all = Shared::at(0, SHARERS * SUMS * WARP);
    let mut start = first(cta, args) + SIDE;
    while start < panels(args) * SIDE {
        let rows = Rows::of(cta, args, first(cta, args));
        let warp = cta.fresh(cta.thread()) / WARP;
        let sums = square(cta, args, &rows, (start, warp, SHARERS));
        show(cta, all, &sums);
        cta.sync();
        let rows = Rows::of(cta, args, first(cta, args));
        write(cta, args, &rows, (start, all));
        // The next squares take this one, and its sums' places.
        cta.sync();
        start += SIDE;
    }
}

/// The block's first row, computed again where it is used.
#[inline(always)]
fn first<C: Cta, T: Tensor>(cta: &C, args: &QrArgs<'_, T>) -> u32 {
    cta.fresh(cta.block()) / args.count * SIDE
}

/// Where the sum of a warp is that has rows 8q, and column e of product n, for the lane.
#[inline(always)]
fn place(warp: u32, lane: u32, [q, n, e]: [u32; 3]) -> usize {
    ((warp * SUMS + (4 * n + q) * 2 + e) * WARP + lane) as usize
}

/// The lane's sums to shared memory.
#[inline(always)]
#[track_caller]
fn show<C: Cta, T: Tensor>(cta: &C, all: Shared<T>, sums: &Square<T>) {
    let thread = cta.fresh(cta.thread());
    let (warp, lane) = (thread / WARP, thread % WARP);
    four(|q| {
        four(|n| {
            for e in 0..2 {
                let at = place(warp, lane, [q as u32, n as u32, e as u32]);
                cta.shared_write(all, at, sums[q / 2][n][q % 2 * 2 + e]);
            }
        })
    });
}

/// The sum of all warps, negative.
#[inline(always)]
#[track_caller]
fn total<C: Cta, T: Tensor>(cta: &C, all: Shared<T>, of: [u32; 3]) -> T {
    let mut sum = T::ZERO;
    let (mut warp, lane, end) = (0, lane(cta), cta.fresh(SHARERS));
    while warp < end {
        sum = sum + cta.shared_read(all, place(warp, lane, of));
        warp += 1;
    }
    -sum
}

/// The warp's part of the square: eight rows, and half of the columns.
#[inline(always)]
#[track_caller]
fn write<C: Cta, T: Tensor>(
    cta: &C,
    args: &QrArgs<'_, T>,
    rows: &Rows,
    (start, all): (u32, Shared<T>),
) {
    let warp = cta.fresh(cta.thread()) / WARP;
    let (q, half) = (warp % 4, warp / 4);
    let (group, turn) = super::product::quad(cta);
    let at = rows.in_t(group + 8 * q, start + column::<T>(2 * turn));
    let packs = <T::Pack as Words<T>>::LANES as u32 / 2;
    let mut n = 2 * half;
    while n < 2 * half + 2 {
        // The second two are of the next product, or of no pack.
        let own = |e: u32| total(cta, all, [q, (n + e / 2).min(3), e % 2]).to_bits();
        let pack = T::Pack::from_words(four(|e| own(e as u32)));
        cta.write_pack(args.t, at + column_of::<T>(n) as usize, pack);
        n += packs;
    }
}
