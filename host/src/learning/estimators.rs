//! The one list of estimators.
//!
//! A row here gives an estimator its variant of [`Estimator`], of the parameters that models keep and of their files (the
//! tag `estimator` is the name in snake case), its `fit` methods and its part in cross-validation and validation.

use super::controls::{Controls, HasControls};
use super::family::{Family, Link};
use super::liblinear::{SolverType, Task};
use super::problem::{Classification, Coding, Regression, Stated};
use super::solver::Solver;
use crate::ops::MatrixOptions;

/// Hands the list to a macro.
macro_rules! estimators {
    ($apply:ident) => {
        $apply! {
            regressions { LinearRegression, Ridge, Lasso, ElasticNet, Glm, LinearSvr, Huber, Quantile }
            classifications { LogisticRegression, LinearSvc, RidgeClassifier }
        }
    };
}
pub(super) use estimators;

macro_rules! define {
    (regressions { $($regression:ident),* } classifications { $($classification:ident),* }) => {
        /// An estimator with its parameters, chosen at run time.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Estimator {
            $(#[doc = concat!("[`", stringify!($regression), "`](super::", stringify!($regression), ").")] $regression(super::$regression),)*
            $(#[doc = concat!("[`", stringify!($classification), "`](super::", stringify!($classification), ").")] $classification(super::$classification),)*
        }

        /// Which estimator a regressor came from, with its parameters.
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "estimator", rename_all = "snake_case")]
        pub enum RegressorParams {
            $(#[doc = concat!("[`", stringify!($regression), "`](super::", stringify!($regression), ").")] $regression(super::$regression),)*
            /// Read from a file of LIBLINEAR.
            Liblinear {
                /// What LIBLINEAR minimised.
                solver: SolverType,
            },
        }

        /// Which estimator a classifier came from, with its parameters.
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "estimator", rename_all = "snake_case")]
        pub enum ClassifierParams {
            $(#[doc = concat!("[`", stringify!($classification), "`](super::", stringify!($classification), ").")] $classification(super::$classification),)*
            /// Read from a file of LIBLINEAR, whose logistic regressions of more than two classes are one against the
            /// rest, each with a sigmoid of its own.
            Liblinear {
                /// What LIBLINEAR minimised.
                solver: SolverType,
            },
        }

        $(impl From<super::$regression> for Estimator {
            fn from(params: super::$regression) -> Self {
                Estimator::$regression(params)
            }
        })*

        $(impl From<super::$classification> for Estimator {
            fn from(params: super::$classification) -> Self {
                Estimator::$classification(params)
            }
        })*

        $(impl From<super::$regression> for RegressorParams {
            fn from(params: super::$regression) -> Self {
                RegressorParams::$regression(params)
            }
        })*

        $(impl From<super::$classification> for ClassifierParams {
            fn from(params: super::$classification) -> Self {
                ClassifierParams::$classification(params)
            }
        })*

        impl Estimator {
            /// Each with its default parameters, in the order of the list.
            pub fn all() -> Vec<Estimator> {
                vec![
                    $(super::$regression::default().into(),)*
                    $(super::$classification::default().into(),)*
                ]
            }

            /// What it minimises.
            pub(super) fn stated(&self) -> Stated<'_> {
                match self {
                    $(Estimator::$regression(params) => Stated::Regression(params),)*
                    $(Estimator::$classification(params) => Stated::Classification(params),)*
                }
            }

            /// Parameters that all estimators have.
            fn controls_mut(&mut self) -> &mut Controls {
                match self {
                    $(Estimator::$regression(params) => params.controls_mut(),)*
                    $(Estimator::$classification(params) => params.controls_mut(),)*
                }
            }

            /// What its models keep of it.
            pub(super) fn params(&self) -> Params {
                match self {
                    $(Estimator::$regression(params) => Params::Regressor(params.clone().into()),)*
                    $(Estimator::$classification(params) => Params::Classifier(params.clone().into()),)*
                }
            }
        }

        impl RegressorParams {
            pub(super) fn stated(&self) -> Option<&dyn Regression> {
                match self {
                    $(RegressorParams::$regression(params) => Some(params),)*
                    RegressorParams::Liblinear { .. } => None,
                }
            }
        }

        impl ClassifierParams {
            pub(super) fn stated(&self) -> Option<&dyn Classification> {
                match self {
                    $(ClassifierParams::$classification(params) => Some(params),)*
                    ClassifierParams::Liblinear { .. } => None,
                }
            }

            /// Whether each class has a sigmoid of its own against all others, where there are more than two.
            pub(super) fn is_one_vs_rest(&self) -> bool {
                match self {
                    $(ClassifierParams::$classification(params) => params.coding() == Coding::Indicators,)*
                    ClassifierParams::Liblinear { .. } => true,
                }
            }

            /// Whether linear predictors become probabilities.
            pub fn is_probabilistic(&self) -> bool {
                match self {
                    $(ClassifierParams::$classification(params) => params.is_probabilistic(),)*
                    ClassifierParams::Liblinear { solver } => solver.task() == Task::LogisticRegression,
                }
            }
        }
    };
}

