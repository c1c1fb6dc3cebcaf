//! Householder QR in f64, and how far factors are from being right.

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
        let (rows, least) = (self.rows, self.rows.min(self.cols));
        let v = self.v();
        let mut result = c.to_vec();
        for column in result.chunks_exact_mut(rows.max(1)) {
            let of_v = |k: usize| &v[k * rows..(k + 1) * rows];
            let dot = |k: usize| -> f64 { of_v(k).iter().zip(&*column).map(|(v, c)| v * c).sum() };
            let w: Vec<f64> = (0..least).map(dot).collect();
            for k in 0..least {
                let t = |q: usize| match transposed {
                    true => self.t[q * least + k],
                    false => self.t[k * least + q],
                };
                let factor: f64 = (0..least).map(|q| t(q) * w[q]).sum();
                let each = column.iter_mut().zip(of_v(k));
                each.for_each(|(c, v)| *c -= v * factor);
            }
        }
        result
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

/// ‖QᵀQ − I‖₁ = ‖V·M·Vᵀ‖₁ with M = Tᵀ·(VᵀV)·T − T − Tᵀ.
fn of_orthogonality(factors: &Factors) -> f64 {
    let (rows, least) = (factors.rows, factors.rows.min(factors.cols));
    let (v, t) = (factors.v(), &factors.t);
    let column = |k: usize| &v[k * rows..(k + 1) * rows];
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut with_t = vec![0.0; least * least];
    for i in 0..least {
        let gram: Vec<f64> = (0..least)
            .map(|q| compensated(column(i), column(q)))
            .collect();
        for j in 0..least {
            with_t[i * least + j] = (0..least).map(|q| gram[q] * t[q * least + j]).sum();
        }
    }
    // V·M, by rows.
    let mut left = vec![0.0; rows * least];
    for i in 0..least {
        for j in 0..least {
            let inner: f64 = (0..least)
                .map(|q| t[q * least + i] * with_t[q * least + j])
                .sum();
            let m = inner - t[i * least + j] - t[j * least + i];
            for (row, v) in column(i).iter().enumerate() {
                left[row * least + j] += v * m;
            }
        }
    }
    let by_rows: Vec<f64> = (0..rows * least)
        .map(|e| v[e % least * rows + e / least])
        .collect();
    let mut largest = 0.0_f64;
    for right in by_rows.chunks_exact(least.max(1)) {
        let sum: f64 = left
            .chunks_exact(least.max(1))
            .map(|left| dot(left, right).abs())
            .sum();
        if sum.is_nan() || sum > largest {
            largest = sum;
        }
        if largest.is_nan() {
            break;
        }
    }
    largest
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
    let mut largest = 0.0_f64;
    for column in matrix.chunks_exact(rows.max(1)) {
        let sum: f64 = column.iter().map(|x| x.abs()).sum();
        if sum.is_nan() || sum > largest {
            largest = sum;
        }
        if largest.is_nan() {
            break;
        }
    }
    largest
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
