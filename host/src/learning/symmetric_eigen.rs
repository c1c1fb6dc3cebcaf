//! Eigenvalues and eigenvectors of a small symmetric matrix.

use ndarray::Array2;

/// Sweeps after which rounding is all that is left; a handful suffices.
const SWEEPS: usize = 60;

/// An eigendecomposition `A = V·diag(λ)·Vᵀ`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Eigen {
    /// λ, descending.
    pub(super) values: Vec<f64>,
    /// V: column j belongs to `values[j]`; orthonormal.
    pub(super) vectors: Array2<f64>,
}

/// Decomposes `a`, n × n symmetric, by cyclic Jacobi rotations: O(n³) per sweep, accurate to rounding.
///
/// Source: Golub and Van Loan, "Matrix Computations", section 8.5.
///
/// # Panics
/// When `a` is not square.
pub(super) fn symmetric_eigen(mut a: Array2<f64>) -> Eigen {
    let n = a.nrows();
    assert_eq!(n, a.ncols(), "a symmetric matrix is square");
    let mut v = Array2::eye(n);
    let total: f64 = a.iter().map(|value| value * value).sum();
    for _ in 0..SWEEPS {
        let off: f64 = a
            .indexed_iter()
            .filter(|((i, j), _)| i != j)
            .map(|(_, value)| value * value)
            .sum();
        if off <= total * f64::EPSILON * f64::EPSILON {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(&mut a, &mut v, p, q);
            }
        }
    }
    sorted(&a, &v)
}

/// Makes entry (p, q) zero.
fn rotate(a: &mut Array2<f64>, v: &mut Array2<f64>, p: usize, q: usize) {
    let apq = a[[p, q]];
    if apq == 0.0 {
        return;
    }
    let theta = (a[[q, q]] - a[[p, p]]) / (2.0 * apq);
    let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    let s = t * c;
    for k in 0..a.nrows() {
        let (x, y) = (a[[k, p]], a[[k, q]]);
        a[[k, p]] = c * x - s * y;
        a[[k, q]] = s * x + c * y;
        let (x, y) = (v[[k, p]], v[[k, q]]);
        v[[k, p]] = c * x - s * y;
        v[[k, q]] = s * x + c * y;
    }
    for k in 0..a.nrows() {
        let (x, y) = (a[[p, k]], a[[q, k]]);
        a[[p, k]] = c * x - s * y;
        a[[q, k]] = s * x + c * y;
    }
}

fn sorted(a: &Array2<f64>, v: &Array2<f64>) -> Eigen {
    let mut order: Vec<usize> = (0..a.nrows()).collect();
    order.sort_by(|&i, &j| a[[j, j]].total_cmp(&a[[i, i]]));
    Eigen {
        values: order.iter().map(|&i| a[[i, i]]).collect(),
        vectors: v.select(ndarray::Axis(1), &order),
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn a_product_of_known_factors_is_taken_apart() {
        let n = 17;
        let a = Array2::from_shape_fn((n, n), |(i, j)| {
            let (i, j) = (i as f64, j as f64);
            (i * j + 1.0).sin() + (i - j).abs() * 0.1
        });
        let a = &a + &a.t();
        let Eigen { values, vectors } = symmetric_eigen(a.clone());
        assert!(values.windows(2).all(|pair| pair[0] >= pair[1]));
        let scaled = &vectors * &ndarray::Array1::from(values);
        let back = scaled.dot(&vectors.t());
        let worst = (&back - &a)
            .iter()
            .fold(0.0_f64, |worst, e| worst.max(e.abs()));
        assert!(worst < 1e-12, "{worst:e}");
        let unit = vectors.t().dot(&vectors) - Array2::<f64>::eye(n);
        assert!(unit.iter().all(|e| e.abs() < 1e-13));
    }

    #[test]
    fn equal_and_zero_eigenvalues_are_no_obstacle() {
        let eigen = symmetric_eigen(array![[2.0, 0.0, 0.0], [0.0, 0.0, 2.0], [0.0, 2.0, 0.0]]);
        let expected = [2.0, 2.0, -2.0];
        for (found, expected) in eigen.values.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-14);
        }
        assert!(symmetric_eigen(Array2::zeros((0, 0))).values.is_empty());
    }
}
