//! Sparse X (CSR) of very few columns: a private copy of w for each vector of lanes, without atomics.
//!
//! Formula: `w += α · Xᵀ( v ⊙ (X·y − s) )` and `w += α · Xᵀ( v ⊙ p )`; w holds β·z (or zero) before.
//!
//! Mapping: as the other [sparse kernels](crate::fused::sparse), a vector of VS lanes per row, K nonzeros per lane kept in
//! registers, the offsets of the next row requested before the present one is worked on. The columns of a row are distinct
//! and a vector works on one row at a time, so its lanes add to different elements of their copy: all sums that a lane
//! wants are read, then all are written. A barrier of the warp stands between two rows.
//!
//! Shared memory: y where there is one, then BS/VS copies of w, n elements each. The copies of a warp lie side by side,
//! column by column, so that two of its vectors never meet in a bank. Valid for any n that fits.
//!
//! Result: in w when the kernel has ended. Guarantees: no two runs need give the same bits, as the blocks add to w by
//! atomics, in any order; within a block the order is fixed.
//!
//! Source: private copies of small histograms are common practice (Podlozhnyuk, *Histogram calculation in CUDA*, 2007).

use crate::cta::{Cache, Cta, Shared, WARP};
use crate::fused::Compute;
use crate::fused::sparse::{RowStep, Share, SparseArgs, Weigh, each_share};
use crate::scalar::Real;
use crate::verbs::{each_of_block, lane, zero_shared};

/// y and the copies of w of a block.
struct Copies<T, const VS: u32> {
    input: Shared<T>,
    /// Of all warps, VECTORS copies each.
    sums: Shared<T>,
    /// Where the first column of this vector's copy is.
    own: u32,
}

impl<T: Real, const VS: u32> Copies<T, VS> {
    /// Vectors of a warp.
    const VECTORS: u32 = WARP / VS;

    #[inline(always)]
    fn open<C: Cta, P: Compute>(cta: &C, args: &SparseArgs<'_, T>) -> Self {
        let input = Shared::at(0, if P::DOTS { args.cols } else { 0 });
        let sums = Shared::at(input.end(), cta.threads() / VS * args.cols);
        each_of_block(cta, input.len(), |j| {
            cta.shared_write(input, j, cta.load(args.input, j, Cache::Keep));
        });
        zero_shared(cta, sums);
        cta.sync();
        let warp = cta.thread() / WARP;
        let own = warp * Self::VECTORS * args.cols + lane(cta) / VS;
        Copies { input, sums, own }
    }

    /// Where the sum of a column is.
    #[inline(always)]
    fn at(&self, column: u32) -> usize {
        (self.own + column * Self::VECTORS) as usize
    }

    /// Adds a row times `p`.
    #[inline(always)]
    fn add_row<C: Cta, const K: usize>(
        &self,
        cta: &C,
        args: &SparseArgs<'_, T>,
        row: &Share<T, VS, K>,
        p: T,
    ) {
        let mut sums = [T::ZERO; K];
        for (k, sum) in sums.iter_mut().enumerate() {
            if let Some((column, _)) = row.held(k) {
                *sum = cta.shared_read(self.sums, self.at(column));
            }
        }
        for (k, sum) in sums.into_iter().enumerate() {
            if let Some((column, value)) = row.held(k) {
                cta.shared_write(self.sums, self.at(column), value.fma(p, sum));
            }
        }
        row.each_further(cta, args, |column, value| {
            let sum = cta.shared_read(self.sums, self.at(column));
            cta.shared_write(self.sums, self.at(column), value.fma(p, sum));
        });
    }

    /// Sums up the copies, first over the warps, then over the vectors of a warp.
    #[inline(always)]
    fn flush<C: Cta>(self, cta: &C, args: &SparseArgs<'_, T>) {
        let of_warp = Self::VECTORS * args.cols;
        cta.sync();
        each_of_block(cta, of_warp, |i| {
            let mut sum = T::ZERO;
            for warp in 0..cta.threads() / WARP {
                sum = sum + cta.shared_read(self.sums, i + (warp * of_warp) as usize);
            }
            cta.shared_write(self.sums, i, sum);
        });
        cta.sync();
        each_of_block(cta, args.cols, |j| {
            let mut sum = T::ZERO;
            for vector in 0..Self::VECTORS as usize {
                sum = sum + cta.shared_read(self.sums, j * Self::VECTORS as usize + vector);
            }
            cta.add(args.output, j, args.alpha * sum);
        });
    }
}

/// Any product that accumulates into w.
#[inline(always)]
pub(crate) fn accumulate<C, T, P, const VS: u32, const K: usize>(cta: &C, args: &SparseArgs<'_, T>)
where
    C: Cta,
    T: Real,
    P: Compute,
{
    let copies = Copies::<T, VS>::open::<C, P>(cta, args);
    let mut step = Weigh::<T, P>::new(cta, args);
    each_share::<C, T, VS, K>(cta, args, |row, share| {
        let dot = if P::DOTS {
            share.dot_with(cta, args, |j| cta.shared_read(copies.input, j as usize))
        } else {
            T::ZERO
        };
        if row < args.rows {
            let p = step.factor(cta, row, dot, ());
            copies.add_row(cta, args, share, p);
        }
        cta.sync_warp();
    });
    copies.flush(cta, args);
}
