//! Sparse X whose most frequent columns, the *hot* ones, have their elements of y and their sums in shared memory; the
//! *cold* ones are gathered from global memory.
//!
//! Formula: `w = α · Xᵀ( v ⊙ (X·y − s) ) + β · z` and `w = α · Xᵀ( v ⊙ p ) + β · z` over the hot columns, and what rows
//! are multiplied by, `f = v ⊙ (X·y − s)` or `v ⊙ p`. The cold columns' part `α · Xᵀ·f` is a product over their
//! [panels](super::panels).
//!
//! Why: columns of real data follow power laws. Of four million rows with 20 entries by Zipf's law with an exponent
//! of 1.1, ten thousand of a million columns have 79 % of the entries, and the first is in nearly every row: additions to
//! global memory queue up there. Integer additions to shared memory do not mind (0.233 ms with 10,000 columns,
//! uniform or by Zipf's law), and what is left has no column that many blocks want.
//!
//! Layout: a copy of X in *slices*. Rows are sorted by classes of length, the longest first, and in a class by steps:
//! those of a class have 32, 16, 8 or 4 lanes each, so that neither one lane works while others wait nor lanes idle
//! beyond the end of short rows. A slice is what a warp works on: the rows that share its lanes, in *steps* of 32
//! entries, of which lane l's is entry l of the step. So every load is one of 128 neighbouring bytes; where lanes took
//! entries of a row in CSR, each load asked for sectors of which it used 13 of 32 bytes, and L2 was the bound (89 %
//! busy, 340 µs for 80 million entries, 17 million of them cold). An index with the bit [`HOT`] names a *place* instead
//! of a column, [`NONE`] no entry. Values of hot columns are brought below 1 by powers of two
//! ([`fixed_point`](super::fixed_point)).
//!
//! Mapping: *begin* writes β·z to w, scales the hot elements of y and finds how large y, p and v are; *walk* walks the
//! slices, K steps in registers, the offsets of the next slice on the way; *finish* adds the hot sums to w and leaves
//! them at zero. Shared memory of *walk*, for H places: WORDS · H words, and H elements where there is a y.
//! Guarantees: sums of hot columns and f have the same bits on every run and grid.
//!
//! Infinities and NaN are added up as floats, beside the sums. Scaling so that sums seldom reach their upper words
//! (6 bits less) gave 455 µs in place of 456 for the whole product.

use super::fixed_point::{FixedPoint, Total, column_exponent, range};
use super::fixed_range::{self, range_of_vector, range_of_weights, write_ranges};
use super::{Compute, Product, SparseArgs};
use crate::cta::{Cache, Cta};
use crate::memory::{In, Out};
use crate::verbs::{each_of_grid, load_or};

/// Marks an index as the place of a hot column.
pub const HOT: u32 = 1 << 31;
/// No entry.
pub const NONE: u32 = HOT - 1;
/// Steps of a slice that stay in registers.
pub const HELD: u32 = 5;
/// Lanes of a row, class after class; rows of a class have at most [`HELD`] steps, but for those of the first.
pub const LANES: [u32; 4] = [32, 16, 8, 4];

/// The family of kernels for hot columns.
pub struct Hot<T>(core::marker::PhantomData<T>);

/// Arguments of every kernel for hot columns.
#[repr(C)]
pub struct HotArgs<'a, T> {
    /// The vectors and the size of X; the output is w. `offsets` are those of the slices, in steps, one more than there
    /// are slices; `indices` and `values` have 32 entries for each step.
    pub x: SparseArgs<'a, T>,
    /// The row of X at each *position*, a lane group of a slice, or [`NONE`]; without it row r is at position r.
    pub order: In<'a, u32>,
    /// The first slices of rows with 16, 8 and 4 lanes, and the number of slices.
    pub slices: [u32; 4],
    /// Entries of the longest row; 1 for [`Product::Transposed`].
    pub longest: u32,
    /// The column of each place.
    pub columns: In<'a, u32>,
    /// The largest exponent field of each column, [as many in a word](fields_per_word) as fit.
    pub exponents: In<'a, u32>,
    /// 1 if hot columns have infinities or NaN, else 0.
    pub non_finite: u32,
    /// y of the hot columns, scaled: written by *begin*.
    pub hot: Out<'a, T>,
    /// Two largest exponent fields for each block of *begin*.
    pub ranges: Out<'a, u32>,
    /// LIMBS elements for each place, zero before *walk* and after *finish*.
    pub sums: Out<'a, u64>,
    /// An element for each place, zero before *walk* and after *finish*: the sums of products that were infinite or NaN.
    pub specials: Out<'a, T>,
    /// f, by position: written by *walk*.
    pub factors: Out<'a, T>,
}

