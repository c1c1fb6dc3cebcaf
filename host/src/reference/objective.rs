//! Σ loss and gradient of an objective in f64, with error bounds.

use gpu_kernels::objective::{Loss, Point};

use super::Rows;

/// Roundings of the evaluation of a loss at most.
const EVALUATION: usize = 24;

/// What an objective is made of besides X and y. Absent vectors stand for zeros, absent weights for ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation<'a, T> {
    /// The loss of a row.
    pub loss: Loss,
    /// b, m elements.
    pub target: Option<&'a [T]>,
    /// m elements.
    pub weights: Option<&'a [T]>,
    /// o, m elements.
    pub offset: Option<&'a [T]>,
    /// c.
    pub intercept: f64,
    /// A factor of all weights.
    pub scale: f64,
}

/// An objective with its derivatives, and how far a computed one may be from each.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    /// Σ v·loss, Σ g, Σ d.
    pub sums: [f64; 3],
    /// Xᵀg, n elements.
    pub gradient: Vec<f64>,
    /// g, m elements.
    pub residual: Vec<f64>,
    /// d, m elements.
    pub curvature: Vec<f64>,
}

impl<T: Copy + Into<f64>> Evaluation<'_, T> {
    /// The objective at y of n elements.
    ///
    /// # Panics
    /// When the length of a vector does not fit X.
    pub fn at(&self, x: &impl Rows, y: &[T]) -> Objective {
        let mut result = Objective {
            sums: [0.0; 3],
            gradient: vec![0.0; x.cols()],
            residual: Vec::with_capacity(x.rows()),
            curvature: Vec::with_capacity(x.rows()),
        };
        for row in 0..x.rows() {
            let point = self.point(row, self.predictor(x, y, row));
            result.add(x, row, point);
        }
        result
    }

    /// Bounds for the errors of a computed objective; `growth(k)` is what k roundings build up.
    ///
    /// t is off by δ = growth·(Σ|x·y| + |c| + |o|); what the functions vary over an interval of width 2δ, twice, is
    /// what they may be off by, besides the roundings of their own evaluation.
    ///
    /// # Panics
    /// As [`Evaluation::at`].
    pub fn bounds(&self, x: &impl Rows, y: &[T], growth: impl Fn(usize) -> f64) -> Objective {
        let (own, over_rows) = (growth(EVALUATION), growth(x.rows() + 4));
        let mut bounds = Objective {
            sums: [0.0; 3],
            gradient: vec![0.0; x.cols()],
            residual: Vec::with_capacity(x.rows()),
            curvature: Vec::with_capacity(x.rows()),
        };
        for row in 0..x.rows() {
            let t = self.predictor(x, y, row);
            let magnitude = self.magnitude(x, y, row);
            let delta = growth(x.entries(row).count() + 4) * magnitude;
            let around = [-delta, 0.0, delta].map(|step| self.point(row, t + step));
            let spread = |f: fn(&Point<f64>) -> f64| {
                let [below, at, above] = [f(&around[0]), f(&around[1]), f(&around[2])];
                // Twice, for what a kink or a curvature within the interval adds.
                2.0 * (below - at).abs().max((above - at).abs()) + own * at.abs()
            };
            let slack = own * self.slack(row, t, magnitude);
            let point = Point {
                loss: spread(|p| p.loss) + slack,
                slope: spread(|p| p.slope) + slack,
                curvature: spread(|p| p.curvature) + slack,
            };
            bounds.add_magnitudes(x, row, point, around[1], over_rows);
        }
        bounds
    }

    /// t of a row.
    fn predictor(&self, x: &impl Rows, y: &[T], row: usize) -> f64 {
        let dot: f64 = x
            .entries(row)
            .map(|(column, value)| value * y[column].into())
            .sum();
        dot + self.intercept + element(self.offset, row, 0.0)
    }

    /// What the error of t is relative to.
    fn magnitude(&self, x: &impl Rows, y: &[T], row: usize) -> f64 {
        let terms = x
            .entries(row)
            .map(|(column, value)| (value * y[column].into()).abs());
        terms.sum::<f64>() + self.intercept.abs() + element(self.offset, row, 0.0).abs()
    }

    /// What cancels inside a loss: the magnitudes of b, of t, and of b's product with t.
    fn slack(&self, row: usize, t: f64, magnitude: f64) -> f64 {
        let b = element(self.target, row, 0.0).abs();
        let weight = (element(self.weights, row, 1.0) * self.scale).abs();
        weight * (1.0 + b) * (1.0 + t.abs() + magnitude)
    }

    fn point(&self, row: usize, t: f64) -> Point<f64> {
        let weight = element(self.weights, row, 1.0) * self.scale;
        self.loss
            .at(t, element(self.target, row, 0.0))
            .weighted(weight)
    }
}

impl Objective {
    fn add(&mut self, x: &impl Rows, row: usize, point: Point<f64>) {
        let parts = [point.loss, point.slope, point.curvature];
        self.sums
            .iter_mut()
            .zip(parts)
            .for_each(|(sum, part)| *sum += part);
        self.residual.push(point.slope);
        self.curvature.push(point.curvature);
        // A row without weight is not read.
        if point.slope != 0.0 {
            x.entries(row)
                .for_each(|(column, value)| self.gradient[column] += value * point.slope);
        }
    }

    /// Adds a row's bounds, and the roundings of the sums.
    fn add_magnitudes(
        &mut self,
        x: &impl Rows,
        row: usize,
        bound: Point<f64>,
        at: Point<f64>,
        growth: f64,
    ) {
        let sums = [
            bound.loss + growth * at.loss.abs(),
            bound.slope + growth * at.slope.abs(),
            bound.curvature + growth * at.curvature.abs(),
        ];
        self.sums
            .iter_mut()
            .zip(sums)
            .for_each(|(sum, part)| *sum += part);
        self.residual.push(bound.slope);
        self.curvature.push(bound.curvature);
        for (column, value) in x.entries(row) {
            self.gradient[column] += value.abs() * (bound.slope + growth * at.slope.abs());
        }
    }
}

fn element<T: Copy + Into<f64>>(vector: Option<&[T]>, row: usize, absent: f64) -> f64 {
    vector.map_or(absent, |vector| vector[row].into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_squares_by_hand() {
        let x = ndarray::array![[1.0, 2.0], [0.0, 3.0]];
        let evaluation = Evaluation {
            loss: Loss::Squared,
            target: Some(&[1.0, 1.0]),
            weights: Some(&[1.0, 2.0]),
            offset: None,
            intercept: 1.0,
            scale: 0.5,
        };
        // t = (4, 4), residuals 3 and 3, weights ½ and 1.
        let found = evaluation.at(&x, &[1.0, 1.0]);
        assert_eq!(found.sums, [2.25 + 4.5, 1.5 + 3.0, 1.5]);
        assert_eq!(found.gradient, [1.5, 3.0 + 9.0]);
        assert_eq!(
            (found.residual, found.curvature),
            (vec![1.5, 3.0], vec![0.5, 1.0])
        );
    }
}
