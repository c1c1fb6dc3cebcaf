//! Coordinate descent on a quadratic model with an l1 term, `½·xᵀHx − bᵀx + Σ λⱼ·|xⱼ|`, some xⱼ not negative.
//!
//! Sweeps over all coordinates find which are 0, sweeps over the others approach the minimum, and a Newton step in the
//! orthant where they stand reaches it: columns that depend on each other, on which sweeps alone converge slowly or never,
//! take a few such steps. Where columns are powers of each other sweeps put off 0 what every step puts back: then
//! coordinates leave 0 one by one, the one that violates most, each from the minimum of the orthant before.
//!
//! Source: J. Friedman, T. Hastie, R. Tibshirani, "Regularization paths for generalized linear models via coordinate
//! descent", J. Stat. Softw. 33, 2010 (covariance updates); the steps within an orthant: G. Andrew, J. Gao, "Scalable
//! training of l1-regularized log-linear models", ICML 2007, with Newton's direction; one by one: H. Lee, A. Battle, R. Raina,
//! A. Ng, "Efficient sparse coding algorithms", NIPS 2006 (feature-sign search).

use faer::linalg::solvers::Solve;
use faer::{Mat, Side};

use super::kink::Kink;

/// Rounds of sweeps and steps, after which coordinates are taken one by one.
const ROUNDS: usize = 100;
/// Coordinates that leave 0 one by one, for each that there is.
const LEAVES: usize = 10;
/// Rounds that neither decrease the model nor shorten its gradient, after which rounding is all that is left.
const IDLE: usize = 4;
/// Sweeps over the coordinates that are not 0, between two steps.
const SWEEPS: usize = 5;
/// Steps within an orthant, between two rounds of sweeps; each but the last ends at a coordinate that becomes 0.
const STEPS: usize = 8;
/// Coordinates up to which a step is computed.
const MOST_ACTIVE: usize = 3000;
/// What is added to the diagonal, of its largest element, where columns depend on each other.
const JITTERS: [f64; 3] = [1e-14, 1e-11, 1e-8];

/// The model, of symmetric H.
pub(super) struct Quadratic<'a> {
    pub(super) h: &'a Mat<f64>,
    pub(super) b: &'a [f64],
    /// What coordinates cost besides, and what they may be.
    pub(super) kinks: &'a [Kink],
    /// Coordinates that are not held.
    pub(super) free: &'a [usize],
}

/// Where the descent stands.
struct Descent<'a, 'q> {
    model: &'a Quadratic<'q>,
    x: Vec<f64>,
    /// H·x − b.
    slope: Vec<f64>,
}

impl Quadratic<'_> {
    /// Descends from `x` until the least subgradient is `target` long, or rounding stops it; sweeps and steps taken.
    pub(super) fn descend(&self, x: Vec<f64>, target: f64) -> (Vec<f64>, usize) {
        let mut descent = Descent {
            slope: vec![0.0; x.len()],
            model: self,
            x,
        };
        descent.renew();
        let mut taken = 0;
        let (mut least, mut shortest, mut idle) = (f64::INFINITY, f64::INFINITY, 0);
        for _ in 0..ROUNDS {
            let (value, norm) = (descent.value(), descent.norm());
            let lower = value < least - f64::EPSILON * least.abs() || !least.is_finite();
            idle = if lower || norm < 0.5 * shortest {
                0
            } else {
                idle + 1
            };
            (least, shortest) = (least.min(value), shortest.min(norm));
            if norm <= target || idle > IDLE {
                return (descent.x, taken);
            }
            descent.sweep(self.free);
            taken += 1 + descent.sweep_active();
            taken += descent.steps();
        }
        taken += descent.one_by_one(target);
        (descent.x, taken)
    }
}

impl Descent<'_, '_> {
    /// H·x − b from scratch, which takes away what rounding has added to it.
    fn renew(&mut self) {
        self.slope
            .iter_mut()
            .zip(self.model.b)
            .for_each(|(s, b)| *s = -b);
        for j in 0..self.x.len() {
            if self.x[j] != 0.0 {
                self.add(j, self.x[j]);
            }
        }
    }

    /// Adds `by` times column j of H to the slope.
    fn add(&mut self, j: usize, by: f64) {
        let column = self.model.h.col_as_slice(j);
        let pairs = self.slope.iter_mut().zip(column);
        pairs.for_each(|(slope, h)| *slope += by * h);
    }

    fn value(&self) -> f64 {
        let (b, kinks) = (self.model.b, self.model.kinks);
        let each = self.x.iter().enumerate().filter(|(_, x)| **x != 0.0);
        each.map(|(j, x)| 0.5 * x * (self.slope[j] - b[j]) + kinks[j].value(*x))
            .sum()
    }

    fn norm(&self) -> f64 {
        let each = self.model.free.iter().map(|&j| {
            self.model.kinks[j]
                .least_subgradient(self.slope[j], self.x[j])
                .powi(2)
        });
        each.sum::<f64>().sqrt()
    }

