//! Losses with kinks by a primal-dual interior-point method, exact to the tolerance whatever the columns.
//!
//! `min over θ of Σₚ max(aₚ·(tₚ − xₚ·θ), lₚ ≤ aₚ ≤ hₚ) + ½·θᵀΛθ`: rows are pieces ([`Piece`]), and so is an l1 term, of the
//! unit vectors. With multipliers p, q of both bounds of a and their distances s = h − a, r = a − l, an optimum has
//!
//! ```text
//! Λθ = Xᵀa,  t − Xθ = p − q,  p·s = μ,  q·r = μ,  μ → 0
//! ```
//!
//! Each iteration solves `(Λ + Xᵀ·D·X)·Δθ = …` with D = 1/(p/s + q/r) twice over one factor: 15 to 40 of them, however many
//! rows. It ends when the objective is within the tolerance of the dual's, which bounds it from below.
//!
//! Sources: R. Portnoy, R. Koenker, "The Gaussian hare and the Laplacian tortoise", Stat. Sci. 12, 1997 (quantiles);
//! M. Ferris, T. Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim. 13, 2002 (hinges);
//! S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992 (both steps).

mod pieces;

use std::time::Instant;

use pieces::{Both, Pieces, Variables};

use super::outcome::{Solved, Start, Watch};
use super::problem::Problem;
use super::step::Step;
use crate::learning::cg::Convergence;
use crate::learning::solver::{Iteration, Limits};
use crate::learning::spec::{Kinked, SampleLoss};
use crate::parallel;

/// Share of the way to a bound that a step goes.
const BACK_OFF: f64 = 0.9995;
/// Share of the tolerance at which the gap is small enough: coefficients are then about as near as the objective.
const SHARE: f64 = 1e-2;
/// A gap that is requested is no smaller, relative to the objective.
const NO_CLOSER: f64 = 1e-13;
/// Iterations without a smaller gap, after which rounding is all that is left.
const IDLE: usize = 8;

/// Minimises a loss with kinks from where it begins.
pub(super) fn minimise(
    problem: &Problem<'_>,
    start: Start,
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Solved {
    let SampleLoss::Kinked(loss) = problem.spec.loss else {
        unreachable!("chosen for losses with kinks")
    };
    let begun = Instant::now();
    let mut interior = Interior::new(problem, loss, start.theta);
    let wanted = (SHARE * limits.tolerance).max(NO_CLOSER);
    let mut best = Best::new(&interior);
    let (mut n_iter, mut idle) = (0, 0);
    let convergence = loop {
        if !best.value.is_finite() {
            break Convergence::NotFinite;
        }
        if best.relative() <= wanted {
            break Convergence::Converged;
        }
        if idle > IDLE {
            // As far as rounding allows: honest where that is what was requested.
            let enough = best.relative() <= limits.tolerance;
            break if enough {
                Convergence::PrecisionLimit
            } else {
                Convergence::Stalled
            };
        }
        if n_iter >= limits.max_iter {
            break Convergence::IterationLimit;
        }
        interior.advance();
        n_iter += 1;
        idle = if best.improve(&interior) { 0 } else { idle + 1 };
        let iteration = Iteration {
            objective: best.value,
            gradient_ratio: best.relative(),
            inner: 1,
            seconds: begun.elapsed().as_secs_f64(),
            validation: None,
        };
        if watch(iteration, &|| best.theta.clone()).is_break() {
            break Convergence::IterationLimit;
        }
    };
    best.clear(&mut interior);
    Solved {
        objective: best.value,
        gradient_ratio: best.relative(),
        gap: Some(best.gap()),
        n_iter,
        convergence,
        theta: best.theta,
        instead: None,
    }
}

/// The point of the least objective, and the last lower bound.
struct Best {
    theta: Vec<f64>,
    value: f64,
    bound: f64,
    /// Objectives below this are 0 but for rounding.
    nothing: f64,
}

/// Share of the first objective below which a fit is perfect.
const PERFECT: f64 = 1e-9;

/// Share of the largest coefficient below which one is next to nothing.
const CLEARED: f64 = 1e-8;

impl Best {
    fn new(interior: &Interior<'_, '_>) -> Best {
        let value = interior.value();
        Best {
            theta: interior.theta.clone(),
            value,
            bound: interior.bound(),
            nothing: (PERFECT * value.abs()).max(f64::MIN_POSITIVE),
        }
    }

    /// Whether the gap has become smaller.
    fn improve(&mut self, interior: &Interior<'_, '_>) -> bool {
        let (value, bound) = (interior.value(), interior.bound());
        let before = self.gap();
        if value < self.value {
            (self.value, self.theta) = (value, interior.theta.clone());
        }
        self.bound = bound;
        self.gap() < 0.9 * before
    }

    /// Sets coefficients to 0 that an l1 penalty holds there: those next to nothing, where the objective is then as near to
    /// the bound as it was, but for as much again. An interior point never reaches 0 itself.
    fn clear(&mut self, interior: &mut Interior<'_, '_>) {
        let penalised = interior.problem.columns() * interior.problem.predictors();
        let coefficients = &self.theta[..penalised];
        let largest = coefficients.iter().fold(0.0_f64, |a, w| a.max(w.abs()));
        if interior.problem.spec.l1 == 0.0 || !self.value.is_finite() {
            return;
        }
        interior.theta.clone_from(&self.theta);
        for w in &mut interior.theta[..penalised] {
            if w.abs() <= CLEARED * largest {
                *w = 0.0;
            }
        }
        interior.predictors = interior.problem.linear_predictors(&interior.theta);
        let value = interior.value();
        if value <= self.value + self.gap() {
            self.theta.clone_from(&interior.theta);
            self.value = value;
        }
    }

    fn gap(&self) -> f64 {
        (self.value - self.bound).max(0.0)
    }

    /// Relative to the objective; of a perfect fit to nothing that is smaller than rounding.
    fn relative(&self) -> f64 {
        let gap = self.gap();
        gap / self.value.abs().max(self.nothing)
    }
}

/// Where an iteration stands.
struct Interior<'a, 'p> {
    problem: &'a Problem<'p>,
    free: Vec<usize>,
    theta: Vec<f64>,
    /// Xθ with the offsets.
    predictors: Vec<f64>,
    /// Λθ − Xᵀa, 0 for coordinates that are held.
    slopes: Vec<f64>,
    /// The last direction of θ.
    step: Vec<f64>,
    pieces: Pieces,
}

/// A direction of all variables.
struct Move {
    theta: Vec<f64>,
    pieces: Vec<Variables>,
}

/// What a direction goes to: products of `mu`, less the second-order terms of the affine direction.
#[derive(Clone, Copy)]
struct Goal<'a> {
    mu: f64,
    affine: Option<&'a [Variables]>,
}

