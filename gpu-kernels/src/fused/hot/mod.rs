//! Sparse X whose most frequent columns, the *hot* ones, have their elements of y and their sums in shared memory; the
//! *cold* ones are gathered from global memory.
//!
//! Formula: `w = α · Xᵀ( v ⊙ (X·y − s) ) + β · z` and `w = α · Xᵀ( v ⊙ p ) + β · z` over the hot columns, and what rows
//! are multiplied by, `f = v ⊙ (X·y − s)` or `v ⊙ p`. The cold columns' part `α · Xᵀ·f` is a product over their
//! [panels](crate::fused::panels).
//!
//! Why: columns of real data follow power laws. Of four million rows with 20 entries by Zipf's law with an exponent
//! of 1.1, ten thousand of a million columns have 79 % of the entries, and the first is in nearly every row: additions to
//! global memory queue up there. Integer additions to shared memory do not mind (0.233 ms with 10,000 columns,
//! uniform or by Zipf's law), and what is left has no column that many blocks want.
//!
//! Layout: a copy of X in *slices*. Rows are sorted by classes of length, the longest first, and in a class by steps:
//! those of a class have 32, 16, 8, 4 or 2 lanes each, so that neither one lane works while others wait nor lanes idle
//! beyond the end of short rows. A slice is what a warp works on: the rows that share its lanes, in *steps*: hot ones
//! of 64 entries, of which lane l has the pair l, and cold ones of 32. So every load is one of 128 neighbouring bytes;
//! where lanes took entries of a row in CSR, each load requested sectors of which it used 13 of 32 bytes, and L2 was
//! the bound (89 % busy, 340 µs for 80 million entries, 17 million of them cold). A hot entry has 16 bits for its
//! *place*, and a value in as few bits as hold it ([`HotValues`]); a cold one has 32 bits for its *rank* among the cold
//! columns and a whole value, or none where those of a row are equal. Where there is no entry the place is one of
//! those behind the others, and the rank is [`NONE`]. Values are brought below 1 by powers of two, column by column
//! ([`fixed_point`](crate::fused::fixed::point)), or by one power for all where those of a row are equal.
//!
//! Mapping: *begin* scales y where columns have entries (the elements of hot columns, and those of cold
//! ones in the order of their ranks, the most frequent first: what is wanted often lies side by side) and finds how
//! large they, p and v are;
//! *walk* walks the slices, as many steps in registers as short rows have, the offsets of the next slice on the way, and
//! writes β·z to w;
//! *finish* adds the hot sums to w and leaves them at zero. Shared memory of *walk*, for H places: WORDS · H words, and
//! as many elements where there is a y; H counts the [`SPARE`] ones.
//! Bounds, for 4,000,000 rows of 29 entries over 29,890,095 columns, f32 on an H200 (28 million entries are cold): *begin*
//! moves 191 MB, at 3.2 TB/s; *walk* takes 75 % of L2's tag requests, nearly all of them a gather for a cold entry, at 55 %
//! of its issue slots; the cold panels take a third of the time. Where their chunks were dealt out, the last block ended a
//! seventh after the mean (columns by Zipf's law with an exponent of 1.1, 20,000,000 of them: a fifth); now that those of
//! rare columns end between columns, the product over these takes 457 µs instead of 483.
//! Guarantees: sums of hot columns and f have the same bits on every run and grid.
//!
//! Infinities and NaN are added up as floats, beside the sums.

mod addend;
mod contract;
pub mod lengths;
pub mod narrow;
mod share;
mod table;
pub(crate) mod values;
mod variant;
mod walk;

pub use variant::{HOT_BYTES, HotVariant};

use crate::cta::{Cache, Cta, WARP};
use crate::fused::Compute;
use crate::fused::HotValues;
use crate::fused::fixed::point::{FixedPoint, Total, column_exponent, range};
use crate::fused::fixed::range::{
    self as fixed_range, range_of_vector, range_of_weights, write_ranges,
};
use crate::memory::{In, Out};
use crate::verbs::{each_of_grid, global_warp, global_warps, lane};

/// No row, no cold entry.
pub const NONE: u32 = u32::MAX >> 1;
/// Places behind the others where there is no entry, one for each lane: y is 0 there, and nobody reads the sums. Additions
/// that depend on a condition are branches, which cost 80 million entries of 10,000 columns as much as the additions.
pub const SPARE: u32 = WARP;
/// The most places: 16 bits tell them and the spare ones apart.
pub const MOST_PLACES: u32 = (1 << 16) - SPARE;
/// Hot steps of a slice that stay in registers.
pub const HELD: u32 = 5;
/// Cold steps of a slice that stay in registers.
pub const HELD_COLD: u32 = 4;
/// Lanes of a row, class after class; rows of a class have at most [`HELD`] hot and [`HELD_COLD`] cold steps, but for
/// those of the first.
pub const LANES: [u32; CLASSES] = [32, 16, 8, 4, 2];
/// Classes of rows.
pub const CLASSES: usize = 5;

