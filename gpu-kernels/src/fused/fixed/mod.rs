//! Sparse X (CSR), sums of fixed-point integers: the same bits on every run, grid and device.
//!
//! Formula: `w = α · Xᵀ( v ⊙ (X·y − s) ) + β · z` and `w = α · Xᵀ( v ⊙ p ) + β · z`; see
//! [`fixed_point`](crate::fused::fixed::point) for the scaling, its error, and why nothing overflows.
//!
//! Once for a matrix: *columns* finds the largest exponent of every column, *equilibrate* makes a copy of the
//! values with every column below 1. For each product: *begin* scales y and finds how large y, p and v are,
//! *accumulate* walks the rows, *finish* writes w and leaves the sums at zero.
//!
//! Mapping of *accumulate*: as the other sparse kernels, a vector of VS lanes per row, K nonzeros per lane kept in
//! registers; the offsets of the next row are requested before the present one is worked on. A sum is two (f64:
//! three) 32-bit words in shared memory: native integer atomics, of which the upper one is touched only when
//! carry and sign do not cancel. With [`Input::Shared`](crate::describe::Input::Shared) y lies beside the sums; with
//! [`Place::Global`](crate::fused::Place::Global) the sums are 64-bit words in global memory, with [`Place::Spread`](crate::fused::Place::Spread) the words are spread over
//! two blocks' shared memory: see `spread`; with [`Place::Split`](crate::fused::Place::Split) two blocks walk the same rows, each with
//! half of the sums: see `split`; [`FixedVariant::Headed`] keeps those of a head in shared memory: see `headed`;
//! [`FixedVariant::Even`] gives each warp an even share of the entries: see `even`.
//!
//! Infinities and NaN, in X or from a dot product that overflows, are added to w as floats: they come out as IEEE 754
//! says, whatever their order and number. Shared memory: WORDS · n words, WORDS · ⌈n/2⌉ in each block of a cluster, and n
//! elements where y is there too.
//!
//! Not taken yet: the lowest words of all K entries first, as `SharedSums::add_each`, so that their round trips overlap.
//! With K = 5 in f32 the fused product takes 202 µs instead of 230 (n = 10,000), but uneven rows (K = 3) 669 instead of 642,
//! f64 329 instead of 293 and split sums 3 % more; and eight sides over tiles would cost 2.2 times one.
//!
//! Measured on an H200, 4,000,000 × n, 20 a row, f32: see `benches/results/h200`. Float atomics on shared memory
//! are 4 times slower than integer ones, so that the reproducible sum is also the faster one.

mod contract;
mod even;
mod headed;
pub mod point;
pub(crate) mod range;
mod split;
mod spread;
pub(crate) mod sums;
mod table;
mod variant;

pub use variant::{CLUSTER, FixedVariant};

use crate::cta::{Cache, Cta, Shared};
use crate::fused::even::Window;
use crate::fused::fixed::point::{FixedPoint, Total, column_exponent, range, range_of_scaled};
use crate::fused::fixed::range::{range_of_vector, range_of_weights, scale, write_ranges};
use crate::fused::fixed::sums::SharedSums;
use crate::fused::sparse::each_share_of;
use crate::fused::{Compute, SparseArgs};
use crate::memory::{In, Out};
use crate::verbs::{each_of_block, each_of_grid, global_warp, global_warps, load_or};

/// The family of kernels with fixed-point sums.
pub struct Fixed<T>(core::marker::PhantomData<T>);

