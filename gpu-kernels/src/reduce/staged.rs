//! Sums of short rows of a matrix by way of shared memory: a warp copies rows ahead of their use, in whole packs, and a few lanes
//! take each row from there.
//!
//! Formula, order and bits are those of [`by_lanes`](super::parts::by_lanes) with as many lanes. That one asks for 4 or 8
//! bytes of each of 8 to 16 rows at a time, so that a warp's load touches as many lines: at 28 columns the tags of the
//! first-level cache decide, and not the memory. Here every line is loaded once, and a stage is on its way while the one
//! before is added up.
//!
//! Mapping: warp w takes *stages* of rows w, w + warps, …; pack q of a stage is copied by lane q mod 32. Rows that lie
//! densely and are no whole packs are copied as one piece. Others begin at an odd number of packs from one another, so that
//! four lanes of eight rows read from all banks. A row that ends within a pack has its last elements copied by a lane of its
//! own.
//!
//! Shared memory: [`SHARED_BYTES`].

use super::args::ReduceArgs;
use super::element::{Accumulator, Element};
use super::total::Sum;
use super::verbs::{WARPS, total_of_team, write_total};
use crate::cta::{Cta, Shared, WARP};
use crate::memory::In;
use crate::verbs::{global_warp, global_warps, lane};

/// Stages of a warp: one that is added up, and one that is copied. With three of them an SM holds 16 warps instead of 24, and
/// 16 columns of f32 came to 81 % of a plain read on an H100, 28 to 92 %.
const STAGES: u32 = 2;
/// Bytes of a stage: eight rows of 512 bytes and a pack.
const STAGE_BYTES: u32 = 8 * (512 + PACK);
/// Bytes of a pack.
const PACK: u32 = 16;
/// Elements that a lane reads before it adds.
const IN_FLIGHT: u32 = 4;

/// The longest way from row to row: a stage counts its elements in 32 bits.
const MOST_PITCH: u64 = 1 << 16;

/// Shared memory of a block.
pub const SHARED_BYTES: u32 = STAGES * STAGE_BYTES * WARPS;

/// Lanes of a row of this many bytes: 1, 2 or 4. What comes once for all rows that a warp takes at a time, shuffles among it,
/// counts where rows are short.
pub const fn team(row_bytes: u64) -> u32 {
    match row_bytes {
        0..=32 => 1,
        33..=96 => 2,
        _ => 4,
    }
}

/// How rows lie in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Rows of a stage.
    pub rows: u32,
    /// Elements from the start of a row to that of the next.
    pub pitch: u32,
    /// Whether a stage is one piece of memory; else each row begins at a whole pack, here and there.
    pub is_one_piece: bool,
}

impl Layout {
    /// Rows of `cols` elements of `size` bytes, `pitch` elements apart in memory, for `team` lanes each. None where a stage does
    /// not hold as many as a warp takes at once, or they begin anywhere.
    #[inline(always)]
    pub fn of(size: u32, (cols, pitch): (u64, u64), team: u32) -> Option<Layout> {
        let lanes = (PACK / size) as u64;
        let is_one_piece = cols == pitch && !cols.is_multiple_of(lanes);
        let is_packed = is_one_piece || pitch.is_multiple_of(lanes);
        let has_columns = cols > 0 && cols <= (STAGE_BYTES / size) as u64;
        if !is_packed || !has_columns || pitch > MOST_PITCH {
            return None;
        }
        let cols = cols as u32;
        let pitch = if is_one_piece {
            cols
        } else {
            (cols.div_ceil(lanes as u32) | 1) * lanes as u32
        };
        // Eight rows at least, which are whole packs whatever their length.
        let at_once = WARP / team;
        let rows = STAGE_BYTES / (pitch * size) / at_once * at_once;
        (rows > 0).then_some(Layout {
            rows,
            pitch,
            is_one_piece,
        })
    }
}

