//! QR factorisations of many small matrices on a device.
//!
//! A = Q·R with Q = H₁·H₂⋯ = I − V·T·Vᵀ, Hₖ = I − τₖ·vₖ·vₖᵀ, vₖ as in Higham's formulation: of the column below the diagonal
//! all but the first component stay as they are ([`gpu_kernels::qr::reflector`]). R has the signs that come of it:
//! its diagonal is −sign(x₁)·‖x‖, not always positive.
//!
//! ```
//! use warpfuse::device::Device;
//! use warpfuse::ops::qr::{Batch, Qr, Status, TriangleForm};
//!
//! let device = Device::auto();
//! let a = device.upload(&[3.0_f64, 4.0, 1.0, 2.0])?; // one 2 × 2 matrix, column by column
//! let mut qr = Qr::new(&device, Batch::column_major(2, 2, 1), TriangleForm::Whole)?;
//! qr.factor(&a)?;
//! assert_eq!(qr.factors().to_vec()?[0], -5.0);
//! assert_eq!(qr.statuses()?, [Status::FINE]);
//! let mut x = device.upload(&[5.0, 6.0])?; // A·x = (5, 6)
//! qr.solve(&mut x, &Batch::column_major(2, 1, 1))?;
//! let x = x.to_vec()?;
//! assert!((x[0] - 2.0).abs() + (x[1] + 1.0).abs() < 1e-14);
//! # Ok::<(), warpfuse::ops::OpError>(())
//! ```
//!
//! # What is promised
//! For every matrix of 1 to 4,096 rows and columns, whatever lies beside it in the batch:
//! ‖R − QᵀA‖₁ ≤ 20·n·ε·‖A‖₁ and ‖QᵀQ − I‖₁ ≤ 100·n·ε. Rank-deficient matrices are factored like others; where a column is
//! exactly in the span of those before, an element of R's diagonal may be 0, which [`Status`] says. Columns of any norm
//! are: those whose squares overflow or underflow are scaled by a power of two, and so is their v.
//! An infinity or a NaN, or an overflow, makes that matrix's factors meaningless, which its status says, and no other's.
//!
//! Results have the same bits on every run and on every GPU and emulator; on the CPU sums are added in another order.

mod apply;
mod batch;
mod host;
mod launch;
mod tall;

use gpu_kernels::qr::{NOT_FINITE, TABLE_WORDS, WORK_WIDTH, ZERO_PIVOT};

use super::{Number, OpError};
use crate::device::{Buffer, Device};
use crate::plan::qr::{QrPlan, plan};
pub use crate::plan::qr::{QrShape, QrShapeError, TriangleForm};
pub use apply::Side;
pub use batch::{Batch, Matrices, Order, Piece};
pub use tall::TallQr;

/// What was met in one matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Status {
    /// A number of A or of its factors is infinite or NaN.
    pub not_finite: bool,
    /// An element of R's diagonal is exactly 0: A is rank-deficient.
    pub zero_pivot: bool,
}

impl Status {
    /// Nothing was.
    pub const FINE: Status = Status {
        not_finite: false,
        zero_pivot: false,
    };

    fn of(word: u32) -> Status {
        Status {
            not_finite: word & NOT_FINITE != 0,
            zero_pivot: word & ZERO_PIVOT != 0,
        }
    }
}

/// Where the factors of a matrix begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parts {
    /// Its rows and columns.
    pub shape: QrShape,
    /// Its first element in [`Qr::factors`].
    pub factors: usize,
    /// In [`Qr::first`].
    pub first: usize,
    /// In [`Qr::t`].
    pub t: usize,
}

/// The factors of a batch, and the memory that factoring it takes.
#[derive(Debug)]
pub struct Qr<T: Number> {
    device: Device,
    matrices: Matrices,
    form: TriangleForm,
    /// None where there is nothing to factor, or on a CPU.
    plan: Option<QrPlan>,
    factors: Buffer<T>,
    first: Buffer<T>,
    t: Buffer<T>,
    status: Buffer<u32>,
    /// For columns of T above those of panels.
    work: Option<Buffer<T>>,
    /// Shapes and places, of matrices that differ.
    table: Option<Buffer<u64>>,
}

impl<T: Number> Qr<T> {
    /// Memory for the factors of `matrices` on `device`.
    ///
    /// # Errors
    /// [`OpError::Qr`] for shapes beyond 1 to 4,096 rows and columns, or too many matrices for a launch,
    /// [`OpError::Device`] when memory is short.
    pub fn new(
        device: &Device,
        matrices: impl Into<Matrices>,
        form: TriangleForm,
    ) -> Result<Qr<T>, OpError> {
        let matrices = matrices.into();
        matrices.check_shapes()?;
        let plan = match matrices.largest() {
            Some(shape) if !device.is_cpu() => Some(plan(shape, T::SIZE)),
            _ => None,
        };
        Self::with_plan(device, matrices, form, plan)
    }