    /// Puts one coordinate after the other to the minimum along it; the largest decrease by any.
    fn sweep(&mut self, coordinates: &[usize]) -> f64 {
        let mut most = 0.0_f64;
        for &j in coordinates {
            let curvature = self.model.h[(j, j)];
            if curvature <= 0.0 {
                continue;
            }
            let z = curvature * self.x[j] - self.slope[j];
            let next = self.model.kinks[j].soften(z) / curvature;
            let by = next - self.x[j];
            if by != 0.0 {
                self.x[j] = next;
                self.add(j, by);
                most = most.max(curvature * by * by);
            }
        }
        most
    }

    /// Coordinates that are not 0, or may be anything.
    fn active(&self) -> Vec<usize> {
        let (x, kinks) = (&self.x, self.model.kinks);
        let free = self.model.free.iter().copied();
        free.filter(|&j| x[j] != 0.0 || kinks[j].is_smooth())
            .collect()
    }

    fn sweep_active(&mut self) -> usize {
        let active = self.active();
        let first = self.sweep(&active);
        for sweep in 1..SWEEPS {
            if self.sweep(&active) <= 1e-4 * first {
                return sweep + 1;
            }
        }
        SWEEPS
    }

    /// Newton steps in the orthant, each up to where a coordinate becomes 0.
    fn steps(&mut self) -> usize {
        for step in 0..STEPS {
            let active = self.active();
            if active.is_empty() || active.len() > MOST_ACTIVE {
                return step;
            }
            let Some(direction) = self.direction(&active) else {
                return step;
            };
            let reached = self.walk(&active, &direction);
            self.renew();
            if reached {
                return step + 1;
            }
        }
        STEPS
    }

    /// Minima of orthants, each of one more coordinate than the last had left, until the least subgradient is `target` long or
    /// the model stays as it is; steps taken.
    fn one_by_one(&mut self, target: f64) -> usize {
        let mut taken = 0;
        let (mut least, mut idle) = (self.value(), 0);
        for _ in 0..LEAVES * self.model.free.len() {
            taken += self.finish_orthant();
            if self.norm() <= target || idle > IDLE {
                return taken;
            }
            let Some(j) = self.most_violating() else {
                return taken;
            };
            taken += 1;
            self.sweep(&[j]);
            let value = self.value();
            idle = match value < least - f64::EPSILON * least.abs() {
                true => 0,
                false => idle + 1,
            };
            least = least.min(value);
        }
        taken
    }

    /// Steps until one is not cut short; how many.
    fn finish_orthant(&mut self) -> usize {
        let mut taken = 0;
        for _ in 0..=self.x.len() / STEPS {
            let steps = self.steps();
            taken += steps;
            if steps < STEPS {
                break;
            }
        }
        taken
    }

    /// The coordinate at 0 that a minimisation along it would take the most off the model.
    fn most_violating(&self) -> Option<usize> {
        let gain = |j: &usize| {
            let slope = self.model.kinks[*j].least_subgradient(self.slope[*j], 0.0);
            slope * slope / self.model.h[(*j, *j)]
        };
        let at_0 = self.model.free.iter().copied();
        let at_0 = at_0.filter(|&j| self.x[j] == 0.0 && self.model.h[(j, j)] > 0.0);
        at_0.filter(|j| gain(j) > 0.0)
            .max_by(|a, b| gain(a).total_cmp(&gain(b)))
    }

    /// The step to the minimum where signs stay as they are.
    fn direction(&self, active: &[usize]) -> Option<Vec<f64>> {
        let h = self.model.h;
        let count = active.len();
        let top = active.iter().fold(0.0_f64, |top, &j| top.max(h[(j, j)]));
        let slope = |a: usize| {
            let j = active[a];
            -self.model.kinks[j].least_subgradient(self.slope[j], self.x[j])
        };
        for jitter in JITTERS {
            let own = Mat::from_fn(count, count, |a, b| {
                let ridge = if a == b { jitter * top } else { 0.0 };
                h[(active[a], active[b])] + ridge
            });
            if let Ok(factor) = own.llt(Side::Lower) {
                let step = factor.solve(Mat::from_fn(count, 1, |a, _| slope(a)));
                let step: Vec<f64> = (0..count).map(|a| step[(a, 0)]).collect();
                if step.iter().all(|d| d.is_finite()) {
                    return Some(step);
                }
            }
        }
        None
    }

    /// Walks until a coordinate becomes 0, but not past the end; whether it got there.
    fn walk(&mut self, active: &[usize], direction: &[f64]) -> bool {
        let mut reach = 1.0;
        let mut first = None;
        for (&j, d) in active.iter().zip(direction) {
            let crosses = !self.model.kinks[j].is_smooth() && self.x[j] * (self.x[j] + d) < 0.0;
            let at = -self.x[j] / d;
            if crosses && at < reach {
                (reach, first) = (at, Some(j));
            }
        }
        for (&j, d) in active.iter().zip(direction) {
            self.x[j] += reach * d;
        }
        if let Some(j) = first {
            self.x[j] = 0.0;
        }
        first.is_none()
    }
}
