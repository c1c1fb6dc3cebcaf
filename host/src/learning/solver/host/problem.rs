//! What is minimised: value, gradient, Hessian.

use faer::Mat;

use super::design::{Diagonal, HostDesign};
use super::kink::Kink;
use super::losses::{Judged, Losses};
use super::softmax;
use crate::learning::spec::{ObjectiveSpec, SampleLoss};
use crate::ops::objective::Loss;

/// `Σ vᵢ·loss(x̃ᵢ·Θ, bᵢ) + ½·λ‖W̃‖² + l1·‖W̃‖₁ + ½·λ_b·‖b̃‖²` over data of the host.
pub(in crate::learning) struct Problem<'a> {
    pub(in crate::learning) design: HostDesign<'a>,
    pub(in crate::learning) spec: ObjectiveSpec,
    pub(in crate::learning) targets: &'a [f64],
    /// v, which add up to 1.
    pub(in crate::learning) weights: &'a [f64],
    /// Whether the last column is the intercept's.
    pub(in crate::learning) intercept: bool,
    /// Columns of X̃ that keep the coefficients they begin with.
    pub(in crate::learning) held: Vec<bool>,
    /// What is added to the linear predictors of each row.
    pub(in crate::learning) offset: Option<&'a [f64]>,
    /// What the penalties of each column are multiplied by; 1 where absent.
    pub(in crate::learning) factors: Option<Vec<f64>>,
    /// Whether coefficients may not be negative; intercepts may.
    pub(in crate::learning) non_negative: bool,
}

/// A point.
#[derive(Debug, Clone)]
pub(super) struct At {
    pub(super) theta: Vec<f64>,
    pub(super) predictors: Vec<f64>,
    pub(super) judged: Judged,
    /// Without kinks.
    pub(super) gradient: Vec<f64>,
    /// With the l1 term.
    pub(super) value: f64,
    /// ‖least subgradient‖ over coordinates that are not held.
    pub(super) norm: f64,
}

/// Of the absolute terms of a sum: what rounding makes of it at most, mostly.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

impl<'a> Problem<'a> {
    /// k.
    pub(super) fn predictors(&self) -> usize {
        self.spec.loss.predictors()
    }

    /// n.
    pub(in crate::learning) fn columns(&self) -> usize {
        self.design.width() - usize::from(self.intercept)
    }

    /// Elements of θ.
    pub(in crate::learning) fn len(&self) -> usize {
        self.design.width() * self.predictors()
    }

