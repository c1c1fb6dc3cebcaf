//! What a fit may be given besides features and targets.

use super::RowMoments;
use super::checkpoint::Checkpoint;
use super::early::Patience;
use super::solver::Iteration;

/// A figure of coefficients, one list per linear predictor, and intercepts.
pub type Evaluate<'a> = dyn FnMut(&[Vec<f64>], &[f64]) -> f64 + 'a;

/// What a fit may be given besides features and targets.
///
/// ```
/// use warpfuse::learning::FitOptions;
/// let options = FitOptions { sample_weight: Some(&[1.0, 2.0, 0.0]), ..FitOptions::default() };
/// ```
#[derive(Default)]
pub struct FitOptions<'a> {
    /// One weight per row, not negative; a row of weight 0 takes no part.
    pub sample_weight: Option<&'a [f64]>,
    /// Which columns take part; the others keep coefficient 0.
    pub columns: Option<&'a [bool]>,
    /// Sums over the rows whose standard deviations count for `standardize`; of all rows where absent. With rows that are
    /// left out by a weight of 0, they let a fit know nothing of those rows.
    pub moments: Option<&'a RowMoments>,
    /// What is added to the linear predictor of each row before the link: the logarithm of an exposure for counts with link
    /// log, whose means are then proportional to it. Not of labels of more than two classes, on which it has no effect.
    /// Predictions are without it ([`Regressor::predict_with_offset`](super::Regressor::predict_with_offset) adds one).
    pub offset: Option<&'a [f64]>,
    /// What the penalties of each column are multiplied by, as glmnet's `penalty.factor` (which scales them to a mean of 1;
    /// these are taken as they are): 0 leaves a column unpenalised. Factors above 0 of a penalty that is all l1 or all l2 go
    /// with every solver and device; others need X on the CPU.
    pub penalty_factors: Option<&'a [f64]>,
    /// Where to start, for a warm start: coefficients, one list per class or one list, and intercepts. The tolerance
    /// stays relative to the gradient where a fit without it would start.
    pub start: Option<(&'a [Vec<f64>], &'a [f64])>,
    /// What a model of these coefficients (one list per class, or one list) and intercepts is worth on other data,
    /// requested after each outer iteration and kept as [`Iteration::validation`].
    pub evaluate: Option<&'a mut Evaluate<'a>>,
    /// Stops a fit early that gets no better by `evaluate`, without which it has no effect: its model has the coefficients
    /// of the best iteration and says [`Convergence::EarlyStopped`](super::Convergence::EarlyStopped). Not of one-vs-rest
    /// problems.
    pub patience: Option<Patience>,
    /// Where the fit writes how far it has got, and goes on from if the file is there. A figure by `evaluate` is not requested
    /// again of iterations before that, nor are they shown to `watch`.
    pub checkpoint: Option<&'a Checkpoint>,
    /// Called after each outer iteration.
    pub watch: Option<&'a mut dyn FnMut(Iteration)>,
}
