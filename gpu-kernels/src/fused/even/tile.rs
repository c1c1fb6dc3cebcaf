//! What a lane has of a tile: see [`even`](crate::fused::even).

use super::sums::{Columns, Sums};
use super::{EvenArgs, PER_LANE, Window};
use crate::cta::{Cache, Cta, WARP};
use crate::scalar::Real;
use crate::verbs::lane;

/// Entries of a lane.
pub(in crate::fused) const HELD: usize = PER_LANE as usize;
/// What entries of columns beyond the window have for a sum: no slot is as large.
pub(in crate::fused) const NOT_WANTED: u32 = u32::MAX;

/// This lane's entries of a tile.
pub(in crate::fused) struct Part<T> {
    /// Entries of the tile.
    pub count: u32,
    /// Where the sums of their columns are, or [`NOT_WANTED`].
    pub sums: [u32; HELD],
    pub values: [T; HELD],
    /// Elements of y, of products with it.
    pub inputs: [T; HELD],
}

impl<T: Real> Part<T> {
    /// Of `count` entries from the first on, at least one. What is beyond the last is the last again, so that no load depends
    /// on a condition.
    #[inline(always)]
    pub fn load<C: Cta, S: Columns<T>, const DOTS: bool>(
        cta: &C,
        args: &EvenArgs<'_, T>,
        (sums, first, count): (&S, u32, u32),
    ) -> Self {
        Self::load_some::<C, S, DOTS>(cta, args, (sums, first, count), |_| true)
    }

    /// [`load`](Self::load) for `Xᵀ·p`, which adds to a window.
    #[inline(always)]
    pub fn load_window<C: Cta, S: Columns<T>>(
        cta: &C,
        args: &EvenArgs<'_, T>,
        (sums, first, count): (&S, u32, u32),
    ) -> Self {
        let window: Window = args.window;
        Self::load_some::<C, S, false>(cta, args, (sums, first, count), |column| window.has(column))
    }

    #[inline(always)]
    fn load_some<C: Cta, S: Columns<T>, const DOTS: bool>(
        cta: &C,
        args: &EvenArgs<'_, T>,
        (sums, first, count): (&S, u32, u32),
        is_wanted: impl Fn(u32) -> bool,
    ) -> Self {
        let mut part = Part {
            count,
            sums: [0; HELD],
            values: [T::ZERO; HELD],
            inputs: [T::ZERO; HELD],
        };
        let mut columns = [0; HELD];
        for (k, column) in columns.iter_mut().enumerate() {
            let i = first + Self::at(cta, k).min(count - 1);
            *column = cta.load(args.x.indices, i as usize, Cache::Once);
            part.values[k] = cta.load(args.x.values, i as usize, Cache::Once);
        }
        for (k, column) in columns.into_iter().enumerate() {
            let place = sums.find(cta, args, column);
            part.sums[k] = if is_wanted(column) {
                place.sum
            } else {
                NOT_WANTED
            };
            if DOTS {
                part.inputs[k] = sums.input(cta, args, place);
            }
        }
        part
    }

    /// Where entry `k` of this lane is in the tile.
    #[inline(always)]
    pub fn at<C: Cta>(cta: &C, k: usize) -> u32 {
        k as u32 * WARP + lane(cta)
    }

    /// Calls `each(at, product)` for entries times their elements of y, and for what is beyond the last.
    #[inline(always)]
    pub fn each_product<C: Cta>(&self, cta: &C, mut each: impl FnMut(usize, T)) {
        for k in 0..HELD {
            let at = Self::at(cta, k) as usize;
            each(at, self.values[k] * self.inputs[k]);
        }
    }

    /// The sum of the products of entries `begin..end` of the tile that this lane has.
    #[inline(always)]
    pub fn dot<C: Cta>(&self, cta: &C, (begin, end): (u32, u32), mut sum: T) -> T {
        for k in 0..HELD {
            let at = Self::at(cta, k);
            if begin <= at && at < end {
                sum = self.values[k].fma(self.inputs[k], sum);
            }
        }
        sum
    }

    /// Adds entries times what `factor(at)` gives to the sums of their columns; `WINDOW` where some may not be wanted.
    #[inline(always)]
    pub(super) fn add<C: Cta, S: Sums<T>, const WINDOW: bool>(
        &self,
        cta: &C,
        args: &EvenArgs<'_, T>,
        sums: &S,
        factor: impl Fn(usize) -> T,
    ) {
        // All are requested before one is used; what is beyond the last entry is not there.
        let factors: [T; HELD] =
            core::array::from_fn(|k| factor(Self::at(cta, k).min(self.count - 1) as usize));
        for (k, factor) in factors.into_iter().enumerate() {
            let is_wanted = !WINDOW || self.sums[k] != NOT_WANTED;
            if Self::at(cta, k) < self.count && is_wanted {
                sums.add(cta, args, self.sums[k], self.values[k] * factor);
            }
        }
    }
}
