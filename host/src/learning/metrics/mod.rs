//! How well predictions fit, with scikit-learn's definitions.
//!
//! | file | what |
//! |---|---|
//! | `regression` | R², mean squared and absolute error |
//! | `deviance` | mean and explained deviance of a family |
//! | `classification` | confusion matrix, accuracy, precision, recall, F1, log-loss |
//! | `ranking` | area under the ROC curve |
//! | `curves` | ROC, precision and recall over all thresholds |
//! | `calibration` | predicted beside observed shares |
//! | `summary` | all figures of a task at once |
//! | `on_device` | the figures of [`DEVICE_ROWS`] rows and more, without copying predictions |
//!
//! All work in f64, take an optional weight per sample, and add in an order that the number of samples alone
//! decides: the result is the same with any number of threads. Classes are numbers `0..k`, as
//! [`Classes`](super::Classes) encodes labels.

mod calibration;
mod classification;
mod curves;
mod deviance;
mod error;
mod on_device;
mod pairs;
mod ranking;
mod regression;
mod summary;
mod sums;
#[cfg(test)]
mod tests;

pub use calibration::{CalibrationBin, brier_score, calibration_curve};
pub use classification::{Average, ClassScores, ConfusionMatrix, accuracy, log_loss};
pub use curves::{PrecisionRecallCurve, RocCurve, precision_recall_curve, roc_curve};
pub(super) use curves::{RankedScores, thinned};
pub use deviance::Deviance;
pub use error::MetricError;
pub(super) use on_device::takes_device;
pub use on_device::{
    ClassificationFigures, DEVICE_CLASSES, DEVICE_ROWS, RegressionFigures, ResidentClasses,
    ResidentTargets,
};
pub use ranking::{roc_auc, roc_auc_one_vs_rest};
pub use regression::{mean_absolute_error, mean_squared_error, r2};
pub(super) use summary::auc;
pub use summary::{ClassificationSummary, DevianceSummary, RegressionSummary, Scores};
pub(super) use sums::{check_samples, sums};
