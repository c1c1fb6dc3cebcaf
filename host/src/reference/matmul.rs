//! Matrix products in f64.

use ndarray::{Array2, ArrayView2};

/// `α · A · B + β · C`, element by element; where β = 0, C does not count.
///
/// # Panics
/// When the shapes do not fit.
///
/// ```
/// use ndarray::array;
/// use warpfuse::reference::matmul::product;
/// let (a, b, c) = (array![[1.0, 2.0]], array![[3.0], [4.0]], array![[10.0]]);
/// assert_eq!(product(2.0, a.view(), b.view(), 1.0, c.view()), array![[32.0]]);
/// ```
pub fn product(
    alpha: f64,
    a: ArrayView2<'_, f64>,
    b: ArrayView2<'_, f64>,
    beta: f64,
    c: ArrayView2<'_, f64>,
) -> Array2<f64> {
    assert_eq!(a.ncols(), b.nrows(), "columns of A and rows of B");
    assert_eq!(c.dim(), (a.nrows(), b.ncols()), "shape of C");
    Array2::from_shape_fn(c.dim(), |(i, j)| {
        let terms = a.row(i).into_iter().zip(b.column(j));
        let sum: f64 = terms.map(|(a, b)| a * b).sum();
        let old = if beta == 0.0 { 0.0 } else { beta * c[(i, j)] };
        alpha * sum + old
    })
}
