//! Dense X (row-major): X·y alone.
//!
//! Formula: `p = α · v ⊙ (X·y − s) + β · z`. Mapping: as [`crate::fused::dense`], but a row of any length is walked in steps
//! of `size · K` packs, so that y is read again for every R rows. Shared memory: none. Guarantees: the same bits
//! every time.
//!
//! Tried, for rows no longer than a step: y stays in registers, and the R results of a team are written at once, by as many lanes.
//! On an H100 in f64 that takes 886 µs beside 903 with 28 columns and 2,768 beside 2,800 with 64 (reading takes 791 and 2,570): less than
//! 2 %, not worth ten kernels.

use crate::cta::{Cta, Shared};
use crate::fused::Team;
use crate::fused::dense::DenseArgs;
use crate::fused::dense::load::{Columns, load_row, load_vector, row_of};
use crate::fused::dense::step::{factor, multiplier};
use crate::scalar::{Pack, Real};
use crate::verbs::load_or;

/// [`Product::Forward`], any n: a row is walked in steps of `size · K` packs.
#[inline(always)]
pub(crate) fn forward<C, T, P, G, const K: usize, const R: usize>(cta: &C, args: &DenseArgs<'_, T>)
where
    C: Cta,
    T: Real,
    P: Pack<T>,
    G: Team,
{
    let shift = load_or(cta, args.shift, 0, T::ZERO);
    let width = G::size(cta) * (K * P::LANES) as u32;
    let group_rows = (R as u32 * G::TEAMS) as u64;
    let step = cta.blocks() as u64 * G::groups(cta) as u64 * group_rows;
    let group = cta.block() as u64 * G::groups(cta) as u64 + G::group(cta) as u64;
    let mut first = group * group_rows;
    while first < args.rows as u64 {
        let mut dots = [T::ZERO; R];
        let mut start = 0;
        while start < args.cols {
            let columns = Columns::of::<C, G>(cta, start, P::LANES);
            let rows: [[P; K]; R] = core::array::from_fn(|i| {
                load_row(cta, args, &columns, row_of::<C, G>(cta, first, i))
            });
            let y: [P; K] = load_vector(cta, args.input, &columns, args.cols);
            for (row, dot) in rows.iter().zip(&mut dots) {
                for (x, y) in row.iter().zip(&y) {
                    *dot = x.dot(y, *dot);
                }
            }
            start += width;
        }
        let dots = G::sum(cta, dots, Shared::at(0, 0), 0);
        for (i, dot) in dots.into_iter().enumerate() {
            write_forward::<C, T, G>(cta, args, row_of::<C, G>(cta, first, i), dot, shift);
        }
        first += step;
    }
}

#[inline(always)]
fn write_forward<C: Cta, T: Real, G: Team>(
    cta: &C,
    args: &DenseArgs<'_, T>,
    row: u64,
    dot: T,
    shift: T,
) {
    if row < args.rows as u64 && G::rank(cta) == 0 {
        let multiplier = multiplier::<C, T, crate::fused::Forward>(cta, args, row);
        let p = factor::<T, crate::fused::Forward>(dot, shift, multiplier);
        let addend = args.beta * load_or(cta, args.addend, row as usize, T::ZERO);
        cta.write(args.output, row as usize, args.alpha.fma(p, addend));
    }
}
