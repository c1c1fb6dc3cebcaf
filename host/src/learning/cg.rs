//! Conjugate gradients on the normal equations `(XᵀX + λI)·w = Xᵀt`, X centred if wanted.
//!
//! r = −Xᵀt; p = −D⁻¹r; loop q = Xᵀ(X·p) + λ·p, one fused pass over X; a = rᵀz / pᵀq; w += a·p; r += a·q;
//! p = −z + b·p; until ‖r‖ ≤ tol · ‖r₀‖ or max_iter. Source: Hestenes & Stiefel 1952, with a diagonal
//! preconditioner.

use super::Operator;
use super::leg::{self, Pace};
use crate::device::Buffer;
use crate::matrix::{Dtype, Element};
use crate::ops::cg::{CgProduct, CgState, CgVectors, Stop};
use crate::ops::{Number, OpError, Terms};

/// When to stop, and what is solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CgOptions {
    /// λ, added to the diagonal of XᵀX.
    pub l2: f64,
    /// Stop at ‖r‖ ≤ tolerance · ‖r₀‖.
    pub tolerance: f64,
    /// Stop after this number of iterations.
    pub max_iter: usize,
}

/// How a solve ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Convergence {
    /// The residual is within the tolerance.
    Converged,
    /// `max_iter` was reached first.
    IterationLimit,
    /// pᵀ·A·p was not positive: the matrix is singular to working precision along the last direction.
    Singular,
    /// A number became infinite or NaN.
    NotFinite,
    /// The objective cannot be decreased any further at working precision, though the gradient is still above
    /// the tolerance.
    PrecisionLimit,
    /// No step decreases the objective any further, though the gradient is far from the tolerance and from what the
    /// precision allows.
    Stalled,
    /// The coefficients grow without bound: the data can be separated, and no penalty holds them.
    Separable,
    /// A figure on other data got no better for the patience
    /// ([`FitOptions::patience`](super::FitOptions::patience)).
    EarlyStopped,
}

impl Convergence {
    /// Whether the result is within the tolerance, or as good as the precision allows.
    pub fn is_success(self) -> bool {
        matches!(self, Convergence::Converged | Convergence::PrecisionLimit)
    }

    /// Of a solve that ended with a gradient of this ratio: a precision limit far from a minimum is none.
    ///
    /// A gradient of ratio r leaves about r² of the first decrease to gain. Models promise objectives to 10⁻⁶ (f32: 10⁻⁵)
    /// where columns are of one scale; f64 has the digits for more. A gradient is no larger than rounding makes it where
    /// slopes of mean size `slope` add up to some units in their last place.
    pub(super) fn of_gradient<T: Number>(
        self,
        (ratio, norm): (f64, f64),
        slope: f64,
    ) -> Convergence {
        let (most, unit) = match T::DTYPE {
            Dtype::F32 => (3e-3, f64::from(f32::EPSILON)),
            Dtype::F64 => (1e-5, f64::EPSILON),
        };
        let small = ratio <= most || norm <= 8.0 * unit * slope;
        match self {
            Convergence::PrecisionLimit if !small => Convergence::Stalled,
            other => other,
        }
    }

    /// What happened and what to do about it, for a message.
    pub fn advice(self) -> &'static str {
        match self {
            Convergence::Converged => "converged",
            Convergence::PrecisionLimit => {
                "no further decrease at working precision: f64 has a smaller gradient than f32"
            }
            Convergence::Stalled => {
                "no step decreased the objective, far from a minimum: scale the features, try another solver or link, or use f64 where they are f32"
            }
            Convergence::IterationLimit => {
                "iteration limit reached: scale the features, raise max_iter, or raise tol"
            }
            Convergence::Singular => {
                "the columns are linearly dependent to working precision: add an l2 penalty, or accept this fit"
            }
            Convergence::NotFinite => {
                "a value became infinite or NaN: rescale features and targets, or use f64 where they are f32"
            }
            Convergence::Separable => {
                "the classes can be separated, so that coefficients grow without bound: add a penalty"
            }
            Convergence::EarlyStopped => {
                "stopped early: the coefficients are those of the iteration that was best on the validation data"
            }
        }
    }
}

/// One iteration, for whoever watches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Iterations done.
    pub iteration: usize,
    /// The most iterations there will be.
    pub max_iter: usize,
    /// ‖r‖ / ‖r₀‖.
    pub residual_ratio: f64,
}

/// The result of a solve.
pub struct Solution<T: Number> {
    /// w, n elements on the operator's device.
    pub w: Buffer<T>,
    /// Iterations that changed w.
    pub iterations: usize,
    /// How it ended.
    pub convergence: Convergence,
    /// ‖r‖ / ‖r₀‖ at the end.
    pub residual_ratio: f64,
}

