//! Q, Qᵀ and R⁻¹ of factors times other matrices.

use gpu_kernels::qr::{APART, IDENTITY, QrArgs, QrVariant, TRANSPOSED, pack_tiles, update_tiles};
use gpu_kernels::{In, Out};

use super::batch::Batch;
use super::factors::Qr;
use super::host::{self, Work};
use super::launch::{blocks_of_lanes, run};
use super::values::Side;
use crate::device::Buffer;
use crate::ops::{Number, OpError};
use crate::plan::qr::QrPlan;

/// Memory that a launch only reads, through an argument that others write through.
fn read_only<T: bytemuck::Pod>(buffer: &Buffer<T>) -> Out<'_, T> {
    let all = buffer.input();
    // SAFETY: the memory is that of a buffer which is borrowed; the entries that get it, `Update` apart, `ApplyLanes` and
    // `Solve`, write to `c` alone.
    unsafe { Out::new(all.pointer().cast_mut(), all.len()) }
}

impl<T: Number> Qr<T> {
    /// C = Q·C or Qᵀ·C for each matrix: C has its rows, and any number of columns. Of a batch of different matrices, each
    /// takes as many rows of its C as it has.
    ///
    /// # Errors
    /// [`OpError::Length`] when C does not fit, [`OpError::Qr`] for too many blocks, [`OpError::Device`] when it lies elsewhere or the
    /// device fails.
    pub fn apply(&self, side: Side, c: &mut Buffer<T>, batch: &Batch) -> Result<(), OpError> {
        self.check_c(c, batch)?;
        if batch.cols == 0 || self.matrices.count() == 0 {
            return Ok(());
        }
        if self.device.is_cpu() {
            host::each_column(self, Work::Apply(side), c, batch);
            return Ok(());
        }
        self.launch_apply(side, c, batch, 0)
    }

    /// The first columns of Q: as many as C has, at most the rows of a matrix.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn explicit_q(&self, c: &mut Buffer<T>, batch: &Batch) -> Result<(), OpError> {
        self.check_c(c, batch)?;
        if batch.cols == 0 || self.matrices.count() == 0 {
            return Ok(());
        }
        if self.device.is_cpu() {
            host::identity(c, batch, &self.matrices);
            host::each_column(self, Work::Apply(Side::Q), c, batch);
            return Ok(());
        }
        if let Some(QrPlan::Panels(_)) = &self.plan {
            let tiles = pack_tiles(batch.rows as u32, batch.cols as u32);
            let args = QrArgs {
                f: c.output(),
                table: In::none(),
                rows: batch.rows as u32,
                cols: batch.cols as u32,
                f_steps: batch.steps(),
                ..self.shape_args()
            };
            let grid = u64::from(args.count) * u64::from(tiles);
            run(&self.device, QrVariant::Pack, grid.min(1 << 16), args)?;
        }
        self.launch_apply(Side::Q, c, batch, IDENTITY)
    }

    /// Least squares: the x that makes ‖A·x − c‖₂ least, for each matrix and each column of C, whose first elements it
    /// takes the place of. Of a matrix whose R has a zero on its diagonal, x is not finite.
    ///
    /// # Errors
    /// [`OpError::Qr`] when a matrix has fewer rows than columns; otherwise as [`apply`](Self::apply).
    pub fn solve(&self, c: &mut Buffer<T>, batch: &Batch) -> Result<(), OpError> {
        self.matrices.check_tall()?;
        self.apply(Side::QTransposed, c, batch)?;
        if batch.cols == 0 || self.matrices.count() == 0 {
            return Ok(());
        }
        if self.device.is_cpu() {
            host::each_column(self, Work::Solve, c, batch);
            return Ok(());
        }
        let args = QrArgs {
            f: read_only(&self.factors),
            c: c.output(),
            c_cols: batch.cols as u32,
            c_steps: batch.steps(),
            ..self.shape_args()
        };
        let grid = u64::from(args.count) * batch.cols as u64;
        run(&self.device, solve_of(args.cols), grid, args)
    }

    pub(super) fn check_c(&self, c: &Buffer<T>, batch: &Batch) -> Result<(), OpError> {
        let length = |what, expected, found| match expected == found {
            true => Ok(()),
            false => Err(OpError::Length {
                what,
                expected,
                found,
            }),
        };
        length("the batch of C", self.matrices.count(), batch.count)?;
        if let Some(shape) = self.matrices.largest() {
            length("a column of C", shape.rows, batch.rows)?;
        }
        let limit = i32::MAX as usize / batch.count.max(1);
        if batch.cols > limit {
            let found = batch.cols;
            let what = "columns of C in all";
            let limit = limit as u64;
            let found = found as u64;
            return Err(OpError::TooLarge { what, limit, found });
        }
        batch.check("C", c.len())?;
        c.expect_on(&self.device, "apply Q")?;
        Ok(())
    }

    fn launch_apply(
        &self,
        side: Side,
        c: &mut Buffer<T>,
        batch: &Batch,
        mode: u32,
    ) -> Result<(), OpError> {
        let transposed = match side {
            Side::Q => 0,
            Side::QTransposed => TRANSPOSED,
        };
        let args = QrArgs {
            f: read_only(&self.factors),
            first: read_only(&self.first),
            t: read_only(&self.t),
            c: c.output(),
            c_cols: batch.cols as u32,
            c_steps: batch.steps(),
            mode: APART | transposed | mode,
            ..self.shape_args()
        };
        match &self.plan {
            Some(QrPlan::Lanes(tiny)) => {
                let [rows, lanes] = tiny.most();
                let variant = QrVariant::ApplyLanes { lanes, rows };
                let grid = blocks_of_lanes(args.count, lanes, variant.block());
                run(&self.device, variant, grid, args)
            }
            Some(QrPlan::Panels(steps)) => {
                let each = |step: &crate::plan::qr::PanelStep| {
                    let args = QrArgs {
                        start: step.start as u32,
                        width: step.width as u32,
                        ..args
                    };
                    let kernel = step.applying();
                    let (QrVariant::Update { width, columns }
                    | QrVariant::SharedUpdate { width, columns }) = kernel
                    else {
                        return Ok(());
                    };
                    let tiles = update_tiles(&args, width, columns)[0] * kernel.cluster();
                    let grid = u64::from(args.count) * u64::from(tiles);
                    run(&self.device, kernel, grid, args)
                };
                match side {
                    Side::QTransposed => steps.iter().try_for_each(each),
                    Side::Q => steps.iter().rev().try_for_each(each),
                }
            }
            _ => Ok(()),
        }
    }
}

/// The kernel for R·x = y of this many unknowns: a second warp finds work where there are rows above the last 32.
pub(super) const fn solve_of(unknowns: u32) -> QrVariant {
    QrVariant::Solve {
        warps: if unknowns > 64 { 8 } else { 1 },
    }
}
