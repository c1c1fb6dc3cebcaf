//! From any strides to column-major without gaps, tile by tile of 32 × 32 through shared memory; infinities and NaNs are
//! noted in the status. Where A is absent, the identity.

use super::args::{NOT_FINITE, QrArgs, Site};
use super::reflector::{Ranged, is_finite};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::verbs::lane;

/// Threads of a block.
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
        let mut is_bad = false;
        let mut i = line;
        while i < PACK_TILE {
            // Lanes along what lies side by side.
            let (row, col) = if site.a_row == 1 {
                (lane(cta), i)
            } else {
                (i, lane(cta))
            };
            if first[0] + row < site.rows && first[1] + col < site.cols {
                let (row_of_a, col_of_a) = (first[0] + row, first[1] + col);
                let value = if args.a.is_some() {
                    cta.load(args.a, site.in_a(row_of_a, col_of_a), Cache::Once)
                } else if row_of_a == col_of_a {
                    T::ONE
                } else {
                    T::ZERO
                };
                is_bad |= !is_finite(value);
                cta.shared_write(staged, (col * PITCH + row) as usize, value);
            }
            i += lines;
        }
        if is_bad {
            cta.raise(args.status, matrix as usize, NOT_FINITE);
        }
        cta.sync();
        let mut col = line;
        while col < PACK_TILE {
            let row = lane(cta);
            if first[0] + row < site.rows && first[1] + col < site.cols {
                let value = cta.shared_read(staged, (col * PITCH + row) as usize);
                cta.write(args.f, site.in_f(first[0] + row, first[1] + col), value);
            }
            col += lines;
        }
        cta.sync();
        tile += cta.blocks();
    }
}
