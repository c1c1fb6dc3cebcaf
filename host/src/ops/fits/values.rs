//! What fits are told, and what became of them.

use gpu_kernels::fits as kernel;

use crate::device::Buffer;
use crate::ops::objective::Loss;
use crate::ops::{Number, OpError};

/// X and what belongs to its rows.
#[derive(Debug, Clone, Copy)]
pub struct FitRows<'a, T: Number> {
    /// X, row-major.
    pub x: &'a Buffer<T>,
    /// Rows of X.
    pub rows: usize,
    /// n, at most [`MOST_COLUMNS`](gpu_kernels::fits::MOST_COLUMNS).
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

    /// Of coefficients, and of the word and the figures that each fit ended with.
    pub(super) fn new(
        order: usize,
        theta: Vec<f64>,
        ends: impl IntoIterator<Item = (u32, [f64; 3])>,
    ) -> Result<Self, OpError> {
        let outcomes = ends.into_iter().map(|(word, figures)| {
            let [objective, gradient_ratio, n_iter] = figures;
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
