//! R of blocks of rows of a tall X as least squares wants them: centred columns, rows times the roots of their weights, and a
//! column of targets behind the others, none of which is ever written.
//!
//! Behind [`Gram`](super::QrVariant::Gram) the same for plain rows, and nothing at all unless that was refused. Blocks take turns.
//!
//! The steps are those of [`panel`](super::panel); rows change on their way into its registers. Valid for at most 32 columns
//! with the targets, and `ROWS` · `WARPS` rows of a block.

use super::args::QrArgs;
use super::gram::REFUSED;
use super::panel::{self, Panel, factor, finish};
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
    // As many registers as panels take: two blocks share an SM.
    if T::SIZE == 4 {
        cta.launch_bounds::<THREADS, 2>();
    } else {
        cta.launch_bounds::<THREADS, 1>();
    }
    if args.verdict.is_some() && cta.read(args.verdict, 0) != REFUSED {
        return;
    }
    let mut number = cta.block();
    while number < args.count {
        if let Some(panel) = Panel::<T>::of::<C, LANES, ROWS, WARPS, 1>(cta, args, (number, 0)) {
            let mut piece = match args.dress.is_none() {
                true => panel::load::<C, T, LANES, ROWS>(cta, args, &panel),
                false => load::<C, T, ROWS>(cta, args, &panel),
            };
            let made = factor::<C, T, LANES, ROWS, WARPS, 1>(cta, args, &panel, &mut piece);
            finish::<C, T, LANES, ROWS>(cta, args, &panel, &piece, made);
        }
        // The next one's columns take the place of this one's.
        cta.sync();
        number += cta.blocks();
    }
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
    let before = panel.number as u64 * args.rows as u64;
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
