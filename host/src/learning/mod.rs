//! Learning on top of the pattern: estimators over a matrix, solvers that know none.
//!
//! Conjugate gradients, Lanczos' method, HITS and PageRank take an [`Operator`], Newton's method, L-BFGS and the orthant
//! method an [`Objective`]; both can be of one's own. Losses that one pass over X evaluates are operations of
//! [`Matrix`](crate::ops::Matrix) behind an objective.
//!
//! The same code runs on every device. Vectors stay on the device from the first iteration to the last; the
//! host sees a handful of scalars per iteration, and reads them while the next iteration is under way.
//!
//! ```
//! use ndarray::array;
//! use warpfuse::device::Device;
//! use warpfuse::learning::LinearRegression;
//! use warpfuse::matrix::Features;
//!
//! let x = Features::Dense(array![[0.0], [1.0], [2.0]]);
//! let model = LinearRegression::params().tolerance(1e-12).fit(&Device::cpu(), x, &[1.0, 3.0, 5.0])?;
//! assert!((model.coef()[0] - 2.0).abs() < 1e-9 && (model.intercept() - 1.0).abs() < 1e-9);
//! # Ok::<(), warpfuse::learning::FitError>(())
//! ```

mod assessment;
mod attempt;
mod batched;
mod cg;
mod checkpoint;
mod checks;
mod classifier;
mod codes;
mod compact;
mod controls;
mod course;
mod design;
mod diagnostics;
mod early;
#[cfg(test)]
mod endings;
mod error;
mod estimators;
mod evaluation;
mod evaluations;
mod family;
mod fit;
mod fitted;
mod fitting;
mod fused_hessian;
mod given;
mod glm;
mod grouped;
#[doc = include_str!("guide.md")]
pub mod guide {}
mod hits;
mod host_fit;
mod huber;
mod identity;
mod inference;
mod inside;
mod judge;
mod kernel_ridge;
mod labels;
mod lanczos;
mod least_norm;
mod least_squares;
mod leg;
pub mod liblinear;
mod logistic;
pub mod metrics;
mod model;
mod model_file;
mod model_selection;
mod multinomial;
mod operator;
mod options;
mod page_rank;
mod penalty;
mod problem;
mod quantile;
mod regressor;
mod report;
mod resident;
mod restored;
mod ridge_classifier;
mod row_moments;
mod row_targets;
mod rows_objective;
mod sample_weights;
mod saved_model;
mod scoring;
mod sigmoid;
mod single;
mod small;
mod softmax;
mod solver;
mod spec;
mod spectral;
mod spread;
mod start;
mod svm;
mod symmetric_eigen;
mod tall;
mod targets;
#[cfg(test)]
mod tests;
mod truncated_svd;
mod validation;
mod weights;

pub use assessment::Assessment;
pub use cg::{CgOptions, CgStart, Convergence, Progress, Solution, conjugate_gradient};
pub use checkpoint::{Checkpoint, CheckpointError};
pub use classifier::Classifier;
pub use codes::Codes;
pub use design::{Columns, Design};
pub use diagnostics::{
    ClassCurves, ClassificationDiagnostics, Diagnostics, Group, Histogram, Pairs,
    RegressionDiagnostics, ScoreHistogram, Spread,
};
pub use early::Patience;
pub use error::{FitError, ModelError};
pub use estimators::{ClassifierParams, Estimator, RegressorParams};
pub use evaluation::Evaluation;
pub use family::{Family, Link};
pub use fitted::{Fitted, Predicts};
pub use glm::Glm;
pub use grouped::{
    Ending, Grouped, GroupedClassifier, GroupedModel, GroupedRegressor, Member, group_predictors,
};
pub use hits::{Hits, HitsModel};
pub use huber::Huber;
pub use inference::{Estimate, Inference, InferenceError};
pub use kernel_ridge::{KernelFitReport, KernelModel, KernelRidge, KernelSolver};
pub use labels::{Classes, Label, LabelError, LabelSlice, Labels};
pub use least_squares::{ElasticNet, Lasso, LinearRegression, Ridge};
pub use logistic::LogisticRegression;
pub use metrics::DevianceSummary;
pub use model::Model;
pub use model_selection::{
    FoldError, FoldOptions, FoldProgress, Folds, PathPoint, cross_validate, cross_validate_with,
};
pub use operator::Operator;
pub use options::{Evaluate, FitOptions};
pub use page_rank::{Dangling, PageRank, PageRankModel};
pub use penalty::{ClassWeight, Penalty};
pub use quantile::Quantile;
pub use regressor::Regressor;
pub use report::FitReport;
pub use resident::ResidentDataset;
pub use ridge_classifier::RidgeClassifier;
pub use row_moments::RowMoments;
pub use saved_model::SavedModel;
pub use sigmoid::sigmoids;
pub use solver::{Iteration, Minimum, NewtonOptions, Objective, Solver, Value, newton_cg};
pub use spectral::SpectralReport;
pub use svm::{LinearSvc, LinearSvr, SvmLoss};
pub use targets::Targets;
pub use truncated_svd::{SvdModel, TruncatedSvd};
pub use validation::Validation;