/// The family of kernels for hot columns.
pub struct Hot<T>(core::marker::PhantomData<T>);

/// Arguments of every kernel for hot columns.
#[repr(C)]
pub struct HotArgs<'a, T> {
    /// m.
    pub rows: u32,
    /// n.
    pub cols: u32,
    /// The steps before each slice, and the number of steps: hot ones in the lower half, cold ones in the upper.
    pub steps: In<'a, u64>,
    /// The places of hot entries: 32 words for each hot step, the first of a pair in the lower half.
    pub places: In<'a, u32>,
    /// [`HotValues::Whole`] values of hot entries, 64 for each hot step: the first ones of all pairs, the second ones.
    pub values: In<'a, T>,
    /// Shorter values of hot entries: as `values`, or two in a word as places.
    pub packed: In<'a, u32>,
    /// The ranks of cold entries, 32 for each cold step.
    pub ranks: In<'a, u32>,
    /// The values of cold entries; none where those of a row are equal.
    pub cold_values: In<'a, T>,
    /// What the values of each position's row are, where they are equal; without it they are all `constant`.
    pub constants: In<'a, T>,
    /// What all values are, if they are equal.
    pub constant: T,
    /// Constants are this many powers of two larger than they are stored.
    pub constant_exponent: i32,
    /// The row of X at each *position*, a lane group of a slice, or [`NONE`]; without it row r is at position r.
    pub order: In<'a, u32>,
    /// The first slices of rows with 16, 8, 4 and 2 lanes, and the number of slices.
    pub slices: [u32; CLASSES],
    /// Entries of the longest row; 1 for [`Product::Transposed`](crate::fused::Product::Transposed).
    pub longest: u32,
    /// The column of each place.
    pub columns: In<'a, u32>,
    /// The column of each rank.
    pub cold_columns: In<'a, u32>,
    /// The exponent field that the column of each place is scaled by, [as many in a word](fields_per_word) as fit.
    pub exponents: In<'a, u32>,
    /// The same of each rank.
    pub cold_exponents: In<'a, u32>,
    /// 1 if hot columns have infinities or NaN, else 0.
    pub non_finite: u32,
    /// y, or p for [`Product::Transposed`](crate::fused::Product::Transposed).
    pub input: In<'a, T>,
    /// v, optional.
    pub weights: In<'a, T>,
    /// s (one element), optional.
    pub shift: In<'a, T>,
    /// z, optional.
    pub addend: In<'a, T>,
    /// α.
    pub alpha: T,
    /// β.
    pub beta: T,
    /// w.
    pub output: Out<'a, T>,
    /// y of the hot columns, scaled: written by *begin*.
    pub hot: Out<'a, T>,
    /// y of the cold columns, scaled: written by *begin*.
    pub cold: Out<'a, T>,
    /// The same, for *walk*.
    pub cold_input: In<'a, T>,
    /// Two largest exponent fields for each block of *begin*.
    pub ranges: Out<'a, u32>,
    /// LIMBS elements for each place, zero before *walk* and after *finish*.
    pub sums: Out<'a, u64>,
    /// An element for each place, zero before *walk* and after *finish*: the sums of products that were infinite or NaN.
    pub specials: Out<'a, T>,
    /// f, by position, times the row's constant where its values are equal: written by *walk* for the cold columns'
    /// panels; absent where there are none.
    pub factors: Out<'a, T>,
}

impl<T: Copy> Clone for HotArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for HotArgs<'_, T> {}

/// Shared memory of a place for elements of `size` bytes: a sum and an element of y.
pub const fn bytes_of_place(size: u32) -> u32 {
    4 * words(size) + size
}

/// The most places in this many bytes of shared memory.
pub const fn places_within(bytes: u32, size: u32) -> u32 {
    let places = (bytes / bytes_of_place(size)).saturating_sub(SPARE);
    if places < MOST_PLACES {
        places
    } else {
        MOST_PLACES
    }
}

/// Words of a sum of elements of `size` bytes.
pub(crate) const fn words(size: u32) -> u32 {
    if size == 4 {
        <f32 as FixedPoint>::WORDS
    } else {
        <f64 as FixedPoint>::WORDS
    }
}

/// Exponent fields of elements of `size` bytes in a word.
pub const fn fields_per_word(size: u32) -> u32 {
    if size == 4 { 4 } else { 2 }
}

