//! How an operand of tensor cores lies: what is contiguous in memory stays so in shared memory.
//!
//! A panel is [`DEPTH`] steps of k of a strip of op(A)'s rows, or op(B)'s columns, both called across. Lane t of a quad
//! takes steps 4t to 4t + 3 of it and lane g of the eight four neighbours across; both arrangements let a warp read
//! that, and write what it copies, 16 bytes a lane without conflicts.

use super::panel::DEPTH;
use crate::cta::{Cta, Shared};

/// Steps of k that a lane takes of a panel.
pub const TURN: usize = 4;
/// Elements of a pack.
pub const LANES: u32 = 4;
/// Elements behind each row of a panel.
const PADDING: u32 = 4;
/// Elements between the first and the last 8 rows of a panel whose rows lie across.
const MIDDLE: u32 = 8;

/// What a lane takes of four eights of a panel: `[step][eight]`.
pub type Fragment = [[f32; 4]; TURN];

/// An arrangement of an operand.
pub trait Side {
    /// Where an element of a panel is that is `tile` wide.
    fn place(tile: u32, across: u32, k: u32) -> u32;

    /// How far element (across, k) is from the first one in memory whose rows are `ld` apart.
    fn distance(ld: u64, across: u32, k: u32) -> u64;

    /// Element (across, k) that is `lane` behind the first of a pack.
    fn in_pack(across: u32, k: u32, lane: u32) -> (u32, u32);

    /// The first pack of a panel that a thread copies.
    fn first(tile: u32, thread: u32) -> (u32, u32);

    /// How much further its next one is, where `threads` copy.
    fn step(tile: u32, threads: u32) -> (u32, u32);

    /// Turn `turn` of the four neighbours across from `first` on.
    fn read<C: Cta>(cta: &C, panel: Shared<f32>, tile: u32, first: u32, turn: u32) -> Fragment;
}

/// Elements of a panel that is `tile` wide, whatever its arrangement.
pub const fn panel_elements(tile: u32) -> u32 {
    tile * (DEPTH + PADDING)
}

/// Neighbours along k are neighbours in memory: rows of a panel are those of the strip.
#[derive(Debug, Clone, Copy)]
pub struct Along;

impl Side for Along {
    #[inline(always)]
    fn place(_tile: u32, across: u32, k: u32) -> u32 {
        across * (DEPTH + PADDING) + k
    }

    #[inline(always)]
    fn distance(ld: u64, across: u32, k: u32) -> u64 {
        across as u64 * ld + k as u64
    }

    #[inline(always)]
    fn in_pack(across: u32, k: u32, lane: u32) -> (u32, u32) {
        (across, k + lane)
    }

    /// Eight lanes copy two rows four apart, which lie in different banks.
    #[inline(always)]
    fn first(_tile: u32, thread: u32) -> (u32, u32) {
        let (row, pack) = (thread / (DEPTH / LANES), thread % (DEPTH / LANES));
        (row / 8 * 8 + row % 2 * 4 + row % 8 / 2, pack * LANES)
    }

    #[inline(always)]
    fn step(_tile: u32, threads: u32) -> (u32, u32) {
        (threads / (DEPTH / LANES), 0)
    }

    #[inline(always)]
    fn read<C: Cta>(cta: &C, panel: Shared<f32>, tile: u32, first: u32, turn: u32) -> Fragment {
        let at = Self::place(tile, first, turn * TURN as u32);
        let rows: [[f32; TURN]; 4] = core::array::from_fn(|eight| {
            cta.shared_read_pack(panel, (at + Self::place(tile, eight as u32, 0)) as usize)
        });
        core::array::from_fn(|step| core::array::from_fn(|eight| rows[eight][step]))
    }
}

/// Neighbours across are neighbours in memory: a row of a panel is one step of k.
#[derive(Debug, Clone, Copy)]
pub struct Across;

impl Side for Across {
    #[inline(always)]
    fn place(tile: u32, across: u32, k: u32) -> u32 {
        k * (tile + PADDING) + k / 8 * MIDDLE + across
    }

    #[inline(always)]
    fn distance(ld: u64, across: u32, k: u32) -> u64 {
        k as u64 * ld + across as u64
    }

    #[inline(always)]
    fn in_pack(across: u32, k: u32, lane: u32) -> (u32, u32) {
        (across + lane, k)
    }

    #[inline(always)]
    fn first(tile: u32, thread: u32) -> (u32, u32) {
        (thread % (tile / LANES) * LANES, thread / (tile / LANES))
    }

    #[inline(always)]
    fn step(tile: u32, threads: u32) -> (u32, u32) {
        (0, threads / (tile / LANES))
    }

    #[inline(always)]
    fn read<C: Cta>(cta: &C, panel: Shared<f32>, tile: u32, first: u32, turn: u32) -> Fragment {
        // One address: the four steps of a turn lie on the same side of the middle.
        let at = Self::place(tile, first, turn * TURN as u32);
        core::array::from_fn(|step| {
            cta.shared_read_pack(panel, (at + Self::place(tile, 0, step as u32)) as usize)
        })
    }
}
