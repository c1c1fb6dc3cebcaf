//! Several right-hand sides in one read of X: `W = α · Xᵀ( V ⊙ (X·Y − s) ) + β · Z`, and the halves X·Y and Xᵀ·P.
//!
//! Layout: row-major. Y, W and Z are n × k, P is m × k, so that the k numbers of one feature (of one sample) lie
//! together: a nonzero of column j needs row j of Y, which is one sector of memory for 8 numbers of f32, where
//! separate vectors would be 8. V has m elements, the same for all sides, or is m × k; s has k elements.
//!
//! A launch takes B sides at most ([`Sides::first`] on), 4 or 8: beyond that the registers for Y and W leave no room
//! for rows in flight, and on a dense X arithmetic takes longer than reading X a second time (per element of X and
//! side two multiply-adds: with 12 sides of f32 an H200 is as long at that as at reading).

mod dense;
mod dense_contract;
mod dense_forward;
mod dense_narrow;
mod dense_split;
mod lanes;
mod narrow_tiles;
mod sparse;
mod table;
mod tile_walk;
pub mod tiles;
mod tiles_contract;

pub use dense::{DenseMany, DenseManyArgs, DenseManyVariant};
pub use sparse::{SparseMany, SparseManyArgs, SparseManyVariant};
pub use tiles::{TileSlices, TilesMany, TilesManyArgs, TilesManyVariant};

use super::{Compute, Forward};
use crate::cta::{Cache, Cta};
use crate::memory::{In, Out};
use crate::scalar::{Pack, Real, Words};
use crate::table::Violation;
use crate::verbs::load_or;

/// Which right-hand sides a launch computes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sides {
    /// k, and elements from one row of Y, W, P and Z to the next.
    pub all: u32,
    /// The first side of this launch.
    pub first: u32,
    /// How many; at most as many as the entry has registers for, but for tiles, which share any number out among blocks.
    pub count: u32,
    /// Elements from one row of V to the next: k, or 1 where one weight holds for all sides.
    pub weights_stride: u32,
}

impl Sides {
    /// Where side `side` of this launch lies in row `row` of a row-major array.
    #[inline(always)]
    fn at(&self, row: u64, side: u32) -> usize {
        (row * self.all as u64 + (self.first + side) as u64) as usize
    }

    /// Where its weight is.
    #[inline(always)]
    fn weight_at(&self, row: u64, side: u32) -> usize {
        if self.weights_stride == 1 {
            row as usize
        } else {
            (row * self.weights_stride as u64 + (self.first + side) as u64) as usize
        }
    }

    /// Group `number` of them, `most` at a time; none where there are fewer.
    #[inline(always)]
    fn group(&self, number: u32, most: u32) -> Sides {
        let before = number * most;
        Sides {
            first: self.first + before,
            count: self.count.saturating_sub(before).min(most),
            ..*self
        }
    }

    /// Whether sides can be taken in packs of `lanes`.
    #[inline(always)]
    fn come_in_packs(&self, lanes: u32) -> bool {
        (self.all | self.first | self.count).is_multiple_of(lanes)
    }

    /// The contract: the sides are there, and the entry takes as many.
    fn check(&self, most: u32) -> Result<(), Violation> {
        Violation::at_most("sides", most as u64, self.count as u64)?;
        let end = self.first as u64 + self.count as u64;
        Violation::at_most("end of the sides", self.all as u64, end)?;
        if self.weights_stride != 1 {
            let stride = self.weights_stride as u64;
            Violation::equal("elements between weights", self.all as u64, stride)?;
        }
        Ok(())
    }

    /// The length of weights for `rows` rows.
    fn weights_len(&self, rows: u64) -> u64 {
        rows.saturating_mul(self.weights_stride as u64)
    }
}

/// What sparse and dense kernels have in common: everything but X.
#[derive(Clone, Copy)]
struct Ends<'a, T> {
    rows: u64,
    input: In<'a, T>,
    weights: In<'a, T>,
    shift: In<'a, T>,
    addend: In<'a, T>,
    output: Out<'a, T>,
    alpha: T,
    beta: T,
    sides: Sides,
}

