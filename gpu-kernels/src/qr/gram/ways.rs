//! How 16 rows of A come to a warp, by how A lies.

use super::Walk;
use crate::cta::{Cta, WARP};
use crate::memory::In;
use crate::qr::args::QrArgs;

/// Which rows a lane has, and how its 16 elements are copied.
pub trait Way {
    /// Whether a pack has elements of a column.
    const BY_COLUMN: bool;
    /// Whether a lane reads what others copied, so that the warp has to meet before.
    const IS_SHARED: bool;

    /// Which of the 16 rows is the lane's row `step`.
    fn row(lane: u32, step: u32) -> u32;

    /// Begins to copy the lane's part of the 16 rows from `first` on; what is not there becomes 0.
    #[track_caller]
    fn copy<C: Cta, const DRESSED: bool>(
        cta: &C,
        args: &QrArgs<'_, f32>,
        walk: &Walk,
        at: (u32, u32),
    );

    /// Where pack `i` of the lane's elements is in stage `stage`.
    #[inline(always)]
    fn place(walk: &Walk, stage: u32, i: u32) -> usize {
        walk.place(stage, i)
    }
}

/// Row-major, each row from a whole pack on.
pub struct Rows;
/// Column-major, each column from a whole pack on; never dressed.
pub struct Columns;
/// In any other way.
pub struct Elements;

/// Eight lanes copy a row, which is a line of memory, and four rows lie behind each other: each pack of row r is exchanged with
/// another so that eight lanes, which read two packs of four rows, find them in different banks.
impl Rows {
    /// Where pack `pack` of row `row` < 4 is among those of four rows.
    #[inline(always)]
    fn exchanged(row: u32, pack: u32) -> u32 {
        row * 8 + (pack ^ (2 * row))
    }

    /// The four packs of a lane whose pack holds columns of A and that of the targets, element by element.
    #[inline(always)]
    #[track_caller]
    fn copy_with_targets<C: Cta>(
        cta: &C,
        args: &QrArgs<'_, f32>,
        walk: &Walk,
        (row, col): (u32, u32),
        to: usize,
    ) {
        // A loop for certain: sixteen addresses at once would fill the registers.
        let (mut i, all) = (0, cta.fresh(16_u32));
        while i < all {
            let (step, own) = (i / 4, i % 4);
            let (from, at, is_there) = place(args, walk, (row + 4 * step, col + own));
            let to = to + (step * WARP * 4 + own) as usize;
            cta.copy_one(walk.ring, to, from, at, is_there);
            i += 1;
        }
    }
}

impl Way for Rows {
    const BY_COLUMN: bool = false;
    const IS_SHARED: bool = true;

    #[inline(always)]
    fn row(lane: u32, step: u32) -> u32 {
        lane % 4 + 4 * step
    }

    #[inline(always)]
    fn place(walk: &Walk, stage: u32, i: u32) -> usize {
        let own = Self::exchanged(walk.lane % 4, walk.lane / 4);
        walk.first(stage) + ((i * WARP + own) * 4) as usize
    }

    #[inline(always)]
    #[track_caller]
    fn copy<C: Cta, const DRESSED: bool>(
        cta: &C,
        args: &QrArgs<'_, f32>,
        walk: &Walk,
        (first, stage): (u32, u32),
    ) {
        let (row, col) = (first + walk.lane / 8, walk.lane % 8 * 4);
        let own = Self::exchanged(walk.lane / 8, walk.lane % 8);
        let mut to = walk.first(stage) + (own * 4) as usize;
        let has_targets = DRESSED && args.dress.targets.is_some();
        if has_targets && col <= walk.cols && walk.cols < col + 4 {
            return Self::copy_with_targets(cta, args, walk, (row, col), to);
        }
        // The same for all lanes.
        let are_whole = walk.cols.is_multiple_of(4);
        let present = walk.cols.saturating_sub(col).min(4);
        let mut from = row as u64 * args.a_steps.row + col as u64;
        for step in 0..4 {
            let is_there = row + 4 * step < walk.rows;
            if are_whole {
                let is_there = is_there && present > 0;
                cta.copy_whole_pack(walk.ring, to, args.a, from as usize, is_there);
            } else {
                let present = if is_there { present } else { 0 };
                cta.copy_pack(walk.ring, to, args.a, from as usize, present as usize);
            }
            from += 4 * args.a_steps.row;
            to += (WARP * 4) as usize;
        }
    }
}

impl Way for Columns {
    const BY_COLUMN: bool = true;
    const IS_SHARED: bool = false;

    #[inline(always)]
    fn row(lane: u32, step: u32) -> u32 {
        lane % 4 * 4 + step
    }

    #[inline(always)]
    #[track_caller]
    fn copy<C: Cta, const DRESSED: bool>(
        cta: &C,
        args: &QrArgs<'_, f32>,
        walk: &Walk,
        (first, stage): (u32, u32),
    ) {
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
    const IS_SHARED: bool = false;

    #[inline(always)]
    fn row(lane: u32, step: u32) -> u32 {
        Rows::row(lane, step)
    }

    #[inline(always)]
    #[track_caller]
    fn copy<C: Cta, const DRESSED: bool>(
        cta: &C,
        args: &QrArgs<'_, f32>,
        walk: &Walk,
        (first, stage): (u32, u32),
    ) {
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
