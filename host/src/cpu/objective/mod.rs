//! `Σ vᵣ·loss(tᵣ, bᵣ)` with `t = X·y + c + o`, and its gradient `Xᵀg`, X read once.
//!
//! Rows are taken in blocks that stay in the nearest caches: dot products of a block, then the losses, which
//! vectorise over the rows, then the block's share of the gradient. As for the fused pattern, rows are cut into
//! chunks by the shape of X alone, each chunk adds into its own copy of the gradient in f64, and copies and sums are
//! added in the order of the chunks: the same bits come out whatever the number of threads.

mod losses;
mod rows;
mod score;
mod softmax;

use gpu_kernels::math::Elementary;
use gpu_kernels::objective::Loss;

use super::fused::{Workspace, combine};
use super::grid::Grid;
use super::scalar::Scalar;
use super::terms::{Addend, Terms};
use super::{Csr, Dense, chunks};
use crate::parallel;
use losses::Losses;
pub use rows::BlockedRows;
pub use score::{Scored, Truth, score_classes, score_numbers};
pub use softmax::{Softmax, SoftmaxWork, softmax};

/// Rows of a block at most.
const BLOCK: usize = 64;

/// An element type of the pass.
pub trait Element: Scalar + Elementary {}

impl<T: Scalar + Elementary> Element for T {}

/// What a row's predictor is judged by. Absent vectors stand for zeros, absent weights for ones.
#[derive(Debug, Clone, Copy)]
pub struct Evaluation<'a, T> {
    /// The loss.
    pub loss: Loss,
    /// b, m elements.
    pub target: Option<&'a [T]>,
    /// v, m elements; a row of weight 0 takes no part.
    pub weights: Option<&'a [T]>,
    /// o, m elements.
    pub offset: Option<&'a [T]>,
    /// c.
    pub intercept: T,
    /// A factor of all weights.
    pub scale: T,
}

/// Where results go besides the sums.
#[derive(Debug)]
pub struct Outputs<'a, T> {
    /// Xᵀg + β·z, n elements.
    pub gradient: Option<&'a mut [T]>,
    /// β and z of the gradient.
    pub addend: Addend<'a, T>,
    /// g, m elements.
    pub residual: Option<&'a mut [T]>,
    /// d, m elements.
    pub curvature: Option<&'a mut [T]>,
}

/// Σ v·loss, Σ g, Σ d.
pub type Sums = [f64; 3];

/// Evaluates the objective at `y` of n elements, reading X once.
///
/// # Panics
/// When the length of a vector does not fit X.
///
/// ```
/// use gpu_kernels::objective::Loss;
/// use warpfuse::cpu::objective::{Evaluation, Outputs, objective};
/// use warpfuse::cpu::{Addend, Dense, Workspace};
/// let x = Dense::new(2, 2, 2, &[1.0, 2.0, 0.0, 3.0]).unwrap();
/// let least_squares = Evaluation {
///     loss: Loss::Squared,
///     target: Some(&[1.0, 1.0]),
///     weights: None,
///     offset: None,
///     intercept: 0.0,
///     scale: 1.0,
/// };
/// let mut w = [0.0; 2];
/// let out = Outputs { gradient: Some(&mut w), addend: Addend::None, residual: None, curvature: None };
/// let [loss, ..] = objective(&x, &[1.0, 1.0], &least_squares, out, &mut Workspace::new());
/// assert_eq!((loss, w), (4.0, [2.0, 10.0]));
/// ```
pub fn objective<T: Element>(
    x: &impl BlockedRows<T>,
    y: &[T],
    evaluation: &Evaluation<'_, T>,
    out: Outputs<'_, T>,
    workspace: &mut Workspace,
) -> Sums {
    let (rows, cols) = x.shape();
    assert_eq!(y.len(), cols, "y needs one element per column of X");
    evaluation.check(rows);
    out.check(rows, cols);
    let Outputs {
        gradient,
        addend,
        residual,
        curvature,
    } = out;
    let chunks = if gradient.is_some() {
        x.copies()
    } else {
        x.row_chunks()
    };
    // Eight more than needed, so that no two copies share a cache line.
    let stride = if gradient.is_some() { cols + 8 } else { 0 };
    let copies = workspace.copies(chunks, stride);
    let starts = |chunk| x.first_row(chunk, chunks);
    let residuals = split(residual, chunks, starts);
    let curvatures = split(curvature, chunks, starts);
    let tasks: Vec<_> = pieces(copies, stride, chunks, cols)
        .into_iter()
        .zip(residuals.into_iter().zip(curvatures))
        .collect();
    let run = |chunk, (copy, (residual, curvature))| {
        let task = Chunk {
            rows: starts(chunk)..starts(chunk + 1),
            copy,
            residual,
            curvature,
        };
        task.run(x, y, evaluation)
    };
    let sums: Vec<Sums> = parallel::map_items(tasks, run);
    if let Some(w) = gradient {
        combine(
            copies,
            stride,
            &Terms {
                addend,
                ..Terms::scaled(<T as Scalar>::ONE)
            },
            w,
        );
    }
    sums.into_iter()
        .fold([0.0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]])
}

