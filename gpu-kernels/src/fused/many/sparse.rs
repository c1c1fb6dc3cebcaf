//! Sparse X (CSR), several right-hand sides: one pass over the rows.
//!
//! Formula: `W += α · Xᵀ( V ⊙ (X·Y − s) )` for up to B sides; W holds β·Z (or zero) before.
//!
//! Mapping: a vector of VS lanes owns one row at a time, lane l takes nonzeros l, l + VS, …, the first K of which stay
//! in registers: as [`crate::fused::sparse`], but each nonzero meets B numbers of Y that lie together and is added to B
//! of W. The B dot products are shared out among the lanes, which weigh them, and gathered again. Offsets come a row
//! ahead.
//!
//! Shared memory: B · n elements where W is placed there, side after side, so that the lanes of a warp, which have
//! random columns, meet in few banks; else none: then W is added to in global memory, where
//! the sides of a column lie together. Result: when the kernel has ended. Guarantees: X·Y has the same bits every time; atomics add to W in any
//! order.

use super::lanes::{Among, Spread, gather, spread_lanes};
use super::{Ends, Sides, check_ends};
use crate::cta::{Cta, Shared, WARP};
use crate::fused::sparse::{Share, check_csr, each_share};
use crate::fused::{Compute, Forward, Lanes, Place, Product, SparseArgs};
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::verbs::{each_of_block, zero_shared};

/// The family of sparse kernels with several right-hand sides.
pub struct SparseMany<T>(core::marker::PhantomData<T>);

/// Arguments of sparse kernels with several right-hand sides.
#[repr(C)]
pub struct SparseManyArgs<'a, T> {
    /// X, and the arrays, which are matrices of [`Sides::all`] columns: input is Y or P, addend (of [`Product::Forward`]
    /// alone) Z, output W or P; shift has an element for every side.
    pub x: SparseArgs<'a, T>,
    /// Which right-hand sides.
    pub sides: Sides,
}

impl<T: Copy> Clone for SparseManyArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for SparseManyArgs<'_, T> {}

/// What distinguishes sparse entries with several right-hand sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SparseManyVariant {
    /// What is computed.
    pub product: Product,
    /// Where W lives.
    pub place: Place,
    /// VS: lanes per row.
    pub vs: u32,
    /// K: nonzeros per lane kept in registers.
    pub held: u32,
    /// B: right-hand sides at most.
    pub sides: u32,
}

impl SparseManyVariant {
    /// Dynamic shared memory that a block needs for n columns of `size`-byte elements.
    pub const fn shared_bytes(&self, cols: u32, size: u32) -> u64 {
        match self.place {
            Place::Shared => self.sides as u64 * cols as u64 * size as u64,
            _ => 0,
        }
    }
}

impl<'a, T: Real> SparseManyArgs<'a, T> {
    #[inline(always)]
    fn ends_of(&self) -> Ends<'a, T> {
        Ends {
            rows: self.x.rows as u64,
            input: self.x.input,
            weights: self.x.weights,
            shift: self.x.shift,
            addend: self.x.addend,
            output: self.x.output,
            alpha: self.x.alpha,
            beta: self.x.beta,
            sides: self.sides,
        }
    }
}

/// Where contributions to W go.
pub(super) trait Target<T: Real>: Sized {
    fn open<C: Cta>(cta: &C, cols: u32, sides: u32) -> Self;
    /// Adds `value · p` to the sides of a column.
    fn add<C: Cta, const B: usize>(
        &self,
        cta: &C,
        ends: &Ends<'_, T>,
        column: u32,
        value: T,
        p: &[T; B],
    );
    fn flush<C: Cta>(self, cta: &C, ends: &Ends<'_, T>);
    /// What α is multiplied with: here each row's factors, or 1 where `flush` does it.
    fn alpha(alpha: T) -> T;
}

/// A copy of W per block, side after side; α is applied when it is flushed.
pub(super) struct InShared<T> {
    copy: Shared<T>,
    cols: u32,
}

impl<T: Real> Target<T> for InShared<T> {
    #[inline(always)]
    fn open<C: Cta>(cta: &C, cols: u32, sides: u32) -> Self {
        let copy = Shared::at(0, cols * sides);
        zero_shared(cta, copy);
        cta.sync();
        InShared { copy, cols }
    }

    #[inline(always)]
    fn add<C: Cta, const B: usize>(
        &self,
        cta: &C,
        ends: &Ends<'_, T>,
        column: u32,
        value: T,
        p: &[T; B],
    ) {
        for (side, p) in p.iter().enumerate() {
            if (side as u32) < ends.sides.count {
                let at = (side as u32 * self.cols + column) as usize;
                cta.shared_add(self.copy, at, value * *p);
            }
        }
    }

    #[inline(always)]
    fn flush<C: Cta>(self, cta: &C, ends: &Ends<'_, T>) {
        cta.sync();
        each_of_block(cta, self.cols * ends.sides.count, |i| {
            // Neighbours add to neighbours.
            let (column, side) = (i as u32 / ends.sides.count, i as u32 % ends.sides.count);
            let value = cta.shared_read(self.copy, (side * self.cols + column) as usize);
            let at = ends.sides.at(column as u64, side);
            cta.add(ends.output, at, ends.alpha * value);
        });
    }

