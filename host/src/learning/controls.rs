//! Parameters that all estimators have, and their setters.

use super::solver::Solver;
use crate::ops::MatrixOptions;

/// Parameters that all estimators have, besides their own.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Controls {
    pub(super) tolerance: f64,
    pub(super) max_iter: usize,
    pub(super) fit_intercept: bool,
    pub(super) standardize: bool,
    pub(super) solver: Solver,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) non_negative: bool,
    #[serde(skip)]
    pub(super) matrix: MatrixOptions,
}

impl Default for Controls {
    fn default() -> Self {
        Controls {
            tolerance: 1e-6,
            max_iter: 1000,
            fit_intercept: true,
            standardize: false,
            solver: Solver::Auto,
            non_negative: false,
            matrix: MatrixOptions::default(),
        }
    }
}

/// Parameters that have [`Controls`] among them.
pub(super) trait HasControls {
    fn controls(&self) -> &Controls;
    fn controls_mut(&mut self) -> &mut Controls;
}

/// [`HasControls`] and the setters of [`Controls`], for an estimator with a field `controls`.
macro_rules! control_setters {
    ($estimator:ty) => {
        impl $crate::learning::controls::HasControls for $estimator {
            fn controls(&self) -> &$crate::learning::controls::Controls {
                &self.controls
            }

            fn controls_mut(&mut self) -> &mut $crate::learning::controls::Controls {
                &mut self.controls
            }
        }

        impl $estimator {
            /// The default parameters.
            pub fn params() -> Self {
                Self::default()
            }

            /// Sets the norm of the gradient, relative to that at the start, at which to stop (default 1e-6).
            pub fn tolerance(mut self, tolerance: f64) -> Self {
                self.controls.tolerance = tolerance;
                self
            }

            /// Sets the most outer iterations (default 1000).
            pub fn max_iter(mut self, max_iter: usize) -> Self {
                self.controls.max_iter = max_iter;
                self
            }

            /// Sets whether an intercept is fitted (default: yes).
            pub fn fit_intercept(mut self, fit_intercept: bool) -> Self {
                self.controls.fit_intercept = fit_intercept;
                self
            }

            /// Sets whether columns are divided by their standard deviation for the fit, so that a penalty
            /// treats them alike (default: no). Coefficients are those of the columns as they are. X is
            /// neither changed nor copied; a sparse X stays sparse.
            pub fn standardize(mut self, standardize: bool) -> Self {
                self.controls.standardize = standardize;
                self
            }

            /// Sets what solves it (default [`Solver::Auto`]($crate::learning::Solver::Auto); see the
            /// [guide](super::guide#solvers)). A solver that cannot minimise this objective, or not where X is, makes the
            /// fit fail.
            pub fn solver(mut self, solver: $crate::learning::Solver) -> Self {
                self.controls.solver = solver;
                self
            }

            /// Sets whether coefficients may not be negative (default: they may; the intercept always may). Solved by
            /// coordinate descent on the host: X has to be on the CPU, or small.
            pub fn non_negative(mut self, non_negative: bool) -> Self {
                self.controls.non_negative = non_negative;
                self
            }

            /// Sets how products are planned on a GPU.
            pub fn matrix_options(mut self, matrix: $crate::ops::MatrixOptions) -> Self {
                self.controls.matrix = matrix;
                self
            }
        }
    };
}
pub(super) use control_setters;