/// The word that has the exponent field of a place or rank.
#[inline(always)]
fn exponent_word<C: Cta, T: FixedPoint>(cta: &C, exponents: In<'_, u32>, at: usize) -> u32 {
    cta.load(
        exponents,
        at / fields_per_word(T::SIZE) as usize,
        Cache::Keep,
    )
}

/// The exponent that a column is scaled by, in its [`exponent_word`].
#[inline(always)]
fn exponent_in<T: FixedPoint>(word: u32, at: usize) -> i32 {
    let fields = fields_per_word(T::SIZE) as usize;
    let bits = 32 / fields;
    let field = word >> (at % fields * bits) & ((1 << bits) - 1);
    column_exponent::<T>(field)
}

/// [`HotVariant::Begin`](crate::fused::HotVariant::Begin).
#[inline(always)]
pub(crate) fn begin<C: Cta, T: FixedPoint, P: Compute>(cta: &C, args: &HotArgs<'_, T>) {
    let input = if P::DOTS {
        let hot = gather(cta, args, (args.columns, args.exponents, args.hot));
        let cold = gather(
            cta,
            args,
            (args.cold_columns, args.cold_exponents, args.cold),
        );
        hot.max(cold)
    } else {
        range_of_vector(cta, args.input, args.rows as u64)
    };
    let weights = range_of_weights(cta, args.weights, args.rows as u64);
    write_ranges(cta, args.ranges, [input, weights]);
}

/// Elements of y that a lane asks for together: one after the other, 30 million columns took 225 µs on an H200 for
/// 480 MB.
pub const TOGETHER: usize = 4;

/// y of some columns, scaled; returns the largest exponent field. Columns without entries are in neither list, and how
/// large y is there does not matter.
#[inline(always)]
fn gather<C: Cta, T: FixedPoint>(
    cta: &C,
    args: &HotArgs<'_, T>,
    (columns, fields, to): (In<'_, u32>, In<'_, u32>, Out<'_, T>),
) -> u32 {
    let (mut most, len) = (0, columns.len() as usize);
    let of_warp = TOGETHER * WARP as usize;
    let mut first = global_warp(cta) as usize * of_warp + lane(cta) as usize;
    while first < len {
        let at = |k: usize| first + k * WARP as usize;
        let mut wanted = [0_u32; TOGETHER];
        let (mut y, mut exponents) = ([T::ZERO; TOGETHER], [0; TOGETHER]);
        for k in 0..TOGETHER {
            if at(k) < len {
                wanted[k] = cta.load(columns, at(k), Cache::Once);
                exponents[k] = exponent_word::<C, T>(cta, fields, at(k));
            }
        }
        for k in 0..TOGETHER {
            y[k] = cta.load(args.input, wanted[k] as usize, Cache::Keep);
        }
        for k in 0..TOGETHER {
            if at(k) < len {
                let scaled = y[k].scaled(exponent_in::<T>(exponents[k], at(k)));
                most = range(most, scaled);
                cta.write(to, at(k), scaled);
            }
        }
        first += global_warps(cta) as usize * of_warp;
    }
    most
}

/// S, from what *begin* has found.
#[inline(always)]
pub(crate) fn scale_of<C: Cta, T: FixedPoint>(cta: &C, args: &HotArgs<'_, T>) -> i32 {
    let size = (args.rows as u64, args.longest);
    fixed_range::scale(cta, args.ranges, args.shift, size)
}

/// [`HotVariant::Finish`](crate::fused::HotVariant::Finish).
#[inline(always)]
pub(crate) fn finish<C: Cta, T: FixedPoint>(cta: &C, args: &HotArgs<'_, T>) {
    let scale = scale_of(cta, args);
    each_of_grid(cta, args.columns.len(), |place| {
        let column: u32 = cta.load(args.columns, place, Cache::Once);
        let column = column as usize;
        let exponent = exponent_word::<C, T>(cta, args.exponents, place);
        let at = place * T::LIMBS;
        let high = cta.read(args.sums, at) as i64;
        let low = if T::LIMBS == 2 {
            cta.read(args.sums, at + 1)
        } else {
            0
        };
        for limb in 0..T::LIMBS {
            cta.write(args.sums, at + limb, 0);
        }
        let special: T = cta.read(args.specials, place);
        cta.write(args.specials, place, T::ZERO);
        let sum = Total {
            high,
            low,
            exponent: exponent_in::<T>(exponent, place) - scale,
            special,
        };
        let so_far = cta.read(args.output, column);
        let total = sum.result(args.alpha, T::ONE, so_far);
        cta.write(args.output, column, total);
    });
}
