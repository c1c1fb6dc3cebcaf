//! R of one tall and narrow matrix: blocks of its rows are factored at once, then the stack of their Rs, and so on until one
//! is left. Of f32, where the GPU multiplies in f64 as fast as it reads, R comes from AᵀA instead, if that is known to be as exact.
//!
//! Source: J. Demmel, L. Grigori, M. Hoemmen, J. Langou, Communication-optimal parallel and sequential QR and LU
//! factorizations, 2012 (TSQR).

mod dressing;
mod gram;
mod host;

pub use dressing::Dressing;

use gpu_kernels::qr::{QrArgs, QrVariant, R_ONLY, Steps};
use gpu_kernels::{In, Out};
use ndarray::Array2;

use super::batch::Piece;
use super::launch;
use super::values::Status;
use crate::device::{Buffer, Device};
use crate::ops::{Number, OpError};
use crate::plan::qr::QrShapeError;
use crate::plan::tall::{MOST_TALL, tall_dressed, tall_panel, tall_turns};
use gram::Gram;

/// Rows of a block on the CPU.
const CPU_ROWS: usize = 1_024;

/// Where R of a tall matrix comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TallSource {
    /// AᵀA in f64: R is exact for an A whose columns differ from those given by a unit in the last place of f32.
    Products,
    /// Reflectors of blocks of rows.
    Reflectors,
}

/// R of a matrix of any number of rows and at most 32 columns, and the memory that it takes.
///
/// ```
/// use warpfuse::device::Device;
/// use warpfuse::ops::qr::{Order, Piece, TallQr};
///
/// let device = Device::auto();
/// let (rows, cols) = (1_000, 2);
/// let a: Vec<f64> = (0..rows).flat_map(|i| [1.0, i as f64]).collect();
/// let a = device.upload(&a)?;
/// let piece = Piece { rows, cols, offset: 0, order: Order::RowMajor, ld: cols };
/// let mut tall = TallQr::new(&device, piece)?;
/// tall.factor(&a)?;
/// let r = tall.r()?;
/// assert!((r[[0, 0]].powi(2) - 1_000.0).abs() < 1e-9); // RᵀR = AᵀA
/// # Ok::<(), warpfuse::ops::OpError>(())
/// ```
#[derive(Debug)]
pub struct TallQr<T: Number> {
    device: Device,
    piece: Piece,
    /// Columns of R: of A, and of targets.
    width: usize,
    panel: QrVariant,
    /// The stacks of Rs, row-major: the last one is R.
    levels: Vec<Buffer<T>>,
    status: Buffer<u32>,
    /// Where R comes from AᵀA.
    gram: Option<Gram>,
}

impl<T: Number> TallQr<T> {
    /// Memory for a matrix that lies so.
    ///
    /// # Errors
    /// [`OpError::Qr`] without rows, or with other than 1 to 32 columns, [`OpError::Device`] when memory is short.
    pub fn new(device: &Device, piece: Piece) -> Result<TallQr<T>, OpError> {
        Self::of_width(device, piece, piece.cols)
    }

    /// [`new`](Self::new) for a matrix that has a column of [targets](Dressing::targets) besides: R has one more.
    ///
    /// # Errors
    /// As [`new`](Self::new); the targets are one of the 32 columns.
    pub fn with_targets(device: &Device, piece: Piece) -> Result<TallQr<T>, OpError> {
        Self::of_width(device, piece, piece.cols.saturating_add(1))
    }

    fn of_width(device: &Device, piece: Piece, width: usize) -> Result<TallQr<T>, OpError> {
        let cols = "columns of a tall matrix (at most 32)";
        for (what, found, most) in [
            ("rows", piece.rows, usize::MAX),
            (cols, piece.cols, MOST_TALL),
            (cols, width, MOST_TALL),
        ] {
            if found == 0 || found > most {
                return Err(OpError::Qr(QrShapeError::Size { what, found }));
            }
        }
        let panel = tall_panel(T::SIZE);
        let block = if device.is_cpu() {
            CPU_ROWS
        } else {
            panel.most()[0] as usize
        };
        let mut levels = Vec::new();
        let mut rows = piece.rows;
        loop {
            let count = rows.div_ceil(block);
            levels.push(device.zeros(count * width * width)?);
            if count == 1 {
                break;
            }
            rows = count * width;
        }
        let most = piece.rows.div_ceil(block);
        Ok(TallQr {
            gram: Gram::new::<T>(device, piece.rows)?,
            device: device.clone(),
            piece,
            width,
            panel,
            levels,
            status: device.zeros(most)?,
        })
    }

    /// Factors `a`. Waits for nothing.
    ///
    /// # Errors
    /// As [`Qr::factor`](super::Qr::factor).
    pub fn factor(&mut self, a: &Buffer<T>) -> Result<(), OpError> {
        self.factor_dressed(a, &Dressing::default())
    }

