//! How an operand of tensor cores lies: what is contiguous in memory stays so in shared memory.
//!
//! A panel is [`DEPTH`] steps of k of a strip of op(A)'s rows, or op(B)'s columns, both called across. Both arrangements let a
//! warp read what it takes, and write what it copies, without conflicts. In f32 lane t of a quad takes steps 4t to 4t + 3 of a
//! panel and lane g of the eight four neighbours across, 16 bytes at a time; in f64 steps t, t + 4, t + 8 and t + 12, and two
//! neighbours, which along k are read one by one: pairs of steps would have to be moved to where instructions want them.

use super::panel::DEPTH;
use crate::cta::{Cta, Shared};
use crate::scalar::Real;

/// Steps of k that a lane takes of a panel.
pub const TURN: usize = 4;
/// Elements of a pack of f32.
const LANES: u32 = lanes::<f32>();
/// Elements behind each row of a panel.
const PADDING: u32 = 4;
/// The same behind rows of f64 that lie along k: every second row is four elements further in the banks.
const WIDE_PADDING: u32 = 2;
/// Elements between the first and the last 8 rows of a panel whose rows lie across.
const MIDDLE: u32 = 8;

/// What a lane takes of four eights of a panel: `[step][eight]`.
pub type Fragment = [[f32; 4]; TURN];
/// What a lane takes of two eights of a panel of f64: `[step][eight]`.
pub type WideFragment = [[f64; 2]; TURN];

/// Elements of a pack.
pub const fn lanes<T: Real>() -> u32 {
    16 / T::SIZE
}

/// How an operand lies in memory.
pub trait Arrangement {
    /// How far element (across, k) is from the first one in memory whose rows are `ld` apart.
    fn distance(ld: u64, across: u32, k: u32) -> u64;

    /// Element (across, k) that is `lane` behind the first of a pack.
    fn in_pack(across: u32, k: u32, lane: u32) -> (u32, u32);
}

/// How panels of an operand of elements `T` are copied and read.
pub trait Side<T>: Arrangement {
    /// What a lane reads of a panel at once.
    type Fragment;

    /// Where an element of a panel is that is `tile` wide.
    fn place(tile: u32, across: u32, k: u32) -> u32;

    /// The first pack of a panel that a thread copies.
    fn first(tile: u32, thread: u32) -> (u32, u32);

    /// How much further its next one is, where `threads` copy.
    fn step(tile: u32, threads: u32) -> (u32, u32);

    /// Turn `turn` of the neighbours across from `first` on.
    fn read<C: Cta>(cta: &C, panel: Shared<T>, tile: u32, first: u32, turn: u32) -> Self::Fragment;
}

/// Elements of a panel that is `tile` wide, whatever its arrangement.
pub const fn panel_elements(tile: u32) -> u32 {
    tile * (DEPTH + PADDING)
}

/// Neighbours along k are neighbours in memory: rows of a panel are those of the strip.
#[derive(Debug, Clone, Copy)]
pub struct Along;

impl Arrangement for Along {
    #[inline(always)]
    fn distance(ld: u64, across: u32, k: u32) -> u64 {
        across as u64 * ld + k as u64
    }

    #[inline(always)]
    fn in_pack(across: u32, k: u32, lane: u32) -> (u32, u32) {
        (across, k + lane)
    }
}

impl Side<f32> for Along {
    type Fragment = Fragment;

    #[inline(always)]
    fn place(_tile: u32, across: u32, k: u32) -> u32 {
        across * (DEPTH + PADDING) + k
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
        let at = <Self as Side<f32>>::place(tile, first, turn * TURN as u32);
        let rows: [[f32; TURN]; 4] = core::array::from_fn(|eight| {
            cta.shared_read_pack(
                panel,
                (at + <Self as Side<f32>>::place(tile, eight as u32, 0)) as usize,
            )
        });
        core::array::from_fn(|step| core::array::from_fn(|eight| rows[eight][step]))
    }
}

/// Neighbours across are neighbours in memory: a row of a panel is one step of k.
#[derive(Debug, Clone, Copy)]
pub struct Across;

impl Arrangement for Across {
    #[inline(always)]
    fn distance(ld: u64, across: u32, k: u32) -> u64 {
        k as u64 * ld + across as u64
    }

    #[inline(always)]
    fn in_pack(across: u32, k: u32, lane: u32) -> (u32, u32) {
        (across + lane, k)
    }
}

impl Side<f32> for Across {
    type Fragment = Fragment;

    #[inline(always)]
    fn place(tile: u32, across: u32, k: u32) -> u32 {
        k * (tile + PADDING) + k / 8 * MIDDLE + across
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
        let at = <Self as Side<f32>>::place(tile, first, turn * TURN as u32);
        core::array::from_fn(|step| {
            cta.shared_read_pack(
                panel,
                (at + <Self as Side<f32>>::place(tile, 0, step as u32)) as usize,
            )
        })
    }
}

impl Side<f64> for Along {
    type Fragment = WideFragment;

    #[inline(always)]
    fn place(_tile: u32, across: u32, k: u32) -> u32 {
        across * (DEPTH + WIDE_PADDING) + k
    }

    /// Eight lanes copy a row.
    #[inline(always)]
    fn first(_tile: u32, thread: u32) -> (u32, u32) {
        let in_row = DEPTH / lanes::<f64>();
        (thread / in_row, thread % in_row * lanes::<f64>())
    }

    #[inline(always)]
    fn step(_tile: u32, threads: u32) -> (u32, u32) {
        (threads / (DEPTH / lanes::<f64>()), 0)
    }

    #[inline(always)]
    fn read<C: Cta>(cta: &C, panel: Shared<f64>, tile: u32, first: u32, turn: u32) -> WideFragment {
        let at = <Self as Side<f64>>::place(tile, first, turn);
        let place = |step: usize, eight: usize| {
            let k = (TURN * step) as u32;
            at + <Self as Side<f64>>::place(tile, eight as u32, k)
        };
        core::array::from_fn(|step| {
            core::array::from_fn(|eight| cta.shared_read(panel, place(step, eight) as usize))
        })
    }
}

impl Side<f64> for Across {
    type Fragment = WideFragment;

    #[inline(always)]
    fn place(tile: u32, across: u32, k: u32) -> u32 {
        k * (tile + PADDING) + across
    }

    #[inline(always)]
    fn first(tile: u32, thread: u32) -> (u32, u32) {
        let in_row = tile / lanes::<f64>();
        (thread % in_row * lanes::<f64>(), thread / in_row)
    }

    #[inline(always)]
    fn step(tile: u32, threads: u32) -> (u32, u32) {
        (0, threads / (tile / lanes::<f64>()))
    }

    #[inline(always)]
    fn read<C: Cta>(cta: &C, panel: Shared<f64>, tile: u32, first: u32, turn: u32) -> WideFragment {
        let at = <Self as Side<f64>>::place(tile, first, turn);
        core::array::from_fn(|step| {
            let further = <Self as Side<f64>>::place(tile, 0, (TURN * step) as u32);
            cta.shared_read_pack(panel, (at + further) as usize)
        })
    }
}