impl<'a, 'p> Interior<'a, 'p> {
    /// p and q are the residuals of `theta` and a little more.
    fn new(problem: &'a Problem<'p>, loss: Kinked, theta: Vec<f64>) -> Self {
        let mut interior = Interior {
            free: problem.free(),
            pieces: Pieces::of(problem, loss),
            problem,
            step: vec![f64::INFINITY; theta.len()],
            predictors: problem.linear_predictors(&theta),
            slopes: Vec::new(),
            theta,
        };
        let len = interior.pieces.len();
        let residuals = parallel::filled(len, |n| interior.residual(n));
        let mean = parallel::sum(len, |n| residuals[n].abs()) / len.max(1) as f64;
        let more = if mean > 0.0 { mean } else { 1.0 };
        parallel::update(&mut interior.pieces.at, |n, [_, p, q]| {
            *p = residuals[n].max(0.0) + more;
            *q = (-residuals[n]).max(0.0) + more;
        });
        interior.slopes = interior.slopes();
        interior
    }

    fn value(&self) -> f64 {
        self.problem.losses().value(&self.predictors) + self.problem.penalty(&self.theta)
    }

    /// The least value of `Σ a·(t − Xθ) + ½θᵀΛθ` over θ: with a gradient R = Λθ − Xᵀa of it less than the value at θ by
    /// R²/(2λ) in coordinates with a ridge. Those without one have R = 0 but for rounding once a step was whole; until then
    /// the minimum is taken to be no further than twice the coordinate and the last direction.
    fn bound(&self) -> f64 {
        let (pieces, problem) = (&self.pieces, self.problem);
        let linear = parallel::sum(pieces.len(), |n| {
            let offset = match (pieces.row(n), problem.offset) {
                (Some(row), Some(offset)) => offset[row],
                _ => 0.0,
            };
            pieces.at[n][0] * (pieces.piece[n].target - offset)
        });
        let each = self.slopes.iter().enumerate();
        let rest: f64 = each
            .filter(|(_, slope)| **slope != 0.0)
            .map(|(i, slope)| match problem.l2(i) {
                l2 if l2 > 0.0 => slope * slope / (2.0 * l2) - slope * self.theta[i],
                _ => slope.abs() * (3.0 * self.theta[i].abs() + 2.0 * self.step[i].abs()),
            })
            .sum();
        let each = self.theta.iter().enumerate();
        let ridge: f64 = each.map(|(i, x)| problem.l2(i) * x * x).sum();
        linear - 0.5 * ridge - rest
    }

