//! Logistic regression, binary and multinomial.

use super::FitError;
use super::checks::{positive, share};
use super::controls::{Controls, control_setters};
use super::penalty::{ClassWeight, Penalty};
use super::problem::{Classification, Coding};
use super::spec::{ObjectiveSpec, SampleLoss};
use crate::ops::objective::Loss;

/// Logistic regression: minimises `Σ vᵢ·ℓᵢ / S + r(w) / (S·C)`, S = Σ vᵢ, the intercept unpenalised.
///
/// ℓ is −ln of the probability of a row's class: for two classes `p₁ = 1/(1 + e⁻ᵗ)`, for more the softmax of one
/// linear predictor per class. v are sample weights times class weights, and r is
///
/// | [`Penalty`] | r(w) |
/// |---|---|
/// | `None` | 0 |
/// | `L2` | ½‖w‖² |
/// | `L1` | ‖w‖₁ |
/// | `ElasticNet { l1_ratio: ρ }` | (1 − ρ)/2·‖w‖² + ρ‖w‖₁ |
///
/// exactly as scikit-learn's `LogisticRegression` with the same numbers.
///
/// **Solver.** Chosen by size, structure and penalty ([`LogisticRegression::solver`]). Small and medium: Newton's method
/// with a Cholesky factor of the Hessian, with an l1 term coordinate descent. Large, without an l1 term: Newton's method
/// in a trust region with inner conjugate gradients, as LIBLINEAR's TRON, or L-BFGS on demand. Large, with one: Newton's
/// method with conjugate gradients in one orthant at a time (two-metric projection), a relative of OWL-QN; X is then read
/// once per outer iteration for loss and gradient, and once per inner iteration for a Hessian product. Which is chosen,
/// and where X is read more often, is told in the [guide](super::guide#solvers).
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `c` | 1 | `C=1.0` |
/// | `penalty` | `L2` | `penalty='l2'` |
/// | `class_weight` | none | `class_weight=None` |
/// | `one_vs_rest` | no | `OneVsRestClassifier` around it |
/// | `fit_intercept` | yes | `fit_intercept=True` |
/// | `tolerance` | 1e-6, of the gradient's norm over that of the intercept-only model | `tol=1e-4`, of the largest element |
/// | `max_iter` | 1000 | `max_iter=100` |
/// | `standardize` | no | a `StandardScaler` before it |
///
/// Classes that can be separated have no solution without a penalty: the fit stops when the gradient has become
/// small and says [`Convergence::Separable`](super::Convergence::Separable). A constant column gets coefficient 0
/// when an intercept is fitted; of equal columns each gets the same. One class only is an error.
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::{Labels, LogisticRegression};
/// use warpfuse::matrix::Features;
///
/// let x = Features::Dense(array![[0.0], [1.0], [2.0], [3.0]]);
/// let y = Labels::Text(["no", "no", "yes", "yes"].map(String::from).to_vec());
/// let model = LogisticRegression::params().c(10.0).fit(&Device::cpu(), x.clone(), &y)?;
/// assert_eq!(model.predict(&Device::cpu(), x)?, y);
/// assert!((model.intercept()[0] + 1.5 * model.coef()[0][0]).abs() < 1e-6);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LogisticRegression {
    c: f64,
    penalty: Penalty,
    class_weight: ClassWeight,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    one_vs_rest: bool,
    controls: Controls,
}

impl Default for LogisticRegression {
    fn default() -> Self {
        LogisticRegression {
            c: 1.0,
            penalty: Penalty::L2,
            class_weight: ClassWeight::Uniform,
            one_vs_rest: false,
            controls: Controls::default(),
        }
    }
}

control_setters!(LogisticRegression);

impl LogisticRegression {
    /// Sets C > 0, the inverse of the penalty's strength (default 1).
    pub fn c(self, c: f64) -> Self {
        Self { c, ..self }
    }

    /// Sets the penalty (default l2).
    pub fn penalty(self, penalty: Penalty) -> Self {
        Self { penalty, ..self }
    }

    /// Sets what rows of each class weigh (default: all the same).
    pub fn class_weight(self, class_weight: ClassWeight) -> Self {
        Self {
            class_weight,
            ..self
        }
    }
}

impl LogisticRegression {
    /// Sets whether more than two classes have a sigmoid each against all others, instead of one softmax of all (default:
    /// no). Probabilities are the sigmoids' divided by their sum, as of scikit-learn's
    /// `OneVsRestClassifier(LogisticRegression())`.
    pub fn one_vs_rest(self, one_vs_rest: bool) -> Self {
        Self {
            one_vs_rest,
            ..self
        }
    }
}

impl Classification for LogisticRegression {
    fn check(&self) -> Result<(), FitError> {
        positive("C", self.c)?;
        match self.penalty {
            Penalty::ElasticNet { l1_ratio } => share("l1_ratio", l1_ratio),
            _ => Ok(()),
        }
    }

    fn class_weight(&self) -> &ClassWeight {
        &self.class_weight
    }

    fn coding(&self) -> Coding {
        match self.one_vs_rest {
            true => Coding::Indicators,
            false => Coding::Numbers,
        }
    }

    fn spec(&self, classes: usize, total: f64) -> ObjectiveSpec {
        let strength = 1.0 / (self.c * total);
        let loss = match classes {
            _ if self.one_vs_rest => SampleLoss::Single(Loss::Logistic),
            2 => SampleLoss::Single(Loss::Logistic),
            classes => SampleLoss::Multinomial { classes },
        };
        ObjectiveSpec {
            l2: self.penalty.l2() * strength,
            l1: self.penalty.l1() * strength,
            ..ObjectiveSpec::mean_of(loss)
        }
    }
}
