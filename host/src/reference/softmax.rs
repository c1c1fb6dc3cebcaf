//! Softmax objectives of k predictors per row in f64, with error bounds.

use super::Rows;

/// Roundings of the evaluation of a row at most, besides its sums.
const EVALUATION: usize = 24;

/// What rows are judged by. Absent weights stand for ones, absent constants for zeros.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Softmax<'a, T> {
    /// k.
    pub classes: usize,
    /// The number of each row's class.
    pub target: &'a [T],
    /// m elements.
    pub weights: Option<&'a [T]>,
    /// c, k elements.
    pub constants: Option<&'a [T]>,
}

/// A softmax objective or its curvature's product, or how far a computed one may be from each.
#[derive(Debug, Clone, PartialEq)]
pub struct SoftmaxResult {
    /// Σ v·loss (or ½·sᵀHs), and the sums of the columns of S.
    pub sums: Vec<f64>,
    /// XᵀS, n × k.
    pub gradient: Vec<f64>,
    /// m × k; empty for products.
    pub probabilities: Vec<f64>,
}

/// Loss and S of a row.
struct Row {
    loss: f64,
    slopes: Vec<f64>,
}

impl<T: Copy + Into<f64>> Softmax<'_, T> {
    /// The objective at y (n × k), and bounds for the errors of a computed one; `growth(k)` is what k roundings build
    /// up.
    ///
    /// Predictors are off by δ = growth·(Σ|x·y| + |c|), hence probabilities by a factor of at most exp(2δ).
    ///
    /// # Panics
    /// When the length of a vector does not fit X.
    pub fn at(
        &self,
        x: &impl Rows,
        y: &[T],
        growth: impl Fn(usize) -> f64,
    ) -> (SoftmaxResult, SoftmaxResult) {
        let k = self.classes;
        let own = growth(EVALUATION + k);
        let (mut values, mut bounds) = (self.empty(x), self.empty(x));
        for row in 0..x.rows() {
            let (t, delta) = self.predictors(x, y, row, &growth);
            let class = self.target[row].into() as usize;
            let weight = self.weight(row);
            let top = t.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = t.iter().map(|t| (t - top).exp()).sum();
            let p: Vec<f64> = t.iter().map(|t| (t - top).exp() / sum).collect();
            let largest = t.iter().fold(0.0, |a: f64, t| a.max(t.abs()));
            let hit = |c: usize| if c == class { 1.0 } else { 0.0 };
            let at = Row {
                loss: weight * (sum.ln() - (t[class] - top)),
                slopes: (0..k).map(|c| weight * (p[c] - hit(c))).collect(),
            };
            let off = |c: usize| p[c] * ((4.0 * delta).exp_m1() + own);
            let bound = Row {
                loss: weight * (2.0 * delta + own * (1.0 + (k as f64).ln() + 2.0 * largest)),
                slopes: (0..k).map(|c| weight * (off(c) + own * hit(c))).collect(),
            };
            bounds.probabilities.extend((0..k).map(off));
            values.probabilities.extend(p);
            add(
                x,
                row,
                (&at, &bound),
                growth(x.rows() + 4),
                (&mut values, &mut bounds),
            );
        }
        (values, bounds)
    }

    /// The curvature at `given` (m × k probabilities) times s (n × k), and bounds as of [`Softmax::at`].
    ///
    /// # Panics
    /// As [`Softmax::at`].
    pub fn product(
        &self,
        x: &impl Rows,
        given: &[T],
        s: &[T],
        growth: impl Fn(usize) -> f64,
    ) -> (SoftmaxResult, SoftmaxResult) {
        let k = self.classes;
        let own = growth(EVALUATION + k);
        let (mut values, mut bounds) = (self.empty(x), self.empty(x));
        for row in 0..x.rows() {
            let (t, delta) = self.predictors(x, s, row, &growth);
            let weight = self.weight(row);
            let p: Vec<f64> = given[row * k..(row + 1) * k]
                .iter()
                .map(|p| (*p).into())
                .collect();
            let mean: f64 = p.iter().zip(&t).map(|(p, t)| p * t).sum();
            let size: f64 = p.iter().zip(&t).map(|(p, t)| p * t.abs()).sum();
            let slopes: Vec<f64> = (0..k).map(|c| weight * p[c] * (t[c] - mean)).collect();
            let off: Vec<f64> = (0..k)
                .map(|c| weight * p[c] * (2.0 * delta + own * (t[c].abs() + size)))
                .collect();
            let half = |c: usize| {
                0.5 * (off[c] * t[c].abs() + slopes[c].abs() * (delta + own * t[c].abs()))
            };
            let at = Row {
                loss: (0..k).map(|c| 0.5 * slopes[c] * t[c]).sum(),
                slopes: slopes.clone(),
            };
            let bound = Row {
                loss: 2.0 * (0..k).map(half).sum::<f64>(),
                slopes: off.clone(),
            };
            add(
                x,
                row,
                (&at, &bound),
                growth(x.rows() + 4),
                (&mut values, &mut bounds),
            );
        }
        (values, bounds)
    }

    fn empty(&self, x: &impl Rows) -> SoftmaxResult {
        SoftmaxResult {
            sums: vec![0.0; 1 + self.classes],
            gradient: vec![0.0; x.cols() * self.classes],
            probabilities: Vec::new(),
        }
    }

    fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row].into())
    }

    /// t of a row, and by how much a computed one may be off.
    fn predictors(
        &self,
        x: &impl Rows,
        y: &[T],
        row: usize,
        growth: &impl Fn(usize) -> f64,
    ) -> (Vec<f64>, f64) {
        let k = self.classes;
        let mut t: Vec<f64> = (0..k)
            .map(|c| self.constants.map_or(0.0, |constants| constants[c].into()))
            .collect();
        let mut sizes: Vec<f64> = t.iter().map(|t| t.abs()).collect();
        for (column, value) in x.entries(row) {
            for c in 0..k {
                let term = value * y[column * k + c].into();
                t[c] += term;
                sizes[c] += term.abs();
            }
        }
        let largest = sizes.into_iter().fold(0.0, f64::max);
        (t, growth(x.entries(row).count() + 4) * largest)
    }
}

