//! Arguments of the kernel, what they must satisfy, and where things lie in shared memory.

use crate::cta::{Shared, WARP};
use crate::describe::Description;
use crate::math::Elementary;
use crate::memory::{In, Out};
use crate::objective::{AnyLoss, Logistic, LossCode, Point, RowLoss};
use crate::table::{Launch, Violation};

/// The family of small fits.
pub struct Fits<T>(core::marker::PhantomData<T>);

/// The most columns.
pub const MOST_COLUMNS: u32 = 64;
/// The most warps of a block. A thread takes some 230 registers, of which an SM has enough for eight warps: two blocks of four,
/// so that one has rows to read while the other factors.
pub const MOST_WARPS: u32 = 4;
/// The most threads of a block.
pub const MOST_THREADS: u32 = MOST_WARPS * WARP;

/// Words of [`FitArgs::places`] of each fit: first row, rows, first target, first weight.
pub const PLACES: u64 = 4;
/// Elements of [`FitArgs::numbers`] of each fit: s, λ, λc.
pub const NUMBERS: u64 = 3;
/// Elements of [`FitArgs::report`] of each fit: F, ‖gradient‖ over that at the start, steps.
pub const REPORT: u64 = 3;

/// Status: the gradient has become as short as the tolerance wants.
pub const MET: u32 = 0;
/// Status: the steps allowed are done.
pub const ITERATION_LIMIT: u32 = 1;
/// Status: rounding hides any further decrease.
pub const PRECISION_LIMIT: u32 = 2;
/// Status: no step decreases F.
pub const STALLED: u32 = 3;
/// Status: F or its gradient is not finite where the fit begins.
pub const NOT_FINITE: u32 = 4;
/// Status: there are no rows, or none with weight.
pub const NO_ROWS: u32 = 5;
/// Status: rows, targets or weights are not there.
pub const INVALID: u32 = 6;
/// Beside a status: columns depend on each other, and the last of them did not move.
pub const DEPENDENT: u32 = 16;

/// What distinguishes entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FitVariant {
    /// Of [`Loss::Logistic`](crate::objective::Loss::Logistic) alone.
    Logistic,
    /// Of any loss.
    Any,
}

/// The loss that an entry was compiled for.
pub(super) trait FitLoss {
    /// What a row contributes.
    fn at(code: LossCode<f64>, t: f64, b: f64) -> Point<f64>;
}

/// [`FitVariant::Logistic`].
pub(super) struct OfLogistic;

impl FitLoss for OfLogistic {
    #[inline(always)]
    fn at(_: LossCode<f64>, t: f64, b: f64) -> Point<f64> {
        Logistic.at(t, b)
    }
}

/// [`FitVariant::Any`].
pub(super) struct OfAny;

impl FitLoss for OfAny {
    #[inline(always)]
    fn at(code: LossCode<f64>, t: f64, b: f64) -> Point<f64> {
        AnyLoss(code).at(t, b)
    }
}

/// Arguments of the kernel; block g makes fit g.
#[repr(C)]
pub struct FitArgs<'a, T> {
    /// The loss, for f64.
    pub loss: LossCode<f64>,
    /// X, row-major.
    pub x: In<'a, T>,
    /// Rows of X.
    pub rows: u64,
    /// Elements from one row to the next.
    pub pitch: u64,
    /// n.
    pub cols: u32,
    /// Bytes of shared memory for rows.
    pub area: u32,
    /// 1 with an intercept, else 0.
    pub has_intercept: u32,
    /// 1 where the penalty is one on columns of deviation 1, else 0.
    pub standardizes: u32,
    /// [`PLACES`] for each fit.
    pub places: In<'a, u64>,
    /// [`NUMBERS`] for each fit.
    pub numbers: In<'a, f64>,
    /// b.
    pub targets: In<'a, T>,
    /// v, optional: 1.
    pub weights: In<'a, T>,
    /// o, one for each row of X, optional: 0.
    pub offset: In<'a, T>,
    /// f (n elements), optional: 1.
    pub factors: In<'a, f64>,
    /// ‖gradient‖ over that at the start at which to stop.
    pub tolerance: f64,
    /// Steps at most.
    pub most_steps: u32,
    /// c and w of each fit, n + 1 elements: where it begins, and where it ends.
    pub theta: Out<'a, f64>,
    /// [`REPORT`] for each fit.
    pub report: Out<'a, f64>,
    /// A word for each fit.
    pub status: Out<'a, u32>,
}

impl<T> Clone for FitArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for FitArgs<'_, T> {}

/// Where things lie in a block's shared memory: the Hessian with its gradient as the last row, vectors of n + 1 elements,
/// figures, slopes and curvatures of 32 rows for each warp, rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// n + 1.
    pub order: u32,
    /// Elements from one row of the Hessian to the next: an odd number, so that a column lies in all banks.
    pub pitch: u32,
    /// Warps of the block.
    pub warps: u32,
}

/// Vectors of n + 1 elements.
const VECTORS: u32 = 5;
/// Figures that warps tell each other.
const FIGURES: u32 = 4;
/// Buffers of 32 rows of each warp where rows do not stay.
pub(super) const BUFFERS: u32 = 2;
/// Bytes of a pack.
pub(super) const PACK: u32 = 16;

