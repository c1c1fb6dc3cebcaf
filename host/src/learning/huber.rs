//! Huber regression, with the scale of the residuals estimated along with the coefficients.

use super::checks::not_negative;
use super::controls::{Controls, HasControls, control_setters};
use super::error::mismatch;
use super::estimators::RegressorParams;
use super::fit::Training;
use super::fitted::Fitted;
use super::identity::with_checkpoint;
use super::options::FitOptions;
use super::problem::{Regression, Task, regression_task};
use super::report::{FitReport, Summary};
use super::spec::{ObjectiveSpec, SampleLoss};
use super::weights::Weights;
use super::{Convergence, FitError, Regressor, ResidentDataset};
use crate::matrix::{Dtype, Element};
use crate::ops::Number;
use crate::ops::objective::Loss;

/// Huber regression: minimises `Σ vᵢ·(σ + σ·H(rᵢ/σ)) + α‖w‖²` over w, b and σ, r = y − x·w − b, where H(z) is z² up to ε and
/// 2ε|z| − ε² beyond: rows that are further off than εσ pull no harder. The intercept is unpenalised.
///
/// The same numbers as scikit-learn's `HuberRegressor`. With a [`Huber::scale`] that is known, σ stays what it is.
///
/// **Solver.** For a given σ the objective is smooth, and solved like a generalised linear model, on every device; the best σ
/// of given residuals has `Σ vᵢ·min((rᵢ/σ)², ε²) = S`. Both take turns, each start from the last end, σ extrapolated, until
/// σ changes by less than the tolerance. The sum is convex in w and σ together, so that there is one minimum.
/// Source: A. Owen, "A robust hybrid of lasso and ridge regression", Contemp. Math. 443, 2007.
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `epsilon` | 1.35 | `epsilon=1.35` |
/// | `alpha` | 1e-4 | `alpha=0.0001` |
/// | `scale` | estimated | `scale_` |
/// | `fit_intercept` | yes | `fit_intercept=True` |
/// | `tolerance` | 1e-6, of the gradient's norm over that at the start, and of σ | `tol=1e-5` |
/// | `max_iter` | 1000 | `max_iter=100` |
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::Huber;
/// use warpfuse::matrix::Features;
///
/// let x = Features::Dense(array![[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]);
/// let y = [0.1, 1.9, 4.1, 5.9, 8.1, 100.0];
/// let model = Huber::params().fit(&Device::cpu(), x, &y)?;
/// assert!((model.coef()[0] - 2.0).abs() < 0.1);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Huber {
    epsilon: f64,
    alpha: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scale: Option<f64>,
    controls: Controls,
}

impl Default for Huber {
    fn default() -> Self {
        Huber {
            epsilon: 1.35,
            alpha: 1e-4,
            scale: None,
            controls: Controls::default(),
        }
    }
}

control_setters!(Huber);

impl Huber {
    /// Sets ε ≥ 1: rows further off than ε scales count linearly (default 1.35, 95 % as efficient as least squares where
    /// residuals are normal).
    pub fn epsilon(self, epsilon: f64) -> Self {
        Self { epsilon, ..self }
    }

    /// Sets α ≥ 0, the weight of ‖w‖² (default 1e-4).
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    /// Sets σ > 0 (default: it is estimated; a fitted model's parameters hold what was found).
    pub fn scale(self, scale: f64) -> Self {
        let scale = Some(scale);
        Self { scale, ..self }
    }

    /// σ, where it is set; of a fitted model's parameters what was found.
    pub fn scale_of_residuals(&self) -> Option<f64> {
        self.scale
    }
}

impl Regression for Huber {
    fn check(&self) -> Result<(), FitError> {
        not_negative("alpha", self.alpha)?;
        let refuse = |name, expected, found| {
            Err(FitError::Parameter {
                name,
                expected,
                found,
            })
        };
        if !(self.epsilon >= 1.0 && self.epsilon.is_finite()) {
            return refuse("epsilon", "finite and at least 1", self.epsilon);
        }
        match self.scale {
            Some(scale) if !(scale > 0.0 && scale.is_finite()) => {
                refuse("scale", "finite and above 0", scale)
            }
            _ => Ok(()),
        }
    }

    /// `(Σ v·huber / S + ½·(α·σ/S)‖w‖²) · 2S/σ + S·σ`, δ = εσ.
    fn spec(&self, total: f64) -> ObjectiveSpec {
        let scale = self.scale.unwrap_or(1.0);
        let loss = Loss::Huber {
            delta: self.epsilon * scale,
        };
        ObjectiveSpec {
            l2: self.alpha * scale / total,
            factor: 2.0 * total / scale,
            constant: total * scale,
            ..ObjectiveSpec::mean_of(SampleLoss::Single(loss))
        }
    }

    fn scaled(&self) -> Option<&Huber> {
        self.scale.is_none().then_some(self)
    }
}

/// Turns of scale and coefficients.
const TURNS: usize = 200;
/// Units in the last place of the largest target that residuals of a perfect fit may be: what sums over some hundred
/// coefficients make of them.
const EXACT: f64 = 1e4;
/// The smallest scale, of the largest target: less is a perfect fit.
const LEAST: f64 = 1e-12;