    #[inline(always)]
    fn alpha(_: T) -> T {
        T::ONE
    }
}

/// W itself; α is applied to each row's factors.
pub(super) struct InGlobal;

impl<T: Real> Target<T> for InGlobal {
    #[inline(always)]
    fn open<C: Cta>(_: &C, _: u32, _: u32) -> Self {
        InGlobal
    }

    #[inline(always)]
    fn add<C: Cta, const B: usize>(
        &self,
        cta: &C,
        ends: &Ends<'_, T>,
        column: u32,
        value: T,
        p: &[T; B],
    ) {
        for (side, p) in p.iter().enumerate() {
            if (side as u32) < ends.sides.count {
                let at = ends.sides.at(column as u64, side as u32);
                cta.add(ends.output, at, value * *p);
            }
        }
    }

    #[inline(always)]
    fn flush<C: Cta>(self, _: &C, _: &Ends<'_, T>) {}

    #[inline(always)]
    fn alpha(alpha: T) -> T {
        alpha
    }
}

/// Any product that accumulates into W.
#[inline(always)]
pub(super) fn accumulate<C, T, F, W, const VS: u32, const K: usize, const B: usize>(
    cta: &C,
    args: &SparseManyArgs<'_, T>,
) where
    C: Cta,
    T: Real,
    F: Compute,
    W: Target<T>,
{
    let ends = args.ends_of();
    let target = W::open(cta, args.x.cols, B as u32);
    let among = Among::apart(VS, 1);
    let (each, base) = (among.held(B), among.first_held(cta, B));
    let alpha = W::alpha(ends.alpha);
    let mut shifts = [T::ZERO; B];
    for (s, shift) in shifts.iter_mut().enumerate().take(each) {
        *shift = ends.shift::<C, F>(cta, base + s as u32);
    }
    each_share::<C, T, VS, K>(cta, &args.x, |row, share| {
        let row = row as u64;
        let mut own = [T::ZERO; B];
        if F::DOTS {
            own = dots::<C, T, VS, K, B>(cta, args, &ends, share);
        }
        for (s, factor) in own.iter_mut().enumerate().take(each) {
            let multiplier = ends.multiplier::<C, F>(cta, row, base + s as u32);
            *factor = if F::DOTS {
                alpha * multiplier * (*factor - shifts[s])
            } else {
                alpha * multiplier
            };
        }
        let p = gather(cta, among, &own);
        share.each(cta, &args.x, |column, value| {
            target.add(cta, &ends, column, value, &p);
        });
    });
    target.flush(cta, &ends);
}

/// The dot products of a row with the sides of Y, shared out.
#[inline(always)]
fn dots<C: Cta, T: Real, const VS: u32, const K: usize, const B: usize>(
    cta: &C,
    args: &SparseManyArgs<'_, T>,
    ends: &Ends<'_, T>,
    share: &Share<T, VS, K>,
) -> [T; B] {
    let mut sums = [T::ZERO; B];
    share.each(cta, &args.x, |column, value| {
        let y: [T; B] = ends.input_of(cta, column as u64);
        for (sum, y) in sums.iter_mut().zip(&y) {
            *sum = value.fma(*y, *sum);
        }
    });
    spread_lanes::<C, T, VS, 1, B>(cta, sums)
}

/// [`Product::Forward`].
#[inline(always)]
pub(super) fn forward<C: Cta, T: Real, const VS: u32, const K: usize, const B: usize>(
    cta: &C,
    args: &SparseManyArgs<'_, T>,
) where
    Lanes<VS>: Spread,
{
    let ends = args.ends_of();
    let among = Among::apart(VS, 1);
    let (each, base) = (among.held(B), among.first_held(cta, B));
    each_share::<C, T, VS, K>(cta, &args.x, |row, share| {
        let row = row as u64;
        let sums = dots::<C, T, VS, K, B>(cta, args, &ends, share);
        for (s, dot) in sums.iter().enumerate().take(each) {
            let side = base + s as u32;
            let writes = <Lanes<VS> as Spread>::writes::<C, B>(cta, among);
            if writes && row < ends.rows && side < ends.sides.count {
                let shift = ends.shift::<C, Forward>(cta, side);
                let p = ends.multiplier::<C, Forward>(cta, row, side) * (*dot - shift);
                ends.write_forward(cta, (row, side), p);
            }
        }
    });
}

/// The contract of every sparse entry with several right-hand sides.
pub(super) fn check<T: Real>(
    variant: &SparseManyVariant,
    launch: &Launch,
    args: &SparseManyArgs<'_, T>,
) -> Result<(), Violation> {
    let x = &args.x;
    let (m, n) = (x.rows as u64, x.cols as u64);
    let shared = variant.shared_bytes(x.cols, T::SIZE);
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    Violation::at_most("rows", (u32::MAX - WARP) as u64, m)?;
    check_csr(x)?;
    args.sides.check(variant.sides)?;
    let (from, to) = variant.product.lengths(m, n);
    check_ends(&args.ends_of(), from, to)?;
    let addend = match variant.product {
        Product::Forward => m.saturating_mul(args.sides.all as u64),
        _ => 0,
    };
    crate::fused::check_optional(&x.addend, "length of addend", addend)
}
