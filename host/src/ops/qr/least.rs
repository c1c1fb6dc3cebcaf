//! Least squares of a batch, where nothing but the solutions is wanted.
//!
//! Milliseconds in f32 on an H100 (2026-11-26), by the factors (R, V and T, then Qᵀ, then R⁻¹) and as here:
//!
//! | batch, one right-hand side | R, V, T alone | by the factors | as here |
//! |---|--:|--:|--:|
//! | 10⁶ of 16 × 16 | 1.45 | 6.16 | 2.09 |
//! | 10⁵ of 32 × 32 | 1.22 | 3.24 | 1.20 |
//! | 10,000 of 64 × 64 | 1.62 | 2.28 | 1.80 |
//! | 640 of 512 × 512 | 9.15 | 9.19 | 7.63 |
//! | 60 of 1,024 × 1,024 | 8.75 | 13.4 | 6.71 |
//! | 8 of 2,048 × 2,048 | 27.0 | 51.9 | 21.6 |
//!
//! With two columns a lane 10⁶ of 16 × 16 take 1.05 in f32 and 2.42 in f64 on an H200 (2026-11-28), with one 1.72 and 3.64.

use gpu_kernels::qr::{BEHIND, QrArgs, QrVariant};
use gpu_kernels::{In, Out};

use super::apply::solve_of;
use super::batch::{Batch, Matrices};
use super::factors::Qr;
use super::launch::{
    blocks_of_lanes, kernel_before, lanes_of, pack, packed_panels, packs, reads_there, run, work_of,
};
use super::streams;
use super::values::Status;
use crate::device::{Buffer, Device};
use crate::ops::{Number, OpError, checks};
use crate::plan::qr::{self as plans, Lying, Made, PanelStep, QrPlan, QrShape, TriangleForm};

/// Least squares of a batch, and the memory that they take.
///
/// Of matrices of at most 32 × 32 with one right-hand side each nothing is kept at all: one launch solves them. Right-hand sides
/// of larger ones are columns behind those of A, to which reflectors apply as they come; A is read where it lies, column-major, if its
/// columns wait for the panels before theirs or are one panel, and fill it.
///
/// ```
/// use warpfuse::device::Device;
/// use warpfuse::ops::qr::{Batch, LeastSquares};
///
/// let device = Device::auto();
/// let a = device.upload(&[1.0_f64, 1.0, 1.0, 0.0, 1.0, 2.0])?; // lines through three points
/// let mut c = device.upload(&[1.0, 3.0, 5.0])?;
/// let mut least = LeastSquares::new(&device, Batch::column_major(3, 2, 1), 1)?;
/// least.solve(&a, &mut c, &Batch::column_major(3, 1, 1))?;
/// let x = c.to_vec()?;
/// assert!((x[0] - 1.0).abs() + (x[1] - 2.0).abs() < 1e-14);
/// # Ok::<(), warpfuse::ops::OpError>(())
/// ```
#[derive(Debug)]
pub struct LeastSquares<T: Number> {
    way: Way,
    matrices: Matrices,
    sides: usize,
    /// Of A, of A with its right-hand sides, or of nothing but its shapes.
    qr: Qr<T>,
}

/// How right-hand sides come to their solutions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// One launch.
    AtOnce(QrVariant),
    /// As further columns of A.
    Behind,
    /// By the factors of A.
    ByFactors,
}

impl<T: Number> LeastSquares<T> {
    /// Memory for `matrices` with `sides` right-hand sides each.
    ///
    /// # Errors
    /// As [`Qr::new`]; [`OpError::Qr`] when a matrix has fewer rows than columns.
    pub fn new(
        device: &Device,
        matrices: impl Into<Matrices>,
        sides: usize,
    ) -> Result<LeastSquares<T>, OpError> {
        let matrices = matrices.into();
        matrices.check_shapes()?;
        matrices.check_tall()?;
        let shape = matrices.largest().filter(|_| device.limits().is_some());
        let lying = matrices.lying(T::SIZE);
        let tiny = shape.filter(|_| sides == 1);
        let tiny = tiny.and_then(|shape| plans::least_for(shape, lying));
        let (way, qr) = match (tiny, &matrices) {
            (Some(kernel), _) => (
                Way::AtOnce(kernel),
                Qr::without_factors(device, matrices.clone())?,
            ),
            (None, Matrices::Same(batch)) if shape.is_some_and(is_panels) && sides > 0 => {
                (Way::Behind, with_sides(device, batch, sides)?)
            }
            _ => (
                Way::ByFactors,
                Qr::new(device, matrices.clone(), TriangleForm::Panels)?,
            ),
        };
        Ok(LeastSquares {
            way,
            matrices,
            sides,
            qr,
        })
    }

    /// Solves parts of the batch beside each other, as [`Qr::in_streams`] says.
    #[must_use]
    pub fn in_streams(self, streams: usize) -> LeastSquares<T> {
        let qr = self.qr.in_streams(streams);
        LeastSquares { qr, ..self }
    }

