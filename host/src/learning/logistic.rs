//! Logistic regression, binary and multinomial.

use super::checks::encode;
use super::classifier::{Classifier, ClassifierParams};
use super::fit::{
    Controls, FitOptions, ObjectiveSpec, SampleLoss, control_setters, not_negative, positive, share,
};
use super::fit_methods::fit_methods;
use super::labels::Labels;
use super::penalty::{ClassWeight, Penalty};
use super::solver::Solver;
use super::task::{LabelTask, Task};
use super::{FitError, ResidentDataset};
use crate::matrix::Element;
use crate::ops::Number;
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
/// **Solver.** Without an l1 term: Newton's method in a trust region with inner conjugate gradients, as LIBLINEAR's
/// TRON, or L-BFGS ([`LogisticRegression::solver`]). With one: Newton's method with conjugate gradients in one
/// orthant at a time (two-metric projection), a relative of OWL-QN. X is read once per outer iteration for loss and
/// gradient, and once per inner iteration for a Hessian product, with two classes or more; where it is read more often
/// is told in the [guide](super::guide#what-is-read-how-often).
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `c` | 1 | `C=1.0` |
/// | `penalty` | `L2` | `penalty='l2'` |
/// | `class_weight` | none | `class_weight=None` |
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
    controls: Controls,
}

impl Default for LogisticRegression {
    fn default() -> Self {
        LogisticRegression {
            c: 1.0,
            penalty: Penalty::L2,
            class_weight: ClassWeight::Uniform,
            controls: Controls::default(),
        }
    }
}

control_setters!(LogisticRegression);
fit_methods!(LogisticRegression, labels: &Labels, Classifier);

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

    /// Sets how directions are found (default [`Solver::NewtonCg`]).
    pub fn solver(mut self, solver: Solver) -> Self {
        self.controls.solver = solver;
        self
    }

    /// Expected reads of X for the one linear predictor of a row; a softmax has kernels of its own.
    pub(super) fn evaluations(&self, labels: &Labels) -> u64 {
        match labels.distinct(3) {
            3 => 0,
            _ => self.controls.evaluations(),
        }
    }

    fn fit_placed<T: Number>(
        &self,
        data: &ResidentDataset<T>,
        labels: &Labels,
        mut options: FitOptions<'_>,
    ) -> Result<Classifier, FitError> {
        self.task(data, labels, &options)?.fit(data, &mut options)
    }

    /// What is to be solved.
    pub(super) fn task<T: Number>(
        &self,
        data: &ResidentDataset<T>,
        labels: &Labels,
        options: &FitOptions<'_>,
    ) -> Result<LabelTask<T>, FitError> {
        self.check()?;
        let (classes, codes) = encode(data, labels)?;
        let weights = self.class_weight.weigh(&classes, &codes, options)?;
        let targets = codes.iter().map(|code| f64::from(*code));
        Ok(Task {
            controls: self.controls,
            spec: self.spec(classes.len(), weights.iter().sum()),
            targets: targets.map(<T as Element>::from_f64).collect(),
            weights,
            answer: (classes, ClassifierParams::LogisticRegression(self.clone())),
        })
    }

    fn check(&self) -> Result<(), FitError> {
        positive("C", self.c)?;
        if let Penalty::ElasticNet { l1_ratio } = self.penalty {
            share("l1_ratio", l1_ratio)?;
        }
        not_negative("tol", self.controls.tolerance)?;
        if self.penalty.l1() > 0.0 && self.controls.solver == Solver::Lbfgs {
            return Err(FitError::Combination {
                first: "solver lbfgs",
                second: "an l1 penalty",
                remedy: "use Newton's method (newton-cg)",
            });
        }
        Ok(())
    }

    fn spec(&self, classes: usize, total: f64) -> ObjectiveSpec {
        let strength = 1.0 / (self.c * total);
        ObjectiveSpec {
            loss: if classes == 2 {
                SampleLoss::Single(Loss::Logistic)
            } else {
                SampleLoss::Multinomial { classes }
            },
            l2: self.penalty.l2() * strength,
            l1: self.penalty.l1() * strength,
            intercept_l2: 0.0,
            factor: 1.0,
            constant: 0.0,
        }
    }
}
