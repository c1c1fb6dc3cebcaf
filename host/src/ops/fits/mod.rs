//! Many small fits at once: a block of a GPU, or a core of the CPU, makes a whole one ([`gpu_kernels::fits`]).
//!
//! A fit is described by where its rows, its targets and its weights begin: models of groups have rows of their own, those of
//! one class against the rest share rows and have their own targets, folds and penalties share both and have their own
//! weights or numbers. All of these are one launch.
//!
//! ```
//! use warpfuse::device::Device;
//! use warpfuse::ops::fits::{End, FitRows, FitRules, SmallFit, minimise_each};
//! use warpfuse::ops::objective::Loss;
//!
//! let device = Device::auto();
//! // Two groups of rows of one column: y = 1 + 2x and y = 4 − x.
//! let x = device.upload(&[0.0_f64, 1.0, 2.0, 0.0, 1.0])?;
//! let y = device.upload(&[1.0_f64, 3.0, 5.0, 4.0, 3.0])?;
//! let rows = FitRows { x: &x, rows: 5, cols: 1, pitch: 1, targets: &y, weights: None, offset: None };
//! let fit = |first: usize, rows: usize| SmallFit {
//!     row: first, rows, target: first, weight: 0, scale: 1.0 / rows as f64, l2: 0.0, intercept_l2: 0.0,
//! };
//! let fits = [fit(0, 3), fit(3, 2)];
//! let minima = minimise_each(&rows, &FitRules::new(Loss::Squared), &fits, &[0.0; 4])?;
//! assert_eq!(minima.outcomes[1].end, End::Met);
//! let near = |found: &[f64], c: f64, w: f64| (found[0] - c).abs() + (found[1] - w).abs() < 1e-12;
//! assert!(near(minima.theta(0), 1.0, 2.0) && near(minima.theta(1), 4.0, -1.0));
//! # Ok::<(), warpfuse::ops::OpError>(())
//! ```
//!
//! # What is promised
//! Everything but X, targets, weights and offsets is f64, whatever these are. A fit ends when its gradient, relative to that
//! where it began, is below the tolerance and the next step is short, which is then taken. Its bits are the same on every run
//! on one device with fits of as many rows at most, and depend on nothing that other fits have in them: what is not finite in
//! one is of no consequence to others. Of columns that depend on each other the last does not move, which
//! [`Outcome::is_dependent`] says. 1 to [`MOST_COLUMNS`] columns; X as it lies, row by row.

mod host;
mod launch;

pub use gpu_kernels::fits::MOST_COLUMNS;

use gpu_kernels::fits as kernel;

use super::{Number, OpError, checks};
use crate::device::Buffer;
use crate::ops::objective::Loss;

/// X and what belongs to its rows.
#[derive(Debug, Clone, Copy)]
pub struct FitRows<'a, T: Number> {
    /// X, row-major.
    pub x: &'a Buffer<T>,
    /// Rows of X.
    pub rows: usize,
    /// n, at most [`MOST_COLUMNS`].
    pub cols: usize,
    /// Elements from row to row.
    pub pitch: usize,
    /// Targets, of one or of several fits.
    pub targets: &'a Buffer<T>,
    /// Weights, of one or of several fits; absent: 1.
    pub weights: Option<&'a Buffer<T>>,
    /// One for each row of X; absent: 0.
    pub offset: Option<&'a Buffer<T>>,
}

/// What all fits minimise, and when they end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitRules<'a> {
    /// The loss of a row.
    pub loss: Loss,
    /// Whether there are intercepts.
    pub has_intercept: bool,
    /// Whether penalties are those on columns of deviation 1, in each fit over its rows with weight.
    pub standardizes: bool,
    /// Factors of the penalty of each column; absent: 1.
    pub factors: Option<&'a [f64]>,
    /// The length of the gradient, relative to that where the fit begins, at which to stop.
    pub tolerance: f64,
    /// Steps at most.
    pub max_iter: u32,
}

impl FitRules<'_> {
    /// With intercepts, a tolerance of 10⁻⁶, at most 1,000 steps.
    pub fn new(loss: Loss) -> Self {
        FitRules {
            loss,
            has_intercept: true,
            standardizes: false,
            factors: None,
            tolerance: 1e-6,
            max_iter: 1_000,
        }
    }
}

/// One fit: minimises `scale·Σ v·loss(x·w + c + o, b) + ½·l2·Σ fⱼ·wⱼ² + ½·intercept_l2·c²`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SmallFit {
    /// Its first row in X.
    pub row: usize,
    /// Rows.
    pub rows: usize,
    /// Its first target.
    pub target: usize,
    /// Its first weight.
    pub weight: usize,
    /// A factor of all weights.
    pub scale: f64,
    /// The penalty.
    pub l2: f64,
    /// That of the intercept.
    pub intercept_l2: f64,
}

/// How a fit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The gradient is within the tolerance.
    Met,
    /// The steps allowed are done.
    IterationLimit,
    /// Rounding hides any further decrease.
    PrecisionLimit,
    /// No step decreases the objective.
    Stalled,
    /// A number is infinite or NaN.
    NotFinite,
    /// There are no rows, or, of standardised fits, none with weight.
    NoRows,
}

/// What became of a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// Whether columns depend on each other.
    pub is_dependent: bool,
    /// The objective where its last gradient was taken.
    pub objective: f64,
    /// ‖gradient‖ there, over that where the fit began.
    pub gradient_ratio: f64,
    /// Newton steps.
    pub n_iter: u32,
}

