//! How good a model is: figures, and the curves behind them.

use super::number::Unit;
use super::page::{Fact, Mood, Report, Section};
use super::{classification, regression};
use crate::learning::{Diagnostics, Evaluation};

/// The figures of an evaluation, with their names.
pub(super) fn facts(evaluation: &Evaluation) -> Vec<Fact> {
    let plain = |name: &str, value: f64| Fact::number(name, value, Unit::Plain);
    match evaluation {
        Evaluation::Regression { summary, deviance } => {
            let mut all = vec![
                plain("R²", summary.r2),
                plain("root mean squared error", summary.rmse),
                plain("mean absolute error", summary.mae),
            ];
            if let Some(deviance) = deviance {
                all.push(plain("mean deviance", deviance.mean_deviance));
                all.push(plain("explained deviance", deviance.explained_deviance));
            }
            all
        }
        Evaluation::Classification(summary) => {
            let share = |name: &str, value: f64| Fact::number(name, value, Unit::Share);
            let mut all = vec![
                share("accuracy", summary.accuracy),
                share("precision", summary.scores.precision),
                share("recall", summary.scores.recall),
                share("F1", summary.scores.f1),
            ];
            all.extend(summary.log_loss.map(|loss| plain("log-loss", loss)));
            all.push(match summary.auc {
                Some(auc) => plain("area under the ROC curve", auc),
                None => Fact::text("area under the ROC curve", "not defined"),
            });
            all
        }
    }
}

/// A part of the data that a model is scored on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scored<'a> {
    /// Such as `training data`.
    pub(super) on: &'a str,
    /// The stem of its figures' names.
    pub(super) stem: &'a str,
    pub(super) evaluation: &'a Evaluation,
    pub(super) diagnostics: Option<&'a Diagnostics>,
    pub(super) classes: &'a [String],
}

/// The section on one part of the data.
pub(super) fn section(scored: &Scored<'_>) -> Section {
    let section =
        Section::new(format!("How good it is: {}", scored.on)).facts(facts(scored.evaluation));
    let section = match (scored.evaluation, scored.diagnostics) {
        (Evaluation::Classification(summary), diagnostics) => {
            let found = match diagnostics {
                Some(Diagnostics::Classification(found)) => Some(&**found),
                _ => None,
            };
            classification::add(section, scored.stem, summary, scored.classes, found)
        }
        (_, Some(Diagnostics::Regression(found))) => regression::add(section, scored.stem, found),
        _ => section,
    };
    match undefined(scored.evaluation) {
        Some(reason) => section.note(reason),
        None => section,
    }
}

fn undefined(evaluation: &Evaluation) -> Option<&'static str> {
    match evaluation {
        Evaluation::Regression { summary, .. } if !summary.rmse.is_finite() => {
            Some("Predictions are not finite: no figure is defined.")
        }
        Evaluation::Regression { summary, .. } if summary.r2.is_nan() => {
            Some("R² is not defined for fewer than two rows with weight.")
        }
        Evaluation::Classification(summary) if summary.auc.is_none() => {
            Some("Some class has no row here, so that its ROC curve is not defined.")
        }
        _ => None,
    }
}

/// Says first how good it is, beside a model that knows no feature.
pub(super) fn judge(report: &mut Report, scored: &Scored<'_>) {
    let on = scored.on;
    match (scored.evaluation, scored.diagnostics) {
        (Evaluation::Classification(summary), Some(Diagnostics::Classification(found))) => {
            let one_class = found
                .class_weights
                .iter()
                .filter(|weight| **weight > 0.0)
                .count()
                < 2;
            if one_class {
                let text = format!(
                    "All rows of the {on} are of one class: curves and their areas are not defined."
                );
                return report.verdict(Mood::Bad, "One class only", text);
            }
            let gain = summary.accuracy - found.majority_share;
            let auc = summary.auc.map_or(String::new(), |auc| {
                format!(", area under the ROC curve {auc:.3}")
            });
            let text = format!(
                "On {on}: {:.1} % of rows right{auc}; always naming the most frequent class would be right for {:.1} %.",
                100.0 * summary.accuracy,
                100.0 * found.majority_share
            );
            let mood = if gain > 0.0 { Mood::Plain } else { Mood::Look };
            let title = if gain > 0.0 {
                "How good it is"
            } else {
                "No better than the most frequent class"
            };
            report.verdict(mood, title, text);
        }
        (Evaluation::Regression { summary, deviance }, _) => {
            let score = deviance.map_or(summary.r2, |deviance| deviance.explained_deviance);
            let of = if deviance.is_some() {
                "deviance"
            } else {
                "variance"
            };
            if !score.is_finite() {
                let text = format!(
                    "On {on} no share of the {of} can be explained: see the figures below."
                );
                return report.verdict(Mood::Bad, "The score is not defined", text);
            }
            let text = format!(
                "On {on}: {:.1} % of the {of} explained; an error of {} in the root of the mean square, {} in the mean.",
                100.0 * score,
                super::number::shown(summary.rmse, Unit::Plain),
                super::number::shown(summary.mae, Unit::Plain)
            );
            let mood = if score > 0.0 { Mood::Plain } else { Mood::Look };
            let title = if score > 0.0 {
                "How good it is"
            } else {
                "No better than the mean"
            };
            report.verdict(mood, title, text);
        }
        _ => {}
    }
}

/// Says when a model is much better on what it has seen.
pub(super) fn judge_gap(report: &mut Report, training: &Evaluation, other: &Evaluation) {
    const GAP: f64 = 0.05;
    let (seen, unseen) = (training.score(), other.score());
    if seen - unseen > GAP {
        let text = format!(
            "The score is {seen:.3} on training data and {unseen:.3} on validation data: a stronger penalty, or more rows, may help."
        );
        report.verdict(Mood::Look, "Better on what it has seen", text);
    }
}