/// Σ v·loss, Σ g and Σ d of rows whose products with y are known.
///
/// # Panics
/// When the length of a vector differs from that of the products.
pub fn row_losses<T: Element>(
    products: &[T],
    evaluation: &Evaluation<'_, T>,
    mut residual: Option<&mut [T]>,
    mut curvature: Option<&mut [T]>,
) -> Sums {
    evaluation.check(products.len());
    let mut losses = Losses::new(evaluation);
    let mut dots = [0.0; BLOCK];
    for (block, products) in products.chunks(BLOCK).enumerate() {
        let first = block * BLOCK;
        let dots = &mut dots[..products.len()];
        for (dot, product) in dots.iter_mut().zip(products) {
            *dot = (*product).into();
        }
        let points = losses.evaluate(first, dots);
        store(&mut residual, first, points.slopes);
        store(&mut curvature, first, points.curvatures);
    }
    losses.sums()
}

/// [`row_losses`] with the bits that every device gets: predictors are added up in T, and sums in the order of
/// [`grid`](super::grid).
///
/// # Panics
/// As [`row_losses`].
pub fn row_losses_in_order<T: Element>(
    products: &[T],
    evaluation: &Evaluation<'_, T>,
    residual: &mut [T],
    curvature: Option<&mut [T]>,
) -> Sums {
    let rows = products.len();
    evaluation.check(rows);
    let (mut losses, mut own) = (vec![T::default(); rows], Vec::new());
    let curvature = match curvature {
        Some(curvature) => curvature,
        None => {
            own.resize(rows, T::default());
            &mut own[..]
        }
    };
    let judged = losses::Rows {
        losses: &mut losses,
        slopes: residual,
        curvatures: curvature,
    };
    losses::judge(products, evaluation, judged);
    let add = |row: usize, [loss, slope, bend]: &mut Sums| {
        *loss += Into::<f64>::into(losses[row]);
        *slope += Into::<f64>::into(residual[row]);
        *bend += Into::<f64>::into(curvature[row]);
    };
    Grid::of(rows).sums(rows, add)
}

impl<T: Element> Evaluation<'_, T> {
    fn check(&self, rows: usize) {
        for (name, vector) in [("b", self.target), ("v", self.weights), ("o", self.offset)] {
            let fits = vector.is_none_or(|vector| vector.len() == rows);
            assert!(fits, "{name} needs one element per row of X");
        }
    }
}

impl<T> Outputs<'_, T> {
    fn check(&self, rows: usize, cols: usize) {
        let fits = |vector: &Option<&mut [T]>, len| vector.as_ref().is_none_or(|v| v.len() == len);
        assert!(
            fits(&self.gradient, cols),
            "the gradient needs one element per column of X"
        );
        assert!(
            fits(&self.residual, rows),
            "the residual needs one element per row of X"
        );
        assert!(
            fits(&self.curvature, rows),
            "the curvature needs one element per row of X"
        );
        if let Addend::Vector { z, .. } = self.addend {
            assert_eq!(z.len(), cols, "z needs one element per column of X");
        }
    }
}

/// An optional m-vector, cut at the chunks' first rows.
fn split<T>(
    vector: Option<&mut [T]>,
    chunks: usize,
    starts: impl Fn(usize) -> usize,
) -> Vec<Option<&mut [T]>> {
    match vector {
        None => (0..chunks).map(|_| None).collect(),
        Some(vector) => chunks::split_mut(vector, chunks, starts)
            .into_iter()
            .map(|(_, piece)| Some(piece))
            .collect(),
    }
}