    /// t − Xθ of piece n.
    fn residual(&self, n: usize) -> f64 {
        let at = Both {
            rows: &self.predictors,
            coordinates: &self.theta,
        };
        self.pieces.piece[n].target - self.pieces.value(n, &at)
    }

    fn slopes(&self) -> Vec<f64> {
        let mut out = self.transposed(|n| self.pieces.at[n][0]);
        for (i, out) in out.iter_mut().enumerate() {
            *out = self.problem.l2(i) * self.theta[i] - *out;
            if self.problem.held[i] {
                *out = 0.0;
            }
        }
        out
    }

    /// Xᵀ·c over all pieces.
    fn transposed(&self, c: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
        let (rows, units) = self.pieces.gathered(self.problem.len(), c);
        let mut out = self.problem.design.transposed(&rows, 1);
        out.iter_mut()
            .zip(units)
            .for_each(|(out, unit)| *out += unit);
        out
    }

    /// One iteration: the affine step, then the step that keeps to the middle.
    fn advance(&mut self) {
        let pieces = &self.pieces;
        let d = parallel::filled(pieces.len(), |n| pieces.softness(n));
        let factor = self.factor(&d);
        let to_bounds = Goal {
            mu: 0.0,
            affine: None,
        };
        let affine = self.direction(&factor, &d, to_bounds).pieces;
        let (mu, reach) = (pieces.mean_product(), pieces.reach(&affine, 1.0));
        let after = pieces.mean_product_after(&affine, reach);
        let to_middle = Goal {
            mu: (after / mu).powi(3) * mu,
            affine: Some(&affine),
        };
        let step = self.direction(&factor, &d, to_middle);
        let reach = pieces.reach(&step.pieces, BACK_OFF);
        self.walk(step, reach);
    }

    /// Of Λ + Xᵀ·D·X.
    fn factor(&self, d: &[f64]) -> Step {
        let (rows, units) = self.pieces.gathered(self.problem.len(), |n| d[n]);
        let grams = self.problem.design.grams(1, |_, i| rows[i]);
        let mut h = grams.into_iter().next().expect("one was requested");
        for (j, unit) in units.iter().enumerate() {
            h[(j, j)] += self.problem.l2(j) + unit;
        }
        Step::new(&h, &self.free)
    }

    /// Newton's direction.
    fn direction(&self, factor: &Step, d: &[f64], goal: Goal<'_>) -> Move {
        let right = self.transposed(|n| d[n] * self.aim(n, goal)[0]);
        let pairs = right.iter().zip(&self.slopes);
        let gradient: Vec<f64> = pairs.map(|(x, slope)| slope - x).collect();
        let theta = factor.direction(&gradient);
        let along = Both {
            rows: &self.problem.design.predictors(&theta, 1),
            coordinates: &theta,
        };
        let pieces = parallel::filled(d.len(), |n| {
            let [rho, by_p, by_q] = self.aim(n, goal);
            let ((s, r), [_, p, q]) = (self.pieces.distances(n), self.pieces.at[n]);
            let a = d[n] * (rho - self.pieces.value(n, &along));
            [a, by_p + p / s * a, by_q - q / r * a]
        });
        Move { theta, pieces }
    }

    /// Of piece n: what is left of t − Xθ = p − q once p and q alone have gone to their products, and how far they go.
    fn aim(&self, n: usize, goal: Goal<'_>) -> Variables {
        let ((s, r), [_, p, q]) = (self.pieces.distances(n), self.pieces.at[n]);
        let [a, by_p, by_q] = goal.affine.map_or([0.0; 3], |affine| affine[n]);
        let by_p = (goal.mu - p * s + by_p * a) / s;
        let by_q = (goal.mu - q * r - by_q * a) / r;
        [self.residual(n) - p + q - by_p + by_q, by_p, by_q]
    }

    fn walk(&mut self, step: Move, reach: f64) {
        let pairs = self.theta.iter_mut().zip(&step.theta);
        pairs.for_each(|(to, by)| *to += reach * by);
        self.pieces.walk(&step.pieces, reach);
        self.step = step.theta;
        self.predictors = self.problem.linear_predictors(&self.theta);
        self.slopes = self.slopes();
    }
}
