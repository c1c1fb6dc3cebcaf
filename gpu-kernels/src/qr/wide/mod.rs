//! What the reflectors of earlier panels make of 16 other columns, by f64 products on tensor cores.
//!
//! As [`tensor`](super::tensor) in f32: Cᵀ −= (CᵀV)·T·Vᵀ for panel after panel, with C in registers from the first to the last.
//! Numbers of two registers leave room for half as much: a block has 16 columns, and takes 16 reflectors at a time, whose T is
//! the block of 16 × 16 on the diagonal of that of 32.
//!
//! | step | what | where |
//! |---|---|---|
//! | 1 | W = CᵀV over the warp's rows ([`times_v`]) | C in registers, V in the warp's part of shared memory |
//! | 2 | the sum of all warps' W ([`sum_warps`]) | shared memory |
//! | 3 | −W·T ([`times_t`]): every warp has all of it, which saves a barrier | registers |
//! | 4 | Cᵀ += (−W·T)·Vᵀ ([`add`]) | as step 1 |
//!
//! Mapping: rows in groups of 16; warp w of WARPS has groups w, w + WARPS and so on, so that all warps have work until the last
//! panels. With g = lane / 4 and t = lane mod 4, a lane has columns g and g + 8, rows 2t and 2t + 1 of each eight. Which
//! reflector an instruction calls column g, or step t + 4i of k, is chosen so that sums are the next factors without a move, and that no
//! access to V has a conflict of banks: in step 1 column g of product n is reflector 2g + n; in step 3 column c of product n is
//! c / 2 + 4 · (2n + c mod 2), so that step t + 4i of step 4 is reflector t + 4i.
//!
//! Shared memory: V of all warps, their W, the sums, and T of two panels; see [`wide_shared_bytes`]. A panel has two barriers: T of
//! the next one comes where that of the one before was.
//!
//! Guarantees: the same bits on every run and grid of one device. Products and sums are rounded as by multiply-adds.
//!
//! What bounds it, computed: 18 products of 64 cycles of a quarter of an SM for 64 rows of a warp and 16 reflectors, and half as many
//! cycles of shared memory. For 640 of 512 × 512 they take 2.5 ms at their peak, and V comes from L2 at 14 GB, 2.6 ms at 5.5 TB/s.

mod block;
mod steps;

use super::args::QrArgs;
use super::tensor::WIDE_COLUMNS;
use crate::cta::{Cta, Shared, WARP};
use block::Block;
use steps::{add, show, sum_warps, times_t, times_v};

/// Reflectors that are applied together.
const REFLECTORS: u32 = 16;
/// Rows of a group.
const ROWS: u32 = 16;
/// Groups of a warp.
const GROUPS: usize = 4;
/// Elements from a reflector of a warp's V to the next: lanes of two reflectors by eight rows, and of four by four, reach different
/// banks.
const PITCH_V: u32 = ROWS * GROUPS as u32 + 4;
/// Elements of the V of a warp.
const OF_V: u32 = REFLECTORS * PITCH_V;
/// Elements of the W of a warp.
const OF_W: u32 = WIDE_COLUMNS * REFLECTORS;
/// Elements from a column of the sums to the next.
const PITCH_SUMS: u32 = REFLECTORS + 2;
/// Elements from a row of T to the next, and of T.
const PITCH_T: u32 = REFLECTORS + 1;
const OF_T: u32 = REFLECTORS * PITCH_T;

/// Shared memory of a block of `warps` warps.
pub const fn wide_shared_bytes(warps: u32) -> u32 {
    (warps * (OF_V + OF_W) + WIDE_COLUMNS * PITCH_SUMS + 2 * OF_T) * 8
}

/// Four elements of Cᵀ in each tile of 16 columns by 8 rows, two tiles a group.
type Columns = [[[f64; 4]; 2]; GROUPS];
/// Four elements of W in each tile of 16 columns by 8 reflectors.
type Sums = [[f64; 4]; 2];

/// The lane's place in an instruction: lane / 4 and lane mod 4, computed again where they are used.
#[inline(always)]
fn quad<C: Cta>(cta: &C) -> (u32, u32) {
    let lane = cta.fresh(cta.thread()) % WARP;
    (lane / 4, lane % 4)
}

/// The warp's number, computed again.
#[inline(always)]
fn warp<C: Cta>(cta: &C) -> u32 {
    cta.fresh(cta.thread()) / WARP
}

/// The V of this warp: reflector by reflector.
#[inline(always)]
fn of_v<C: Cta>(cta: &C) -> Shared<f64> {
    Shared::at(warp(cta) * OF_V * 8, OF_V)
}

/// The W of a warp: column by column.
#[inline(always)]
fn of_w<const WARPS: u32>(warp: u32) -> Shared<f64> {
    Shared::at((WARPS * OF_V + warp * OF_W) * 8, OF_W)
}

/// The sums of all warps' W.
#[inline(always)]
fn sums<const WARPS: u32>() -> Shared<f64> {
    Shared::at(of_w::<WARPS>(WARPS).byte(), WIDE_COLUMNS * PITCH_SUMS)
}

/// T of the panels of this turn, 0 or 1.
#[inline(always)]
fn of_t<const WARPS: u32>(turn: u32) -> Shared<f64> {
    Shared::at(sums::<WARPS>().end() + turn * OF_T * 8, OF_T)
}

/// See the head of the file.
#[inline(always)]
pub fn wide<C: Cta, const WARPS: u32, const THREADS: u32>(cta: &C, args: &QrArgs<'_, f64>) {
    // Registers for 32 elements of C, 8 of W and the factors of a product.
    if WARPS == 8 {
        cta.launch_bounds::<THREADS, 2>();
    } else {
        cta.launch_bounds::<THREADS, 1>();
    }
    let block = Block::<WARPS>::of(cta, args);
    let (mut panel, until) = (block.since, block.until);
    if block.cols == 0 || block.rows == 0 || panel >= until {
        return;
    }
    let mut columns = block.read(cta, args);
    let block = || Block::<WARPS>::of(cta, args);
    let mut turn = 0;
    block().stage(cta, args, (panel, turn));
    // A loop that ends below keeps C in one set of registers.
    loop {
        cta.copies_done::<0>();
        cta.sync_warp();
        block().complete(cta, args, panel);
        let groups = block().groups(panel);
        one_panel::<C, WARPS>(cta, &mut columns, (groups, turn));
        panel += REFLECTORS;
        if panel >= until {
            break;
        }
        // This warp has read its V.
        cta.sync_warp();
        turn = 1 - turn;
        block().stage(cta, args, (panel, turn));
    }
    block().write(cta, args, &columns);
}

/// Steps 1 to 4 of reflectors that are in shared memory.
#[inline(always)]
#[track_caller]
fn one_panel<C: Cta, const WARPS: u32>(
    cta: &C,
    columns: &mut Columns,
    (groups, turn): ([bool; GROUPS], u32),
) {
    let sums = times_v(cta, columns, groups);
    show::<C, WARPS>(cta, &sums);
    cta.sync();
    sum_warps::<C, WARPS>(cta);
    cta.sync();
    let product = times_t::<C, WARPS>(cta, turn);
    add(cta, columns, (groups, &product));
}
