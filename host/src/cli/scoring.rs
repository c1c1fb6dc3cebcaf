//! Figures to compare models by: `--scoring`.

use clap::ValueEnum;

use super::targets::Task;
use crate::learning::Evaluation;

/// `--scoring`, with scikit-learn's names; errors and losses are negated, so that larger is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ScoringName {
    /// R²
    R2,
    /// Root of the mean square error, negated
    NegRootMeanSquaredError,
    /// Mean absolute error, negated
    NegMeanAbsoluteError,
    /// Share of the deviance that is explained; of glm
    ExplainedDeviance,
    /// Share of rows that are predicted right
    Accuracy,
    /// Precision; of more than two classes the mean
    Precision,
    /// Recall; of more than two classes the mean
    Recall,
    /// F1; of more than two classes the mean
    F1,
    /// Mean log-loss, negated; where there are probabilities
    NegLogLoss,
    /// Area under the ROC curve
    RocAuc,
}

impl ScoringName {
    /// As it is typed.
    pub(super) fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// What it is a figure of.
    pub(super) fn task(self) -> Task {
        match self {
            ScoringName::R2
            | ScoringName::NegRootMeanSquaredError
            | ScoringName::NegMeanAbsoluteError
            | ScoringName::ExplainedDeviance => Task::Numbers,
            _ => Task::Labels,
        }
    }

    /// The figure; NaN where it is not defined.
    pub(super) fn of(self, evaluation: &Evaluation) -> f64 {
        match evaluation {
            Evaluation::Regression { summary, deviance } => match self {
                ScoringName::R2 => summary.r2,
                ScoringName::NegRootMeanSquaredError => -summary.rmse,
                ScoringName::NegMeanAbsoluteError => -summary.mae,
                ScoringName::ExplainedDeviance => {
                    deviance.map_or(f64::NAN, |deviance| deviance.explained_deviance)
                }
                _ => f64::NAN,
            },
            Evaluation::Classification(summary) => match self {
                ScoringName::Accuracy => summary.accuracy,
                ScoringName::Precision => summary.scores.precision,
                ScoringName::Recall => summary.scores.recall,
                ScoringName::F1 => summary.scores.f1,
                ScoringName::NegLogLoss => summary.log_loss.map_or(f64::NAN, |loss| -loss),
                ScoringName::RocAuc => summary.auc.unwrap_or(f64::NAN),
                _ => f64::NAN,
            },
        }
    }
}