/// Adds a row to values and bounds, with the roundings of the sums over rows.
fn add(
    x: &impl Rows,
    row: usize,
    (at, bound): (&Row, &Row),
    growth: f64,
    (values, bounds): (&mut SoftmaxResult, &mut SoftmaxResult),
) {
    let k = at.slopes.len();
    let parts = |row: &Row| {
        std::iter::once(row.loss)
            .chain(row.slopes.clone())
            .collect::<Vec<_>>()
    };
    for (c, (value, bound)) in parts(at).into_iter().zip(parts(bound)).enumerate() {
        values.sums[c] += value;
        bounds.sums[c] += bound + growth * value.abs();
    }
    for (column, value) in x.entries(row) {
        for c in 0..k {
            values.gradient[column * k + c] += value * at.slopes[c];
            let off = bound.slopes[c] + growth * at.slopes[c].abs();
            bounds.gradient[column * k + c] += value.abs() * off;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_even_classes_by_hand() {
        let x = ndarray::array![[2.0], [4.0]];
        let rows = Softmax {
            classes: 2,
            target: &[1.0, 0.0],
            weights: Some(&[1.0, 0.5]),
            constants: None,
        };
        let (found, _) = rows.at(&x, &[0.0, 0.0], |_| 0.0);
        assert_eq!(found.gradient, [1.0 - 1.0, -1.0 + 1.0]);
        assert_eq!(found.sums, [1.5 * 2f64.ln(), 0.25, -0.25]);
        let (product, _) = rows.product(&x, &[0.5; 4], &[1.0, 0.0], |_| 0.0);
        // t = (2, 0) and (4, 0): S = ½·(1, −1) and ½·½·(2, −2).
        assert_eq!(product.sums, [0.5 * (1.0 + 2.0), 1.0, -1.0]);
        assert_eq!(product.gradient, [1.0 + 2.0, -3.0]);
    }
}