/// A warp on its way through the rows.
#[derive(Clone, Copy)]
struct Walk<'a, T> {
    args: ReduceArgs<'a, T>,
    layout: Layout,
    /// Where the lane copies its first pack of a stage.
    first: Place,
    /// How much further its next one is.
    step: Place,
    /// How much further that is where it lies in the next row.
    wrap: Place,
}

/// A pack of a stage, in elements where not said otherwise.
#[derive(Clone, Copy)]
struct Place {
    row: u32,
    /// Packs from the start of the row.
    pack: u32,
    /// From the start of the stage in memory.
    from: u32,
    /// From its start in shared memory.
    to: u32,
}

/// Rows of a stage.
#[derive(Clone, Copy)]
struct Rows {
    first: u64,
    count: u32,
}

impl Place {
    #[inline(always)]
    fn after(self, step: &Place) -> Place {
        Place {
            row: self.row + step.row,
            pack: self.pack.wrapping_add(step.pack),
            from: self.from.wrapping_add(step.from),
            to: self.to.wrapping_add(step.to),
        }
    }
}

impl<'a, T: Element> Walk<'a, T> {
    /// Elements of a pack.
    const LANES: u32 = PACK / T::SIZE;

    #[inline(always)]
    fn new<C: Cta>(cta: &C, args: &ReduceArgs<'a, T>, layout: Layout) -> Self {
        let (packs, pitch) = (args.cols as u32 / Self::LANES, args.pitch as u32);
        let place = |pack: u32| {
            let (row, pack) = match layout.is_one_piece || packs == 0 {
                true => (0, pack),
                false => (pack / packs, pack % packs),
            };
            let element = pack * Self::LANES;
            Place {
                row,
                pack,
                from: row * pitch + element,
                to: row * layout.pitch + element,
            }
        };
        let whole = packs * Self::LANES;
        let wrap = Place {
            row: 1,
            pack: packs.wrapping_neg(),
            from: pitch.wrapping_sub(whole),
            to: layout.pitch - whole,
        };
        Walk {
            args: *args,
            layout,
            first: place(lane(cta)),
            step: place(WARP),
            wrap,
        }
    }

    /// The rows of stage `number`; none behind the last.
    #[inline(always)]
    fn rows(&self, number: u64) -> Rows {
        let first = number * self.layout.rows as u64;
        let left = self.args.parts.saturating_sub(first);
        let count = left.min(self.layout.rows as u64) as u32;
        Rows { first, count }
    }

    /// The warp's memory for every third of its stages.
    #[inline(always)]
    fn stage<C: Cta>(&self, cta: &C, stage: u32) -> Shared<T> {
        let number = cta.thread() / WARP * STAGES + stage;
        Shared::at(number * STAGE_BYTES, STAGE_BYTES / T::SIZE)
    }

    /// Begins to copy rows.
    #[inline(always)]
    #[track_caller]
    fn copy<C: Cta>(&self, cta: &C, stage: u32, rows: Rows) {
        let cols = self.args.cols as u32;
        let (count, cols) = match self.layout.is_one_piece {
            true => (u32::from(rows.count > 0), rows.count * cols),
            false => (rows.count, cols),
        };
        let packs = cols / Self::LANES;
        let to = self.stage(cta, stage);
        let from = self.args.x.after(rows.first * self.args.pitch);
        let mut at = self.first;
        while at.row < count && at.pack < packs {
            cta.copy_whole_pack(to, at.to as usize, from, at.from as usize, true);
            at = at.after(&self.step);
            if at.pack >= packs {
                at = at.after(&self.wrap);
            }
        }
        let rest = cols % Self::LANES;
        if rest > 0 {
            self.copy_rests(cta, (to, from), count, (packs * Self::LANES, rest));
        }
    }