    /// As [`new`](Self::new), with launches of the caller's choice on a device that launches.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_plan(
        device: &Device,
        matrices: impl Into<Matrices>,
        form: TriangleForm,
        plan: Option<QrPlan>,
    ) -> Result<Qr<T>, OpError> {
        let matrices = matrices.into();
        matrices.check_shapes()?;
        launch::check_count(&matrices)?;
        let end = parts_of(&matrices, matrices.count());
        let needs_work = form == TriangleForm::Whole && matches!(plan, Some(QrPlan::Panels(_)));
        let work = match matrices.largest() {
            Some(shape) if needs_work => {
                let rows = matrices.count() * shape.least();
                Some(device.zeros(rows * WORK_WIDTH as usize)?)
            }
            _ => None,
        };
        let table = match &matrices {
            Matrices::Each(pieces) if !device.is_cpu() && !pieces.is_empty() => {
                Some(device.upload(&table_of(&matrices))?)
            }
            _ => None,
        };
        Ok(Qr {
            factors: device.zeros(end.factors)?,
            first: device.zeros(end.first)?,
            t: device.zeros(end.t)?,
            status: device.zeros(matrices.count())?,
            device: device.clone(),
            matrices,
            form,
            plan,
            work,
            table,
        })
    }

    /// Factors the matrices of `a`, where this was told that they lie. Waits for nothing.
    ///
    /// # Errors
    /// [`OpError::Length`] when `a` is too short, [`OpError::Device`] when it lies elsewhere or the device fails.
    pub fn factor(&mut self, a: &Buffer<T>) -> Result<(), OpError> {
        self.matrices.check("A", a.len())?;
        a.expect_on(&self.device, "factor matrices")?;
        match self.plan.clone() {
            _ if self.matrices.count() == 0 => Ok(()),
            Some(plan) => launch::factor(self, a, &plan),
            None => {
                host::factor(self, a);
                Ok(())
            }
        }
    }

    /// R on and above the diagonal, below it the reflectors without their first components: column-major without gaps,
    /// matrix after matrix.
    pub fn factors(&self) -> &Buffer<T> {
        &self.factors
    }

    /// First components of the reflectors.
    pub fn first(&self) -> &Buffer<T> {
        &self.first
    }

    /// T, row-major without gaps, matrix after matrix, with zeros below the diagonal; of
    /// [`TriangleForm::Panels`] the blocks on the diagonal alone.
    pub fn t(&self) -> &Buffer<T> {
        &self.t
    }

    /// What was met in each matrix; waits for the factorisation.
    ///
    /// # Errors
    /// When the device has failed.
    pub fn statuses(&self) -> Result<Vec<Status>, OpError> {
        let words = self.status.to_vec()?;
        Ok(words.into_iter().map(Status::of).collect())
    }

    /// The batch.
    pub fn matrices(&self) -> &Matrices {
        &self.matrices
    }

    /// The launches that factoring takes; none on the CPU.
    pub fn plan(&self) -> Option<&QrPlan> {
        self.plan.as_ref()
    }

    /// Where the factors of matrix `i` are.
    ///
    /// # Panics
    /// When there are no more than `i` matrices.
    pub fn parts(&self, i: usize) -> Parts {
        assert!(i < self.matrices.count(), "matrix {i} of the batch");
        parts_of(&self.matrices, i)
    }
}

/// Where the factors of matrix `i` begin; with the count for `i`, where all end.
fn parts_of(matrices: &Matrices, i: usize) -> Parts {
    let of = |shape: QrShape, times: usize| Parts {
        shape,
        factors: times * shape.rows * shape.cols,
        first: times * shape.least(),
        t: times * shape.least() * shape.least(),
    };
    match matrices {
        Matrices::Same(batch) => of(batch.shape(), i),
        Matrices::Each(pieces) => {
            let shape = |i: usize| {
                pieces
                    .get(i)
                    .map_or(QrShape { rows: 0, cols: 0 }, Piece::shape)
            };
            pieces[..i].iter().fold(of(shape(i), 0), |before, piece| {
                let one = of(piece.shape(), 1);
                Parts {
                    shape: before.shape,
                    factors: before.factors + one.factors,
                    first: before.first + one.first,
                    t: before.t + one.t,
                }
            })
        }
    }
}

/// [`TABLE_WORDS`] words for each matrix.
fn table_of(matrices: &Matrices) -> Vec<u64> {
    let mut words = Vec::with_capacity(matrices.count() * TABLE_WORDS as usize);
    let [mut factors, mut first, mut t] = [0, 0, 0];
    for i in 0..matrices.count() {
        let piece = matrices.piece(i);
        let [row, col] = piece.steps();
        let (rows, cols) = (piece.rows as u64, piece.cols as u64);
        words.extend([rows, cols, piece.offset as u64, row, col, factors, first, t]);
        let least = rows.min(cols);
        factors += rows * cols;
        first += least;
        t += least * least;
    }
    words
}
