//! Householder QR in f64, and how far factors are from being right.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, ShapeBuilder};

/// R and compact WY of one matrix; all column-major but T, which is row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Factors {
    /// Rows of A.
    pub rows: usize,
    /// Columns of A.
    pub cols: usize,
    /// R on and above the diagonal, below it the reflectors without their first components.
    pub packed: Vec<f64>,
    /// First components of the reflectors.
    pub first: Vec<f64>,
    /// T with Q = I − V·T·Vᵀ.
    pub t: Vec<f64>,
}

/// ‖R − QᵀA‖₁ and ‖QᵀQ − I‖₁, with ‖A‖₁: the largest sums of the magnitudes of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residuals {
    /// ‖R − QᵀA‖₁.
    pub of_r: f64,
    /// ‖QᵀQ − I‖₁.
    pub of_q: f64,
    /// ‖A‖₁.
    pub norm: f64,
}

/// Factors the column-major `a` column by column, as W. Sid-Lakhdar, T. Davis and X. Li (2018) write it down.
///
/// # Panics
/// When `a` does not have `rows` · `cols` elements.
///
/// ```
/// use warpfuse::reference::qr::{factor, residuals};
/// let a = [3.0, 4.0, 1.0, 2.0]; // 2 × 2
/// let factors = factor(&a, 2, 2);
/// assert_eq!(factors.packed[0], -5.0);
/// assert!(residuals(&a, &factors).of_r < 1e-14);
/// ```
pub fn factor(a: &[f64], rows: usize, cols: usize) -> Factors {
    assert_eq!(a.len(), rows * cols, "elements of A");
    let least = rows.min(cols);
    let mut packed = a.to_vec();
    let (mut first, mut t) = (vec![0.0; least], vec![0.0; least * least]);
    for k in 0..least {
        let column = &packed[k * rows + k..(k + 1) * rows];
        let norm = column.iter().map(|x| x * x).sum::<f64>().sqrt();
        let s = if column[0] < 0.0 { norm } else { -norm };
        let v1 = column[0] - s;
        let tau = if norm == 0.0 { 0.0 } else { -1.0 / (s * v1) };
        let v: Vec<f64> = [v1]
            .into_iter()
            .chain(column[1..].iter().copied())
            .collect();
        let dot = |col: usize| {
            let below = &packed[col * rows + k..(col + 1) * rows];
            -tau * v.iter().zip(below).map(|(v, a)| v * a).sum::<f64>()
        };
        let z: Vec<f64> = (0..cols).map(dot).collect();
        for col in k + 1..cols {
            let below = &mut packed[col * rows + k..(col + 1) * rows];
            below.iter_mut().zip(&v).for_each(|(a, v)| *a += v * z[col]);
        }
        for i in 0..k {
            t[i * least + k] = (i..k).map(|j| t[i * least + j] * z[j]).sum();
        }
        t[k * least + k] = tau;
        (first[k], packed[k * rows + k]) = (v1, s);
    }
    Factors {
        rows,
        cols,
        packed,
        first,
        t,
    }
}

impl Factors {
    /// V, column-major, rows × the lesser of rows and columns.
    pub fn v(&self) -> Vec<f64> {
        let least = self.rows.min(self.cols);
        let mut v = vec![0.0; self.rows * least];
        for k in 0..least {
            v[k * self.rows + k] = self.first[k];
            for i in k + 1..self.rows {
                v[k * self.rows + i] = self.packed[k * self.rows + i];
            }
        }
        v
    }

    /// Q·C, or Qᵀ·C, for a column-major C of as many rows as A, by V and T.
    pub fn apply(&self, c: &[f64], transposed: bool) -> Vec<f64> {
        let cols = c.len().checked_div(self.rows).unwrap_or(0);
        let (v, t) = (self.v(), self.triangle());
        let v = columns(&v, self.rows, self.rows.min(self.cols));
        let c = columns(c, self.rows, cols);
        let of_c = v.t().dot(&c);
        let of_t = match transposed {
            true => t.t().dot(&of_c),
            false => t.dot(&of_c),
        };
        let result = &c - &v.dot(&of_t);
        result.t().iter().copied().collect()
    }

    fn triangle(&self) -> ArrayView2<'_, f64> {
        let least = self.rows.min(self.cols);
        ArrayView2::from_shape((least, least), &self.t).expect("T has its elements")
    }

    /// R, column-major, the lesser of rows and columns × columns.
    pub fn r(&self) -> Vec<f64> {
        let least = self.rows.min(self.cols);
        let mut r = vec![0.0; least * self.cols];
        for col in 0..self.cols {
            for row in 0..least.min(col + 1) {
                r[col * least + row] = self.packed[col * self.rows + row];
            }
        }
        r
    }
}

