//! The model of one group.

use crate::learning::cg::Convergence;
use crate::learning::fitted::{Fitted, Predicts};

/// How the fit of a group ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// As fits end.
    Fitted(Convergence),
    /// Its rows are of one class, which it predicts: coefficients of 0, an intercept of ±∞.
    OneClass,
    /// There is no model of it: coefficients are NaN, and nothing can be predicted.
    Failed(String),
}

impl Ending {
    /// Whether the group's coefficients are those of a minimum.
    pub fn is_success(&self) -> bool {
        matches!(self, Ending::Fitted(convergence) if convergence.is_success())
    }
}

/// A group's coefficients and how they were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub(super) intercept: f64,
    pub(super) coef: Vec<f64>,
    pub(super) ending: Ending,
    pub(super) n_iter: usize,
}

impl Member {
    /// The n coefficients.
    pub fn coef(&self) -> &[f64] {
        &self.coef
    }

    /// The intercept, 0 when none was fitted.
    pub fn intercept(&self) -> f64 {
        self.intercept
    }

    /// How the fit ended.
    pub fn ending(&self) -> &Ending {
        &self.ending
    }

    /// Iterations of the fit.
    pub fn n_iter(&self) -> usize {
        self.n_iter
    }

    /// Of one class.
    pub(super) fn of_class(cols: usize, is_second: bool) -> Member {
        let sign = if is_second { 1.0 } else { -1.0 };
        Member {
            intercept: sign * f64::INFINITY,
            coef: vec![0.0; cols],
            ending: Ending::OneClass,
            n_iter: 0,
        }
    }

    /// Of a group that could not be fitted.
    pub(super) fn failed(cols: usize, why: String) -> Member {
        Member {
            intercept: f64::NAN,
            coef: vec![f64::NAN; cols],
            ending: Ending::Failed(why),
            n_iter: 0,
        }
    }

    /// Of a fit by itself.
    pub(super) fn of_fitted<P: Predicts>(model: Fitted<P>) -> Member {
        let mut weights = model.weights;
        Member {
            intercept: weights.intercept.swap_remove(0),
            coef: weights.coef.swap_remove(0),
            ending: Ending::Fitted(model.report.convergence),
            n_iter: model.report.n_iter,
        }
    }
}