/// Fits coefficients and scale in turns.
pub(super) fn fit<T: Number>(
    huber: &Huber,
    data: &ResidentDataset<T>,
    targets: &[T],
    options: FitOptions<'_>,
) -> Result<Regressor, FitError> {
    let task = regression_task(huber, data.matrix().rows(), targets.into(), &options)?;
    let params: RegressorParams = huber.clone().into();
    let given = (data, &task.targets, &task.weights);
    let (weights, (params, report)) = with_checkpoint(&params, given, options, |options| {
        data.fitted(options, |data, options| {
            take_turns(huber, data, targets, options)
        })
    })?;
    Ok(Fitted::new(T::DTYPE, weights, (), params, report))
}

/// Coefficients, with the parameters that have the scale, and how the fit went.
type Ended = (Weights, (RegressorParams, FitReport));

fn take_turns<T: Number>(
    huber: &Huber,
    data: &ResidentDataset<T>,
    targets: &[T],
    mut options: FitOptions<'_>,
) -> Result<Ended, FitError> {
    if options.evaluate.is_some() && huber.controls().max_iter == 0 {
        return Err(no_iterations());
    }
    let first = regression_task(huber, data.matrix().rows(), targets.into(), &options)?;
    let training = Training::new(data, first.controls, &options)?;
    let wide: Vec<f64> = targets.iter().map(|b| Element::to_f64(*b)).collect();
    let largest = wide.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
    let least = (LEAST * largest).max(f64::MIN_POSITIVE);
    let off = first_residuals(&options, data, &wide)?;
    let of_rows = first.weights.in_f64();
    let mut turns = Turns::begin(huber, &off, &of_rows, least);
    if let Some(perfect) = interpolated(huber, (&training, data), (&wide, &first), &mut options)? {
        return Ok(perfect);
    }
    let mut history = Vec::new();
    let mut last: Option<(Weights, Summary, ObjectiveSpec)> = None;
    for _ in 0..TURNS {
        let fixed = huber.clone().scale(turns.scale);
        let task = regression_task(&fixed, wide.len(), targets.into(), &options)?;
        let start = last
            .as_ref()
            .map(|(weights, ..)| (&weights.coef[..], &weights.intercept[..]));
        let mut own = FitOptions {
            sample_weight: options.sample_weight,
            columns: options.columns,
            moments: options.moments,
            offset: options.offset,
            penalty_factors: options.penalty_factors,
            start: start.or(options.start),
            evaluate: match &mut options.evaluate {
                Some(evaluate) => Some(&mut **evaluate),
                None => None,
            },
            patience: options.patience,
            // That of the whole fit has all turns.
            checkpoint: None,
            watch: match &mut options.watch {
                Some(watch) => Some(&mut **watch),
                None => None,
            },
        };
        let sides = (&task.targets, &task.weights);
        let (weights, summary) =
            training.solve(&task.spec, sides.0, sides.1, &mut own, &mut history)?;
        let residuals = residuals(&weights, data, &wide, options.offset)?;
        let settled = turns.follow(&residuals, huber.controls.tolerance);
        last = Some((weights, summary, task.spec));
        if settled || !summary.convergence.is_success() {
            break;
        }
    }
    let (weights, mut summary, spec) = last.expect("one turn at least");
    if !turns.settled && summary.convergence.is_success() {
        summary.convergence = Convergence::IterationLimit;
    }
    summary.n_iter = history.len();
    let params: RegressorParams = huber.clone().scale(turns.used).into();
    let report = training.report(&summary, &spec, history);
    Ok((weights, (params, report)))
}

/// Where the first scale comes from.
fn first_residuals<T: Number>(
    options: &FitOptions<'_>,
    data: &ResidentDataset<T>,
    targets: &[f64],
) -> Result<Vec<f64>, FitError> {
    match options.start {
        Some(start) if start.0.len() == 1 && start.1.len() == 1 => {
            residuals_of(start, data, targets, options.offset)
        }
        // Of another number is refused by the fit itself.
        _ => Ok(from_the_middle(targets)),
    }
}

fn no_iterations() -> FitError {
    mismatch("max_iter 0", "a scale to estimate", "give the scale")
}

