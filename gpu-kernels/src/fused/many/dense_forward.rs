//! Dense X (row-major), several right-hand sides: X·Y alone, panel after panel of columns.
//!
//! Mapping, shared memory and guarantees: as [`super::dense`]; the rows come to registers without a detour.

use super::Ends;
use super::dense::{DenseManyArgs, Place, Walk, dots};
use super::lanes::{Among, Spread};
use crate::cta::{Cta, Shared};
use crate::fused::Forward;
use crate::fused::dense::load::row_of;
use crate::scalar::Real;

/// [`Product::Forward`] of one panel. V is R · B.
#[inline(always)]
pub(super) fn forward<C, T, G, const L: usize, const B: usize, const R: usize, const V: usize>(
    cta: &C,
    args: &DenseManyArgs<'_, T>,
) where
    C: Cta,
    T: Real,
    G: Spread,
{
    let ends = args.ends_of();
    let place = Place::of::<C, T, G>(cta, args);
    let scratch = Shared::at(0, G::spread_scratch(cta.threads(), V as u32));
    let among = Among::apart(G::LANES, 1);
    let (each, base) = (among.held(V), among.first_held(cta, V));
    let y: [[T; B]; L] = place.load_input(cta, &ends);
    let mut turn = 0;
    Walk::of::<C, G, R>(cta, args.x.rows).each(|first| {
        let rows: [[T; L]; R] =
            core::array::from_fn(|i| place.load(cta, &args.x, row_of::<C, G>(cta, first, i)));
        let sums = G::spread::<C, T, 1, V>(cta, dots::<T, L, B, R, V>(&rows, &y), scratch, turn);
        turn += 1;
        for (s, dot) in sums.iter().enumerate().take(each) {
            let (i, side) = ((base as usize + s) / B, (base + s as u32) % B as u32);
            let row = row_of::<C, G>(cta, first, i);
            if G::writes::<C, V>(cta, among) && row < ends.rows && side < ends.sides.count {
                write::<C, T>(cta, args, &ends, (row, side), *dot);
            }
        }
    });
}

/// One dot product of a panel, to where those of the panels before it were left.
#[inline(always)]
fn write<C: Cta, T: Real>(
    cta: &C,
    args: &DenseManyArgs<'_, T>,
    ends: &Ends<'_, T>,
    (row, side): (u64, u32),
    dot: T,
) {
    let at = ends.sides.at(row, side);
    let mut sum = dot;
    if args.continues != 0 {
        sum = sum + cta.read(ends.output, at);
    }
    if args.ends == 0 {
        return cta.write(ends.output, at, sum);
    }
    let shift = ends.shift::<C, Forward>(cta, side);
    let p = ends.multiplier::<C, Forward>(cta, row, side) * (sum - shift);
    ends.write_forward(cta, (row, side), p);
}