/// How far `factors` are from the column-major `a`. NaN where anything is NaN.
///
/// # Panics
/// When the shapes differ.
pub fn residuals(a: &[f64], factors: &Factors) -> Residuals {
    let Factors { rows, cols, .. } = *factors;
    assert_eq!(a.len(), rows * cols, "elements of A");
    let least = rows.min(cols);
    let mut difference = factors.apply(a, true);
    for col in 0..cols {
        for row in 0..least.min(col + 1) {
            difference[col * rows + row] -= factors.packed[col * rows + row];
        }
    }
    Residuals {
        of_r: norm(&difference, rows),
        of_q: of_orthogonality(factors),
        norm: norm(a, rows),
    }
}

/// A column-major matrix.
fn columns(elements: &[f64], rows: usize, cols: usize) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((rows, cols).f(), elements).expect("a column after the other")
}

/// Columns of QᵀQ − I that exist at once.
const BLOCK: usize = 64;

/// ‖QᵀQ − I‖₁ = ‖V·M·Vᵀ‖₁ with M = Tᵀ·(VᵀV)·T − T − Tᵀ.
fn of_orthogonality(factors: &Factors) -> f64 {
    let (v, t) = (factors.v(), factors.triangle());
    let v = columns(&v, factors.rows, t.nrows());
    let m = t.t().dot(&gram(&v).dot(&t)) - t - t.t();
    let left = v.dot(&m);
    let norms = v.axis_chunks_iter(Axis(0), BLOCK).map(|rows| {
        let columns = rows.dot(&left.t());
        greatest(columns.rows().into_iter().map(sum_of_magnitudes))
    });
    greatest(norms)
}

/// VᵀV.
fn gram(v: &ArrayView2<'_, f64>) -> Array2<f64> {
    let of_one = |k: usize| v.column(k).to_vec();
    let all: Vec<Vec<f64>> = (0..v.ncols()).map(of_one).collect();
    let mut gram = Array2::zeros((all.len(), all.len()));
    for i in 0..all.len() {
        for j in 0..=i {
            // Above both first components there are zeros.
            let product = compensated(&all[i][i..], &all[j][i..]);
            (gram[(i, j)], gram[(j, i)]) = (product, product);
        }
    }
    gram
}

fn sum_of_magnitudes(row: ArrayView1<'_, f64>) -> f64 {
    row.iter().map(|x| x.abs()).sum()
}

/// The greatest number; NaN where there is one.
fn greatest(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |largest: f64, x| match x.is_nan() || x > largest {
        true if !largest.is_nan() => x,
        _ => largest,
    })
}

/// a·b as if in twice the precision: an error of M is seen in as many entries as V has rows, and the judge's own must not
/// be. Ogita, Rump and Oishi 2005, "Accurate Sum and Dot Product", Dot2.
fn compensated(a: &[f64], b: &[f64]) -> f64 {
    let (mut sum, mut rest) = (0.0_f64, 0.0_f64);
    for (a, b) in a.iter().zip(b) {
        let product = a * b;
        let next = sum + product;
        let part = next - sum;
        rest += (sum - (next - part)) + (product - part) + a.mul_add(*b, -product);
        sum = next;
    }
    sum + rest
}

/// The largest sum of the magnitudes of a column; NaN where there is one.
fn norm(matrix: &[f64], rows: usize) -> f64 {
    let columns = matrix.chunks_exact(rows.max(1));
    greatest(columns.map(|column| column.iter().map(|x| x.abs()).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compensated_sums_do_not_cancel() {
        let a = [1e16, 3.0, -1e16, 0.1];
        assert_eq!(compensated(&a, &[1.0; 4]), 3.1);
        assert!(compensated(&[f64::NAN], &[1.0]).is_nan());
    }

    #[test]
    fn factors_are_right_and_wrong_ones_are_seen() {
        for (rows, cols) in [(5, 3), (3, 5), (4, 4), (1, 3), (3, 1)] {
            let a: Vec<f64> = (0..rows * cols)
                .map(|i| ((i * 7 + 3) % 11) as f64 - 5.0)
                .collect();
            let mut factors = factor(&a, rows, cols);
            let good = residuals(&a, &factors);
            assert!(good.of_r <= 1e-13 && good.of_q <= 1e-13, "{good:?}");
            let r = factors.r();
            assert_eq!(
                r[0].abs().powi(2).round(),
                a[..rows].iter().map(|x| x * x).sum::<f64>()
            );
            factors.t[0] *= 1.001;
            let bad = residuals(&a, &factors);
            assert!(bad.of_q > 1e-4 && bad.of_r > 1e-4, "{bad:?}");
            factors.t[0] = f64::NAN;
            assert!(residuals(&a, &factors).of_q.is_nan());
        }
    }
}