impl<T: Copy> Clone for HotArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for HotArgs<'_, T> {}

/// What distinguishes entries for hot columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HotVariant {
    /// Prepares the vectors.
    Begin(Product),
    /// Walks the rows.
    Walk(Product),
    /// Adds the sums of hot columns to w.
    Finish,
}

impl HotVariant {
    /// Dynamic shared memory of a block of `block` threads for `places` places and elements of `size` bytes.
    pub const fn shared_bytes(&self, places: u32, block: u32, size: u32) -> u64 {
        match self {
            HotVariant::Begin(_) => fixed_range::shared_bytes(block),
            HotVariant::Walk(product) => {
                let y = match product {
                    Product::Transposed => 0,
                    _ => size,
                };
                places as u64 * (4 * words(size) + y) as u64
            }
            HotVariant::Finish => 0,
        }
    }
}

/// Words of a sum of elements of `size` bytes.
const fn words(size: u32) -> u32 {
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

/// The exponent that a column is scaled by.
#[inline(always)]
fn exponent<C: Cta, T: FixedPoint>(cta: &C, args: &HotArgs<'_, T>, column: usize) -> i32 {
    let fields = fields_per_word(T::SIZE) as usize;
    let bits = 32 / fields;
    let word: u32 = cta.load(args.exponents, column / fields, Cache::Keep);
    let field = word >> (column % fields * bits) & ((1 << bits) - 1);
    column_exponent::<T>(field)
}

/// [`HotVariant::Begin`].
#[inline(always)]
pub(super) fn begin<C: Cta, T: FixedPoint, P: Compute>(cta: &C, args: &HotArgs<'_, T>) {
    let x = &args.x;
    let scaled = |column: usize| {
        let y: T = cta.load(x.input, column, Cache::Keep);
        y.scaled(exponent(cta, args, column))
    };
    let mut input = 0;
    each_of_grid(cta, x.cols as u64, |j| {
        cta.write(x.output, j, x.beta * load_or(cta, x.addend, j, T::ZERO));
        if P::DOTS {
            input = range(input, scaled(j));
        }
    });
    if P::DOTS {
        each_of_grid(cta, args.columns.len(), |place| {
            let column: u32 = cta.load(args.columns, place, Cache::Once);
            cta.write(args.hot, place, scaled(column as usize));
        });
    } else {
        input = range_of_vector(cta, x.input, x.rows as u64);
    }
    let weights = range_of_weights(cta, x.weights, x.rows as u64);
    write_ranges(cta, args.ranges, [input, weights]);
}

/// S, from what *begin* has found.
#[inline(always)]
pub(super) fn scale_of<C: Cta, T: FixedPoint>(cta: &C, args: &HotArgs<'_, T>) -> i32 {
    let size = (args.x.rows as u64, args.longest);
    fixed_range::scale(cta, args.ranges, args.x.shift, size)
}

/// [`HotVariant::Finish`].
#[inline(always)]
pub(super) fn finish<C: Cta, T: FixedPoint>(cta: &C, args: &HotArgs<'_, T>) {
    let scale = scale_of(cta, args);
    each_of_grid(cta, args.columns.len(), |place| {
        let column: u32 = cta.load(args.columns, place, Cache::Once);
        let column = column as usize;
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
            exponent: exponent(cta, args, column) - scale,
            special,
        };
        let so_far = cta.read(args.x.output, column);
        let total = sum.result(args.x.alpha, T::ONE, so_far);
        cta.write(args.x.output, column, total);
    });
}
