//! The walk over the slices of a sparse X with hot columns: see [`hot`](super::hot).
//!
//! Rows beyond what is held are read step after step, each a round trip to memory, twice. On an H200 677,399 rows of
//! 73 entries in the mean, some of thousands, take 0.39 ms, which is long for 49 million: several steps at a time would
//! be the next thing to try.

use super::Compute;
use super::SparseArgs;
use super::fixed_point::FixedPoint;
use super::fixed_sums::SharedSums;
use super::hot::{HELD, HOT, HotArgs, NONE, scale_of};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::verbs::{each_of_block, global_warp, global_warps, lane, load_or, sum_lanes};

/// A lane's entries of one slice: of the steps `from..end`, the first K in registers.
struct Share<T, const K: usize> {
    from: u32,
    end: u32,
    indices: [u32; K],
    values: [T; K],
}

impl<T: FixedPoint, const K: usize> Share<T, K> {
    #[inline(always)]
    fn load<C: Cta>(cta: &C, x: &SparseArgs<'_, T>, (from, end): (u32, u32)) -> Self {
        let mut share = Share {
            from,
            end,
            indices: [NONE; K],
            values: [T::ZERO; K],
        };
        for k in 0..K {
            let step = from + k as u32;
            if step < end {
                let at = entry(cta, step);
                share.indices[k] = cta.load(x.indices, at, Cache::Once);
                share.values[k] = cta.load(x.values, at, Cache::Once);
            }
        }
        share
    }

    /// Calls `each(index, value)` for every entry, absent ones too.
    #[inline(always)]
    fn each<C: Cta>(&self, cta: &C, x: &SparseArgs<'_, T>, mut each: impl FnMut(u32, T)) {
        for k in 0..K {
            each(self.indices[k], self.values[k]);
        }
        let mut step = self.from + K as u32;
        while step < self.end {
            let at = entry(cta, step);
            let index = cta.load(x.indices, at, Cache::Keep);
            each(index, cta.load(x.values, at, Cache::Keep));
            step += 1;
        }
    }
}

/// Where this lane's entry of a step is.
#[inline(always)]
fn entry<C: Cta>(cta: &C, step: u32) -> usize {
    step as usize * WARP as usize + lane(cta) as usize
}

/// What the rows of a block have in common.
struct Block<T> {
    input: Shared<T>,
    sums: SharedSums<T>,
    scale: i32,
    shift: T,
    has_non_finite: bool,
}

impl<T: FixedPoint> Block<T> {
    #[inline(always)]
    fn open<C: Cta, P: Compute>(cta: &C, args: &HotArgs<'_, T>) -> Self {
        let places = args.columns.len() as u32;
        let input = Shared::at(0, if P::DOTS { places } else { 0 });
        let sums = SharedSums::open(cta, input.end(), places);
        each_of_block(cta, input.len(), |place| {
            cta.shared_write(input, place, cta.read(args.hot, place));
        });
        cta.sync();
        Block {
            input,
            sums,
            scale: scale_of(cta, args),
            shift: load_or(cta, args.x.shift, 0, T::ZERO),
            has_non_finite: args.non_finite != 0,
        }
    }

    /// The element of y that an index names, 0 where there is none.
    #[inline(always)]
    fn input<C: Cta>(&self, cta: &C, args: &HotArgs<'_, T>, index: u32) -> T {
        if index & HOT != 0 {
            cta.shared_read(self.input, (index ^ HOT) as usize)
        } else if index != NONE {
            cta.load(args.x.input, index as usize, Cache::Keep)
        } else {
            T::ZERO
        }
    }