/// Arguments of every kernel with fixed-point sums.
#[repr(C)]
pub struct FixedArgs<'a, T> {
    /// X and the vectors. *accumulate* takes equilibrated values and, where there is a y, the scaled one; its output is
    /// zero before. *finish* alone uses α, and β and z (n elements), and m counts all parts of X for *begin*.
    pub x: SparseArgs<'a, T>,
    /// m of the whole matrix, of which a launch may walk a part.
    pub all_rows: u64,
    /// Entries of the longest row; 1 for [`Product::Transposed`](crate::fused::Product::Transposed).
    pub longest: u32,
    /// n + 1 elements: the largest exponent field of each column, then 1 if X has infinities or NaN. Zero before
    /// *columns*.
    pub exponents: Out<'a, u32>,
    /// Written by *equilibrate* (as long as the values) and *begin* (y′, n elements; without it *begin* looks at what y′ would
    /// be, also where that is more than the type holds: for `Xᵀ·p` whose p are known to be `v ⊙ (X·y − s)`).
    pub scaled: Out<'a, T>,
    /// Two largest exponent fields (of y′ or p, of v) for each block of *begin*.
    pub ranges: Out<'a, u32>,
    /// LIMBS · n elements, zero before *accumulate* and after *finish*.
    pub sums: Out<'a, u64>,
    /// The column of each place of a head, distinct, with which indices are [marked](crate::fused::head::HEAD); of
    /// [`EvenPlace::Frequent`](crate::fused::EvenPlace::Frequent) the [table of frequent columns](crate::fused::even::sums);
    /// nothing without one.
    pub order: In<'a, u32>,
    /// The multiplier of that table's hash.
    pub multiplier: u32,
    /// The columns that `Xᵀ·p` in even shares adds to; all others add to all.
    pub window: Window,
}

impl<T: Copy> Clone for FixedArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for FixedArgs<'_, T> {}

/// Nonzeros of the launch's part of X.
#[inline(always)]
fn nonzeros<C: Cta, T: FixedPoint>(cta: &C, args: &FixedArgs<'_, T>) -> u64 {
    let end: u32 = cta.load(args.x.offsets, args.x.rows as usize, Cache::Keep);
    end as u64
}

/// [`FixedVariant::Columns`](crate::fused::FixedVariant::Columns).
#[inline(always)]
pub(crate) fn columns<C: Cta, T: FixedPoint>(cta: &C, args: &FixedArgs<'_, T>) {
    each_of_grid(cta, nonzeros(cta, args), |i| {
        let value: T = cta.load(args.x.values, i, Cache::Once);
        let field = value.exponent_field();
        if field == T::NON_FINITE {
            cta.raise(args.exponents, args.x.cols as usize, 1);
        } else {
            let column = cta.load(args.x.indices, i, Cache::Once);
            cta.raise(args.exponents, column as usize, field);
        }
    });
}

/// e of a column.
#[inline(always)]
fn exponent<C: Cta, T: FixedPoint>(cta: &C, args: &FixedArgs<'_, T>, column: usize) -> i32 {
    column_exponent::<T>(cta.read(args.exponents, column))
}

/// [`FixedVariant::Equilibrate`](crate::fused::FixedVariant::Equilibrate).
#[inline(always)]
pub(crate) fn equilibrate<C: Cta, T: FixedPoint>(cta: &C, args: &FixedArgs<'_, T>) {
    each_of_grid(cta, nonzeros(cta, args), |i| {
        let value: T = cta.load(args.x.values, i, Cache::Once);
        let column = cta.load(args.x.indices, i, Cache::Once);
        let scaled = value.scaled(-exponent(cta, args, column as usize));
        cta.write(args.scaled, i, scaled);
    });
}

/// [`FixedVariant::Begin`](crate::fused::FixedVariant::Begin).
#[inline(always)]
pub(crate) fn begin<C: Cta, T: FixedPoint, P: Compute>(cta: &C, args: &FixedArgs<'_, T>) {
    let cols = args.x.cols as u64;
    let is_scaled = args.scaled.is_some();
    let mut input = 0;
    each_of_grid(cta, cols, |j| {
        cta.write(args.x.output, j, T::ZERO);
        if P::DOTS {
            let y: T = cta.load(args.x.input, j, Cache::Once);
            let exponent = exponent(cta, args, j);
            if is_scaled {
                let y = y.scaled(exponent);
                cta.write(args.scaled, j, y);
                input = range(input, y);
            } else {
                input = range_of_scaled(input, y, exponent);
            }
        }
    });
    if !P::DOTS {
        input = range_of_vector(cta, args.x.input, args.all_rows);
    }
    let weights = range_of_weights(cta, args.x.weights, args.all_rows);
    write_ranges(cta, args.ranges, [input, weights]);
}

