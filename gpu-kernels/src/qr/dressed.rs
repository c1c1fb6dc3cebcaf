//! R of blocks of rows of a tall X as least squares wants them: centred columns, rows times the roots of their weights, and a
//! column of targets behind the others, none of which is ever written.
//!
//! The steps are those of [`panel`](super::panel); rows change on their way into its registers. Valid for at most 32 columns
//! with the targets, and `ROWS` · `WARPS` rows of a block.

use super::args::QrArgs;
use super::panel::{Panel, factor, finish};
use super::reflector::Ranged;
use crate::cta::{Cache, Cta};

/// Columns of a panel.
const LANES: usize = 32;

/// See the head of the file.
#[inline(always)]
pub fn dressed<C: Cta, T: Ranged, const ROWS: usize, const WARPS: usize, const THREADS: u32>(
    cta: &C,
    args: &QrArgs<'_, T>,
) {
    cta.launch_bounds::<THREADS, 1>();
    let Some(panel) = Panel::<T>::of::<C, LANES, ROWS, WARPS>(cta, args) else {
        return;
    };
    let mut piece = load::<C, T, ROWS>(cta, args, &panel);
    let made = factor::<C, T, LANES, ROWS, WARPS>(cta, args, &panel, &mut piece);
    finish::<C, T, LANES, ROWS>(cta, args, &panel, &piece, made);
}

/// The lane's piece of its column, zeros where there is none.
#[inline(always)]
#[track_caller]
fn load<C: Cta, T: Ranged, const ROWS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    panel: &Panel<T>,
) -> [T; ROWS] {
    let mut piece = [T::ZERO; ROWS];
    let dress = &args.dress;
    let has_target = dress.targets.is_some();
    let of_x = panel.cols - has_target as u32;
    let mean = match dress.means.is_some() && panel.lane < of_x {
        true => cta.load(dress.means, panel.lane as usize, Cache::Keep),
        false => T::ZERO,
    };
    // Of all blocks; the last one may have fewer.
    let before = cta.block() as u64 * args.rows as u64;
    for (r, value) in piece.iter_mut().enumerate() {
        let row = panel.part * ROWS as u32 + r as u32;
        if row >= panel.rows || panel.lane >= panel.cols {
            continue;
        }
        let at = (before + row as u64) as usize;
        let plain = if panel.lane < of_x {
            cta.load(args.a, panel.site.in_a(row, panel.lane), Cache::Once) - mean
        } else {
            cta.load(dress.targets, at, Cache::Once)
        };
        *value = match dress.roots.is_some() {
            true => plain * cta.load(dress.roots, at, Cache::Once),
            false => plain,
        };
    }
    piece
}
