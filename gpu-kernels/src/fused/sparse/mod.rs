//! Sparse X (CSR): one pass over the rows.
//!
//! Formula: `w += α · Xᵀ( v ⊙ (X·y − s) )`, X m × n in CSR with 32-bit offsets and indices; w holds β·z
//! (or zero) before.
//!
//! Mapping: a *vector* of VS lanes owns one row at a time; vectors walk the rows in strides of the grid.
//! Lane `l` takes nonzeros l, l + VS, …; its first K of them stay in registers between the dot product
//! and the scatter, the rest of a long row is read a second time, from cache.
//!
//! `X·y` keeps nothing of a row: K of its nonzeros are on their way at once, of long rows too, and the offsets of the next row. One
//! after the other those beyond the first K made the longest row of rcv1's shape, 815 nonzeros, as long as the launch. Medians of
//! an H100 in f32, µs, each with the fastest number of lanes:
//!
//! | | nonzeros | one after the other | now |
//! |---|---|---|---|
//! | rcv1's shape, columns by frequency; in random order | 1.5 million | 9.5; 10.3 | 8.6; 9.8 |
//! | 4,000,000 × 10,000, 20 a row; log-normal | 80 million | 245; 306 | 245; 292 |
//! | 2,000,000 × 10,000, 40 a row; log-normal | 80 million | 257; 296 | 235; 296 |
//! | 1,000,000 × 10,000, 100 a row; log-normal | 99 million | 316; 355 | 295; 340 |
//! | a quarter of url's rows | 60 million | 456 | 448 |
//!
//! Shared memory: n elements where w is placed there, for private copies see [`private`], else none. Result: in w when the kernel has ended.
//! Guarantees: no two runs need give the same bits, as atomics add in any order.
//!
//! Source: the launch model and the hierarchy of aggregation (registers, shuffles, shared memory, global
//! memory) follow the published method for fused sparse kernels; keeping the row in registers is ours.

use crate::fused::{Compute, Fused, Place, Product};
pub mod private;
mod share;
mod table;
pub(crate) mod variant;

use share::each_share_unless;
pub(crate) use share::{Share, each_share, each_share_of};
pub use variant::SparseVariant;

use crate::cg::{is_over, state};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::verbs::{flush_shared, global_warp, global_warps, lane, load_or, zero_shared};

/// The family of sparse kernels.
pub struct Sparse<T>(core::marker::PhantomData<T>);

/// Arguments of every sparse kernel.
#[repr(C)]
pub struct SparseArgs<'a, T> {
    /// m.
    pub rows: u32,
    /// n.
    pub cols: u32,
    /// m + 1 offsets into `indices` and `values`.
    pub offsets: In<'a, u32>,
    /// Column of each nonzero, below n, distinct within a row.
    pub indices: In<'a, u32>,
    /// Value of each nonzero.
    pub values: In<'a, T>,
    /// y (n elements) for [`Product::Fused`] and [`Product::Forward`], p (m) for the other.
    pub input: In<'a, T>,
    /// v (m elements), optional.
    pub weights: In<'a, T>,
    /// s (one element), optional.
    pub shift: In<'a, T>,
    /// z (m elements), optional; read by [`Product::Forward`] alone.
    pub addend: In<'a, T>,
    /// The [`state`] of the solve that the product is for, optional; read by [`Product::Forward`] alone, which
    /// leaves p as it is where that has ended.
    pub solve: In<'a, f64>,
    /// w (n elements), or p (m) for [`Product::Forward`].
    pub output: Out<'a, T>,
    /// α.
    pub alpha: T,
    /// β, used by [`Product::Forward`] alone.
    pub beta: T,
}

impl<T: Copy> Clone for SparseArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for SparseArgs<'_, T> {}