/// S, from what *begin* has found.
#[inline(always)]
fn scale_of<C: Cta, T: FixedPoint>(cta: &C, args: &FixedArgs<'_, T>) -> i32 {
    scale(
        cta,
        args.ranges,
        args.x.shift,
        (args.all_rows, args.longest),
    )
}

/// Where sums are kept, and y.
pub(crate) trait Sums<T: FixedPoint>: Sized {
    /// The warp's number among those that share out the rows, and how many they are.
    #[inline(always)]
    fn walker<C: Cta>(cta: &C) -> (u32, u32) {
        (global_warp(cta), global_warps(cta))
    }
    fn open<C: Cta>(cta: &C, args: &FixedArgs<'_, T>) -> Self;
    fn input<C: Cta>(&self, cta: &C, args: &FixedArgs<'_, T>, column: u32) -> T;
    fn add<C: Cta>(&self, cta: &C, args: &FixedArgs<'_, T>, column: u32, value: T);
    /// The column that an index of X names.
    #[inline(always)]
    fn column<C: Cta>(_: &C, _: &FixedArgs<'_, T>, index: u32) -> usize {
        index as usize
    }
    fn flush<C: Cta>(self, cta: &C, args: &FixedArgs<'_, T>);
}

/// y in a block's shared memory, from its first byte on, or with `Y` false in global memory.
pub(crate) struct Input<T, const Y: bool>(Shared<T>);

impl<T: FixedPoint, const Y: bool> Input<T, Y> {
    /// Room for n elements.
    #[inline(always)]
    pub(crate) fn at(cols: u32) -> Self {
        Input(Shared::at(0, if Y { cols } else { 0 }))
    }

    /// The first byte beyond it.
    #[inline(always)]
    pub(crate) fn end(&self) -> u32 {
        self.0.end()
    }

    /// Loads y; a barrier must follow.
    #[inline(always)]
    pub(crate) fn fill<C: Cta>(&self, cta: &C, args: &FixedArgs<'_, T>) {
        if Y {
            each_of_block(cta, args.x.cols, |j| {
                cta.shared_write(self.0, j, cta.load(args.x.input, j, Cache::Keep));
            });
        }
    }

    #[inline(always)]
    pub(crate) fn get<C: Cta>(&self, cta: &C, args: &FixedArgs<'_, T>, column: u32) -> T {
        if Y {
            cta.shared_read(self.0, column as usize)
        } else {
            cta.load(args.x.input, column as usize, Cache::Keep)
        }
    }
}

/// [`Place::Shared`](crate::fused::Place::Shared), and with `Y` [`Input::Shared`](crate::describe::Input::Shared).
pub(crate) struct InShared<T, const Y: bool> {
    sums: SharedSums<T>,
    input: Input<T, Y>,
}

impl<T: FixedPoint, const Y: bool> Sums<T> for InShared<T, Y> {
    #[inline(always)]
    fn open<C: Cta>(cta: &C, args: &FixedArgs<'_, T>) -> Self {
        let cols = args.x.cols;
        // y first: its elements may need the alignment of 8 bytes.
        let input = Input::at(cols);
        let sums = SharedSums::open(cta, input.end(), (cols, 0));
        input.fill(cta, args);
        cta.sync();
        InShared { sums, input }
    }

    #[inline(always)]
    fn input<C: Cta>(&self, cta: &C, args: &FixedArgs<'_, T>, column: u32) -> T {
        self.input.get(cta, args, column)
    }

    #[inline(always)]
    fn add<C: Cta>(&self, cta: &C, _: &FixedArgs<'_, T>, column: u32, value: T) {
        self.sums.add(cta, column, value);
    }

    #[inline(always)]
    fn flush<C: Cta>(self, cta: &C, args: &FixedArgs<'_, T>) {
        self.sums.flush(cta, args.sums);
    }
}

/// [`Place::Global`](crate::fused::Place::Global).
pub(crate) struct InGlobal;

impl<T: FixedPoint> Sums<T> for InGlobal {
    #[inline(always)]
    fn open<C: Cta>(_: &C, _: &FixedArgs<'_, T>) -> Self {
        InGlobal
    }

    #[inline(always)]
    fn input<C: Cta>(&self, cta: &C, args: &FixedArgs<'_, T>, column: u32) -> T {
        cta.load(args.x.input, column as usize, Cache::Keep)
    }

    #[inline(always)]
    fn add<C: Cta>(&self, cta: &C, args: &FixedArgs<'_, T>, column: u32, value: T) {
        let (fixed, at) = (value.to_fixed(), column as usize * T::LIMBS);
        cta.add_wrapping(args.sums, at, fixed.high as u64);
        if T::LIMBS == 2 && fixed.low != 0 {
            cta.add_wrapping(args.sums, at + 1, fixed.low as u64);
        }
    }

    #[inline(always)]
    fn flush<C: Cta>(self, _: &C, _: &FixedArgs<'_, T>) {}
}

/// The row's factor: v ⊙ (X·y − s), or v ⊙ p.
#[inline(always)]
fn factor<C: Cta, T: FixedPoint, P: Compute>(
    cta: &C,
    args: &SparseArgs<'_, T>,
    row: u32,
    dot: T,
    shift: T,
) -> T {
    let row = row as usize;
    let p = if P::DOTS {
        dot - shift
    } else {
        cta.load(args.input, row, Cache::Once)
    };
    p * load_or(cta, args.weights, row, T::ONE)
}

/// [`FixedVariant::Accumulate`](crate::fused::FixedVariant::Accumulate).
#[inline(always)]
pub(crate) fn accumulate<C, T, P, W, const VS: u32, const K: usize>(
    cta: &C,
    args: &FixedArgs<'_, T>,
) where
    C: Cta,
    T: FixedPoint,
    P: Compute,
    W: Sums<T>,
{
    let scale = scale_of(cta, args);
    let has_non_finite = cta.read(args.exponents, args.x.cols as usize) != 0;
    let shift = load_or(cta, args.x.shift, 0, T::ZERO);
    let sums = W::open(cta, args);
    each_share_of::<C, T, VS, K>(cta, &args.x, W::walker(cta), |row, share| {
        let dot = if P::DOTS {
            share.dot_with(cta, &args.x, |column| sums.input(cta, args, column))
        } else {
            T::ZERO
        };
        if row < args.x.rows {
            let p = factor::<C, T, P>(cta, &args.x, row, dot, shift);
            let is_finite = p.exponent_field() != T::NON_FINITE;
            let scaled = p.scaled(scale);
            if is_finite && !has_non_finite {
                share.each(cta, &args.x, |column, value| {
                    sums.add(cta, args, column, value * scaled);
                });
            } else {
                let p = if is_finite { scaled } else { p };
                share.each(cta, &args.x, |column, value| {
                    add_any(cta, args, &sums, column, value * p);
                });
            }
        }
    });
    sums.flush(cta, args);
}

/// Adds a product that may be infinite or NaN.
#[inline(always)]
fn add_any<C: Cta, T: FixedPoint, W: Sums<T>>(
    cta: &C,
    args: &FixedArgs<'_, T>,
    sums: &W,
    column: u32,
    product: T,
) {
    if product.exponent_field() == T::NON_FINITE {
        cta.add(args.x.output, W::column(cta, args, column), product);
    } else {
        sums.add(cta, args, column, product);
    }
}

/// [`FixedVariant::Finish`](crate::fused::FixedVariant::Finish).
#[inline(always)]
pub(crate) fn finish<C: Cta, T: FixedPoint>(cta: &C, args: &FixedArgs<'_, T>) {
    let scale = scale_of(cta, args);
    each_of_grid(cta, args.x.cols as u64, |j| {
        let at = j * T::LIMBS;
        let high = cta.read(args.sums, at) as i64;
        let low = if T::LIMBS == 2 {
            cta.read(args.sums, at + 1)
        } else {
            0
        };
        for limb in 0..T::LIMBS {
            cta.write(args.sums, at + limb, 0);
        }
        let special: T = cta.read(args.x.output, j);
        let addend = load_or(cta, args.x.addend, j, T::ZERO);
        let sum = Total {
            high,
            low,
            exponent: exponent(cta, args, j) - scale,
            special,
        };
        cta.write(
            args.x.output,
            j,
            sum.result(args.x.alpha, args.x.beta, addend),
        );
    });
}
