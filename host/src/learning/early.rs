//! Stopping a solve that gets no better on other data.

use std::cell::Cell;
use std::rc::Rc;

use super::FitError;
use super::cg::Convergence;
use super::checkpoint::session;
use super::report::Summary;
use super::solver::Iteration;
use super::solver::host::choice::Chosen;
use super::weights::Weights;
use crate::ops::interrupt;

/// When a fit stops before its gradient is small: see [`FitOptions::patience`](super::FitOptions::patience).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Iterations without a better figure after which the fit stops.
    pub iterations: usize,
    /// Whether larger figures are better.
    pub larger_is_better: bool,
}

/// What has been seen, and the best of it.
#[derive(Debug)]
pub(super) struct EarlyStop {
    patience: Patience,
    best: Option<Best>,
    /// Iterations since.
    since: usize,
    seen: usize,
    stop: Rc<Cell<bool>>,
}

#[derive(Debug)]
struct Best {
    figure: f64,
    weights: Weights,
    iteration: Iteration,
}

impl EarlyStop {
    pub(super) fn new(patience: Patience) -> EarlyStop {
        EarlyStop {
            patience,
            best: None,
            since: 0,
            seen: 0,
            stop: Rc::default(),
        }
    }

    /// Looks at the coefficients of an iteration, whose figure is known.
    pub(super) fn see(&mut self, iteration: Iteration, weights: Weights) {
        self.look(iteration, || {
            session::keep(|| weights.to_list());
            weights
        });
    }

    /// Looks at an iteration before a checkpoint, of this many predictors.
    pub(super) fn recall(&mut self, iteration: Iteration, predictors: usize) {
        self.look(iteration, || Weights::of_list(&session::kept(), predictors));
    }

    fn look(&mut self, iteration: Iteration, weights: impl FnOnce() -> Weights) {
        self.seen += 1;
        let figure = iteration.validation.unwrap_or(f64::NAN);
        if self.is_better(figure) {
            self.since = 0;
            self.best = Some(Best {
                figure,
                weights: weights(),
                iteration,
            });
            return;
        }
        self.since += 1;
        if self.since >= self.patience.iterations {
            self.stop.set(true);
        }
    }

    /// Figures that are NaN are better than none.
    fn is_better(&self, figure: f64) -> bool {
        match &self.best {
            None => true,
            Some(best) if self.patience.larger_is_better => figure > best.figure,
            Some(best) => figure < best.figure,
        }
    }

    /// Whether it is time.
    pub(super) fn is_over(&self) -> bool {
        self.stop.get()
    }

    /// Does `work` in which products end with an interruption once it is time.
    pub(super) fn during<R>(stop: Option<Rc<Cell<bool>>>, work: impl FnOnce() -> R) -> R {
        match stop {
            Some(stop) => interrupt::interruptible_too(move || stop.get(), work),
            None => work(),
        }
    }

    pub(super) fn signal(&self) -> Rc<Cell<bool>> {
        self.stop.clone()
    }

    /// The best coefficients, if it was time; otherwise what `ended` says.
    pub(super) fn settle(
        early: Option<EarlyStop>,
        chosen: Chosen,
        ended: impl FnOnce() -> Result<(Weights, Summary), FitError>,
    ) -> Result<(Weights, Summary), FitError> {
        let Some((early, best)) = early.and_then(EarlyStop::found) else {
            return ended();
        };
        let summary = Summary {
            n_iter: early,
            convergence: Convergence::EarlyStopped,
            gradient_ratio: best.iteration.gradient_ratio,
            objective: best.iteration.objective,
            gap: None,
            chosen,
        };
        Ok((best.weights, summary))
    }

    fn found(self) -> Option<(usize, Best)> {
        let (seen, is_over) = (self.seen, self.is_over());
        self.best.filter(|_| is_over).map(|best| (seen, best))
    }
}
