//! Linear support vector machines.

use super::FitError;
use super::checks::{not_negative, positive};
use super::controls::{Controls, control_setters};
use super::penalty::ClassWeight;
use super::problem::{Classification, Coding, Regression};
use super::spec::{Kinked, ObjectiveSpec, SampleLoss};
use crate::ops::objective::Loss;

/// What a row costs by how far it is on the wrong side of its margin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SvmLoss {
    /// The square of the distance: scikit-learn's `squared_hinge` and `squared_epsilon_insensitive`.
    #[default]
    Squared,
    /// The distance itself: scikit-learn's `hinge` and `epsilon_insensitive`. It has a kink, and is minimised by an
    /// interior-point method on the host.
    Linear,
}

impl SvmLoss {
    fn is_default(&self) -> bool {
        *self == SvmLoss::Squared
    }
}

/// Linear support vector classification: minimises `½‖w‖² + ½(b/s)² + C·Σ vᵢ·max(0, 1 − yᵢ·tᵢ)²` for each class
/// against all others, y = ±1, t = x·w + b.
///
/// With [`SvmLoss::Linear`] the distances to the margin are not squared.
///
/// The same numbers as scikit-learn's `LinearSVC` (penalty `l2`): like LIBLINEAR it penalises
/// the intercept as the coefficient of a column that holds s, `intercept_scaling`; an infinite s leaves it free.
///
/// **Solver.** Newton's method: with a Hessian where there are few columns, else with inner conjugate gradients as LIBLINEAR's
/// TRON, one pass over X per outer iteration for loss and gradient, one per inner iteration over rows inside the margin with
/// weight. See [the guide](super::guide#solvers).
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `c` | 1 | `C=1.0` |
/// | `loss` | `Squared` | `loss='squared_hinge'` |
/// | `intercept_scaling` | 1 | `intercept_scaling=1` |
/// | `class_weight` | none | `class_weight=None` |
/// | `fit_intercept` | yes | `fit_intercept=True` |
/// | `tolerance` | 1e-6, of the gradient's norm over that at the start | `tol=1e-4` |
/// | `max_iter` | 1000 | `max_iter=1000` |
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::{Labels, LinearSvc};
/// use warpfuse::matrix::Features;
///
/// let x = Features::Dense(array![[0.0, 1.0], [1.0, 0.0], [4.0, 4.0], [5.0, 3.0]]);
/// let y = Labels::Numbers(vec![-1.0, -1.0, 1.0, 1.0]);
/// let model = LinearSvc::params().fit(&Device::cpu(), x.clone(), &y)?;
/// assert_eq!(model.score(&Device::cpu(), x, &y)?, 1.0);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LinearSvc {
    c: f64,
    #[serde(default, skip_serializing_if = "SvmLoss::is_default")]
    loss: SvmLoss,
    intercept_scaling: f64,
    class_weight: ClassWeight,
    controls: Controls,
}

impl Default for LinearSvc {
    fn default() -> Self {
        LinearSvc {
            c: 1.0,
            loss: SvmLoss::Squared,
            intercept_scaling: 1.0,
            class_weight: ClassWeight::Uniform,
            controls: Controls::default(),
        }
    }
}

control_setters!(LinearSvc);

impl LinearSvc {
    /// Sets C > 0, the inverse of the penalty's strength (default 1).
    pub fn c(self, c: f64) -> Self {
        Self { c, ..self }
    }

    /// Sets s > 0, the larger the less the intercept is penalised (default 1).
    pub fn intercept_scaling(self, intercept_scaling: f64) -> Self {
        Self {
            intercept_scaling,
            ..self
        }
    }

    /// Sets what rows on the wrong side of their margin cost (default: the square).
    pub fn loss(self, loss: SvmLoss) -> Self {
        Self { loss, ..self }
    }

    /// Sets what rows of each class weigh (default: all the same).
    pub fn class_weight(self, class_weight: ClassWeight) -> Self {
        Self {
            class_weight,
            ..self
        }
    }
}

impl Classification for LinearSvc {
    fn check(&self) -> Result<(), FitError> {
        positive("C", self.c)?;
        positive("intercept_scaling", self.intercept_scaling)
    }

    fn class_weight(&self) -> &ClassWeight {
        &self.class_weight
    }

    fn coding(&self) -> Coding {
        Coding::Signs
    }

    fn is_kinked(&self) -> bool {
        self.loss == SvmLoss::Linear
    }

