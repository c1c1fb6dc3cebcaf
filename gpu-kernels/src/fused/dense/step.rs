//! What happens to rows between their dot products and their addition to w.

use crate::cta::{Cache, Cta};
use crate::fused::dense::load::row_of;
use crate::fused::{Compute, DenseArgs, Team};
use crate::scalar::Real;
use crate::verbs::load_or;

/// What a row is multiplied by besides its dot product: v, or v ⊙ p; 0 for a row that is not there.
///
/// Asked for together with the row: after the reduction its latency would stand alone (0.91 → 1.16 ms for
/// 8,000,000 × 128 on an H200).
#[inline(always)]
pub(crate) fn multiplier<C: Cta, T: Real, P: Compute>(
    cta: &C,
    args: &DenseArgs<'_, T>,
    row: u64,
) -> T {
    if row >= args.rows as u64 {
        return T::ZERO;
    }
    let row = row as usize;
    let weight = load_or(cta, args.weights, row, T::ONE);
    if P::DOTS {
        weight
    } else {
        weight * cta.load(args.input, row, Cache::Keep)
    }
}

/// Teams of a group from which on each has [its multipliers](weighted_inputs) on their way at once: `Xᵀ·p` of 4 GB takes 1.36 instead of
/// 1.96 ms on an H200 with 2 columns of f32, 1.98 instead of 2.64 with 8 of f64 in fixed order. Of wide rows they are few, and take
/// registers: 100 columns of f64 took 1.85 instead of 1.76.
const MANY_TEAMS: u32 = 4;

/// v ⊙ p of rows that ascend; 0 for a row that is not there.
///
/// Where all are there they are requested at once: a load under a condition of its own is waited for before the next one begins.
#[inline(always)]
fn weighted_inputs<C: Cta, T: Real, P: Compute, const R: usize>(
    cta: &C,
    args: &DenseArgs<'_, T>,
    rows: [u64; R],
) -> [T; R] {
    if rows[R - 1] >= args.rows as u64 {
        return core::array::from_fn(|i| multiplier::<C, T, P>(cta, args, rows[i]));
    }
    let mut weighted: [T; R] =
        core::array::from_fn(|i| cta.load(args.input, rows[i] as usize, Cache::Keep));
    if args.weights.is_some() {
        let weights: [T; R] =
            core::array::from_fn(|i| cta.load(args.weights, rows[i] as usize, Cache::Once));
        weighted = core::array::from_fn(|i| weights[i] * weighted[i]);
    }
    weighted
}

/// The row's factor. A row that is not there has multiplier 0, whatever the shift.
#[inline(always)]
pub(crate) fn factor<T: Real, P: Compute>(dot: T, shift: T, multiplier: T) -> T {
    if P::DOTS {
        (dot - shift) * multiplier
    } else {
        multiplier
    }
}

/// What happens to the R rows of a team between their dot products and their addition to w.
pub(crate) trait TeamStep<T: Real> {
    /// Whether rows are multiplied by y.
    const DOTS: bool;
    /// What is requested together with R rows, so that its latency does not stand alone.
    type Early<const R: usize>;
    /// What the rows' factors are made of once their dot products are known.
    type Ready<const R: usize>;
    /// Loads what holds for all rows.
    fn open<C: Cta>(&mut self, cta: &C);
    /// Asks for what belongs to the rows of a team; `first` is the group's row.
    fn early<C: Cta, G: Team, const R: usize>(&self, cta: &C, first: u64) -> Self::Early<R>;
    /// Takes the dot products. All threads of the group call it.
    fn ready<C: Cta, G: Team, const R: usize>(
        &mut self,
        cta: &C,
        first: u64,
        dots: [T; R],
        early: Self::Early<R>,
    ) -> Self::Ready<R>;
    /// What row i of the team is multiplied by; 0 for one that is not there.
    fn factor<const R: usize>(&self, ready: &Self::Ready<R>, i: usize) -> T;
}

/// The pattern's own step: v ⊙ (X·y − s), or v ⊙ p.
pub(crate) struct Weigh<'a, 'b, T, F> {
    args: &'b DenseArgs<'a, T>,
    shift: T,
    product: core::marker::PhantomData<F>,
}

impl<'a, 'b, T: Real, F> Weigh<'a, 'b, T, F> {
    #[inline(always)]
    pub(crate) fn new(args: &'b DenseArgs<'a, T>) -> Self {
        Weigh {
            args,
            shift: T::ZERO,
            product: core::marker::PhantomData,
        }
    }
}

impl<T: Real, F: Compute> TeamStep<T> for Weigh<'_, '_, T, F> {
    const DOTS: bool = F::DOTS;
    type Early<const R: usize> = [T; R];
    type Ready<const R: usize> = ([T; R], [T; R]);

    #[inline(always)]
    fn open<C: Cta>(&mut self, cta: &C) {
        self.shift = load_or(cta, self.args.shift, 0, T::ZERO);
    }

    #[inline(always)]
    fn early<C: Cta, G: Team, const R: usize>(&self, cta: &C, first: u64) -> [T; R] {
        let row = |i: usize| row_of::<C, G>(cta, first, i);
        if !F::DOTS && G::TEAMS >= MANY_TEAMS {
            return weighted_inputs::<C, T, F, R>(cta, self.args, core::array::from_fn(row));
        }
        core::array::from_fn(|i| multiplier::<C, T, F>(cta, self.args, row(i)))
    }

    #[inline(always)]
    fn ready<C: Cta, G: Team, const R: usize>(
        &mut self,
        _: &C,
        _: u64,
        dots: [T; R],
        early: [T; R],
    ) -> ([T; R], [T; R]) {
        (dots, early)
    }

    #[inline(always)]
    fn factor<const R: usize>(&self, (dots, multipliers): &([T; R], [T; R]), i: usize) -> T {
        factor::<T, F>(dots[i], self.shift, multipliers[i])
    }
}