    /// The row of VS lanes times y. What is held asks for all its elements before it uses one.
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "iterators over registers put them into local memory"
    )]
    fn dot<C: Cta, const VS: u32, const K: usize>(
        &self,
        cta: &C,
        args: &HotArgs<'_, T>,
        share: &Share<T, K>,
    ) -> T {
        let mut inputs = [T::ZERO; K];
        for k in 0..K {
            inputs[k] = self.input(cta, args, share.indices[k]);
        }
        let mut sum = T::ZERO;
        for k in 0..K {
            sum = share.values[k].fma(inputs[k], sum);
        }
        let mut step = share.from + K as u32;
        while step < share.end {
            let at = entry(cta, step);
            let index = cta.load(args.x.indices, at, Cache::Keep);
            let value: T = cta.load(args.x.values, at, Cache::Keep);
            sum = value.fma(self.input(cta, args, index), sum);
            step += 1;
        }
        sum_lanes::<C, T, VS>(cta, sum)
    }

    /// Adds a row's hot entries, times p, to the sums.
    #[inline(always)]
    fn add<C: Cta, const K: usize>(
        &self,
        cta: &C,
        args: &HotArgs<'_, T>,
        share: &Share<T, K>,
        p: T,
    ) {
        let is_finite = p.exponent_field() != T::NON_FINITE;
        let scaled = p.scaled(self.scale);
        if is_finite && !self.has_non_finite {
            share.each(cta, &args.x, |index, value| {
                if index & HOT != 0 {
                    self.sums.add(cta, index ^ HOT, value * scaled);
                }
            });
        } else {
            let p = if is_finite { scaled } else { p };
            share.each(cta, &args.x, |index, value| {
                if index & HOT != 0 {
                    self.add_any(cta, args, index ^ HOT, value * p);
                }
            });
        }
    }

    /// Adds a product that may be infinite or NaN.
    #[inline(always)]
    fn add_any<C: Cta>(&self, cta: &C, args: &HotArgs<'_, T>, place: u32, product: T) {
        if product.exponent_field() == T::NON_FINITE {
            cta.add(args.specials, place as usize, product);
        } else {
            self.sums.add(cta, place, product);
        }
    }
}

/// [`HotVariant::Walk`].
#[inline(always)]
pub(super) fn walk<C: Cta, T: FixedPoint, P: Compute>(cta: &C, args: &HotArgs<'_, T>) {
    let block = Block::open::<C, P>(cta, args);
    let [long, medium, short, end] = args.slices;
    let mut position = 0;
    walk_class::<C, T, P, 32>(cta, args, &block, (0, long), &mut position);
    walk_class::<C, T, P, 16>(cta, args, &block, (long, medium), &mut position);
    walk_class::<C, T, P, 8>(cta, args, &block, (medium, short), &mut position);
    walk_class::<C, T, P, 4>(cta, args, &block, (short, end), &mut position);
    block.sums.flush(cta, args.sums);
}

/// The slices `from..end`, VS lanes for each row; their positions begin at `position`, which is moved behind them.
#[inline(always)]
fn walk_class<C: Cta, T: FixedPoint, P: Compute, const VS: u32>(
    cta: &C,
    args: &HotArgs<'_, T>,
    block: &Block<T>,
    (from, end): (u32, u32),
    position: &mut u32,
) {
    let (rows, first) = (WARP / VS, *position);
    *position += (end - from) * rows;
    let step = global_warps(cta);
    let mut slice = from.saturating_add(global_warp(cta));
    let mut here = bounds(cta, &args.x, slice, end);
    while slice < end {
        let next_slice = slice.saturating_add(step);
        let next = bounds(cta, &args.x, next_slice, end);
        let share = Share::<T, { HELD as usize }>::load(cta, &args.x, here);
        let dot = if P::DOTS {
            block.dot::<C, VS, { HELD as usize }>(cta, args, &share)
        } else {
            T::ZERO
        };
        let at = first + (slice - from) * rows + lane(cta) / VS;
        let row = row_at(cta, args, at);
        if row < args.x.rows {
            let p = factor::<C, T, P>(cta, &args.x, row, dot - block.shift);
            if lane(cta).is_multiple_of(VS) {
                cta.write(args.factors, at as usize, p);
            }
            block.add(cta, args, &share, p);
        }
        here = next;
        slice = next_slice;
    }
}

/// The steps of a slice; none of one that is not there.
#[inline(always)]
fn bounds<C: Cta, T: FixedPoint>(
    cta: &C,
    x: &SparseArgs<'_, T>,
    slice: u32,
    end: u32,
) -> (u32, u32) {
    if slice >= end {
        return (0, 0);
    }
    let at = slice as usize;
    (
        cta.load(x.offsets, at, Cache::Keep),
        cta.load(x.offsets, at + 1, Cache::Keep),
    )
}

/// The row of X at a position, m or more where there is none.
#[inline(always)]
fn row_at<C: Cta, T: FixedPoint>(cta: &C, args: &HotArgs<'_, T>, position: u32) -> u32 {
    if args.order.is_some() {
        cta.load(args.order, position as usize, Cache::Once)
    } else {
        position
    }
}

/// f of a row of X.
#[inline(always)]
fn factor<C: Cta, T: FixedPoint, P: Compute>(
    cta: &C,
    x: &SparseArgs<'_, T>,
    row: u32,
    dot: T,
) -> T {
    let row = row as usize;
    let p = if P::DOTS {
        dot
    } else {
        cta.load(x.input, row, Cache::Once)
    };
    p * load_or(cta, x.weights, row, T::ONE)
}
