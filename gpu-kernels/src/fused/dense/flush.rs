//! What the threads of a block have of w, put together.

use crate::cta::{Cta, Shared};
use crate::fused::dense::DenseArgs;
use crate::fused::dense::load::Columns;
use crate::fused::{Team, TeamSize, team::sum_teams};
use crate::scalar::{Pack, Real};
use crate::verbs::each_of_block;

/// Keeps what the threads of a block have, as [`DenseArgs::keep`]. Warps add theirs in turn: their order is fixed.
#[inline(always)]
pub(crate) fn flush<C: Cta, T: Real, P: Pack<T>, G: Team, const K: usize>(
    cta: &C,
    args: &DenseArgs<'_, T>,
    (start, slice): (u32, u32),
    columns: &Columns,
    w: &[P; K],
) {
    let columns = &columns.fresh(cta);
    let TeamSize::Lanes(vs) = G::SIZE else {
        for (k, pack) in w.iter().enumerate() {
            args.keep_pack(cta, slice, columns.at(k), pack);
        }
        return;
    };
    let panel = Shared::at(0, (args.cols - start).min(vs * (K * P::LANES) as u32));
    let sums = w.map(|pack| sum_pack::<C, T, P, G>(cta, pack));
    // The slice before has been read.
    cta.sync();
    for group in 0..G::groups(cta) {
        if group == G::group(cta) && G::team(cta) == 0 {
            each_column(columns, args.cols, &sums, |column, value| {
                let i = (column - start) as usize;
                let before = match group {
                    0 => T::ZERO,
                    _ => cta.shared_read(panel, i),
                };
                cta.shared_write(panel, i, before + value);
            });
        }
        cta.sync();
    }
    each_of_block(cta, panel.len(), |i| {
        args.keep(cta, slice, start + i as u32, cta.shared_read(panel, i));
    });
}

#[inline(always)]
fn sum_pack<C: Cta, T: Real, P: Pack<T>, G: Team>(cta: &C, mut pack: P) -> P {
    for element in pack.as_mut() {
        *element = sum_teams::<C, T, G>(cta, *element);
    }
    pack
}

/// Calls `each(column, element)` for the columns that are there.
#[inline(always)]
fn each_column<T: Real, P: Pack<T>, const K: usize>(
    columns: &Columns,
    cols: u32,
    packs: &[P; K],
    mut each: impl FnMut(u32, T),
) {
    for (k, pack) in packs.iter().enumerate() {
        for (j, element) in pack.as_ref().iter().enumerate() {
            let column = columns.at(k) + j as u32;
            if column < cols {
                each(column, *element);
            }
        }
    }
}