    pub(super) fn losses(&self) -> Losses<'_> {
        Losses {
            loss: self.spec.loss,
            targets: self.targets,
            weights: self.weights,
        }
    }

    /// Whether the Hessian is the same everywhere.
    pub(super) fn is_quadratic(&self) -> bool {
        self.spec.loss == SampleLoss::Single(Loss::Squared)
    }

    /// Whether coordinate i of θ is an intercept.
    fn is_intercept(&self, i: usize) -> bool {
        i / self.predictors() >= self.columns()
    }

    /// What coordinate i costs besides what is smooth.
    pub(super) fn kink(&self, i: usize) -> Kink {
        if self.is_intercept(i) {
            return Kink::default();
        }
        Kink {
            l1: self.spec.l1 * self.factor(i),
            non_negative: self.non_negative,
        }
    }

    /// Whether any coordinate has a kink.
    pub(super) fn has_kinks(&self) -> bool {
        self.spec.l1 > 0.0 || self.non_negative
    }

    /// Of the penalties of coordinate i.
    fn factor(&self, i: usize) -> f64 {
        let factors = self.factors.as_ref();
        factors.map_or(1.0, |factors| factors[i / self.predictors()])
    }

    /// The ridge of coordinate i.
    pub(super) fn l2(&self, i: usize) -> f64 {
        if self.is_intercept(i) {
            self.spec.intercept_l2
        } else {
            self.spec.l2 * self.factor(i)
        }
    }

    /// Coordinates of θ that are not held.
    pub(super) fn free(&self) -> Vec<usize> {
        let k = self.predictors();
        (0..self.len()).filter(|i| !self.held[i / k]).collect()
    }

    /// ½·Σ λ·θ² + Σ l1·|θ|.
    pub(super) fn penalty(&self, theta: &[f64]) -> f64 {
        let each = theta.iter().enumerate();
        each.map(|(i, x)| 0.5 * self.l2(i) * x * x + self.kink(i).value(*x))
            .sum()
    }

    /// What is minimised, at `theta`.
    pub(in crate::learning) fn value(&self, theta: &[f64]) -> f64 {
        self.at(theta.to_vec()).value
    }

    /// Everything at `theta`.
    pub(super) fn at(&self, theta: Vec<f64>) -> At {
        self.at_with(theta, None).0
    }

    /// [`Problem::at`], and the Hessian of a square whose X̃ is read row by row: both from one read.
    pub(super) fn at_with_hessian(&self, theta: Vec<f64>) -> (At, Option<Mat<f64>>) {
        let is_by_rows = self.is_quadratic() && !self.design.is_sparse();
        let diagonal = |row: usize| self.weights[row];
        let (at, gram) = self.at_with(theta, is_by_rows.then_some(&diagonal as Diagonal<'_>));
        (at, gram.map(|gram| self.with_ridge(gram)))
    }

    fn with_ridge(&self, mut hessian: Mat<f64>) -> Mat<f64> {
        for i in 0..self.len() {
            hessian[(i, i)] += self.l2(i);
        }
        hessian
    }

    fn at_with(&self, theta: Vec<f64>, diagonal: Option<Diagonal<'_>>) -> (At, Option<Mat<f64>>) {
        let (k, losses) = (self.predictors(), self.losses());
        let work = losses.per_row();
        let found = self
            .design
            .forth_and_back((&theta, k), work, diagonal, |rows, of| {
                self.add_offset(rows.start, of.predictors);
                losses.part(rows).judge(of)
            });
        let mut gradient = found.gradient;
        for (i, (g, x)) in gradient.iter_mut().zip(&theta).enumerate() {
            *g += self.l2(i) * x;
        }
        let (predictors, judged) = (
            found.predictors,
            Judged {
                loss: found.loss,
                slopes: found.slopes,
                kept: found.kept,
            },
        );
        let value = judged.loss + self.penalty(&theta);
        let mut at = At {
            theta,
            predictors,
            judged,
            gradient,
            value,
            norm: 0.0,
        };
        at.norm = self.norm(&at);
        (at, found.gram)
    }

    /// X̃·Θ with the offset, m × k.
    pub(super) fn linear_predictors(&self, theta: &[f64]) -> Vec<f64> {
        let k = self.predictors();
        let mut predictors = self.design.predictors(theta, k);
        self.add_offset(0, &mut predictors);
        predictors
    }

    /// Of the rows from `start` on.
    fn add_offset(&self, start: usize, predictors: &mut [f64]) {
        let Some(offset) = self.offset else { return };
        let rows = predictors.chunks_exact_mut(self.predictors());
        for (row, offset) in rows.zip(&offset[start..]) {
            row.iter_mut().for_each(|t| *t += offset);
        }
    }

    fn norm(&self, at: &At) -> f64 {
        let k = self.predictors();
        let rounding = self.rounding_of_intercepts(at);
        let each = at.gradient.iter().zip(&at.theta).enumerate();
        let each = each.filter(|(i, _)| !self.held[i / k]);
        each.map(|(i, (g, x))| match self.is_intercept(i) {
            true => (g.abs() - rounding[i % k]).max(0.0),
            false => self.kink(i).least_subgradient(*g, *x),
        })
        .map(|g| g * g)
        .sum::<f64>()
        .sqrt()
    }

    /// What rounding leaves of the derivatives by the intercepts, which are sums over all rows: where a penalty holds all
    /// coefficients at 0 it is all that is left of a gradient.
    fn rounding_of_intercepts(&self, at: &At) -> Vec<f64> {
        let k = self.predictors();
        let mut sizes = vec![0.0; k];
        if !self.intercept {
            return sizes;
        }
        for row in at.judged.slopes.chunks_exact(k) {
            let pairs = sizes.iter_mut().zip(row);
            pairs.for_each(|(size, slope)| *size += slope.abs());
        }
        if self.is_quadratic() {
            // Slopes are differences from predictions of that size.
            sizes[0] += at.theta[self.columns()].abs();
        }
        sizes.iter_mut().for_each(|size| *size *= ROUNDING);
        sizes
    }

    /// Whether every row with weight is on its class's side, of a logistic loss.
    pub(in crate::learning) fn separated(&self, theta: &[f64]) -> bool {
        self.losses().separated(&self.linear_predictors(theta))
    }

    /// Whether classes are separated that no penalty holds together: coefficients grow without bound.
    pub(in crate::learning) fn is_apart(&self, theta: &[f64]) -> bool {
        let penalised = self.spec.l1 > 0.0 || self.spec.l2 > 0.0;
        let logistic = self.spec.loss == SampleLoss::Single(Loss::Logistic);
        logistic && !penalised && self.separated(theta)
    }

    /// The Hessian at a point, θ's order on both sides.
    pub(super) fn hessian(&self, at: &At) -> Mat<f64> {
        let hessian = match self.spec.loss {
            SampleLoss::Single(_) | SampleLoss::Kinked(_) => {
                let kept = &at.judged.kept;
                self.design.grams(1, |_, i| kept[i]).swap_remove(0)
            }
            SampleLoss::Multinomial { classes } => softmax::hessian(self, at, classes),
        };
        self.with_ridge(hessian)
    }

    /// Those of some columns; of the intercept's, where it is among them, none counts.
    fn factors_of(&self, columns: &[usize]) -> Option<Vec<f64>> {
        let of = |factors: &Vec<f64>| {
            let each = columns.iter().map(|j| factors.get(*j).copied());
            each.map(|factor| factor.unwrap_or(1.0)).collect()
        };
        self.factors.as_ref().map(of)
    }

    /// The same over some columns of X̃, in ascending order.
    pub(super) fn select(&self, columns: &[usize]) -> Problem<'_> {
        Problem {
            design: self.design.select(columns),
            spec: self.spec,
            targets: self.targets,
            weights: self.weights,
            intercept: self.intercept,
            held: columns.iter().map(|column| self.held[*column]).collect(),
            offset: self.offset,
            factors: self.factors_of(columns),
            non_negative: self.non_negative,
        }
    }
}