impl<T: Real> Ends<'_, T> {
    /// The same with sides that the compiler takes for new ones: what follows from them (where each side is) is computed
    /// where it is used, instead of waiting in registers since before the loop.
    #[inline(always)]
    fn fresh<C: Cta>(self, cta: &C) -> Self {
        let Sides {
            all,
            first,
            count,
            weights_stride,
        } = self.sides;
        Ends {
            sides: Sides {
                all: cta.fresh(all),
                first: cta.fresh(first),
                count: cta.fresh(count),
                weights_stride: cta.fresh(weights_stride),
            },
            ..self
        }
    }

    /// What a dot product is multiplied by: V, or V ⊙ P; 0 for a row or a side that is not there.
    #[inline(always)]
    fn multiplier<C: Cta, F: Compute>(&self, cta: &C, row: u64, side: u32) -> T {
        if row >= self.rows || side >= self.sides.count {
            return T::ZERO;
        }
        let weight = load_or(cta, self.weights, self.sides.weight_at(row, side), T::ONE);
        if F::DOTS {
            weight
        } else {
            weight * cta.load(self.input, self.sides.at(row, side), Cache::Once)
        }
    }

    /// s of a side.
    #[inline(always)]
    fn shift<C: Cta, F: Compute>(&self, cta: &C, side: u32) -> T {
        if F::DOTS && side < self.sides.count {
            let at = (self.sides.first + side) as usize;
            load_or(cta, self.shift, at, T::ZERO)
        } else {
            T::ZERO
        }
    }

    /// The B sides of row `row` of Y, zero where there are fewer.
    #[inline(always)]
    fn input_of<C: Cta, const B: usize>(&self, cta: &C, row: u64) -> [T; B] {
        let lanes = T::Pack::LANES;
        let mut values = [T::ZERO; B];
        if self.sides.come_in_packs(lanes as u32) {
            for first in (0..B).step_by(lanes) {
                if (first as u32) < self.sides.count {
                    let at = self.sides.at(row, first as u32);
                    let pack: T::Pack = cta.load_pack(self.input, at, Cache::Keep);
                    for (lane, value) in pack.as_ref().iter().enumerate() {
                        values[first + lane] = *value;
                    }
                }
            }
            return values;
        }
        for (side, value) in values.iter_mut().enumerate() {
            if (side as u32) < self.sides.count {
                *value = cta.load(self.input, self.sides.at(row, side as u32), Cache::Keep);
            }
        }
        values
    }

    /// The B sides of row `row` of V ⊙ P, zero where there are fewer.
    #[inline(always)]
    fn weighted_input<C: Cta, const B: usize>(&self, cta: &C, row: u64) -> [T; B] {
        if row >= self.rows {
            return [T::ZERO; B];
        }
        let mut values: [T; B] = self.input_of(cta, row);
        for (side, value) in values.iter_mut().enumerate() {
            *value = self.multiplier::<C, Forward>(cta, row, side as u32) * *value;
        }
        values
    }

    /// Writes `α · V ⊙ (dot − s) + β · Z` of one row and a pack of sides from `side` on.
    #[inline(always)]
    fn write_forward_pack<C: Cta>(&self, cta: &C, (row, side): (u64, u32), mut p: T::Pack) {
        let at = self.sides.at(row, side);
        let addend: T::Pack = if self.addend.is_some() {
            cta.load_pack(self.addend, at, Cache::Once)
        } else {
            T::Pack::ZERO
        };
        for (p, z) in p.as_mut().iter_mut().zip(addend.as_ref()) {
            *p = self.alpha.fma(*p, self.beta * *z);
        }
        cta.write_pack(self.output, at, p);
    }

    /// Writes `α · V ⊙ (dot − s) + β · Z` of one row and side.
    #[inline(always)]
    fn write_forward<C: Cta>(&self, cta: &C, (row, side): (u64, u32), p: T) {
        let at = self.sides.at(row, side);
        let addend = self.beta * load_or(cta, self.addend, at, T::ZERO);
        cta.write(self.output, at, self.alpha.fma(p, addend));
    }
}

/// Lengths that every launch needs: `from` and `to` rows of Y or P and of the result.
fn check_ends<T>(ends: &Ends<'_, T>, from: u64, to: u64) -> Result<(), Violation> {
    let all = ends.sides.all as u64;
    let of = |rows: u64| rows.saturating_mul(all);
    Violation::at_least("length of input", of(from), ends.input.len())?;
    Violation::at_least("length of output", of(to), ends.output.len())?;
    let weights = ends.sides.weights_len(ends.rows);
    super::check_optional(&ends.weights, "length of weights", weights)?;
    super::check_optional(&ends.shift, "length of shift", all)
}
