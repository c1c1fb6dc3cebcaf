//! From any strides to column-major without gaps, tile by tile of 32 × 32 through shared memory; infinities and NaNs are
//! noted in the status. Where A is absent, the identity.

use super::args::{NOT_FINITE, QrArgs, Site};
use super::pieces::four;
use super::reflector::{Ranged, is_finite};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::verbs::lane;

/// Threads of a block: four rows of a tile each.
pub const PACK_BLOCK: u32 = 256;
/// Rows, and columns, of a tile.
pub const PACK_TILE: u32 = 32;
const PITCH: u32 = PACK_TILE + 1;

/// Shared memory of a block.
pub const fn pack_shared_bytes(bytes: u32) -> u32 {
    PACK_TILE * PITCH * bytes
}

/// Tiles of a matrix of the largest shape.
pub const fn pack_tiles(rows: u32, cols: u32) -> u32 {
    rows.div_ceil(PACK_TILE) * cols.div_ceil(PACK_TILE)
}

/// See the head of the file.
#[inline(always)]
pub fn pack<C: Cta, T: Ranged>(cta: &C, args: &QrArgs<'_, T>) {
    let across = args.cols.div_ceil(PACK_TILE);
    let tiles = pack_tiles(args.rows, args.cols);
    let staged = Shared::at(0, PACK_TILE * PITCH);
    let (line, lines) = (cta.thread() / WARP, cta.threads() / WARP);
    let mut tile = cta.block();
    while tile < args.count * tiles {
        let (matrix, of_matrix) = (tile / tiles, tile % tiles);
        let site = Site::of(cta, args, matrix);
        let first = [
            of_matrix / across * PACK_TILE,
            of_matrix % across * PACK_TILE,
        ];
        let values = four(|i| {
            let (row, col) = place(&site, line + i as u32 * lines, lane(cta));
            element(cta, args, &site, (first[0] + row, first[1] + col))
        });
        let mut is_bad = false;
        for (i, value) in values.into_iter().enumerate() {
            let (row, col) = place(&site, line + i as u32 * lines, lane(cta));
            is_bad |= !is_finite(value);
            cta.shared_write(staged, (col * PITCH + row) as usize, value);
        }
        if is_bad {
            cta.raise(args.status, matrix as usize, NOT_FINITE);
        }
        cta.sync();
        four(|i| {
            let (row, col) = (lane(cta), line + i as u32 * lines);
            if first[0] + row < site.rows && first[1] + col < site.cols {
                let value = cta.shared_read(staged, (col * PITCH + row) as usize);
                cta.write(args.f, site.in_f(first[0] + row, first[1] + col), value);
            }
        });
        cta.sync();
        tile += cta.blocks();
    }
}

/// Row and column of a tile: lanes along what lies side by side in A.
#[inline(always)]
fn place(site: &Site, line: u32, lane: u32) -> (u32, u32) {
    match site.a_row == 1 {
        true => (lane, line),
        false => (line, lane),
    }
}

/// An element of A, or of the identity; 0 where there is none.
#[inline(always)]
#[track_caller]
fn element<C: Cta, T: Ranged>(
    cta: &C,
    args: &QrArgs<'_, T>,
    site: &Site,
    (row, col): (u32, u32),
) -> T {
    if row >= site.rows || col >= site.cols {
        T::ZERO
    } else if args.a.is_some() {
        cta.load(args.a, site.in_a(row, col), Cache::Once)
    } else if row == col {
        T::ONE
    } else {
        T::ZERO
    }
}