estimators!(define);

/// What a model keeps of its estimator.
pub(super) enum Params {
    Regressor(RegressorParams),
    Classifier(ClassifierParams),
}

impl Estimator {
    /// Whether it learns labels.
    pub fn is_classifier(&self) -> bool {
        matches!(self.stated(), Stated::Classification(_))
    }

    /// Minimisations for this many classes: one for all, or one for each against the others.
    pub fn problems(&self, classes: usize) -> usize {
        match self.stated() {
            Stated::Classification(of) if of.coding() != Coding::Numbers && classes > 2 => classes,
            _ => 1,
        }
    }

    /// Whether columns are divided by their deviations.
    pub fn standardizes(&self) -> bool {
        self.controls().standardize
    }

    pub(super) fn controls(&self) -> &Controls {
        match self.stated() {
            Stated::Regression(of) => of.controls(),
            Stated::Classification(of) => of.controls(),
        }
    }
}

/// Setters of what all estimators have; they are those of the estimators themselves.
impl Estimator {
    /// Sets the norm of the gradient, relative to that at the start, at which to stop.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.controls_mut().tolerance = tolerance;
        self
    }

    /// Sets the most outer iterations.
    pub fn max_iter(mut self, max_iter: usize) -> Self {
        self.controls_mut().max_iter = max_iter;
        self
    }

    /// Sets whether an intercept is fitted.
    pub fn fit_intercept(mut self, fit_intercept: bool) -> Self {
        self.controls_mut().fit_intercept = fit_intercept;
        self
    }

    /// Sets whether columns are divided by their standard deviation for the fit.
    pub fn standardize(mut self, standardize: bool) -> Self {
        self.controls_mut().standardize = standardize;
        self
    }

    /// Sets what solves it.
    pub fn solver(mut self, solver: Solver) -> Self {
        self.controls_mut().solver = solver;
        self
    }

    /// Sets whether coefficients may not be negative.
    pub fn non_negative(mut self, non_negative: bool) -> Self {
        self.controls_mut().non_negative = non_negative;
        self
    }

    /// Sets how products are planned on a GPU.
    pub fn matrix_options(mut self, matrix: MatrixOptions) -> Self {
        self.controls_mut().matrix = matrix;
        self
    }
}

impl RegressorParams {
    /// Distribution of the targets and link; gaussian and identity but for [`Glm`](super::Glm).
    pub fn family_and_link(&self) -> (Family, Link) {
        self.glm().unwrap_or_default()
    }

    /// Family and link of a generalised linear model.
    pub(super) fn glm(&self) -> Option<(Family, Link)> {
        self.stated().and_then(Regression::glm)
    }
}
