//! Figures of a model on data with known targets, whatever its task.

use super::metrics::{ClassificationSummary, DevianceSummary, RegressionSummary};

/// Figures of a model on data with known targets.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Evaluation {
    /// Of numbers.
    Regression {
        /// R², RMSE, MAE.
        #[serde(flatten)]
        summary: RegressionSummary,
        /// Mean deviance and the share of it that is explained, of a [`Glm`](super::Glm).
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        deviance: Option<DevianceSummary>,
    },
    /// Of labels.
    Classification(ClassificationSummary),
}

impl Evaluation {
    /// The one figure to compare models by, the larger the better: accuracy, explained deviance of a generalised
    /// linear model, else R². The same as the `score` of scikit-learn's estimators.
    pub fn score(&self) -> f64 {
        match self {
            Evaluation::Classification(summary) => summary.accuracy,
            Evaluation::Regression { summary, deviance } => {
                deviance.map_or(summary.r2, |deviance| deviance.explained_deviance)
            }
        }
    }
}
