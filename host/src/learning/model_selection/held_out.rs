//! What one fold holds out: its rows, their weights and what they should be predicted to be.

use super::Folds;
use crate::learning::{Evaluation, FitError, Labels, Model, Targets};
use crate::ops::Number;
use crate::parallel;

/// Targets of some rows.
enum Kept<T> {
    Numbers(Vec<T>),
    Labels(Labels),
}

/// The rows that a fold is scored on, picked once for all estimators of a path: figures of them take a k-th of what all rows
/// take with a weight of 0 for the others.
pub(super) struct HeldOut<T> {
    rows: Vec<usize>,
    weights: Option<Vec<f64>>,
    targets: Kept<T>,
}

impl<T: Number> HeldOut<T> {
    /// One for each fold.
    pub(super) fn of_all(
        folds: &Folds,
        targets: Targets<'_, T>,
        weights: Option<&[f64]>,
    ) -> Vec<Self> {
        let all = 0..folds.count();
        all.map(|fold| Self::of(folds.held_out(fold), targets, weights))
            .collect()
    }

    fn of(rows: Vec<usize>, targets: Targets<'_, T>, weights: Option<&[f64]>) -> Self {
        let targets = match targets {
            Targets::Numbers(all) => Kept::Numbers(pick(all, &rows)),
            Targets::Labels(Labels::Numbers(all)) => {
                Kept::Labels(Labels::Numbers(pick(all, &rows)))
            }
            Targets::Labels(Labels::Text(all)) => Kept::Labels(Labels::Text(pick(all, &rows))),
        };
        let weights = weights.map(|weights| pick(weights, &rows));
        HeldOut {
            rows,
            weights,
            targets,
        }
    }

    /// Figures of a model whose linear predictors of all rows are known.
    pub(super) fn evaluate(&self, model: &Model, predictors: &[T]) -> Result<Evaluation, FitError> {
        let targets = match &self.targets {
            Kept::Numbers(numbers) => Targets::Numbers(numbers),
            Kept::Labels(labels) => Targets::Labels(labels),
        };
        let predictors = pick(predictors, &self.rows);
        model.evaluate_predictors(&predictors, targets, self.weights.as_deref())
    }
}

fn pick<T: Clone + Default + Send + Sync>(values: &[T], rows: &[usize]) -> Vec<T> {
    parallel::filled(rows.len(), |place| values[rows[place]].clone())
}
