//! Matrix products on the CPU: bands of rows over threads, each by the crate `matrixmultiply`.
//!
//! Not by `faer`, for what it costs to compile, in CPU-seconds of a development build (dependencies at level 1): more
//! than 230 for its crates alone with the features `std` and `rayon` (stopped before `faer` itself), 78 for `gemm`, the kernels
//! that it stands on; `matrixmultiply` comes with `ndarray`. On the CPU this is a reference and a fallback.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, Axis, LinalgScalar};
use rayon::prelude::*;

/// Multiplications that make a band worth handing to another thread.
const MIN_WORK: usize = 1 << 18;
/// Rows of a band are a multiple of what the inner loops hold.
const ROWS: usize = 16;

/// `C = α · A · B + β · C`; where β = 0, C is not read. The same bits for every number of threads.
///
/// # Panics
/// When the shapes do not fit.
///
/// ```
/// use ndarray::array;
/// let (a, b, mut c) = (array![[1.0, 2.0]], array![[3.0], [4.0]], array![[f64::NAN]]);
/// warpfuse::cpu::matmul::matmul(1.0, a.view(), b.view(), 0.0, c.view_mut());
/// assert_eq!(c, array![[11.0]]);
/// ```
pub fn matmul<T: LinalgScalar + Send + Sync>(
    alpha: T,
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    beta: T,
    mut c: ArrayViewMut2<'_, T>,
) {
    assert_eq!(a.ncols(), b.nrows(), "columns of A and rows of B");
    assert_eq!(c.dim(), (a.nrows(), b.ncols()), "shape of C");
    let per_row = b.len().max(1);
    let rows = MIN_WORK.div_ceil(per_row).next_multiple_of(ROWS);
    let bands = c.axis_chunks_iter_mut(Axis(0), rows).into_par_iter();
    let of_a = a.axis_chunks_iter(Axis(0), rows).into_par_iter();
    bands
        .zip(of_a)
        .for_each(|(mut c, a)| general_mat_mul(alpha, &a, &b, beta, &mut c));
}
