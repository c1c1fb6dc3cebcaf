//! Which columns of a matrix are a block's, on tensor cores of either type.

use super::super::args::{QrArgs, Site};
use crate::cta::{Cta, WARP};
use crate::scalar::Word;

/// Columns of a block, and reflectors of a panel.
pub const TENSOR_COLUMNS: u32 = 32;
/// Columns of a block in f64.
pub const WIDE_COLUMNS: u32 = 16;

/// Blocks of a matrix: one for 32 of its `width` columns from `start` on, or for 16 in f64.
pub const fn tensor_tiles<T>(args: &QrArgs<'_, T>) -> u32 {
    args.width.div_ceil(match size_of::<T>() {
        4 => TENSOR_COLUMNS,
        _ => WIDE_COLUMNS,
    })
}

/// The block's columns, at most COLUMNS of them, and the reflectors that apply.
pub(in crate::qr) struct Tile<const WARPS: u32, const COLUMNS: u32> {
    pub site: Site,
    /// First column, and the columns that there are.
    pub first: u32,
    pub cols: u32,
    /// The first reflector that applies, which begins in the first row that changes, and the rows from there on.
    pub since: u32,
    pub rows: u32,
    /// The end of the reflectors.
    pub until: u32,
    pub warp: u32,
}

impl<const WARPS: u32, const COLUMNS: u32> Tile<WARPS, COLUMNS> {
    /// Computed again where it is needed, so that it does not wait in registers.
    #[inline(always)]
    #[track_caller]
    pub fn of<C: Cta, T: Word>(cta: &C, args: &QrArgs<'_, T>) -> Self {
        let (tiles, block) = (tensor_tiles(args), cta.fresh(cta.block()));
        let (matrix, tile) = (block / tiles, block % tiles);
        let site = Site::of(cta, args, matrix);
        let first = args.start + tile * COLUMNS;
        let end = site.cols.min(args.start + args.width);
        Tile {
            first,
            cols: end.saturating_sub(first).min(COLUMNS),
            since: args.since,
            rows: site.rows.saturating_sub(args.since),
            until: args.until.min(site.least()),
            warp: cta.fresh(cta.thread()) / WARP,
            site,
        }
    }
}
