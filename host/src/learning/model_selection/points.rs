//! What a cross-validation tells: of each estimator of a path, and of each fit to whoever watches.

use crate::learning::Evaluation;

/// How one estimator of a path did: one entry per fold.
#[derive(Debug, Clone, PartialEq)]
pub struct PathPoint {
    /// Figures on the rows that the fold held out.
    pub folds: Vec<Evaluation>,
    /// Outer iterations of each fit.
    pub n_iter: Vec<usize>,
    /// Whether all fits reached their tolerance.
    pub converged: bool,
    /// Coefficients that are not 0, one number per fold.
    pub nonzero: Vec<usize>,
    /// Mean of the coefficients over the folds, of one linear predictor and at most [`PathPoint::KEPT`] columns; empty for
    /// more.
    pub mean_coef: Vec<f64>,
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

impl PathPoint {
    /// Columns up to which coefficients are kept.
    pub const KEPT: usize = 10_000;

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