    /// The x that makes ‖A·x − c‖₂ least, for each matrix and each column of C, whose first elements it takes the place of; what
    /// becomes of the others is not said. Of a matrix whose R has a zero on its diagonal, x is not finite. Waits for nothing.
    ///
    /// # Errors
    /// [`OpError::Length`] when `a` or `c` is too short or C is another batch, [`OpError::Device`] when they lie elsewhere or the
    /// device fails.
    pub fn solve(
        &mut self,
        a: &Buffer<T>,
        c: &mut Buffer<T>,
        batch: &Batch,
    ) -> Result<(), OpError> {
        checks::length("right-hand sides of a matrix", self.sides, batch.cols)?;
        self.matrices.check("A", a.len())?;
        a.expect_on(&self.qr.device, "solve least squares")?;
        self.qr.check_c(c, batch)?;
        match (self.way, &self.matrices) {
            (_, matrices) if matrices.count() == 0 => Ok(()),
            (Way::AtOnce(kernel), _) => self.at_once(kernel, a, (c, batch)),
            (Way::Behind, Matrices::Same(of_a)) => self.behind(*of_a, a, (c, batch)),
            _ => {
                self.qr.factor(a)?;
                self.qr.solve(c, batch)
            }
        }
    }

    fn at_once(
        &mut self,
        kernel: QrVariant,
        a: &Buffer<T>,
        (c, batch): (&mut Buffer<T>, &Batch),
    ) -> Result<(), OpError> {
        let qr = &mut self.qr;
        let sizes = qr.sizes();
        let args = QrArgs {
            a: a.input(),
            c: c.output(),
            c_cols: 1,
            c_steps: batch.steps(),
            mode: packs::<T>(&qr.matrices, kernel),
            status: qr.status.output(),
            table: qr.table.as_ref().map_or(sizes.table, Buffer::input),
            ..sizes
        };
        let grid = blocks_of_lanes(args.count, lanes_of(kernel)?, kernel.block());
        run(&qr.device, kernel, grid, args)
    }

    /// Factors [A, C]: the last columns of R are Qᵀ·C.
    fn behind(
        &mut self,
        of_a: Batch,
        a: &Buffer<T>,
        (c, batch): (&mut Buffer<T>, &Batch),
    ) -> Result<(), OpError> {
        let qr = &mut self.qr;
        let Some(QrPlan::Panels(steps)) = qr.plan.clone() else {
            return Ok(());
        };
        qr.status.fill_zero()?;
        let (device, streams) = (qr.device.clone(), qr.streams);
        let (sizes, cols) = (qr.sizes(), of_a.cols as u32);
        let args = QrArgs {
            f: qr.factors.output(),
            first: qr.first.output(),
            t: qr.t.output(),
            work: qr.work.as_mut().map_or(Out::none(), Buffer::output),
            status: qr.status.output(),
            ..sizes
        };
        let work = work_of(&steps, Made::Nothing, args.rows.min(args.cols) as usize);
        let of_c = QrArgs {
            a: c.input(),
            f: args.f.after(u64::from(cols) * u64::from(args.rows)),
            cols: self.sides as u32,
            a_steps: batch.steps(),
            ..args
        };
        pack(&device, of_c)?;
        let with_a = QrArgs {
            a: a.input(),
            a_steps: of_a.steps(),
            ..args
        };
        let steps = (&steps[..], kernel_before(&steps)?);
        let panels = to_panels(&device, with_a, steps, cols)?;
        streams::of_batch(&device, panels, (streams, work), |device, args| {
            packed_panels(device, steps, Made::Nothing, args)
        })?;
        let solve = QrArgs {
            cols,
            c: c.output(),
            c_cols: self.sides as u32,
            c_steps: batch.steps(),
            mode: BEHIND,
            ..args
        };
        let grid = u64::from(args.count) * self.sides as u64;
        run(&device, solve_of(cols), grid, solve)
    }

    /// What was met in each matrix, and in right-hand sides that are not finite; waits for the solutions.
    ///
    /// # Errors
    /// When the device has failed.
    pub fn statuses(&self) -> Result<Vec<Status>, OpError> {
        self.qr.statuses()
    }
}

/// The arguments of panels that read the `cols` columns of A where they lie, or else find them where factors come.
fn to_panels<'a, T: Number>(
    device: &Device,
    args: QrArgs<'a, T>,
    (steps, waits): (&[PanelStep], Option<QrVariant>),
    cols: u32,
) -> Result<QrArgs<'a, T>, OpError> {
    let of_a = QrArgs { cols, ..args };
    // Right-hand sides in the last panel would be read from A, too.
    let is_last = |step: &PanelStep| step.start + step.width == cols as usize;
    if steps.last().is_some_and(is_last) && reads_there(of_a, (steps, waits)) {
        return Ok(args);
    }
    pack(device, of_a)?;
    let a = In::none();
    Ok(QrArgs { a, ..args })
}

fn is_panels(shape: QrShape) -> bool {
    plans::lanes_for(shape).is_none()
}

/// Memory for A with its right-hand sides behind, and the launches for its own columns.
fn with_sides<T: Number>(device: &Device, of_a: &Batch, sides: usize) -> Result<Qr<T>, OpError> {
    let both = Batch::column_major(of_a.rows, of_a.cols + sides, of_a.count);
    let matrices = Matrices::Same(both);
    let plan = device.limits().map(|limits| {
        let batch = plans::Batch::of(both.shape(), both.count, T::SIZE, limits);
        match plans::planned(&batch, Lying::Packed, device.has_clusters()) {
            QrPlan::Panels(mut steps) => {
                steps.retain(|step| step.start < of_a.cols);
                QrPlan::Panels(steps)
            }
            tiny => tiny,
        }
    });
    Qr::of_any_shape(device, matrices, TriangleForm::Panels, plan)
}
