//! A fitted linear model, whatever it predicts.

use super::report::FitReport;
use super::solver::Iteration;
use super::weights::Weights;
use crate::matrix::Dtype;

/// Parameters of estimators whose models predict the same kind of thing.
pub trait Predicts {
    /// What a model knows about that besides its coefficients.
    type Meaning: Clone + std::fmt::Debug + PartialEq;
}

/// A fitted linear model of an estimator whose parameters are `P`.
///
/// [`Regressor`](super::Regressor) and [`Classifier`](super::Classifier) are what predicts.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted<P: Predicts> {
    pub(super) dtype: Dtype,
    pub(super) weights: Weights,
    pub(super) meaning: P::Meaning,
    pub(super) params: P,
    pub(super) report: FitReport,
}

impl<P: Predicts> Fitted<P> {
    pub(super) fn new(
        dtype: Dtype,
        weights: Weights,
        meaning: P::Meaning,
        params: P,
        report: FitReport,
    ) -> Self {
        Fitted {
            dtype,
            weights,
            meaning,
            params,
            report,
        }
    }

    /// n.
    pub fn cols(&self) -> usize {
        self.weights.cols()
    }

    /// The type that the model was fitted in.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The estimator and its parameters.
    pub fn params(&self) -> &P {
        &self.params
    }

    /// Outer iterations of the fit.
    pub fn n_iter(&self) -> usize {
        self.report.n_iter
    }

    /// Whether the fit reached its tolerance, or what the precision allows.
    pub fn converged(&self) -> bool {
        self.report.convergence.is_success()
    }

    /// Objective and gradient of each outer iteration.
    pub fn history(&self) -> &[Iteration] {
        &self.report.history
    }

    /// How the fit went.
    pub fn report(&self) -> &FitReport {
        &self.report
    }
}
