//! What a lane has of a row, and the rows of its vector.

use super::SparseArgs;
use crate::cta::{Cache, Cta, WARP};
use crate::scalar::Real;
use crate::verbs::{global_warp, global_warps, lane, sum_lanes};

/// One lane's share of a row: `from..end` in steps of VS, the first K of it held in registers.
pub(crate) struct Share<T, const VS: u32, const K: usize> {
    from: u32,
    end: u32,
    columns: [u32; K],
    values: [T; K],
}

impl<T: Real, const VS: u32, const K: usize> Share<T, VS, K> {
    #[inline(always)]
    pub(crate) fn load<C: Cta>(cta: &C, args: &SparseArgs<'_, T>, row: u32) -> Self {
        Self::load_at(cta, args, Self::bounds(cta, args, row))
    }

    /// The share of the row whose [bounds](Share::bounds) these are.
    #[inline(always)]
    pub(crate) fn load_at<C: Cta>(
        cta: &C,
        args: &SparseArgs<'_, T>,
        (from, end): (u32, u32),
    ) -> Self {
        let mut share = Share {
            from,
            end,
            columns: [0; K],
            values: [T::ZERO; K],
        };
        for k in 0..K {
            let i = from + VS * k as u32;
            if i < end {
                share.columns[k] = cta.load(args.indices, i as usize, Cache::Keep);
                share.values[k] = cta.load(args.values, i as usize, Cache::Keep);
            }
        }
        share
    }

    /// An absent row is an empty one, so that all lanes of a warp stay together.
    #[inline(always)]
    pub(crate) fn bounds<C: Cta>(cta: &C, args: &SparseArgs<'_, T>, row: u32) -> (u32, u32) {
        if row >= args.rows {
            return (0, 0);
        }
        let row = row as usize;
        let start: u32 = cta.load(args.offsets, row, Cache::Keep);
        (
            start + lane(cta) % VS,
            cta.load(args.offsets, row + 1, Cache::Keep),
        )
    }

    /// Calls `each(column, value)` for every nonzero of the share.
    #[inline(always)]
    pub(crate) fn each<C: Cta>(
        &self,
        cta: &C,
        args: &SparseArgs<'_, T>,
        mut each: impl FnMut(u32, T),
    ) {
        for k in 0..K {
            if let Some((column, value)) = self.held(k) {
                each(column, value);
            }
        }
        self.each_further(cta, args, each);
    }

    /// The `k`-th nonzero of the share, below K, if it has this many.
    #[inline(always)]
    pub(crate) fn held(&self, k: usize) -> Option<(u32, T)> {
        let is_there = self.from + VS * (k as u32) < self.end;
        is_there.then(|| (self.columns[k], self.values[k]))
    }

    /// Calls `each(column, value)` for every nonzero of the share that registers do not hold.
    #[inline(always)]
    pub(crate) fn each_further<C: Cta>(
        &self,
        cta: &C,
        args: &SparseArgs<'_, T>,
        mut each: impl FnMut(u32, T),
    ) {
        let mut i = self.from + VS * K as u32;
        while i < self.end {
            let column = cta.load(args.indices, i as usize, Cache::Keep);
            each(column, cta.load(args.values, i as usize, Cache::Keep));
            i += VS;
        }
    }

    /// The row times y, K of whose elements are on their way at once, also where the row is longer. The additions' order follows
    /// from VS alone.
    #[inline(always)]
    pub(crate) fn dot_together<C: Cta>(&self, cta: &C, args: &SparseArgs<'_, T>) -> T {
        let mut sum = self.dot_held(cta, args, T::ZERO);
        let mut from = self.from + VS * K as u32;
        while from < self.end {
            sum = Self::load_at(cta, args, (from, self.end)).dot_held(cta, args, sum);
            from += VS * K as u32;
        }
        sum_lanes::<C, T, VS>(cta, sum)
    }

    /// `sum` and the nonzeros that registers hold, times their elements of y.
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "iterators over registers put them into local memory"
    )]
    fn dot_held<C: Cta>(&self, cta: &C, args: &SparseArgs<'_, T>, mut sum: T) -> T {
        let mut inputs = [T::ZERO; K];
        for k in 0..K {
            if let Some((column, _)) = self.held(k) {
                inputs[k] = cta.load(args.input, column as usize, Cache::Keep);
            }
        }
        for k in 0..K {
            sum = self.values[k].fma(inputs[k], sum);
        }
        sum
    }

    #[inline(always)]
    pub(crate) fn dot<C: Cta>(&self, cta: &C, args: &SparseArgs<'_, T>) -> T {
        self.dot_with(cta, args, |column| {
            cta.load(args.input, column as usize, Cache::Keep)
        })
    }

    /// The row times the vector whose elements `input` gives. The additions' order follows from VS alone.
    #[inline(always)]
    pub(crate) fn dot_with<C: Cta>(
        &self,
        cta: &C,
        args: &SparseArgs<'_, T>,
        input: impl Fn(u32) -> T,
    ) -> T {
        let mut sum = T::ZERO;
        self.each(cta, args, |column, value| {
            sum = value.fma(input(column), sum);
        });
        sum_lanes::<C, T, VS>(cta, sum)
    }
}

/// Calls `each(row, share)` for this vector's rows, as [`each_row`](super::each_row). Offsets come a row ahead: without that a row waits
/// for memory twice.
#[inline(always)]
pub(crate) fn each_share<C: Cta, T: Real, const VS: u32, const K: usize>(
    cta: &C,
    x: &SparseArgs<'_, T>,
    each: impl FnMut(u32, &Share<T, VS, K>),
) {
    each_share_of(cta, x, (global_warp(cta), global_warps(cta)), each);
}

/// The same for the warp of that number among this many.
#[inline(always)]
pub(crate) fn each_share_of<C: Cta, T: Real, const VS: u32, const K: usize>(
    cta: &C,
    x: &SparseArgs<'_, T>,
    own: (u32, u32),
    each: impl FnMut(u32, &Share<T, VS, K>),
) {
    each_share_unless(cta, x, (false, own), each);
}

/// [`each_share_of`], unless the solve that it is for has ended: the first offsets are on their way before that is known.
#[inline(always)]
pub(crate) fn each_share_unless<C: Cta, T: Real, const VS: u32, const K: usize>(
    cta: &C,
    x: &SparseArgs<'_, T>,
    (is_over, (warp, warps)): (bool, (u32, u32)),
    mut each: impl FnMut(u32, &Share<T, VS, K>),
) {
    let vectors = WARP / VS;
    let (step, mine) = (warps * vectors, lane(cta) / VS);
    // Saturates where no row is: there are fewer rows than 32 bits count.
    let bounds = |first: u32| Share::<T, VS, K>::bounds(cta, x, first.saturating_add(mine));
    let mut first = warp.saturating_mul(vectors);
    let mut here = bounds(first);
    while first < x.rows && !is_over {
        let next_first = first.saturating_add(step);
        let next = bounds(next_first);
        each(first + mine, &Share::load_at(cta, x, here));
        here = next;
        first = next_first;
    }
}
