//! All figures of a task at once, as reports print them.

use ndarray::ArrayView2;
use rayon::prelude::*;
use serde::Serialize;

use super::{
    Average, ClassScores, ConfusionMatrix, MetricError, log_loss, mean_absolute_error,
    mean_squared_error, r2, roc_auc, roc_auc_one_vs_rest,
};

/// Figures of a regression.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RegressionSummary {
    /// Coefficient of determination.
    pub r2: f64,
    /// Root of the mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
}

impl RegressionSummary {
    /// Scores `predictions`.
    ///
    /// # Errors
    /// [`MetricError`] when lengths or weights do not fit.
    pub fn of(
        targets: &[f64],
        predictions: &[f64],
        weights: Option<&[f64]>,
    ) -> Result<Self, MetricError> {
        Ok(RegressionSummary {
            r2: r2(targets, predictions, weights)?,
            rmse: mean_squared_error(targets, predictions, weights)?.sqrt(),
            mae: mean_absolute_error(targets, predictions, weights)?,
        })
    }
}

/// Figures of a classification into k classes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassificationSummary {
    /// The share that was predicted right.
    pub accuracy: f64,
    /// Precision, recall and F1: those of class 1 where there are two classes, else the mean over classes.
    #[serde(flatten)]
    pub scores: ClassScores,
    /// The mean over classes, each weighted by its samples.
    pub weighted: ClassScores,
    /// Mean negative log-likelihood, where there are probabilities.
    pub log_loss: Option<f64>,
    /// Area under the ROC curve, one against the rest for three classes and more; `None` without scores, or
    /// where a class has no sample.
    pub auc: Option<f64>,
    /// Entry (i, j): the weight of samples of class i that were predicted to be of class j.
    pub confusion: Vec<Vec<f64>>,
}

/// What a classifier says beyond the class: one row per sample.
#[derive(Debug, Clone, Copy)]
pub enum Scores<'a> {
    /// Nothing.
    None,
    /// m × k probabilities.
    Probabilities(ArrayView2<'a, f64>),
    /// m × k decision values, or m × 1 for two classes.
    Decisions(ArrayView2<'a, f64>),
}

impl ClassificationSummary {
    /// Scores `predictions`.
    ///
    /// # Errors
    /// [`MetricError`] when lengths, weights, classes or probabilities do not fit.
    pub fn of(
        targets: &[u32],
        predictions: &[u32],
        classes: usize,
        scores: Scores<'_>,
        weights: Option<&[f64]>,
    ) -> Result<Self, MetricError> {
        let confusion = ConfusionMatrix::of(targets, predictions, classes, weights)?;
        let log_loss = match scores {
            Scores::Probabilities(p) => Some(log_loss(targets, p, weights)?),
            _ => None,
        };
        let auc = auc(targets, scores, weights)?;
        Ok(Self::of_parts(&confusion, log_loss, auc))
    }

    /// All figures of these.
    pub(in crate::learning) fn of_parts(
        confusion: &ConfusionMatrix,
        log_loss: Option<f64>,
        auc: Option<f64>,
    ) -> Self {
        let classes = confusion.weights().nrows();
        let average = if classes == 2 {
            Average::Binary { positive: 1 }
        } else {
            Average::Macro
        };
        let rows = confusion.weights().rows().into_iter();
        ClassificationSummary {
            accuracy: confusion.accuracy(),
            scores: confusion.scores(average),
            weighted: confusion.scores(Average::Weighted),
            log_loss,
            auc,
            confusion: rows.map(|row| row.to_vec()).collect(),
        }
    }
}

/// The area under the ROC curve; `None` without scores, or where a class has no sample.
pub(in crate::learning) fn auc(
    targets: &[u32],
    scores: Scores<'_>,
    weights: Option<&[f64]>,
) -> Result<Option<f64>, MetricError> {
    let (Scores::Probabilities(values) | Scores::Decisions(values)) = scores else {
        return Ok(None);
    };
    let area = if values.ncols() <= 2 {
        let positive: Vec<bool> = targets.par_iter().map(|target| *target == 1).collect();
        let of_positive = values.column(values.ncols().saturating_sub(1));
        match of_positive.as_slice() {
            Some(scores) => roc_auc(&positive, scores, weights),
            None => roc_auc(&positive, &of_positive.to_vec(), weights),
        }
    } else {
        roc_auc_one_vs_rest(targets, values, weights)
    };
    match area {
        Err(MetricError::OneClass) => Ok(None),
        area => area.map(Some),
    }
}

/// The deviance of a generalised linear model.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct DevianceSummary {
    /// Mean unit deviance.
    pub mean_deviance: f64,
    /// D², the explained share.
    pub explained_deviance: f64,
}