    /// Begins to copy the last elements of each row, from `first` on, which are less than a pack.
    #[inline(always)]
    #[track_caller]
    fn copy_rests<C: Cta>(
        &self,
        cta: &C,
        (to, from): (Shared<T>, In<'a, T>),
        count: u32,
        (first, rest): (u32, u32),
    ) {
        let mut row = lane(cta);
        while row < count {
            let place = (row * self.layout.pitch + first) as usize;
            let at = (row * self.args.pitch as u32 + first) as usize;
            cta.copy_pack(to, place, from, at, rest as usize);
            row += WARP;
        }
    }

    /// Adds up rows that are there.
    #[inline(always)]
    #[track_caller]
    fn reduce<C: Cta, const TEAM: u32>(&self, cta: &C, stage: u32, rows: Rows) {
        let (first, own) = (lane(cta) / TEAM, lane(cta) % TEAM);
        let from = self.stage(cta, stage);
        let mut row = first;
        while row - first < rows.count {
            let is_there = row < rows.count;
            let cols = if is_there { self.args.cols as u32 } else { 0 };
            let start = row * self.layout.pitch;
            let sum = sum_of_lane::<C, T, TEAM>(cta, from, (start + own, start + cols));
            let total = total_of_team(cta, Sum(sum), TEAM);
            if is_there && own == 0 {
                write_total(cta, self.args.out, rows.first + row as u64, total);
            }
            row += WARP / TEAM;
        }
    }
}

/// Elements `at`, `at + TEAM`, … below `end`, added one after the other.
#[inline(always)]
#[track_caller]
fn sum_of_lane<C: Cta, T: Element, const TEAM: u32>(
    cta: &C,
    from: Shared<T>,
    (mut at, end): (u32, u32),
) -> T::Sum {
    let read = |i: u32| cta.shared_read(from, i as usize);
    let mut sum = T::Sum::ZERO;
    while at + (IN_FLIGHT - 1) * TEAM < end {
        let held: [T; IN_FLIGHT as usize] = core::array::from_fn(|k| read(at + k as u32 * TEAM));
        for value in held {
            sum = sum.plus(value.to_sum());
        }
        at += IN_FLIGHT * TEAM;
    }
    for k in 0..IN_FLIGHT - 1 {
        if at + k * TEAM < end {
            sum = sum.plus(read(at + k * TEAM).to_sum());
        }
    }
    sum
}

/// `tile` lanes per row, as [`team`] says.
#[inline(always)]
pub fn by_stages<C: Cta, T: Element>(cta: &C, args: &ReduceArgs<'_, T>) {
    match args.tile {
        1 => each_stage::<C, T, 1>(cta, args),
        2 => each_stage::<C, T, 2>(cta, args),
        _ => each_stage::<C, T, 4>(cta, args),
    }
}

#[inline(always)]
fn each_stage<C: Cta, T: Element, const TEAM: u32>(cta: &C, args: &ReduceArgs<'_, T>) {
    let Some(layout) = Layout::of(T::SIZE, (args.cols, args.pitch), TEAM) else {
        return;
    };
    let walk = Walk::new(cta, args, layout);
    let (mut number, warps) = (global_warp(cta) as u64, global_warps(cta) as u64);
    for stage in 0..STAGES - 1 {
        walk.copy(cta, stage, walk.rows(number + stage as u64 * warps));
        cta.end_copies();
    }
    let (mut stage, mut free) = (0, STAGES - 1);
    let mut rows = walk.rows(number);
    while rows.count > 0 {
        cta.copies_done::<{ STAGES - 2 }>();
        // All lanes have their copies of this stage, and have read the one that is copied to.
        cta.sync_warp();
        let later = number + (STAGES - 1) as u64 * warps;
        walk.copy(cta, free, walk.rows(later));
        cta.end_copies();
        walk.reduce::<C, TEAM>(cta, stage, rows);
        free = stage;
        stage = if stage + 1 == STAGES { 0 } else { stage + 1 };
        number += warps;
        rows = walk.rows(number);
    }
}
