//! Conjugate gradients before the factors of a Hessian, as long as they promise to be faster.
//!
//! A ridge regression of independent columns takes a dozen products with X, and a Hessian of some hundred columns as much
//! time as many more. How many it will be shows after a few: the gradient shrinks about as much in each.

use std::cell::Cell;
use std::rc::Rc;

use super::cg::Convergence;
use super::early::EarlyStop;
use super::fit::Training;
use super::given::Given;
use super::leg::Pace;
use super::options::FitOptions;
use super::report::Summary;
use super::row_targets::RowTargets;
use super::sample_weights::SampleWeights;
use super::solver::host::choice::Chosen;
use super::solver::{self, Iteration, Solver};
use super::spec::ObjectiveSpec;
use super::weights::Weights;
use super::{FitError, checkpoint, least_norm, penalty};
use crate::device::Buffer;
use crate::matrix::Dtype;
use crate::ops::Number;

/// Iterations after which the rest can be foreseen.
const FORESEEN: usize = 3;

/// What conjugate gradients leave of the gradient, and what is wanted.
struct Promise {
    tolerance: f64,
    most: usize,
    seen: usize,
}

impl Promise {
    /// Whether to go on after an iteration that leaves this part of the gradient.
    fn holds(&mut self, left: f64) -> bool {
        self.seen += 1;
        let rate = left.ln() / self.seen as f64;
        let needed = self.tolerance.ln() / rate;
        self.seen < FORESEEN || left <= self.tolerance || rate < 0.0 && needed <= self.most as f64
    }
}

impl<T: Number> Training<'_, T> {
    /// Minimises `spec`, a square with a ridge, by `most` products with X; `None` where more would be needed.
    pub(super) fn attempt(
        &self,
        (spec, most): (&ObjectiveSpec, usize),
        (targets, weights): (&RowTargets<'_, T>, &SampleWeights),
        options: &mut FitOptions<'_>,
        history: &mut Vec<Iteration>,
    ) -> Result<Option<(Weights, Summary)>, FitError> {
        // f32 keeps too few digits of the vectors for what a factor in f64 gives.
        if T::DTYPE == Dtype::F32 || options.evaluate.is_some() {
            return Ok(None);
        }
        let scaling = penalty::scaling(spec, options.penalty_factors);
        let given = Given {
            scaling: scaling.as_deref(),
            ..options.given()
        };
        let mut setup = self.setup(spec, (targets, weights), given)?;
        if self.matrix.rows() < self.matrix.cols() {
            // Steps then stay in the space of the rows, where a ridge that is small beside the columns does not slow them.
            least_norm::even(&mut setup.inverse[..self.matrix.cols()]);
        }
        let rows = (targets, options.offset);
        let mut objective = self.objective(spec, &setup.prepared, rows)?;
        let mut limits = self.limits(spec);
        limits.max_iter = limits.max_iter.min(most);
        let mut promise = Promise {
            tolerance: limits.tolerance,
            most,
            seen: 0,
        };
        let mut seen = Vec::new();
        let hopeless = Rc::new(Cell::new(false));
        let mut show = |iteration: Iteration, _: Option<&Buffer<T>>| {
            hopeless.set(hopeless.get() || !promise.holds(iteration.gradient_ratio));
            seen.push(spec.shown(iteration));
        };
        let inverse = self.upload(&setup.inverse)?;
        let begin = setup.begin;
        let solved = EarlyStop::during(Some(Rc::clone(&hopeless)), || {
            let pace = (&limits, Pace::Lockstep);
            // A few products are done again sooner than a file is read.
            checkpoint::without(|| {
                solver::conjugate::minimise(&mut *objective, begin, inverse, pace, &mut show)
            })
        });
        drop(objective);
        if hopeless.get() {
            return Ok(None);
        }
        let solved = solved?;
        if solved.convergence != Convergence::Converged {
            return Ok(None);
        }
        let chosen = Chosen {
            solver: Solver::ConjugateGradient,
            reason: "few products with X were enough, which take less than a Hessian",
            direct: None,
        };
        let (fitted, solved) = self.finish(spec, &setup.prepared, rows, solved)?;
        for iteration in seen {
            if let Some(watch) = options.watch.as_deref_mut() {
                watch(iteration);
            }
            history.push(iteration);
        }
        Ok(Some((fitted, Summary::of(&solved, chosen))))
    }
}

#[cfg(test)]
mod tests {
    use super::Promise;

    fn kept(ratios: &[f64], most: usize) -> usize {
        let mut promise = Promise {
            tolerance: 1e-6,
            most,
            seen: 0,
        };
        ratios
            .iter()
            .take_while(|left| promise.holds(**left))
            .count()
    }

    #[test]
    fn goes_on_while_enough_is_gained() {
        let tenths: Vec<f64> = (1..7).map(|k| 0.1f64.powi(k)).collect();
        assert_eq!(kept(&tenths, 6), 6);
        assert_eq!(kept(&tenths, 5), 2, "six were needed");
        assert_eq!(kept(&[1.5, 1.2, 1.1, 0.9], 100), 2, "nothing was gained");
        assert_eq!(kept(&[0.5, f64::NAN, f64::NAN], 100), 2);
    }
}
