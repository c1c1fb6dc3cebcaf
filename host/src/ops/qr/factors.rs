//! The factors of a batch: where they are, and what they mean.

use gpu_kernels::qr::TABLE_WORDS;

use super::batch::{Matrices, Piece};
use super::values::Status;
use super::{launch, streams};
use crate::device::{Buffer, Device};
use crate::ops::{Number, OpError};
use crate::plan::qr::{self as plans, Lying, Made, QrPlan, QrShape, TriangleForm, planned};

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
    pub(super) device: Device,
    pub(super) matrices: Matrices,
    pub(super) form: TriangleForm,
    /// None where there is nothing to factor, or on a CPU.
    pub(super) plan: Option<QrPlan>,
    /// In which matrices that have panels are factored, a part of the batch in each.
    pub(super) streams: usize,
    pub(super) factors: Buffer<T>,
    pub(super) first: Buffer<T>,
    pub(super) t: Buffer<T>,
    pub(super) status: Buffer<u32>,
    /// How columns of T above those of panels are made.
    pub(super) made: Made,
    /// For those columns.
    pub(super) work: Option<Buffer<T>>,
    /// Shapes and places, of matrices that differ.
    pub(super) table: Option<Buffer<u64>>,
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
        let plan = matrices.largest().zip(device.limits());
        let plan = plan.map(|(shape, limits)| {
            let batch = plans::Batch::of(shape, matrices.count(), T::SIZE, limits);
            let lying = matrices.lying(T::SIZE);
            let is_measured = lying == Lying::Packed && form == TriangleForm::Whole;
            let tuned = device.tuned().filter(|_| is_measured);
            let own = || planned(&batch, lying, device.has_clusters());
            tuned
                .and_then(|table| table.qr(T::PRECISION, &batch))
                .unwrap_or_else(own)
        });
        Self::with_plan(device, matrices, form, plan)
    }

    /// As [`new`](Self::new), with launches of the caller's choice on a device that launches.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`OpError::NoVariant`] where all of T is wanted of launches that make no columns of it.
    pub fn with_plan(
        device: &Device,
        matrices: impl Into<Matrices>,
        form: TriangleForm,
        plan: Option<QrPlan>,
    ) -> Result<Qr<T>, OpError> {
        let matrices = matrices.into();
        matrices.check_shapes()?;
        Self::of_any_shape(device, matrices, form, plan)
    }

    /// [`with_plan`](Self::with_plan) for shapes beyond those that are promised.
    pub(super) fn of_any_shape(
        device: &Device,
        matrices: Matrices,
        form: TriangleForm,
        plan: Option<QrPlan>,
    ) -> Result<Qr<T>, OpError> {
        let end = parts_of(&matrices, matrices.count());
        let made = match (&plan, device.limits()) {
            (Some(QrPlan::Panels(steps)), limits) => {
                let sms = limits.map_or(0, |limits| limits.sms);
                let made = form.made(steps, matrices.same(), T::SIZE);
                made.for_few(matrices.count(), steps.len(), sms)
            }
            _ => Made::Nothing,
        };
        check_made(made, (plan.as_ref(), matrices.same()), T::SIZE)?;
        let work = work(device, &matrices, (plan.as_ref(), made))?;
        Ok(Qr {
            work,
            factors: device.zeros(end.factors)?,
            first: device.zeros(end.first)?,
            t: device.zeros(end.t)?,
            form,
            plan,
            made,
            ..Self::without_factors(device, matrices)?
        })
    }

    /// Factors parts of the batch beside each other in this many streams, of which the planner has chosen
    /// [a number](crate::plan::qr::streams) already. Results are the same bits. Batches of different shapes, tiny matrices, and the
    /// CPU keep to one.
    #[must_use]
    pub fn in_streams(self, streams: usize) -> Qr<T> {
        let streams = streams.max(1);
        Qr { streams, ..self }
    }

    /// Makes the columns of T above those of panels in this way, where the planner has chosen one already. Nothing changes where T
    /// has no such columns, and on the CPU.
    ///
    /// # Errors
    /// [`OpError::NoVariant`] when the matrices are not such as this way takes, [`OpError::Device`] when memory is short.
    pub fn with_columns_of_t(mut self, made: Made) -> Result<Qr<T>, OpError> {
        let steps = match &self.plan {
            Some(QrPlan::Panels(steps)) if self.made != Made::Nothing => steps,
            _ => return Ok(self),
        };
        let same = self.matrices.same();
        if made == Made::Nothing || !made.fits(steps, same, T::SIZE) {
            return Err(no_columns(made, same));
        }
        self.work = work(&self.device, &self.matrices, (self.plan.as_ref(), made))?;
        self.made = made;
        Ok(self)
    }

    /// What knows its matrices, and has no memory for their factors.
    pub(super) fn without_factors(device: &Device, matrices: Matrices) -> Result<Qr<T>, OpError> {
        matrices.check_count()?;
        let table = match &matrices {
            Matrices::Each(pieces) if !device.is_cpu() && !pieces.is_empty() => {
                Some(device.upload(&table_of(&matrices))?)
            }
            _ => None,
        };
        Ok(Qr {
            factors: device.zeros(0)?,
            first: device.zeros(0)?,
            t: device.zeros(0)?,
            status: device.zeros(matrices.count())?,
            device: device.clone(),
            streams: streams::planned(device, &matrices, T::SIZE),
            matrices,
            form: TriangleForm::Panels,
            plan: None,
            made: Made::Nothing,
            work: None,
            table,
        })
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

/// Memory between the two launches that make columns of T, or of the triangles of panels in parts.
fn work<T: Number>(
    device: &Device,
    matrices: &Matrices,
    (plan, made): (Option<&QrPlan>, Made),
) -> Result<Option<Buffer<T>>, OpError> {
    let (Some(QrPlan::Panels(steps)), Some(shape)) = (plan, matrices.largest()) else {
        return Ok(None);
    };
    Ok(match launch::work_of(steps, made, shape.least()) {
        0 => None,
        each => Some(device.zeros(matrices.count() * each)?),
    })
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
pub(super) fn table_of(matrices: &Matrices) -> Vec<u64> {
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

/// Refuses launches that leave columns of T unmade.
fn check_made(
    made: Made,
    (plan, same): (Option<&QrPlan>, Option<QrShape>),
    bytes: u32,
) -> Result<(), OpError> {
    match plan {
        Some(QrPlan::Panels(steps)) if !made.fits(steps, same, bytes) => {
            Err(no_columns(made, same))
        }
        _ => Ok(()),
    }
}

fn no_columns(made: Made, same: Option<QrShape>) -> OpError {
    OpError::NoVariant {
        what: "columns of T",
        wanted: format!("{made:?} for {same:?}"),
    }
}
