//! A fit of a few columns in f64: Newton's method with Gaussian elimination, until nothing moves.

use gpu_kernels::objective::Loss;

/// Steps at most.
const STEPS: usize = 200;
/// Halvings of a step at most.
const HALVINGS: i32 = 60;

/// One fit: `Σ s·v·loss(x·w + c + o, b) + ½·Σ ridgeⱼ·wⱼ² + ½·ridge_c·c²`.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit<'a> {
    /// The loss of a row.
    pub loss: Loss,
    /// X, row by row.
    pub rows: Vec<&'a [f64]>,
    /// b, m elements.
    pub targets: Vec<f64>,
    /// s·v, m elements.
    pub weights: Vec<f64>,
    /// o, m elements.
    pub offset: Vec<f64>,
    /// On the intercept and on each column, n + 1 elements.
    pub ridge: Vec<f64>,
    /// Whether there is an intercept.
    pub has_intercept: bool,
}

/// A point of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// F.
    pub value: f64,
    /// Its gradient, n + 1 elements.
    pub gradient: Vec<f64>,
    /// Its Hessian, row by row.
    pub hessian: Vec<Vec<f64>>,
}

impl Fit<'_> {
    /// F and its derivatives at θ = (c, w).
    ///
    /// # Panics
    /// When a length does not fit.
    pub fn at(&self, theta: &[f64]) -> Point {
        let order = theta.len();
        let mut point = Point {
            value: 0.0,
            gradient: vec![0.0; order],
            hessian: vec![vec![0.0; order]; order],
        };
        for (i, row) in self.rows.iter().enumerate() {
            let constant = if self.has_intercept { 1.0 } else { 0.0 };
            let x: Vec<f64> = std::iter::once(constant)
                .chain(row.iter().copied())
                .collect();
            assert_eq!(x.len(), order, "one coordinate for each column");
            let t = self.offset[i] + x.iter().zip(theta).map(|(x, w)| x * w).sum::<f64>();
            let of = self.loss.at(t, self.targets[i]).weighted(self.weights[i]);
            point.value += of.loss;
            for a in 0..order {
                point.gradient[a] += of.slope * x[a];
                for b in 0..order {
                    point.hessian[a][b] += of.curvature * x[a] * x[b];
                }
            }
        }
        for (a, ridge) in self.ridge.iter().enumerate() {
            point.value += 0.5 * ridge * theta[a] * theta[a];
            point.gradient[a] += ridge * theta[a];
            point.hessian[a][a] += ridge;
        }
        point
    }

    /// The θ that makes F least, from `start`; of columns that depend on each other the last does not move.
    ///
    /// # Panics
    /// As [`Fit::at`].
    pub fn minimum(&self, start: &[f64]) -> Vec<f64> {
        let mut theta = start.to_vec();
        let mut at = self.at(&theta);
        for _ in 0..STEPS {
            let step = solve(at.hessian.clone(), at.gradient.clone());
            let next = (0..HALVINGS).map(|k| 0.5_f64.powi(k)).find_map(|part| {
                let trial: Vec<f64> = theta.iter().zip(&step).map(|(w, d)| w - part * d).collect();
                let next = self.at(&trial);
                (next.value <= at.value).then_some((trial, next))
            });
            let Some((trial, next)) = next else {
                return theta;
            };
            let is_still = trial == theta;
            (theta, at) = (trial, next);
            if is_still {
                return theta;
            }
        }
        theta
    }
}

/// H·x = g by elimination in the order of the coordinates; those without a pivot get 0.
fn solve(mut h: Vec<Vec<f64>>, mut g: Vec<f64>) -> Vec<f64> {
    let order = g.len();
    let diagonal: Vec<f64> = (0..order).map(|k| h[k][k]).collect();
    let is_pivot = |h: &Vec<Vec<f64>>, k: usize| h[k][k] > 1e-11 * diagonal[k];
    for k in 0..order {
        if !is_pivot(&h, k) {
            continue;
        }
        for i in k + 1..order {
            let factor = h[i][k] / h[k][k];
            let (above, below) = h.split_at_mut(i);
            for (to, from) in below[0][k..].iter_mut().zip(&above[k][k..]) {
                *to -= factor * from;
            }
            g[i] -= factor * g[k];
        }
    }
    let mut x = vec![0.0; order];
    for k in (0..order).rev() {
        if is_pivot(&h, k) {
            let known: f64 = (k + 1..order).map(|j| h[k][j] * x[j]).sum();
            x[k] = (g[k] - known) / h[k][k];
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_three_points() {
        let rows: [[f64; 1]; 3] = [[0.0], [1.0], [2.0]];
        let fit = Fit {
            loss: Loss::Squared,
            rows: rows.iter().map(|row| &row[..]).collect(),
            targets: vec![1.0, 3.0, 5.0],
            weights: vec![1.0; 3],
            offset: vec![0.0; 3],
            ridge: vec![0.0; 2],
            has_intercept: true,
        };
        let theta = fit.minimum(&[0.0, 0.0]);
        assert!((theta[0] - 1.0).abs() + (theta[1] - 2.0).abs() < 1e-12);
    }
}
