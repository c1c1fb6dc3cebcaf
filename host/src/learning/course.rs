//! What becomes of the iterations of a solve: a figure on other data, an early end, the history, a checkpoint, a watcher.

use std::cell::Cell;
use std::rc::Rc;

use super::early::EarlyStop;
use super::options::FitOptions;
use super::solver::Iteration;
use super::spec::ObjectiveSpec;
use super::weights::Weights;

/// The iterations of one solve.
pub(super) struct Course<'c, 'o> {
    spec: ObjectiveSpec,
    options: &'c mut FitOptions<'o>,
    history: &'c mut Vec<Iteration>,
    early: Option<EarlyStop>,
}

impl<'c, 'o> Course<'c, 'o> {
    pub(super) fn new(
        spec: &ObjectiveSpec,
        options: &'c mut FitOptions<'o>,
        history: &'c mut Vec<Iteration>,
    ) -> Self {
        let is_judged = options.evaluate.is_some();
        Course {
            spec: *spec,
            early: options.patience.filter(|_| is_judged).map(EarlyStop::new),
            options,
            history,
        }
    }

    /// Whether coefficients of each iteration are wanted.
    pub(super) fn is_judged(&self) -> bool {
        self.options.evaluate.is_some()
    }

    /// An iteration, and where it led, if that is wanted.
    ///
    /// # Errors
    /// That of `weights`.
    pub(super) fn see<E>(
        &mut self,
        iteration: Iteration,
        weights: impl FnOnce() -> Result<Weights, E>,
    ) -> Result<(), E> {
        let mut iteration = self.spec.shown(iteration);
        if let Some(evaluate) = self.options.evaluate.as_deref_mut() {
            let weights = weights()?;
            iteration.validation = Some(evaluate(&weights.coef, &weights.intercept));
            if let Some(early) = &mut self.early {
                early.see(iteration, weights);
            }
        }
        if let Some(watch) = self.options.watch.as_deref_mut() {
            watch(iteration);
        }
        iteration.tell();
        self.history.push(iteration);
        Ok(())
    }

    /// An iteration before a checkpoint, of this many predictors.
    pub(super) fn recall(&mut self, iteration: Iteration, predictors: usize) {
        if let Some(early) = &mut self.early {
            early.recall(iteration, predictors);
        }
        self.history.push(iteration);
    }

    /// Whether it is time to end early.
    pub(super) fn is_over(&self) -> bool {
        self.early.as_ref().is_some_and(EarlyStop::is_over)
    }

    /// What says so, if the solve may end early.
    pub(super) fn signal(&self) -> Option<Rc<Cell<bool>>> {
        self.early.as_ref().map(EarlyStop::signal)
    }

    /// What was best.
    pub(super) fn into_early(self) -> Option<EarlyStop> {
        self.early
    }
}