/// The shortest coefficients that leave no residuals, where there are as many columns as rows and nothing is penalised. The
/// best scale is then 0, towards which turns would shrink it for ever.
fn interpolated<T: Number>(
    huber: &Huber,
    (training, data): (&Training<'_, T>, &ResidentDataset<T>),
    (wide, task): (&[f64], &Task<'_, T>),
    options: &mut FitOptions<'_>,
) -> Result<Option<Ended>, FitError> {
    let x = data.matrix();
    if huber.alpha > 0.0 || x.cols() + usize::from(huber.controls.fit_intercept) < x.rows() {
        return Ok(None);
    }
    let squares = ObjectiveSpec::mean_of(SampleLoss::Single(Loss::Squared));
    let mut own = FitOptions {
        sample_weight: options.sample_weight,
        columns: options.columns,
        moments: options.moments,
        offset: options.offset,
        patience: options.patience,
        evaluate: match &mut options.evaluate {
            Some(evaluate) => Some(&mut **evaluate),
            None => None,
        },
        watch: match &mut options.watch {
            Some(watch) => Some(&mut **watch),
            None => None,
        },
        ..FitOptions::default()
    };
    let mut history = Vec::new();
    let sides = (&task.targets, &task.weights);
    let (weights, mut summary) =
        training.solve(&squares, sides.0, sides.1, &mut own, &mut history)?;
    let off = residuals(&weights, data, wide, options.offset)?;
    let unit = match T::DTYPE {
        Dtype::F32 => f64::from(f32::EPSILON),
        Dtype::F64 => f64::EPSILON,
    };
    let largest = wide.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
    let most = EXACT * unit * largest;
    if !summary.convergence.is_success() || off.iter().any(|r| r.abs() > most) {
        return Ok(None);
    }
    let scale = (LEAST * largest).max(f64::MIN_POSITIVE);
    let spec = huber.clone().scale(scale).spec(task.weights.total());
    // All that is left of it is the scale itself.
    summary.objective = 0.0;
    summary.n_iter = history.len();
    let params: RegressorParams = huber.clone().scale(scale).into();
    let report = training.report(&summary, &spec, history);
    Ok(Some((weights, (params, report))))
}

/// `y − (x·w + b + offset)` of each row.
fn residuals<T: Number>(
    weights: &Weights,
    data: &ResidentDataset<T>,
    targets: &[f64],
    offset: Option<&[f64]>,
) -> Result<Vec<f64>, FitError> {
    let predictors = weights.apply_on(data.matrix())?.swap_remove(0);
    let offset = |i: usize| offset.map_or(0.0, |offset| offset[i]);
    let each = targets.iter().zip(&predictors).enumerate();
    Ok(each
        .map(|(i, (b, t))| b - Element::to_f64(*t) - offset(i))
        .collect())
}

/// Those of the coefficients and the intercept that a fit starts from.
fn residuals_of<T: Number>(
    (coef, intercept): (&[Vec<f64>], &[f64]),
    data: &ResidentDataset<T>,
    targets: &[f64],
    offset: Option<&[f64]>,
) -> Result<Vec<f64>, FitError> {
    let weights = Weights {
        coef: coef.to_vec(),
        intercept: intercept.to_vec(),
    };
    residuals(&weights, data, targets, offset)
}

/// Those of the median alone.
fn from_the_middle(targets: &[f64]) -> Vec<f64> {
    let mut sorted = targets.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted[sorted.len() / 2];
    targets.iter().map(|b| b - middle).collect()
}

/// Scales, one after the other.
struct Turns<'a> {
    epsilon: f64,
    weights: &'a [f64],
    least: f64,
    /// Of the next fit, and of the last one.
    scale: f64,
    used: f64,
    /// Logarithms of the last scale and of the one that followed, before an extrapolation.
    before: Option<(f64, f64)>,
    settled: bool,
}

impl<'a> Turns<'a> {
    fn begin(huber: &Huber, residuals: &[f64], weights: &'a [f64], least: f64) -> Self {
        let mut turns = Turns {
            epsilon: huber.epsilon,
            weights,
            least,
            scale: 1.0,
            used: 1.0,
            before: None,
            settled: false,
        };
        turns.scale = turns.best(residuals);
        turns
    }

    /// The scale after a fit that left these residuals; whether it is the fit's own to `tolerance`.
    fn follow(&mut self, residuals: &[f64], tolerance: f64) -> bool {
        let next = self.best(residuals);
        self.used = self.scale;
        let (from, to) = (self.scale.ln(), next.ln());
        self.settled = (to - from).abs() <= tolerance || next <= self.least;
        self.scale = match self.before {
            // Aitken's extrapolation of a sequence that converges linearly, where it points forwards.
            Some((a, b)) if b == from => {
                let (first, second) = (b - a, to - b);
                let share = second / first;
                let far = (0.0..0.999).contains(&share);
                self.before = None;
                if far {
                    (b + second / (1.0 - share)).exp()
                } else {
                    next
                }
            }
            _ => {
                self.before = Some((from, to));
                next
            }
        };
        self.settled
    }

    /// The σ with Σ v·min((r/σ)², ε²) = S, by bisection: the sum falls with σ.
    fn best(&self, residuals: &[f64]) -> f64 {
        let total: f64 = self.weights.iter().sum();
        let cap = self.epsilon * self.epsilon;
        let sum = |scale: f64| -> f64 {
            let rows = residuals.iter().zip(self.weights);
            rows.map(|(r, v)| v * (r / scale).powi(2).min(cap)).sum()
        };
        let top = residuals.iter().fold(0.0_f64, |a, r| a.max(r.abs()));
        let (mut low, mut high) = (self.least.ln(), (2.0 * top).max(self.least).ln());
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if sum(middle.exp()) > total {
                low = middle;
            } else {
                high = middle;
            }
        }
        high.exp()
    }
}
