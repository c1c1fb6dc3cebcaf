//! The walk over rows that registers hold.

use crate::cta::{Cta, Shared};
use crate::fused::dense::flush::flush;
use crate::fused::dense::load::{Columns, load_row, load_vector, row_of};
use crate::fused::dense::step::{TeamStep, Weigh};
use crate::fused::{Compute, DenseArgs, Team, TeamSize};
use crate::scalar::{Pack, Real};

/// [`crate::fused::Product::Fused`] (one panel, n ≤ size · K packs) and [`crate::fused::Product::Transposed`] (any n).
#[inline(always)]
pub(crate) fn accumulate<C, T, P, G, F, const K: usize, const R: usize>(
    cta: &C,
    args: &DenseArgs<'_, T>,
) where
    C: Cta,
    T: Real,
    P: Pack<T>,
    G: Team,
    F: Compute,
{
    let mut step = Weigh::<T, F>::new(args);
    accumulate_rows::<C, T, P, G, _, K, R>(cta, args, &mut step);
}

/// Walks the rows of the block's panels, adding each times its factor to w.
#[inline(always)]
pub(crate) fn accumulate_rows<C, T, P, G, S, const K: usize, const R: usize>(
    cta: &C,
    args: &DenseArgs<'_, T>,
    step: &mut S,
) where
    C: Cta,
    T: Real,
    P: Pack<T>,
    G: Team,
    S: TeamStep<T>,
{
    let width = G::size(cta) * (K * P::LANES) as u32;
    step.open(cta);
    let (mut unit, mut turn) = (cta.block(), 0);
    loop {
        // Reckoned again each time: registers are for rows. A constant, where a row is held whole, takes 96 registers down
        // to 80 for blocks on a row and 85 up to 106 for lanes (n = 128: 1.01 ms instead of 0.93 with chunks).
        let panels = match (S::DOTS, G::SIZE) {
            (true, TeamSize::Block) => 1,
            _ => cta.fresh(args.cols).div_ceil(width).max(1),
        };
        let slices = args.slices(cta.blocks() / panels);
        let (panel, slice) = (unit % panels, unit / panels);
        if slice >= slices {
            return;
        }
        let columns = Columns::of::<C, G>(cta, panel * width, P::LANES);
        let rows = (slice, slices);
        let w = add_slice::<C, T, P, G, S, K, R>(cta, args, step, (&columns, rows), &mut turn);
        flush::<C, T, P, G, K>(cta, args, (panel * width, slice), &columns, &w);
        unit += cta.blocks();
    }
}

/// What the rows of a slice come to in this thread's columns.
#[inline(always)]
fn add_slice<C, T, P, G, S, const K: usize, const R: usize>(
    cta: &C,
    args: &DenseArgs<'_, T>,
    step: &mut S,
    (columns, (slice, slices)): (&Columns, (u32, u32)),
    turn: &mut u32,
) -> [P; K]
where
    C: Cta,
    T: Real,
    P: Pack<T>,
    G: Team,
    S: TeamStep<T>,
{
    let scratch = Shared::at(0, G::scratch(cta.threads(), R as u32));
    let y: [P; K] = if S::DOTS {
        load_vector(cta, args.input, &columns.fresh(cta), args.cols)
    } else {
        [P::ZERO; K]
    };
    let mut w = [P::ZERO; K];
    let group_rows = (R as u32 * G::TEAMS) as u64;
    let stride = slices as u64 * G::groups(cta) as u64 * group_rows;
    let mut first = (slice * G::groups(cta) + G::group(cta)) as u64 * group_rows;
    while first < args.rows as u64 {
        let rows: [[P; K]; R] =
            core::array::from_fn(|i| load_row(cta, args, columns, row_of::<C, G>(cta, first, i)));
        let early = step.early::<C, G, R>(cta, first);
        let mut dots = [T::ZERO; R];
        if S::DOTS {
            for (row, dot) in rows.iter().zip(&mut dots) {
                for (x, y) in row.iter().zip(&y) {
                    *dot = x.dot(y, *dot);
                }
            }
            dots = G::sum(cta, dots, scratch, *turn);
            *turn += 1;
        }
        let ready = step.ready::<C, G, R>(cta, first, dots, early);
        for (i, row) in rows.iter().enumerate() {
            let p = step.factor(&ready, i);
            for (x, w) in row.iter().zip(&mut w) {
                x.scale_add(p, w);
            }
        }
        first += stride;
    }
    w
}
