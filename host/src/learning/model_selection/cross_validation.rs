//! Cross-validation of a path of estimators.

use super::Folds;
use crate::learning::{Estimator, Evaluation, Extras, FitError, Model, Placed, Targets};
use crate::ops::Number;

/// How one estimator of a path did: one entry per fold.
#[derive(Debug, Clone, PartialEq)]
pub struct PathPoint {
    /// Figures on the rows that the fold held out.
    pub folds: Vec<Evaluation>,
    /// Outer iterations of each fit.
    pub n_iter: Vec<usize>,
    /// Whether all fits reached their tolerance.
    pub converged: bool,
}

/// A fit of a path, for whoever watches.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldProgress {
    /// Which fold, from 0.
    pub fold: usize,
    /// Which estimator of the path, from 0.
    pub point: usize,
    /// Its score on the rows that the fold held out.
    pub score: f64,
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

impl PathPoint {
    /// The mean of the folds' scores.
    pub fn mean_score(&self) -> f64 {
        let total: f64 = self.folds.iter().map(Evaluation::score).sum();
        total / self.folds.len() as f64
    }

    /// The standard deviation of the folds' scores, divided by their number.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean_score();
        let squares = self.folds.iter().map(|fold| (fold.score() - mean).powi(2));
        (squares.sum::<f64>() / self.folds.len() as f64).sqrt()
    }
}

/// Fits each estimator of `path` once per fold, to the rows that the fold leaves in, and scores it on those that
/// it holds out.
///
/// X is on the device once: rows are left out by a weight of 0. Along the path a fit starts from the coefficients
/// of the one before, so that neighbouring penalties should be neighbours in the path.
///
/// # Errors
/// As the estimators'; [`FitError::Length`] when the folds, weights and targets are not as many as the rows.
///
/// ```
/// use ndarray::Array2;
/// use warpfuse::device::Device;
/// use warpfuse::learning::{Estimator, Folds, Placed, Ridge, Targets, cross_validate};
/// use warpfuse::matrix::Features;
/// use warpfuse::ops::MatrixOptions;
///
/// let x = Features::Dense(Array2::from_shape_fn((20, 1), |(i, _)| i as f64));
/// let t: Vec<f64> = (0..20).map(|i| 3.0 * i as f64 + 1.0).collect();
/// let data = Placed::new(&Device::cpu(), x, MatrixOptions::default())?;
/// let path = [0.0, 1e4].map(|alpha| Estimator::Ridge(Ridge::params().alpha(alpha)));
/// let folds = Folds::shuffled(20, 4, 1).expect("4 folds of 20 rows");
/// let points = cross_validate(&data, Targets::Numbers(&t), None, &folds, &path, |_| {})?;
/// assert!(points[0].mean_score() > 0.999 && points[1].mean_score() < 0.5);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
pub fn cross_validate<T: Number>(
    data: &Placed<T>,
    targets: Targets<'_, T>,
    sample_weight: Option<&[f64]>,
    folds: &Folds,
    path: &[Estimator],
    mut watch: impl FnMut(FoldProgress),
) -> Result<Vec<PathPoint>, FitError> {
    let rows = data.matrix().rows();
    expect_rows("rows of the folds", folds.rows(), rows)?;
    expect_rows(
        "sample weights",
        sample_weight.map_or(rows, <[f64]>::len),
        rows,
    )?;
    let empty = PathPoint {
        folds: Vec::with_capacity(folds.count()),
        n_iter: Vec::with_capacity(folds.count()),
        converged: true,
    };
    let mut points = vec![empty; path.len()];
    for fold in 0..folds.count() {
        let training = folds.training_weights(fold, sample_weight);
        let held_out = folds.held_out_weights(fold, sample_weight);
        let mut last: Option<Model> = None;
        for (index, (estimator, point)) in path.iter().zip(&mut points).enumerate() {
            let model = fit(data, targets, &training, estimator, last.as_ref())?;
            let evaluation = model.evaluate_on(data.matrix(), targets, Some(&held_out))?;
            watch(FoldProgress {
                fold,
                point: index,
                score: evaluation.score(),
            });
            point.folds.push(evaluation);
            point.n_iter.push(model.n_iter());
            point.converged &= model.converged();
            last = Some(model);
        }
    }
    Ok(points)
}

/// Fits one estimator, from where the last one ended.
fn fit<T: Number>(
    data: &Placed<T>,
    targets: Targets<'_, T>,
    weights: &[f64],
    estimator: &Estimator,
    last: Option<&Model>,
) -> Result<Model, FitError> {
    let start: Option<(Vec<Vec<f64>>, Vec<f64>)> = last.map(|model| {
        let coef = model.coef().into_iter().map(<[f64]>::to_vec).collect();
        (coef, model.intercept())
    });
    let extras = Extras {
        sample_weight: Some(weights),
        start: start
            .as_ref()
            .map(|(coef, intercept)| (&coef[..], &intercept[..])),
        ..Extras::default()
    };
    estimator.fit_on(data, targets, extras)
}

fn expect_rows(what: &'static str, found: usize, expected: usize) -> Result<(), FitError> {
    if found == expected {
        return Ok(());
    }
    Err(FitError::Length {
        what,
        expected,
        found,
    })
}
