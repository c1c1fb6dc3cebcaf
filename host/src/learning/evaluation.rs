//! Figures of a model on data with known targets, whatever its task.

use super::metrics::{ClassScores, ClassificationSummary, DevianceSummary, RegressionSummary};

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

    /// All figures in a row, from which they come [back](Evaluation::of_numbers) bit by bit.
    pub(super) fn to_numbers(&self) -> Vec<f64> {
        match self {
            Evaluation::Regression { summary, deviance } => {
                let RegressionSummary { r2, rmse, mae } = *summary;
                let deviance = deviance.map(|of| [of.mean_deviance, of.explained_deviance]);
                let own = [REGRESSION, r2, rmse, mae];
                own.into_iter()
                    .chain(deviance.into_iter().flatten())
                    .collect()
            }
            Evaluation::Classification(of) => {
                let optional =
                    |figure: Option<f64>| [figure.map_or(0.0, |_| 1.0), figure.unwrap_or(0.0)];
                let scores = |of: &ClassScores| [of.precision, of.recall, of.f1];
                let mut all = vec![CLASSIFICATION, of.accuracy];
                all.extend(scores(&of.scores));
                all.extend(scores(&of.weighted));
                all.extend(optional(of.log_loss));
                all.extend(optional(of.auc));
                all.extend(of.confusion.iter().flatten());
                all
            }
        }
    }

    /// What [`Evaluation::to_numbers`] gave; `None` of anything else.
    pub(super) fn of_numbers(numbers: &[f64]) -> Option<Evaluation> {
        match *numbers {
            [REGRESSION, r2, rmse, mae, ref deviance @ ..] => {
                let deviance = match *deviance {
                    [] => None,
                    [mean_deviance, explained_deviance] => Some(DevianceSummary {
                        mean_deviance,
                        explained_deviance,
                    }),
                    _ => return None,
                };
                let summary = RegressionSummary { r2, rmse, mae };
                Some(Evaluation::Regression { summary, deviance })
            }
            [
                CLASSIFICATION,
                accuracy,
                p,
                r,
                f,
                wp,
                wr,
                wf,
                has_loss,
                loss,
                has_auc,
                auc,
                ref confusion @ ..,
            ] => {
                let classes = confusion.len().isqrt();
                let is_square = classes > 0 && classes * classes == confusion.len();
                let scores = |[precision, recall, f1]: [f64; 3]| ClassScores {
                    precision,
                    recall,
                    f1,
                };
                is_square.then(|| {
                    Evaluation::Classification(ClassificationSummary {
                        accuracy,
                        scores: scores([p, r, f]),
                        weighted: scores([wp, wr, wf]),
                        log_loss: (has_loss != 0.0).then_some(loss),
                        auc: (has_auc != 0.0).then_some(auc),
                        confusion: confusion.chunks(classes).map(<[f64]>::to_vec).collect(),
                    })
                })
            }
            _ => None,
        }
    }
}

/// The first number of each kind.
const REGRESSION: f64 = 0.0;
const CLASSIFICATION: f64 = 1.0;

#[cfg(test)]
mod tests {
    use super::super::metrics::Scores;
    use super::*;

    #[test]
    fn figures_come_back_from_numbers() {
        let numbers = RegressionSummary::of(&[1.0, 2.0], &[1.5, 2.5], None).expect("figures");
        let deviance = DevianceSummary {
            mean_deviance: 0.5,
            explained_deviance: f64::NEG_INFINITY,
        };
        let regression = |deviance| Evaluation::Regression {
            summary: numbers,
            deviance,
        };
        let classes = ClassificationSummary::of(&[0, 1, 2], &[0, 2, 2], 3, Scores::None, None);
        let classes = classes.expect("figures");
        let more = ClassificationSummary {
            log_loss: Some(0.25),
            auc: Some(0.75),
            ..classes.clone()
        };
        for evaluation in [
            regression(None),
            regression(Some(deviance)),
            Evaluation::Classification(classes),
            Evaluation::Classification(more),
        ] {
            let numbers = evaluation.to_numbers();
            assert_eq!(Evaluation::of_numbers(&numbers), Some(evaluation));
            let longer = [&numbers[..], &[1.0]].concat();
            assert_eq!(Evaluation::of_numbers(&longer), None);
        }
        assert_eq!(Evaluation::of_numbers(&[]), None);
    }
}
