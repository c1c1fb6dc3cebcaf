//! The registers of a panel, read tile by tile through shared memory.

use super::{PITCH, Panel};
use crate::cta::{Cache, Cta, WARP};
use crate::qr::args::QrArgs;
use crate::qr::reflector::Ranged;
use crate::verbs::lane;

/// An element of the panel.
#[inline(always)]
#[track_caller]
fn element<C: Cta, T: Ranged>(
    cta: &C,
    args: &QrArgs<'_, T>,
    panel: &Panel<T>,
    (row, col): (u32, u32),
) -> T {
    if row >= panel.rows || col >= panel.cols {
        return T::ZERO;
    }
    let (row, col) = (panel.start + row, panel.start + col);
    if args.a.is_some() {
        cta.load(args.a, panel.site.in_a(row, col), Cache::Once)
    } else {
        cta.read(args.f, panel.site.in_f(row, col))
    }
}

/// The lane's piece of its column, zeros where there is none.
#[inline(always)]
#[track_caller]
pub(in crate::qr) fn load<C: Cta, T: Ranged, const LANES: usize, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    panel: &Panel<T>,
) -> [T; ROWS] {
    let mut piece = [T::ZERO; ROWS];
    if args.a.is_some() && panel.site.a_col == 1 {
        for (r, value) in piece.iter_mut().enumerate() {
            let row = panel.part * ROWS as u32 + r as u32;
            *value = element(cta, args, panel, (row, panel.lane));
        }
        return piece;
    }
    let tile = panel.tile(LANES as u32);
    for half in 0..ROWS / WARP as usize {
        for group in 0..WARP / LANES as u32 {
            let first = panel.first_row(LANES as u32, ROWS as u32, 0)
                + group * ROWS as u32
                + half as u32 * WARP;
            for col in 0..LANES as u32 {
                let value = element(cta, args, panel, (first + lane(cta), col));
                cta.shared_write(tile, (col * PITCH + lane(cta)) as usize, value);
            }
            cta.sync_warp();
            if lane(cta) / LANES as u32 == group {
                for r in 0..WARP as usize {
                    let at = (panel.lane * PITCH) as usize + r;
                    piece[half * WARP as usize + r] = cta.shared_read(tile, at);
                }
            }
            cta.sync_warp();
        }
    }
    piece
}