/// Vectors that a solve takes over: the start and what is known about X.
pub struct CgStart<T: Number> {
    /// r₀ = −Xᵀt.
    pub residual: Buffer<T>,
    /// D⁻¹, the inverse of the diagonal of `XᵀX + λI`.
    pub inverse_diagonal: Option<Buffer<T>>,
    /// x̄, when the columns are to be centred.
    pub means: Option<Buffer<T>>,
}

/// Solves from w = 0. Iteration k + 1 is submitted before the scalars of iteration k are looked at, so that the
/// device never waits for the host; an iteration past convergence changes nothing.
///
/// # Accuracy
/// The recurrences keep ‖r‖ honest: after 100 iterations on data with the shape of kddb (192,641 rows, 988,000 columns by Zipf's law,
/// β = 10⁻³) r differs from the residual of w by 3·10⁻⁷ of ‖r₀‖ in f32. What f32 costs is iterations. Directions that were found
/// before come back as soon as p, q or r is rounded, and are found again; that grows with the ratio of the largest eigenvalues to the
/// others. The objective of the same 100 iterations, 2.85·10⁶ at the start:
///
/// | | without `inverse_diagonal` | with it |
/// |---|--:|--:|
/// | f64 | 52,300 | 376.4 |
/// | f32, sums of columns in f64, by pairs, or by warps and blocks | 72,700 to 79,900 | 379.2 |
/// | f32, sums of columns one by one | 98,100 | 379.6 |
/// | f32, also p·q, r·z and ‖r‖² in f32, which are f64 here | 143,400 | |
///
/// So a preconditioner matters more than the precision: where columns are of different frequency or scale, pass
/// [`inverse_diagonal`](CgStart::inverse_diagonal), as all estimators do. Without one, f32 needs about an eighth more iterations than
/// f64 there. On a GPU the last row but one is what additions to global memory give;
/// [`Preparation::For`](crate::ops::Preparation::For) and [`Matrix::tell_head`](crate::ops::Matrix::tell_head) sum frequent columns by
/// warps and blocks. The reason is that of Paige 1980 and of Greenbaum 1989: rounding makes copies of the extreme Ritz values.
///
/// # Errors
/// [`OpError`] when the operator or the device fails.
pub fn conjugate_gradient<T: Number>(
    x: &impl Operator<T>,
    start: CgStart<T>,
    options: &CgOptions,
    mut watch: impl FnMut(Progress),
) -> Result<Solution<T>, OpError> {
    let CgStart {
        residual,
        inverse_diagonal,
        means,
    } = start;
    let device = x.device();
    let stop = Stop::at(options.tolerance);
    let spread = x.spread()?;
    let mut vectors =
        CgVectors::spread_over(spread, device, residual, inverse_diagonal, means, stop)?;
    let mut first = None;
    let max_iter = options.max_iter;
    let mut ratio = |state: &CgState| {
        let first = *first.get_or_insert(state.residual_squared);
        residual_ratio(state, first)
    };
    let seen = |state: &CgState, _: &CgVectors<T>| {
        let residual_ratio = ratio(state);
        if state.iterations > 0 {
            watch(Progress {
                iteration: state.iterations,
                max_iter,
                residual_ratio,
            });
        }
        Ok(())
    };
    let step = |vectors: &mut CgVectors<T>| iterate(x, vectors, options.l2);
    let state = leg::run(&mut vectors, (max_iter, Pace::Ahead), step, seen)?;
    Ok(Solution {
        w: vectors.into_solution()?,
        iterations: state.iterations,
        convergence: outcome(&state).unwrap_or(Convergence::IterationLimit),
        residual_ratio: ratio(&state),
    })
}

/// One iteration: the fused pass, then the vectors.
fn iterate<T: Number>(
    x: &impl Operator<T>,
    vectors: &mut CgVectors<T>,
    l2: f64,
) -> Result<(), OpError> {
    let l2 = <T as Element>::from_f64(l2);
    let spread = vectors.spread().cloned();
    let CgProduct { p, q, shift, state } = vectors.product();
    let terms = Terms {
        shift,
        addend: (l2 != T::default()).then_some((l2, p)),
        solve: Some(state),
        ..Terms::default()
    };
    match spread {
        Some(spread) => x.fused_share(&spread, p, &terms, q)?,
        None => x.fused(p, &terms, q)?,
    }
    vectors.advance()
}

/// Whether, and how, a solve in this state has ended.
pub(super) fn outcome(state: &CgState) -> Option<Convergence> {
    if !state.residual_squared.is_finite() || !state.curvature.is_finite() {
        Some(Convergence::NotFinite)
    } else if state.is_converged() {
        Some(Convergence::Converged)
    } else if state.curvature <= 0.0 {
        Some(Convergence::Singular)
    } else {
        None
    }
}

fn residual_ratio(state: &CgState, first: f64) -> f64 {
    if first == 0.0 {
        0.0
    } else {
        (state.residual_squared / first).sqrt()
    }
}