/// [`split`] for `k` elements per row.
fn split_rows<T>(
    vector: Option<&mut [T]>,
    k: usize,
    chunks: usize,
    starts: impl Fn(usize) -> usize,
) -> Vec<Option<&mut [T]>> {
    split(vector, chunks, |chunk| starts(chunk) * k)
}

/// The copies of the gradient, or none.
fn pieces(
    copies: &mut [f64],
    stride: usize,
    chunks: usize,
    cols: usize,
) -> Vec<Option<&mut [f64]>> {
    if stride == 0 {
        return (0..chunks).map(|_| None).collect();
    }
    copies
        .chunks_mut(stride)
        .map(|copy| Some(&mut copy[..cols]))
        .collect()
}

/// Rows that one thread takes, and where their results go.
struct Chunk<'a, T> {
    rows: std::ops::Range<usize>,
    copy: Option<&'a mut [f64]>,
    residual: Option<&'a mut [T]>,
    curvature: Option<&'a mut [T]>,
}

impl<T: Element> Chunk<'_, T> {
    fn run(mut self, x: &impl BlockedRows<T>, y: &[T], evaluation: &Evaluation<'_, T>) -> Sums {
        if let Some(copy) = &mut self.copy {
            copy.fill(0.0);
        }
        let mut losses = Losses::new(evaluation);
        let mut dots = [0.0; BLOCK];
        let block = x.block().clamp(1, BLOCK);
        let mut start = self.rows.start;
        while start < self.rows.end {
            let rows = start..self.rows.end.min(start + block);
            let dots = &mut dots[..rows.len()];
            x.dots(rows.clone(), y, evaluation.weights, dots);
            let points = losses.evaluate(start, dots);
            if let Some(copy) = &mut self.copy {
                x.add(rows.clone(), points.slopes, copy);
            }
            let at = start - self.rows.start;
            store(&mut self.residual, at, points.slopes);
            store(&mut self.curvature, at, points.curvatures);
            start = rows.end;
        }
        losses.sums()
    }
}

fn store<T: Copy>(to: &mut Option<&mut [T]>, at: usize, values: &[T]) {
    if let Some(to) = to {
        to[at..at + values.len()].copy_from_slice(values);
    }
}

/// The passes' own view of a matrix: see [`BlockedRows`].
impl<T: Element> BlockedRows<T> for Csr<'_, T> {
    fn block(&self) -> usize {
        rows::block_of(
            self.nnz().saturating_mul(size_of::<T>() + size_of::<u32>()),
            self.rows(),
        )
    }

    fn dots(&self, rows: std::ops::Range<usize>, y: &[T], weights: Option<&[T]>, dots: &mut [f64]) {
        rows::sparse_dots(self, rows, y, weights, dots);
    }

    fn add(&self, rows: std::ops::Range<usize>, factors: &[T], w: &mut [f64]) {
        rows::sparse_add(self, rows, factors, w);
    }

    fn dot_columns(&self, row: usize, y: &[T], dots: &mut [f64]) {
        rows::sparse_dot_columns(self, row, y, dots);
    }

    fn add_columns(&self, row: usize, factors: &[f64], w: &mut [f64]) {
        rows::sparse_add_columns(self, row, factors, w);
    }
}

impl<T: Element> BlockedRows<T> for Dense<'_, T> {
    fn block(&self) -> usize {
        rows::block_of(self.cols().saturating_mul(size_of::<T>()), 1)
    }

    fn dots(&self, rows: std::ops::Range<usize>, y: &[T], weights: Option<&[T]>, dots: &mut [f64]) {
        rows::dense_dots(self, rows, y, weights, dots);
    }

    fn add(&self, rows: std::ops::Range<usize>, factors: &[T], w: &mut [f64]) {
        rows::dense_add(self, rows, factors, w);
    }

    fn dot_columns(&self, row: usize, y: &[T], dots: &mut [f64]) {
        rows::dense_dot_columns(self, row, y, dots);
    }

    fn add_columns(&self, row: usize, factors: &[f64], w: &mut [f64]) {
        rows::dense_add_columns(self, row, factors, w);
    }
}