    /// [`factor`](Self::factor) of rows that change on their way.
    ///
    /// # Errors
    /// As [`factor`](Self::factor); [`OpError::Length`] when there are targets and this is none [with
    /// targets](Self::with_targets), or the reverse, or a list is not as long as its rows or columns.
    pub fn factor_dressed(
        &mut self,
        a: &Buffer<T>,
        dressing: &Dressing<'_, T>,
    ) -> Result<(), OpError> {
        self.piece.check("A", a.len())?;
        a.expect_on(&self.device, "factor a matrix")?;
        dressing.check(&self.device, &self.piece)?;
        let found = self.piece.cols + usize::from(dressing.targets.is_some());
        if found != self.width {
            return Err(OpError::Length {
                what: "columns of A with its targets",
                expected: self.width,
                found,
            });
        }
        if self.device.is_cpu() {
            self.on_cpu(a, dressing);
            return Ok(());
        }
        self.status.fill_zero()?;
        let [row, col] = self.piece.steps();
        let first = a.input().after(self.piece.offset as u64);
        let steps = Steps { row, col, each: 0 };
        if self.gram.is_some() {
            self.take_products(first, steps, dressing)?;
        }
        let variant = match dressing.is_plain() {
            true => self.kernel(),
            false => tall_dressed(T::SIZE),
        };
        self.level(0, (variant, first), (self.piece.rows, steps), dressing)?;
        let n = self.width as u64;
        for i in 1..self.levels.len() {
            let above = std::mem::replace(&mut self.levels[i - 1], self.device.zeros(0)?);
            let rows = above.len() / self.width;
            let steps = Steps {
                row: n,
                col: 1,
                each: 0,
            };
            let of = (self.kernel(), above.input());
            let done = self.level(i, of, (rows, steps), &Dressing::default());
            self.levels[i - 1] = above;
            done?;
        }
        Ok(())
    }

    /// The kernel for rows as they are: what stands behind products waits for their verdict.
    fn kernel(&self) -> QrVariant {
        match self.gram {
            Some(_) => tall_dressed(T::SIZE),
            None => self.panel,
        }
    }

    /// R of each block of `rows` rows, to level `i`.
    fn level(
        &mut self,
        i: usize,
        (variant, a): (QrVariant, In<'_, T>),
        (rows, steps): (usize, Steps),
        dressing: &Dressing<'_, T>,
    ) -> Result<(), OpError> {
        let (n, block) = (self.width as u64, variant.most()[0] as usize);
        let count = rows.div_ceil(block);
        let verdict = self.gram.as_mut().map(Gram::verdict);
        let grid = match (&verdict, self.device.limits()) {
            (Some(_), Some(limits)) => tall_turns(count as u32, limits),
            _ => count as u32,
        };
        let args = QrArgs {
            a,
            f: self.levels[i].output(),
            status: self.status.output(),
            count: count as u32,
            rows: block.min(rows) as u32,
            cols: n as u32,
            last_rows: (rows - (count - 1) * block) as u32,
            width: MOST_TALL as u32,
            mode: R_ONLY,
            a_steps: Steps {
                each: block as u64 * steps.row,
                ..steps
            },
            f_steps: Steps {
                row: n,
                col: 1,
                each: n * n,
            },
            dress: dressing.args(),
            verdict: verdict.unwrap_or(Out::none()),
            ..QrArgs::none()
        };
        launch::run(&self.device, variant, u64::from(grid), args)
    }

    /// R, with zeros below its diagonal; waits for it. Rows that a matrix of few rows lacks are zero.
    ///
    /// # Errors
    /// When the device has failed.
    pub fn r(&self) -> Result<Array2<T>, OpError> {
        let n = self.width;
        let last = self.levels.last().expect("there is at least one level");
        let r = Array2::from_shape_vec((n, n), last.to_vec()?);
        Ok(r.expect("as many elements as the shape has"))
    }

    /// Where R comes from; waits for the factorisation.
    ///
    /// # Errors
    /// When the device has failed.
    pub fn source(&self) -> Result<TallSource, OpError> {
        Ok(match &self.gram {
            Some(gram) if !gram.is_refused()? => TallSource::Products,
            _ => TallSource::Reflectors,
        })
    }

    /// What was met in any block; waits for the factorisation. A zero pivot of a block is none of R: only what is not finite
    /// is told.
    ///
    /// # Errors
    /// When the device has failed.
    pub fn status(&self) -> Result<Status, OpError> {
        let is_bad = |word: &u32| Status::of(*word).not_finite;
        let r = self.r()?;
        let words = match &self.gram {
            Some(gram) if !gram.is_refused()? => vec![gram.word()?],
            _ => self.status.to_vec()?,
        };
        Ok(Status {
            not_finite: words.iter().any(is_bad),
            zero_pivot: r.diag().iter().any(|x| *x == T::ZERO),
        })
    }
}
