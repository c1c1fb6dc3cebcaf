//! Newton's method with the Hessian formed: steps by Cholesky, with an l1 term by coordinate descent, and a line search.
//!
//! Source: with the l1 term, J. Lee, Y. Sun, M. Saunders, "Proximal Newton-type methods for minimizing composite functions",
//! SIAM J. Optim. 24, 2014; G.-X. Yuan, C.-H. Ho, C.-J. Lin, "An improved GLMNET for l1-regularized logistic regression",
//! JMLR 13, 2012.

use std::time::Instant;

use faer::Mat;

use super::finish;
use super::gap::duality_gap;
use super::inner;
use super::kink::Kink;
use super::outcome::{Solved, Start, Watch};
use super::problem::{At, Problem};
use super::products::{Blocks, OfSoftmax};
use super::quadratic::Quadratic;
use super::step::Step;
use super::stored::OfStored;
use crate::learning::cg::Convergence;
use crate::learning::solver::{Iteration, Limits, noise, ratio};
use crate::parallel;

/// Share of the predicted decrease that a step has to bring.
const SUFFICIENT: f64 = 1e-4;
/// Halvings of a step.
const TRIALS: usize = 60;
/// How much smaller than the gradient the model's is made.
const FORCING: f64 = 1e-2;

/// Minimises `problem` from where it begins.
pub(super) fn minimise(
    problem: &Problem<'_>,
    start: Start,
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Solved {
    let newton = Newton::from(problem, start);
    newton.recorded(limits, watch)
}

/// Minimises a softmax, or one predictor of a sparse X, with steps from products with X̃ instead of a Hessian.
pub(super) fn minimise_by_products(
    problem: &Problem<'_>,
    start: Start,
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Solved {
    let mut newton = Newton::from(problem, start);
    newton.by_products = true;
    newton.recorded(limits, watch)
}

/// What a gap and a gradient have to be for a solve to have converged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    /// Of the least subgradient.
    pub(super) norm: f64,
    /// Of the gap, relative to the objective.
    pub(super) gap: f64,
    /// An objective below this counts as this: that of a perfect fit is 0 but for rounding.
    pub(super) floor: f64,
}

impl Target {
    /// Of a tolerance, relative to the first gradient and objective. A gap is no closer than rounding shows it.
    pub(super) fn of(limits: &Limits, (first_norm, first_value): (f64, f64)) -> Target {
        // Infinite where the start is outside the domain of a link.
        let first_value = Some(first_value.abs()).filter(|value| value.is_finite());
        Target {
            norm: limits.tolerance * first_norm,
            gap: limits.tolerance.max(NO_CLOSER),
            floor: PERFECT * first_value.unwrap_or(0.0),
        }
    }

    /// Whether `at` meets it, with the gap there.
    pub(super) fn is_met(&self, problem: &Problem<'_>, at: &At) -> (bool, Option<f64>) {
        if at.norm > self.norm {
            return (false, None);
        }
        let gap = duality_gap(problem, at);
        let small = gap.is_none_or(|gap| gap <= self.gap * at.value.abs().max(self.floor));
        (small || at.norm == 0.0, gap)
    }
}

/// A gap that is requested, relative to the objective, is no smaller: it falls with the gradient, the distance to the minimum
/// with its square, so that rounding of the gradient keeps a gap where the objective has all its digits.
const NO_CLOSER: f64 = 1e-7;

/// Share of the first objective below which one is that of a perfect fit.
const PERFECT: f64 = 1e-9;

/// A solve.
pub(super) struct Newton<'a, 'p> {
    pub(super) problem: &'a Problem<'p>,
    pub(super) at: At,
    pub(super) first_norm: f64,
    /// The objective where it would begin cold.
    pub(super) first_value: f64,
    free: Vec<usize>,
    kinks: Vec<Kink>,
    pub(super) gap: Option<f64>,
    pub(super) n_iter: usize,
    pub(super) begun: Instant,
    /// Of a quadratic objective, for all iterations.
    pub(super) hessian: Option<Mat<f64>>,
    step: Option<Step>,
    /// Whether the Hessian is never formed.
    pub(super) by_products: bool,
    /// What inner iterations are preconditioned with.
    pub(super) blocks: Option<Blocks>,
    /// The point of the least norm, and the steps since then, where differences of the objective drown in rounding.
    pub(super) best: Option<At>,
    pub(super) idle: usize,
    /// Whether checkpoints are of it, and not of a solve that it is a part of.
    pub(super) is_recorded: bool,
}

/// Steps below the rounding of the objective that may fail to shorten the gradient: a coordinate that becomes 0 or leaves it
/// lengthens it once.
const PATIENCE: usize = 3;

/// A direction, and what it promises.
pub(super) struct Direction {
    pub(super) step: Vec<f64>,
    /// Slope of the smooth part along it, and change of the l1 term at its end: not positive.
    pub(super) decrease: f64,
    pub(super) inner: usize,
}

impl<'a, 'p> Newton<'a, 'p> {
    /// A solve from `start`, measured by the gradient where it would begin cold.
    fn from(problem: &'a Problem<'p>, start: Start) -> Self {
        // A start from elsewhere may need no step, and no Hessian.
        let (is_cold, found) = (start.cold.is_none(), start.found);
        let first = start.cold.map(|cold| problem.at(cold));
        let first = first.map(|first| (first.norm, first.value));
        let (at, hessian) = match is_cold {
            true => problem.at_with_hessian(start.theta),
            false => (problem.at(start.theta), None),
        };
        let first = first.unwrap_or((at.norm, at.value));
        let mut newton = Newton {
            hessian,
            is_recorded: true,
            ..Newton::new(problem, at, first)
        };
        // What is wrong with a record ends the fit.
        let _ = found.map(|found| newton.go_back(&found));
        newton
    }

    fn recorded(mut self, limits: &Limits, watch: &mut Watch<'_>) -> Solved {
        let convergence = self.run(limits, watch);
        self.solved(convergence)
    }

    pub(super) fn new(
        problem: &'a Problem<'p>,
        at: At,
        (first_norm, first_value): (f64, f64),
    ) -> Self {
        Newton {
            free: problem.free(),
            kinks: (0..problem.len()).map(|i| problem.kink(i)).collect(),
            problem,
            at,
            first_norm,
            first_value,
            gap: None,
            n_iter: 0,
            begun: Instant::now(),
            hessian: None,
            step: None,
            by_products: false,
            blocks: None,
            best: None,
            idle: 0,
            is_recorded: false,
        }
    }

    pub(super) fn run(&mut self, limits: &Limits, watch: &mut Watch<'_>) -> Convergence {
        let target = Target::of(limits, (self.first_norm, self.first_value));
        let convergence = self.run_to(target, limits.max_iter, watch);
        // Of columns without a penalty beside others no gap is known that would have decided.
        let has_free = self.problem.factors.is_some() && self.gap.is_none();
        let is_unsure = !self.problem.is_quadratic() || has_free;
        if convergence == Convergence::Converged && is_unsure {
            finish::approach(self, limits.max_iter, watch);
        }
        convergence
    }

    /// Iterates until the target is met.
    pub(super) fn run_to(
        &mut self,
        target: Target,
        max_iter: usize,
        watch: &mut Watch<'_>,
    ) -> Convergence {
        loop {
            let _ = self.save_if_due();
            if !(self.at.value.is_finite() && self.at.norm.is_finite()) {
                return Convergence::NotFinite;
            }
            let (met, gap) = target.is_met(self.problem, &self.at);
            self.gap = gap;
            if met {
                return Convergence::Converged;
            }
            if self.n_iter >= max_iter {
                self.at = self.best.take().unwrap_or_else(|| self.at.clone());
                return Convergence::IterationLimit;
            }
            let direction = self.direction(target.norm);
            self.n_iter += 1;
            let found = self.search(&direction);
            let goes_on = watch(self.iteration(direction.inner), &|| self.at.theta.clone());
            if let Some(ending) = found {
                return ending;
            }
            if goes_on.is_break() {
                return Convergence::IterationLimit;
            }
        }
    }

    pub(super) fn direction(&mut self, target: f64) -> Direction {
        if self.by_products {
            return self.direction_by_products(inner::wanted(&self.at, self.first_norm, target));
        }
        if self.hessian.is_none() || !self.problem.is_quadratic() {
            self.hessian = Some(self.problem.hessian(&self.at));
            self.step = None;
        }
        let wanted = (FORCING * self.at.norm).max(0.3 * target);
        let wanted = if self.problem.is_quadratic() || self.best.is_some() {
            0.3 * target
        } else {
            wanted
        };
        // A gradient that is short enough may leave a gap that is too wide.
        let wanted = wanted.min(0.1 * self.at.norm);
        self.direction_of_hessian(wanted)
    }

    /// The step to the minimum of the model that the Hessian kept makes of the objective here, to `wanted` of its gradient.
    pub(super) fn direction_of_hessian(&mut self, wanted: f64) -> Direction {
        let hessian = self.hessian.as_ref().expect("formed by the caller");
        if !self.problem.has_kinks() {
            let step = self.step.get_or_insert_with(|| {
                let together = without_softmax_shift(hessian, self.problem);
                Step::new(together.as_ref().unwrap_or(hessian), &self.free)
            });
            let step = step.direction(&self.at.gradient);
            let decrease = dot(&step, &self.at.gradient);
            return Direction {
                step,
                decrease,
                inner: 1,
            };
        }
        let (theta, gradient) = (&self.at.theta, &self.at.gradient);
        let curved = times(hessian, theta);
        let b: Vec<f64> = curved.iter().zip(gradient).map(|(h, g)| h - g).collect();
        let model = Quadratic {
            h: hessian,
            b: &b,
            kinks: &self.kinks,
            free: &self.free,
        };
        let (end, inner) = model.descend(theta.clone(), wanted);
        let step: Vec<f64> = end.iter().zip(theta).map(|(a, b)| a - b).collect();
        let absolute = |x: &[f64]| -> f64 {
            let each = x.iter().zip(&self.kinks);
            each.map(|(x, kink)| kink.value(*x)).sum()
        };
        let decrease = dot(&step, gradient) + absolute(&end) - absolute(theta);
        Direction {
            step,
            decrease,
            inner,
        }
    }

    pub(super) fn direction_by_products(&mut self, wanted: f64) -> Direction {
        let (problem, at) = (self.problem, &self.at);
        let of_stored = match problem.predictors() {
            1 => OfStored::new(problem, at),
            _ => None,
        };
        let (mut step, inner) = match of_stored {
            Some(hessian) if hessian.is_parallel() => {
                parallel::inside(|| inner::direction(problem, at, &hessian, wanted))
            }
            Some(hessian) => inner::direction(problem, at, &hessian, wanted),
            None => {
                if self.blocks.is_none() || self.n_iter % 2 == 1 {
                    self.blocks = Some(Blocks::new(problem, at));
                }
                let blocks = self.blocks.as_ref().expect("made above");
                let hessian = OfSoftmax {
                    problem,
                    at,
                    blocks,
                };
                match problem.design.is_parallel(problem.predictors()) {
                    true => parallel::inside(|| inner::direction(problem, at, &hessian, wanted)),
                    false => inner::direction(problem, at, &hessian, wanted),
                }
            }
        };
        centre(problem, at, &mut step);
        let decrease = dot(&step, &at.gradient);
        Direction {
            step,
            decrease,
            inner,
        }
    }

    /// Halves the step until it brings enough; how the solve ends where none does. A step that promises less than rounding
    /// hides comes from the Hessian itself: what is left to gain is as little.
    pub(super) fn search(&mut self, direction: &Direction) -> Option<Convergence> {
        let pairs = self.at.theta.iter().zip(&direction.step);
        let whole = self.problem.at(pairs.map(|(x, d)| x + d).collect());
        if direction.decrease.abs() <= noise::<f64>(self.at.value) {
            let goes_on = whole.value.is_finite() && self.wander(whole);
            return (!goes_on).then_some(Convergence::PrecisionLimit);
        }
        // Nearly always the whole step is taken: its gradient comes with its value.
        let found = if self.suffices(direction, 1.0, whole.value) && whole.norm.is_finite() {
            Some(whole)
        } else {
            self.shortened(direction)
        };
        match found {
            Some(next) => {
                self.at = next;
                None
            }
            None => Some(Convergence::Stalled),
        }
    }

    /// Whether a part of the step brings what its slope promises.
    fn suffices(&self, direction: &Direction, t: f64, value: f64) -> bool {
        let wanted = self.at.value + SUFFICIENT * t * direction.decrease;
        value.is_finite() && value <= wanted && direction.decrease < 0.0
    }

    /// The first of ½, ¼, … of the step that suffices.
    fn shortened(&self, direction: &Direction) -> Option<At> {
        let (problem, at) = (self.problem, &self.at);
        let along = problem
            .design
            .predictors(&direction.step, problem.predictors());
        let parts = (1..TRIALS).scan(1.0, |t, _| {
            *t *= 0.5;
            Some(*t)
        });
        for t in parts {
            let pairs = at.theta.iter().zip(&direction.step);
            let theta: Vec<f64> = pairs.map(|(x, d)| x + t * d).collect();
            let loss = problem.losses().along(&at.predictors, &along, t);
            if self.suffices(direction, t, loss + problem.penalty(&theta)) {
                let next = problem.at(theta);
                if next.value.is_finite() && next.norm.is_finite() {
                    return Some(next);
                }
            }
        }
        None
    }

    /// Takes a step that only the gradient can judge; whether to go on.
    fn wander(&mut self, next: At) -> bool {
        let least = self.best.as_ref().unwrap_or(&self.at).norm;
        if next.norm < least && next.value.is_finite() {
            (self.idle, self.best, self.at) = (0, None, next);
            return true;
        }
        self.idle += 1;
        let last = std::mem::replace(&mut self.at, next);
        let best = self.best.take().unwrap_or(last);
        if self.idle > PATIENCE || !(self.at.value.is_finite() && self.at.norm.is_finite()) {
            self.at = best;
            return false;
        }
        self.best = Some(best);
        true
    }

    pub(super) fn iteration(&self, inner: usize) -> Iteration {
        Iteration {
            objective: self.at.value,
            gradient_ratio: ratio(self.at.norm, self.first_norm),
            inner,
            seconds: self.begun.elapsed().as_secs_f64(),
            validation: None,
        }
    }

    pub(super) fn solved(self, convergence: Convergence) -> Solved {
        Solved {
            objective: self.at.value,
            gradient_ratio: ratio(self.at.norm, self.first_norm),
            gap: self.gap.or_else(|| duality_gap(self.problem, &self.at)),
            n_iter: self.n_iter,
            convergence,
            theta: self.at.theta,
            instead: None,
        }
    }

    /// Where it stands.
    pub(super) fn into_theta(self) -> Vec<f64> {
        self.at.theta
    }
}

/// A softmax does not see what is added to all classes alike: without a ridge the Hessian has no curvature along that, and
/// gets some, which changes no step across it.
fn without_softmax_shift(hessian: &Mat<f64>, problem: &Problem<'_>) -> Option<Mat<f64>> {
    let k = problem.predictors();
    if k == 1 {
        return None;
    }
    let mut together = hessian.clone();
    for j in 0..problem.design.width() {
        if problem.l2(j * k) > 0.0 {
            continue;
        }
        let mean = (0..k).map(|c| hessian[(j * k + c, j * k + c)]).sum::<f64>() / k as f64;
        for a in 0..k {
            for b in 0..k {
                together[(j * k + a, j * k + b)] += mean;
            }
        }
    }
    Some(together)
}

/// Lets a step of a softmax end where the coefficients of each column add up to 0 over the classes. The loss does not see what
/// is added to all of them alike and a ridge is least there, but along that direction it is nearly all curvature there is:
/// products alone would take many iterations to find it.
fn centre(problem: &Problem<'_>, at: &At, step: &mut [f64]) {
    let k = problem.predictors();
    if k == 1 {
        return;
    }
    let columns = step.chunks_exact_mut(k).zip(at.theta.chunks_exact(k));
    for ((step, theta), held) in columns.zip(&problem.held) {
        if !held {
            let sum: f64 = step.iter().zip(theta).map(|(d, x)| d + x).sum();
            step.iter_mut().for_each(|d| *d -= sum / k as f64);
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// H·x, of which most elements may be 0.
fn times(h: &Mat<f64>, x: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; x.len()];
    for (j, x) in x.iter().enumerate().filter(|(_, x)| **x != 0.0) {
        let column = h.col_as_slice(j);
        out.iter_mut()
            .zip(column)
            .for_each(|(out, h)| *out += x * h);
    }
    out
}