/// Where fits ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Minima {
    order: usize,
    theta: Vec<f64>,
    /// One for each fit.
    pub outcomes: Vec<Outcome>,
}

impl Minima {
    /// Intercept and coefficients of a fit, n + 1 elements; the intercept is 0 where there is none.
    ///
    /// # Panics
    /// When there is no such fit.
    pub fn theta(&self, fit: usize) -> &[f64] {
        &self.theta[fit * self.order..][..self.order]
    }

    fn new(order: usize, theta: Vec<f64>, words: &[u32], report: &[f64]) -> Result<Self, OpError> {
        let (figures, _) = report.as_chunks::<3>();
        let outcomes = words.iter().zip(figures).map(|(word, figures)| {
            let [objective, gradient_ratio, n_iter] = *figures;
            Ok(Outcome {
                end: end_of(word & !kernel::DEPENDENT)?,
                is_dependent: word & kernel::DEPENDENT != 0,
                objective,
                gradient_ratio,
                n_iter: n_iter as u32,
            })
        });
        let outcomes = outcomes.collect::<Result<_, OpError>>()?;
        Ok(Minima {
            order,
            theta,
            outcomes,
        })
    }
}

fn end_of(word: u32) -> Result<End, OpError> {
    match word {
        kernel::MET => Ok(End::Met),
        kernel::ITERATION_LIMIT => Ok(End::IterationLimit),
        kernel::PRECISION_LIMIT => Ok(End::PrecisionLimit),
        kernel::STALLED => Ok(End::Stalled),
        kernel::NOT_FINITE => Ok(End::NotFinite),
        kernel::NO_ROWS => Ok(End::NoRows),
        other => Err(OpError::Parameter {
            name: "the status of a fit",
            expected: "one of those that kernels have",
            found: f64::from(other),
        }),
    }
}

/// Makes all fits, in one launch on a GPU; `start` has n + 1 elements for each, intercept first. Waits for the results.
///
/// # Errors
/// [`OpError::TooLarge`] for too many columns or fits, [`OpError::Length`] when rows, targets or weights of a fit are not there
/// or a length does not fit, [`OpError::OtherDevice`] when vectors lie elsewhere than X, [`OpError::Device`] when the device
/// fails.
pub fn minimise_each<T: Number>(
    rows: &FitRows<'_, T>,
    rules: &FitRules<'_>,
    fits: &[SmallFit],
    start: &[f64],
) -> Result<Minima, OpError> {
    check(rows, rules)?;
    fits.iter().try_for_each(|fit| check_fit(rows, fit))?;
    let order = rows.cols + 1;
    checks::length("the start of all fits", fits.len() * order, start.len())?;
    if fits.is_empty() {
        return Minima::new(order, Vec::new(), &[], &[]);
    }
    match host::Arrays::of(rows) {
        Some(arrays) => host::minimise(&arrays, rows, rules, fits, start),
        None => launch::minimise(rows, rules, fits, start),
    }
}

fn check<T: Number>(rows: &FitRows<'_, T>, rules: &FitRules<'_>) -> Result<(), OpError> {
    let limit = u64::from(MOST_COLUMNS);
    if rows.cols as u64 > limit {
        return Err(too_large("columns of a small fit", limit, rows.cols));
    }
    if rows.cols == 0 {
        return Err(OpError::Parameter {
            name: "the number of columns",
            expected: "1 at least",
            found: 0.0,
        });
    }
    at_least("a row of X", rows.cols, rows.pitch)?;
    let elements = match rows.rows {
        0 => 0,
        rows_of_x => (rows_of_x - 1)
            .saturating_mul(rows.pitch)
            .saturating_add(rows.cols),
    };
    at_least("X", elements, rows.x.len())?;
    let device = rows.x.device();
    checks::same_device("the targets", &device, &rows.targets.device())?;
    if let Some(weights) = rows.weights {
        checks::same_device("the weights", &device, &weights.device())?;
    }
    if let Some(offset) = rows.offset {
        checks::same_length("the offset", offset, rows.rows)?;
        checks::same_device("the offset", &device, &offset.device())?;
    }
    let factors = rules.factors.map_or(rows.cols, <[f64]>::len);
    checks::length("factors of penalties", rows.cols, factors)
}

fn check_fit<T: Number>(rows: &FitRows<'_, T>, fit: &SmallFit) -> Result<(), OpError> {
    let limit = u64::from(u32::MAX / 2);
    if fit.rows as u64 > limit {
        return Err(too_large("rows of a small fit", limit, fit.rows));
    }
    let end = |first: usize| first.saturating_add(fit.rows);
    at_least("rows of X", end(fit.row), rows.rows)?;
    at_least("the targets", end(fit.target), rows.targets.len())?;
    match rows.weights {
        Some(weights) => at_least("the weights", end(fit.weight), weights.len()),
        None => Ok(()),
    }
}

fn at_least(what: &'static str, expected: usize, found: usize) -> Result<(), OpError> {
    match found < expected {
        true => Err(OpError::Length {
            what,
            expected,
            found,
        }),
        false => Ok(()),
    }
}

fn too_large(what: &'static str, limit: u64, found: usize) -> OpError {
    OpError::TooLarge {
        what,
        limit,
        found: found as u64,
    }
}