/// Where contributions to w go.
pub(crate) trait Target<T: Real>: Sized {
    const PLACE: Place;
    fn open<C: Cta>(cta: &C, args: &SparseArgs<'_, T>) -> Self;
    fn add<C: Cta>(&self, cta: &C, args: &SparseArgs<'_, T>, column: u32, value: T);
    fn flush<C: Cta>(self, cta: &C, args: &SparseArgs<'_, T>);
}

/// A copy of w per block; α is applied when it is flushed.
pub(crate) struct InShared<T>(Shared<T>);

impl<T: Real> Target<T> for InShared<T> {
    const PLACE: Place = Place::Shared;

    #[inline(always)]
    fn open<C: Cta>(cta: &C, args: &SparseArgs<'_, T>) -> Self {
        let copy = Shared::at(0, args.cols);
        zero_shared(cta, copy);
        cta.sync();
        InShared(copy)
    }

    #[inline(always)]
    fn add<C: Cta>(&self, cta: &C, _: &SparseArgs<'_, T>, column: u32, value: T) {
        cta.shared_add(self.0, column as usize, value);
    }

    #[inline(always)]
    fn flush<C: Cta>(self, cta: &C, args: &SparseArgs<'_, T>) {
        cta.sync();
        flush_shared(cta, self.0, args.cols, args.alpha, args.output);
    }
}

/// w itself; α is applied to each row's factor.
pub(crate) struct InGlobal;

impl<T: Real> Target<T> for InGlobal {
    const PLACE: Place = Place::Global;

    #[inline(always)]
    fn open<C: Cta>(_: &C, _: &SparseArgs<'_, T>) -> Self {
        InGlobal
    }

    #[inline(always)]
    fn add<C: Cta>(&self, cta: &C, args: &SparseArgs<'_, T>, column: u32, value: T) {
        cta.add(args.output, column as usize, value);
    }

    #[inline(always)]
    fn flush<C: Cta>(self, _: &C, _: &SparseArgs<'_, T>) {}
}

/// What happens to a row between its dot product and its addition to w.
pub(crate) trait RowStep<T: Real> {
    /// Whether rows are multiplied by y.
    const DOTS: bool;
    /// Whether a row whose factor is 0 is left out.
    const SKIPS: bool;
    /// What is requested together with the row, so that its latency does not stand alone.
    type Early;
    /// Asks for it; the row may be one that is not there.
    fn early<C: Cta>(&self, cta: &C, row: u32) -> Self::Early;
    /// What the row, which is there, is multiplied by. All lanes that share the row call it.
    fn factor<C: Cta>(&mut self, cta: &C, row: u32, dot: T, early: Self::Early) -> T;
}

/// The pattern's own step: v ⊙ (X·y − s), or v ⊙ p.
pub(crate) struct Weigh<'a, 'b, T, P> {
    args: &'b SparseArgs<'a, T>,
    shift: T,
    product: core::marker::PhantomData<P>,
}

impl<'a, 'b, T: Real, P: Compute> Weigh<'a, 'b, T, P> {
    #[inline(always)]
    pub(crate) fn new<C: Cta>(cta: &C, args: &'b SparseArgs<'a, T>) -> Self {
        Weigh {
            args,
            shift: load_or(cta, args.shift, 0, T::ZERO),
            product: core::marker::PhantomData,
        }
    }
}

impl<T: Real, P: Compute> RowStep<T> for Weigh<'_, '_, T, P> {
    const DOTS: bool = P::DOTS;
    const SKIPS: bool = false;
    type Early = ();

    #[inline(always)]
    fn early<C: Cta>(&self, _: &C, _: u32) {}

    /// v is requested after the reduction. Asking with the row made v nearly free (0.327 → 0.302 ms for n = 1,000
    /// on an H200) but cost 4 % where there is no v (0.314 → 0.325 ms for n = 10,000).
    #[inline(always)]
    fn factor<C: Cta>(&mut self, cta: &C, row: u32, dot: T, _: ()) -> T {
        let row = row as usize;
        let p = if P::DOTS {
            dot - self.shift
        } else {
            cta.load(self.args.input, row, Cache::Once)
        };
        p * load_or(cta, self.args.weights, row, T::ONE)
    }
}

/// Any product that accumulates into w.
#[inline(always)]
pub(crate) fn accumulate<C, T, P, W, const VS: u32, const K: usize>(
    cta: &C,
    args: &SparseArgs<'_, T>,
) where
    C: Cta,
    T: Real,
    P: Compute,
    W: Target<T>,
{
    let target = W::open(cta, args);
    let mut step = Weigh::<T, P>::new(cta, args);
    accumulate_rows::<C, T, W, _, VS, K>(cta, args, &target, &mut step);
    target.flush(cta, args);
}

/// The fused product with eight lanes to a row and sums in shared memory, `sparse_fused_shared_f32_vs8`: for who needs one body
/// and not the whole family's.
pub fn fused_of_eight_lanes<C: Cta>(cta: &C, args: &SparseArgs<'_, f32>) {
    accumulate::<_, f32, Fused, InShared<f32>, 8, 3>(cta, args);
}

/// Walks the rows, adding each times its factor to the target.
#[inline(always)]
pub(crate) fn accumulate_rows<C, T, W, S, const VS: u32, const K: usize>(
    cta: &C,
    args: &SparseArgs<'_, T>,
    target: &W,
    step: &mut S,
) where
    C: Cta,
    T: Real,
    W: Target<T>,
    S: RowStep<T>,
{
    each_row::<C, VS>(cta, args.rows, |row| {
        let early = step.early(cta, row);
        let share = Share::<T, VS, K>::load(cta, args, row);
        let dot = if S::DOTS {
            share.dot(cta, args)
        } else {
            T::ZERO
        };
        if row < args.rows {
            let mut p = step.factor(cta, row, dot, early);
            if let Place::Global = W::PLACE {
                p = p * args.alpha;
            }
            if S::SKIPS && p == T::ZERO {
                return;
            }
            share.each(cta, args, |column, value| {
                target.add(cta, args, column, value * p)
            });
        }
    });
}

/// [`Product::Forward`].
#[inline(always)]
pub(crate) fn forward<C: Cta, T: Real, const VS: u32, const K: usize>(
    cta: &C,
    args: &SparseArgs<'_, T>,
) {
    let is_over = is_over(cta, args.solve);
    let mut step = Weigh::<T, crate::fused::Forward>::new(cta, args);
    let own = (global_warp(cta), global_warps(cta));
    each_share_unless::<C, T, VS, K>(cta, args, (is_over, own), |row, share| {
        let dot = share.dot_together(cta, args);
        if row < args.rows && lane(cta).is_multiple_of(VS) {
            write_row(cta, args, &mut step, row, dot);
        }
    });
}

/// Writes an element of [`Product::Forward`] from the row's dot product.
#[inline(always)]
pub(crate) fn write_row<C: Cta, T: Real>(
    cta: &C,
    args: &SparseArgs<'_, T>,
    step: &mut Weigh<'_, '_, T, crate::fused::Forward>,
    row: u32,
    dot: T,
) {
    let p = step.factor(cta, row, dot, ());
    let addend = args.beta * load_or(cta, args.addend, row as usize, T::ZERO);
    cta.write(args.output, row as usize, args.alpha.fma(p, addend));
}

/// Calls `each(row)` for this vector's rows. All lanes of a warp make the same number of calls; the last
/// may be for a row that is not there.
#[inline(always)]
pub(crate) fn each_row<C: Cta, const VS: u32>(cta: &C, rows: u32, mut each: impl FnMut(u32)) {
    let (mut first, step) = first_and_step::<C, VS>(cta);
    while first < rows as u64 {
        each(first as u32 + lane(cta) / VS);
        first += step;
    }
}

/// The first row of this warp's vectors, and how far the next one is: for bodies that are too large for a closure,
/// which would be called, not inlined, and keep its state in local memory.
#[inline(always)]
pub(crate) fn first_and_step<C: Cta, const VS: u32>(cta: &C) -> (u64, u64) {
    let vectors = (WARP / VS) as u64;
    (
        global_warp(cta) as u64 * vectors,
        global_warps(cta) as u64 * vectors,
    )
}

/// The contract of every sparse entry.
pub(crate) fn check<T: Real>(
    variant: &SparseVariant,
    launch: &Launch,
    args: &SparseArgs<'_, T>,
) -> Result<(), Violation> {
    let (m, n) = (args.rows as u64, args.cols as u64);
    let (input, output) = variant.product.lengths(m, n);
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_least(
        "shared bytes",
        variant.shared_bytes(args.cols, launch.block, T::SIZE),
        launch.shared_bytes as u64,
    )?;
    Violation::at_most("rows", (u32::MAX - WARP) as u64, m)?;
    check_csr(args)?;
    Violation::at_least("length of input", input, args.input.len())?;
    Violation::at_least("length of output", output, args.output.len())?;
    crate::fused::check_optional(&args.weights, "length of weights", m)?;
    crate::fused::check_optional(&args.shift, "length of shift", 1)?;
    crate::fused::check_optional(&args.solve, "length of the state", state::LEN as u64)?;
    let addend = if variant.product == Product::Forward {
        m
    } else {
        0
    };
    crate::fused::check_optional(&args.addend, "length of addend", addend)
}

/// The contract of the arrays of X.
pub(crate) fn check_csr<T: Real>(args: &SparseArgs<'_, T>) -> Result<(), Violation> {
    let (rows, nonzeros) = (args.rows as u64, args.indices.len());
    Violation::at_least("length of offsets", rows + 1, args.offsets.len())?;
    Violation::at_least("length of values", nonzeros, args.values.len())?;
    Violation::at_most("nonzeros", MAX_NONZEROS as u64, nonzeros)
}

/// The most nonzeros of one launch: a lane's position may run past the end by less than this slack
/// before 32 bits overflow. Larger matrices are launched in parts.
pub const MAX_NONZEROS: u32 = u32::MAX - 1024;
