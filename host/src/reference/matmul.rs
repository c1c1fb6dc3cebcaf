//! Matrix products in f64.

use ndarray::{Array2, ArrayView1, ArrayView2};

/// `α · A · B + β · C`, row by row; where β = 0, C does not count.
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
pub fn product<T: Copy + Into<f64>>(
    alpha: f64,
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    beta: f64,
    c: ArrayView2<'_, T>,
) -> Array2<f64> {
    assert_eq!(a.ncols(), b.nrows(), "columns of A and rows of B");
    assert_eq!(c.dim(), (a.nrows(), b.ncols()), "shape of C");
    let b: Vec<Vec<f64>> = b.outer_iter().map(widen).collect();
    let mut result = Vec::with_capacity(c.len());
    for (a, old) in a.outer_iter().zip(c.outer_iter()) {
        let mut sums = vec![0.0; c.ncols()];
        for (a, b) in widen(a).into_iter().zip(&b) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum += a * b;
            }
        }
        let kept = |old: f64| if beta == 0.0 { 0.0 } else { beta * old };
        let row = sums.into_iter().zip(widen(old));
        result.extend(row.map(|(sum, old)| alpha * sum + kept(old)));
    }
    Array2::from_shape_vec(c.dim(), result).expect("one element for each of C")
}

fn widen<T: Copy + Into<f64>>(row: ArrayView1<'_, T>) -> Vec<f64> {
    row.to_vec().into_iter().map(Into::into).collect()
}