impl Layout {
    /// Of n columns and a block.
    #[inline(always)]
    pub const fn of(cols: u32, warps: u32) -> Layout {
        Layout {
            order: cols + 1,
            pitch: (cols + 1) | 1,
            warps,
        }
    }

    /// Row i of the Hessian, up to its diagonal; row n + 1 is the gradient.
    #[inline(always)]
    pub(super) fn row(&self, i: u32) -> Shared<f64> {
        Shared::at(i * self.pitch * 8, self.pitch)
    }

    const fn matrix_bytes(&self) -> u32 {
        (self.order + 1) * self.pitch * 8
    }

    #[inline(always)]
    fn vector(&self, number: u32) -> Shared<f64> {
        Shared::at(self.matrix_bytes() + number * self.order * 8, self.order)
    }

    /// Where the fit is.
    #[inline(always)]
    pub(super) fn theta(&self) -> Shared<f64> {
        self.vector(0)
    }

    /// Where it may be next.
    #[inline(always)]
    pub(super) fn trial(&self) -> Shared<f64> {
        self.vector(1)
    }

    /// H⁻¹·gradient.
    #[inline(always)]
    pub(super) fn step(&self) -> Shared<f64> {
        self.vector(2)
    }

    /// The ridge on each coordinate.
    #[inline(always)]
    pub(super) fn ridge(&self) -> Shared<f64> {
        self.vector(3)
    }

    /// 1/σ of each coordinate, 0 for those that are held.
    #[inline(always)]
    pub(super) fn units(&self) -> Shared<f64> {
        self.vector(4)
    }

    const fn figures_at(&self) -> u32 {
        self.matrix_bytes() + VECTORS * self.order * 8
    }

    /// Figures that the first warp tells the others.
    #[inline(always)]
    pub(super) fn figures(&self) -> Shared<f64> {
        Shared::at(self.figures_at(), FIGURES)
    }

    /// Slopes and then curvatures of a warp's 32 rows.
    #[inline(always)]
    pub(super) fn slopes(&self, warp: u32) -> Shared<f64> {
        let at = self.figures_at() + (FIGURES + warp * 2 * WARP) * 8;
        Shared::at(at, 2 * WARP)
    }

    /// Bytes before the rows.
    #[inline(always)]
    pub const fn fixed_bytes(&self) -> u32 {
        let end = self.figures_at() + (FIGURES + self.warps * 2 * WARP) * 8;
        end.next_multiple_of(PACK)
    }

    /// Bytes for rows at least: two buffers of 32 rows for each warp.
    pub const fn least_area(&self, pitch: u64, size: u32) -> u64 {
        (BUFFERS * self.warps) as u64 * (WARP as u64 * pitch * size as u64 + PACK as u64)
    }

    /// Bytes for this many rows that stay, wherever the first of them begins.
    pub const fn area_of(rows: u64, pitch: u64, size: u32) -> u64 {
        (rows.saturating_mul(pitch).saturating_mul(size as u64) + (PACK - size) as u64)
            .next_multiple_of(PACK as u64)
    }
}

pub(super) const fn describe(_: &FitVariant) -> Description {
    Description {
        most_threads: MOST_THREADS,
        ..Description::UNPLANNED
    }
}

pub(super) fn check<T: Elementary>(
    _: &FitVariant,
    launch: &Launch,
    args: &FitArgs<'_, T>,
) -> Result<(), Violation> {
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_most("block", MOST_THREADS as u64, launch.block as u64)?;
    Violation::at_least("columns", 1, args.cols as u64)?;
    Violation::at_most("columns", MOST_COLUMNS as u64, args.cols as u64)?;
    Violation::at_least("elements from row to row", args.cols as u64, args.pitch)?;
    // Elements of rows in shared memory are counted in 32 bits.
    Violation::at_most("elements from row to row", 1 << 16, args.pitch)?;
    let layout = Layout::of(args.cols, launch.block / WARP);
    let least = layout.least_area(args.pitch, T::SIZE);
    Violation::at_least("bytes for rows", least, args.area as u64)?;
    let shared = layout.fixed_bytes() as u64 + args.area as u64;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    check_lengths(launch.grid as u64, args)
}

fn check_lengths<T>(fits: u64, args: &FitArgs<'_, T>) -> Result<(), Violation> {
    use crate::fused::check_optional;
    let cols = args.cols as u64;
    if args.rows > 0 {
        let elements = (args.rows - 1)
            .saturating_mul(args.pitch)
            .saturating_add(cols);
        Violation::at_least("length of X", elements, args.x.len())?;
    }
    Violation::at_least("length of places", fits * PLACES, args.places.len())?;
    Violation::at_least("length of numbers", fits * NUMBERS, args.numbers.len())?;
    check_optional(&args.offset, "length of offset", args.rows)?;
    check_optional(&args.factors, "length of factors", cols)?;
    Violation::at_least("length of theta", fits * (cols + 1), args.theta.len())?;
    Violation::at_least("length of report", fits * REPORT, args.report.len())?;
    Violation::at_least("length of status", fits, args.status.len())
}