    fn spec(&self, _: usize, total: f64) -> ObjectiveSpec {
        let loss = match self.loss {
            SvmLoss::Squared => SampleLoss::Single(Loss::SquaredHinge),
            SvmLoss::Linear => SampleLoss::Kinked(Kinked::Hinge),
        };
        svm_spec(loss, (self.c, self.intercept_scaling), total)
    }
}

/// `(Σ v·loss / S + (½‖w‖² + ½(b/s)²) / (C·S)) · C·S`.
fn svm_spec(loss: SampleLoss, (c, intercept_scaling): (f64, f64), total: f64) -> ObjectiveSpec {
    let factor = c * total;
    ObjectiveSpec {
        l2: 1.0 / factor,
        intercept_l2: 1.0 / (factor * intercept_scaling * intercept_scaling),
        factor,
        ..ObjectiveSpec::mean_of(loss)
    }
}

/// Linear support vector regression: minimises `½‖w‖² + ½(b/s)² + C·Σ vᵢ·max(0, |tᵢ − yᵢ| − ε)²`, t = x·w + b.
///
/// The same numbers as scikit-learn's `LinearSVR` with `loss='squared_epsilon_insensitive'`; with [`SvmLoss::Linear`] as with
/// `loss='epsilon_insensitive'`, scikit-learn's default. The intercept is penalised as in [`LinearSvc`].
///
/// **Solver.** As [`LinearSvc`].
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `c` | 1 | `C=1.0` |
/// | `loss` | `Squared` | `loss='epsilon_insensitive'` |
/// | `epsilon` | 0 | `epsilon=0.0` |
/// | `intercept_scaling` | 1 | `intercept_scaling=1.0` |
/// | `fit_intercept` | yes | `fit_intercept=True` |
/// | `tolerance` | 1e-6, of the gradient's norm over that at the start | `tol=1e-4` |
/// | `max_iter` | 1000 | `max_iter=1000` |
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::LinearSvr;
/// use warpfuse::matrix::Features;
///
/// let x = Features::Dense(array![[0.0], [1.0], [2.0], [3.0]]);
/// let model = LinearSvr::params().c(1e6).epsilon(0.1).fit(&Device::cpu(), x, &[1.0, 3.0, 5.0, 7.0])?;
/// assert!((model.coef()[0] - 2.0).abs() < 0.1);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LinearSvr {
    c: f64,
    #[serde(default, skip_serializing_if = "SvmLoss::is_default")]
    loss: SvmLoss,
    epsilon: f64,
    intercept_scaling: f64,
    controls: Controls,
}

impl Default for LinearSvr {
    fn default() -> Self {
        LinearSvr {
            c: 1.0,
            loss: SvmLoss::Squared,
            epsilon: 0.0,
            intercept_scaling: 1.0,
            controls: Controls::default(),
        }
    }
}

control_setters!(LinearSvr);

impl LinearSvr {
    /// Sets C > 0, the inverse of the penalty's strength (default 1).
    pub fn c(self, c: f64) -> Self {
        Self { c, ..self }
    }

    /// Sets what residuals beyond ε cost (default: the square).
    pub fn loss(self, loss: SvmLoss) -> Self {
        Self { loss, ..self }
    }

    /// Sets ε ≥ 0: residuals up to it cost nothing (default 0).
    pub fn epsilon(self, epsilon: f64) -> Self {
        Self { epsilon, ..self }
    }

    /// Sets s > 0, the larger the less the intercept is penalised (default 1).
    pub fn intercept_scaling(self, intercept_scaling: f64) -> Self {
        Self {
            intercept_scaling,
            ..self
        }
    }
}

impl Regression for LinearSvr {
    fn check(&self) -> Result<(), FitError> {
        positive("C", self.c)?;
        positive("intercept_scaling", self.intercept_scaling)?;
        not_negative("epsilon", self.epsilon)
    }

    fn is_kinked(&self) -> bool {
        self.loss == SvmLoss::Linear
    }

    fn spec(&self, total: f64) -> ObjectiveSpec {
        let epsilon = self.epsilon;
        let loss = match self.loss {
            SvmLoss::Squared => SampleLoss::Single(Loss::EpsilonInsensitive { epsilon }),
            SvmLoss::Linear => SampleLoss::Kinked(Kinked::Tube(epsilon)),
        };
        svm_spec(loss, (self.c, self.intercept_scaling), total)
    }
}
