//! R of one tall and narrow matrix: blocks of its rows are factored at once, then the stack of their Rs, and so on until one
//! is left.
//!
//! Source: J. Demmel, L. Grigori, M. Hoemmen, J. Langou, Communication-optimal parallel and sequential QR and LU
//! factorizations, 2012 (TSQR).

use gpu_kernels::qr::{Dress, QrArgs, QrVariant, R_ONLY, Steps};
use gpu_kernels::{In, Out};
use ndarray::Array2;
use rayon::prelude::*;

use super::batch::Piece;
use super::host::ON_HOST;
use super::launch;
use super::values::Status;
use crate::cpu::qr as cpu;
use crate::device::{Buffer, Device};
use crate::ops::{Number, OpError, checks};
use crate::plan::qr::QrShapeError;
use crate::plan::tall::{MOST_TALL, tall_dressed, tall_panel};

/// Rows of a block on the CPU.
const CPU_ROWS: usize = 1_024;

/// What rows become on their way into a factorisation: row i of A as `roots[i] · [a − means, targets[i]]`. Nothing is written.
///
/// Least squares of centred columns and weighted rows, with the targets as the last column, is what it is for: the last column
/// of R is then Qᵀ times the targets.
#[derive(Debug)]
pub struct Dressing<'a, T: Number> {
    /// Subtracted from the columns of A, one for each.
    pub means: Option<&'a Buffer<T>>,
    /// Multiply the rows, one for each: the roots of their weights.
    pub roots: Option<&'a Buffer<T>>,
    /// A further column, one for each row.
    pub targets: Option<&'a Buffer<T>>,
}

impl<T: Number> Default for Dressing<'_, T> {
    /// Rows as they are.
    fn default() -> Self {
        Dressing {
            means: None,
            roots: None,
            targets: None,
        }
    }
}

impl<T: Number> Dressing<'_, T> {
    /// Whether anything changes.
    fn is_plain(&self) -> bool {
        self.means.is_none() && self.roots.is_none() && self.targets.is_none()
    }

    fn args(&self) -> Dress<'_, T> {
        Dress {
            means: self.means.map_or(In::none(), Buffer::input),
            roots: self.roots.map_or(In::none(), Buffer::input),
            targets: self.targets.map_or(In::none(), Buffer::input),
        }
    }

    /// Fails unless everything is on the device of the factorisation, and as long as it has to be.
    fn check(&self, device: &Device, piece: &Piece) -> Result<(), OpError> {
        for (what, buffer, expected) in [
            ("means of the columns of A", self.means, piece.cols),
            ("roots of the weights of A's rows", self.roots, piece.rows),
            ("targets of A's rows", self.targets, piece.rows),
        ] {
            let Some(buffer) = buffer else { continue };
            buffer.expect_on(device, "factor a matrix")?;
            checks::same_length(what, buffer, expected)?;
        }
        Ok(())
    }
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
        let variant = match dressing.is_plain() {
            true => self.panel,
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
            let of = (self.panel, above.input());
            let done = self.level(i, of, (rows, steps), &Dressing::default());
            self.levels[i - 1] = above;
            done?;
        }
        Ok(())
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
        let args = QrArgs {
            a,
            f: self.levels[i].output(),
            first: Out::none(),
            t: Out::none(),
            work: Out::none(),
            c: Out::none(),
            status: self.status.output(),
            table: In::none(),
            count: count as u32,
            rows: block.min(rows) as u32,
            cols: n as u32,
            last_rows: (rows - (count - 1) * block) as u32,
            c_cols: 0,
            start: 0,
            width: MOST_TALL as u32,
            since: 0,
            until: 0,
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
            c_steps: Steps::default(),
            dress: dressing.args(),
        };
        launch::run(&self.device, variant, count as u64, args)
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

    /// What was met in any block; waits for the factorisation. A zero pivot of a block is none of R: only what is not finite
    /// is told.
    ///
    /// # Errors
    /// When the device has failed.
    pub fn status(&self) -> Result<Status, OpError> {
        let is_bad = |word: &u32| Status::of(*word).not_finite;
        let r = self.r()?;
        Ok(Status {
            not_finite: self.status.to_vec()?.iter().any(is_bad),
            zero_pivot: r.diag().iter().any(|x| *x == T::ZERO),
        })
    }

    fn on_cpu(&mut self, a: &Buffer<T>, dressing: &Dressing<'_, T>) {
        let a = a.as_host_slice().expect(ON_HOST);
        let [means, roots, targets] = [dressing.means, dressing.roots, dressing.targets]
            .map(|buffer| buffer.map(|buffer| buffer.as_host_slice().expect(ON_HOST)));
        let (n, piece) = (self.width, self.piece);
        let count = piece.rows.div_ceil(CPU_ROWS);
        let of_block = |block: usize| {
            let first = block * CPU_ROWS;
            let rows = CPU_ROWS.min(piece.rows - first);
            let element = |col: usize, row: usize| {
                let plain = match targets {
                    Some(targets) if col == piece.cols => targets[first + row],
                    _ => a[piece.at(first + row, col)] - means.map_or(T::ZERO, |means| means[col]),
                };
                roots.map_or(plain, |roots| plain * roots[first + row])
            };
            let columns = (0..n).flat_map(|col| (0..rows).map(move |row| element(col, row)));
            r_of(columns.collect(), rows, n)
        };
        let mut found: Vec<(Vec<T>, u32)> = (0..count).into_par_iter().map(of_block).collect();
        let mut status = found.iter().fold(0, |all, (_, status)| all | status);
        while found.len() > 1 {
            let of_pair = |pair: &[(Vec<T>, u32)]| {
                let rows = pair.len() * n;
                let element = |col: usize, row: usize| pair[row / n].0[row % n * n + col];
                let columns = (0..n).flat_map(|col| (0..rows).map(move |row| element(col, row)));
                r_of(columns.collect(), rows, n)
            };
            found = found.par_chunks(2).map(of_pair).collect();
            status = found.iter().fold(status, |all, (_, status)| all | status);
        }
        let last = self.levels.last_mut().and_then(Buffer::as_host_slice_mut);
        last.expect("the buffers lie on the CPU")
            .copy_from_slice(&found[0].0);
        let words = self.status.as_host_slice_mut();
        words.expect("the buffers lie on the CPU").fill(status);
    }
}

/// Row-major R, with zeros, of a column-major block.
fn r_of<T: Number>(mut packed: Vec<T>, rows: usize, n: usize) -> (Vec<T>, u32) {
    let mut status = 0;
    let mut job = cpu::Job {
        rows,
        cols: n,
        packed: &mut packed,
        first: &mut vec![T::ZERO; n],
        t: &mut [],
        status: &mut status,
    };
    cpu::factor(&mut job);
    let mut r = vec![T::ZERO; n * n];
    for col in 0..n {
        for row in 0..rows.min(col + 1) {
            r[row * n + col] = packed[col * rows + row];
        }
    }
    (r, status)
}
