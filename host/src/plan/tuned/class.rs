//! Names of classes of problems: what a tuner's measurement is of, and what a planner looks up.
//!
//! A class has the family, the element type and all sizes. Where times depend on how entries are spread, a class also says
//! whether they are spread evenly, so that what was measured on a made-up matrix is not taken for one of another kind.

use crate::plan::conv1d::Conv1dShape;
use crate::plan::kernel_sum::{self, Work};
use crate::plan::matmul;
use crate::plan::problem::{Precision, Problem};
use crate::plan::qr::QrShape;
use crate::plan::sparse_conv::{ConvShape, ConvWork};

/// A row with more than this many times the mean number of entries makes rows uneven; the same holds of columns.
const UNEVEN: f64 = 8.0;
/// Entries that a row or column may have beyond that: short ones vary more.
const FEW: f64 = 16.0;

/// Products `w = α·Xᵀ(v ⊙ (X·y)) + β·z` of a matrix.
///
/// ```
/// use warpfuse::plan::tuned::class;
/// use warpfuse::plan::{Precision, Problem};
/// let x = Problem::sparse(1_000, 50, 20_000, Precision::F32);
/// assert_eq!(class::fused(&x), "fused f32 1000 x 50 f32, 20000 nonzeros");
/// assert_eq!(class::fused(&x.with_longest_row(50)), class::fused(&x));
/// let skewed = Problem::sparse(1_000, 5_000, 20_000, Precision::F32).with_longest_row(3_000);
/// assert!(class::fused(&skewed).ends_with("uneven rows"));
/// ```
pub fn fused(problem: &Problem) -> String {
    let mut class = format!("fused {} {problem}", problem.dtype);
    if problem.is_dense() {
        return class;
    }
    let mean = problem.mean_row();
    let of_column = problem.nnz.unwrap_or(0) as f64 / problem.cols.max(1) as f64;
    for (most, mean, what) in [
        (problem.longest(), mean, ", uneven rows"),
        (problem.busiest_column(), of_column, ", uneven columns"),
    ] {
        if most > UNEVEN * mean + FEW {
            class.push_str(what);
        }
    }
    class
}

/// Products of an m × k by a k × n matrix.
pub fn matmul(problem: &matmul::Problem) -> String {
    let matmul::Problem {
        m, n, k, precision, ..
    } = problem;
    format!("matmul {precision} {m}x{n}x{k}")
}

/// QR factorisations of `count` column-major matrices of one shape without gaps.
pub fn qr(precision: Precision, count: usize, QrShape { rows, cols }: QrShape) -> String {
    format!("qr {precision} {count} of {rows}x{cols}")
}

/// Sums of `len` elements of the type `name`, such as `f32`.
pub fn reduce(name: &str, len: usize) -> String {
    format!("reduce {name} {len}")
}

/// One-dimensional convolutions of a shape.
pub fn conv1d(precision: Precision, shape: &Conv1dShape) -> String {
    let Conv1dShape {
        len,
        taps,
        in_channels,
        out_channels,
        groups,
        stride,
        dilation,
        padding,
    } = shape;
    format!(
        "conv1d {precision} {in_channels}x{len} by {out_channels}x{taps}, groups {groups}, stride {stride}, dilation {dilation}, {padding:?}"
    )
}

/// Sums over a kernel.
pub fn kernel_sum(problem: &kernel_sum::Problem) -> String {
    let kernel_sum::Problem {
        function,
        work,
        targets,
        sources,
        dims,
        vectors,
        precision,
        // A launch that the points are too far out for is none of their space, and not taken.
        extent: _,
    } = problem;
    let work = match work {
        Work::Sum => "sum",
        Work::SymmetricSum => "symmetric sum",
        Work::Gradient => "gradient",
    };
    format!(
        "kernel-sum {precision} {function:?} {work} of {targets} by {sources} points, {dims} dimensions, {vectors} vectors"
    )
}

/// Convolutional layers with sparse filters.
pub fn sparse_conv(type_name: &str, shape: &ConvShape, work: &ConvWork) -> String {
    let ConvWork {
        nnz,
        longest,
        zeros,
        ..
    } = work;
    format!(
        "sparse-conv {type_name} {shape:?}, {nnz} nonzeros, {longest} at most, {zeros} zeros of 1000"
    )
}
