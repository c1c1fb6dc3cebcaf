//! How 16 rows of A come to a warp, by how A lies.

use super::Walk;
use crate::cta::{Cta, WARP};
use crate::memory::In;
use crate::qr::args::QrArgs;

/// Which rows a lane has, and how its 16 elements are copied.
pub trait Way {
    /// Whether a pack has elements of a column.
    const BY_COLUMN: bool;

    /// Which of the 16 rows is the lane's row `step`.
    fn row(lane: u32, step: u32) -> u32;

    /// Begins to copy the lane's elements of the 16 rows from `first` on; what is not there becomes 0.
    #[track_caller]
    fn copy<C: Cta>(cta: &C, args: &QrArgs<'_, f32>, walk: &Walk, at: (u32, u32));
}

/// Row-major, each row from a whole pack on.
pub struct Rows;
/// Column-major, each column from a whole pack on; never dressed.
pub struct Columns;
/// In any other way.
pub struct Elements;

impl Way for Rows {
    const BY_COLUMN: bool = false;

    #[inline(always)]
    fn row(lane: u32, step: u32) -> u32 {
        lane % 4 + 4 * step
    }

    #[inline(always)]
    #[track_caller]
    fn copy<C: Cta>(cta: &C, args: &QrArgs<'_, f32>, walk: &Walk, (first, stage): (u32, u32)) {
        let end = args.cols;
        let (col, is_whole) = (walk.column(), walk.column() + 4 <= walk.cols);
        // The columns that a last pack lacks, and that of the targets.
        if col < end && !is_whole {
            return Elements::copy(cta, args, walk, (first, stage));
        }
        for step in 0..4 {
            let row = first + Self::row(walk.lane, step);
            let from = row as u64 * args.a_steps.row + col as u64;
            let to = walk.place(stage, step);
            let is_there = is_whole && row < walk.rows;
            cta.copy_whole_pack(walk.ring, to, args.a, from as usize, is_there);
        }
    }
}

impl Way for Columns {
    const BY_COLUMN: bool = true;

    #[inline(always)]
    fn row(lane: u32, step: u32) -> u32 {
        lane % 4 * 4 + step
    }

    #[inline(always)]
    #[track_caller]
    fn copy<C: Cta>(cta: &C, args: &QrArgs<'_, f32>, walk: &Walk, (first, stage): (u32, u32)) {
        let row = first + Self::row(walk.lane, 0);
        let left = walk.rows.saturating_sub(row).min(4);
        for i in 0..4 {
            let col = walk.column() + i;
            let present = if col < walk.cols { left } else { 0 };
            let from = match present {
                0 => 0,
                _ => row as u64 + col as u64 * args.a_steps.col,
            };
            let to = walk.place(stage, i);
            cta.copy_pack(walk.ring, to, args.a, from as usize, present as usize);
        }
    }
}

impl Way for Elements {
    const BY_COLUMN: bool = false;

    #[inline(always)]
    fn row(lane: u32, step: u32) -> u32 {
        Rows::row(lane, step)
    }

    #[inline(always)]
    #[track_caller]
    fn copy<C: Cta>(cta: &C, args: &QrArgs<'_, f32>, walk: &Walk, (first, stage): (u32, u32)) {
        // A loop for certain: sixteen addresses at once would fill the registers.
        let (mut i, all) = (0, cta.fresh(16_u32));
        while i < all {
            let (step, own) = (i / 4, i % 4);
            let row = first + Self::row(walk.lane, step);
            let (from, at, is_there) = place(args, walk, (row, walk.column() + own));
            let to = walk.place(stage, step) + own as usize;
            cta.copy_one(walk.ring, to, from, at, is_there);
            i += 1;
        }
    }
}

/// Where an element is: in A or among the targets; nowhere past them.
#[inline(always)]
fn place<'a>(
    args: &QrArgs<'a, f32>,
    walk: &Walk,
    (row, col): (u32, u32),
) -> (In<'a, f32>, usize, bool) {
    let is_there = row < walk.rows && col < args.cols;
    let is_target = col == walk.cols && args.dress.targets.is_some();
    match (is_there, is_target) {
        (false, _) => (args.a, 0, false),
        (true, true) => (args.dress.targets, row as usize, true),
        (true, false) => {
            let at = row as u64 * args.a_steps.row + col as u64 * args.a_steps.col;
            (args.a, at as usize, true)
        }
    }
}

const _: () = assert!(WARP == 32, "eight packs of a row, four rows of a copy");
