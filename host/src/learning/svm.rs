//! Linear support vector machines with squared losses.

use super::checks::encode;
use super::classifier::{Classifier, ClassifierParams};
use super::fit::{
    Controls, FitOptions, ObjectiveSpec, SampleLoss, Summary, Training, control_setters,
    not_negative, positive,
};
use super::fit_methods::{NumberEstimator, fit_methods, number_estimator};
use super::labels::Labels;
use super::penalty::ClassWeight;
use super::regressor::{Regressor, RegressorParams};
use super::task::{Answer, LabelTask, Task};
use super::weights::Weights;
use super::{FitError, Iteration, ResidentDataset};
use crate::matrix::Element;
use crate::ops::Number;
use crate::ops::objective::Loss;

/// Labels that are told apart to see how many problems there are.
const MANY_CLASSES: usize = 64;

/// Linear support vector classification: minimises `½‖w‖² + ½(b/s)² + C·Σ vᵢ·max(0, 1 − yᵢ·tᵢ)²` for each class
/// against all others, y = ±1, t = x·w + b.
///
/// The same numbers as scikit-learn's `LinearSVC` (loss `squared_hinge`, penalty `l2`): like LIBLINEAR it penalises
/// the intercept as the coefficient of a column that holds s, `intercept_scaling`; an infinite s leaves it free.
///
/// **Solver.** Newton's method in a trust region with inner conjugate gradients, as LIBLINEAR's TRON: one pass over X
/// per outer iteration for loss and gradient, one per inner iteration, over rows inside the margin with weight.
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `c` | 1 | `C=1.0` |
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
    intercept_scaling: f64,
    class_weight: ClassWeight,
    controls: Controls,
}

impl Default for LinearSvc {
    fn default() -> Self {
        LinearSvc {
            c: 1.0,
            intercept_scaling: 1.0,
            class_weight: ClassWeight::Uniform,
            controls: Controls::default(),
        }
    }
}

control_setters!(LinearSvc);
fit_methods!(LinearSvc, labels: &Labels, Classifier);

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

    /// Sets what rows of each class weigh (default: all the same).
    pub fn class_weight(self, class_weight: ClassWeight) -> Self {
        Self {
            class_weight,
            ..self
        }
    }

    fn check(&self) -> Result<(), FitError> {
        positive("C", self.c)?;
        positive("intercept_scaling", self.intercept_scaling)
    }

    /// Expected reads of X for the one linear predictor of a row: as many again for each class beyond two.
    pub(super) fn evaluations(&self, labels: &Labels) -> u64 {
        let problems = match labels.distinct(MANY_CLASSES) {
            0..=2 => 1,
            classes => classes as u64,
        };
        problems.saturating_mul(self.controls.evaluations())
    }

    fn fit_placed<T: Number>(
        &self,
        data: &ResidentDataset<T>,
        labels: &Labels,
        mut options: FitOptions<'_>,
    ) -> Result<Classifier, FitError> {
        let mut tasks = self.tasks(data, labels, &options)?;
        if tasks.len() == 1 {
            return tasks.swap_remove(0).fit(data, &mut options);
        }
        self.one_against_rest(data, tasks, options)
    }

    /// What is to be solved: one problem for two classes, else one per class.
    pub(super) fn tasks<T: Number>(
        &self,
        data: &ResidentDataset<T>,
        labels: &Labels,
        options: &FitOptions<'_>,
    ) -> Result<Vec<LabelTask<T>>, FitError> {
        self.check()?;
        let (classes, codes) = encode(data, labels)?;
        let weights = self.class_weight.weigh(&classes, &codes, options)?;
        let strength = (self.c, self.intercept_scaling);
        let spec = svm_spec(Loss::SquaredHinge, strength, weights.iter().sum());
        let task = |class: u32| {
            let side = |code: &u32| if *code == class { 1.0 } else { -1.0 };
            let targets = codes.iter().map(side);
            Task {
                controls: self.controls,
                spec,
                targets: targets.map(<T as Element>::from_f64).collect(),
                weights: weights.clone(),
                answer: (classes.clone(), ClassifierParams::LinearSvc(self.clone())),
            }
        };
        Ok(match classes.len() {
            2 => vec![task(1)],
            k => (0..k as u32).map(task).collect(),
        })
    }

    fn one_against_rest<T: Number>(
        &self,
        data: &ResidentDataset<T>,
        tasks: Vec<LabelTask<T>>,
        mut options: FitOptions<'_>,
    ) -> Result<Classifier, FitError> {
        let training = Training::new(data, self.controls, &options)?;
        let start = options.start.take();
        let mut all = Vec::new();
        let mut history: Vec<Iteration> = Vec::new();
        let (spec, answer) = (tasks[0].spec, tasks[0].answer.clone());
        for (problem, task) in tasks.into_iter().enumerate() {
            options.start = start
                .filter(|(coef, intercepts)| coef.len().min(intercepts.len()) > problem)
                .map(|(coef, intercepts)| {
                    let own = problem..problem + 1;
                    (&coef[own.clone()], &intercepts[own])
                });
            let (targets, weights) = (&task.targets, &task.weights);
            let (fitted, solved) =
                training.solve(&spec, targets, weights, &mut options, &mut history)?;
            all.push((fitted, Summary::of(&solved)));
        }
        let (fitted, summary) = joined(all);
        let report = training.report(&summary, &spec, history);
        Ok(answer.model::<T>(fitted, report))
    }
}

/// `(Σ v·loss / S + (½‖w‖² + ½(b/s)²) / (C·S)) · C·S`.
fn svm_spec(loss: Loss, (c, intercept_scaling): (f64, f64), total: f64) -> ObjectiveSpec {
    let factor = c * total;
    ObjectiveSpec {
        loss: SampleLoss::Single(loss),
        l2: 1.0 / factor,
        l1: 0.0,
        intercept_l2: 1.0 / (factor * intercept_scaling * intercept_scaling),
        factor,
        constant: 0.0,
    }
}

fn joined(all: Vec<(Weights, Summary)>) -> (Weights, Summary) {
    let mut problems = all.into_iter();
    let (mut weights, mut summary) = problems.next().expect("there is one problem at least");
    for (next, its) in problems {
        weights.coef.extend(next.coef);
        weights.intercept.extend(next.intercept);
        summary = summary.and(its);
    }
    (weights, summary)
}

/// Linear support vector regression: minimises `½‖w‖² + ½(b/s)² + C·Σ vᵢ·max(0, |tᵢ − yᵢ| − ε)²`, t = x·w + b.
///
/// The same numbers as scikit-learn's `LinearSVR` with `loss='squared_epsilon_insensitive'`, which is smooth;
/// scikit-learn's default, the loss without the square, is not offered, because its kinks need a dual method. The
/// intercept is penalised as in [`LinearSvc`].
///
/// **Solver.** As [`LinearSvc`].
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `c` | 1 | `C=1.0` |
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
    epsilon: f64,
    intercept_scaling: f64,
    controls: Controls,
}

impl Default for LinearSvr {
    fn default() -> Self {
        LinearSvr {
            c: 1.0,
            epsilon: 0.0,
            intercept_scaling: 1.0,
            controls: Controls::default(),
        }
    }
}

control_setters!(LinearSvr);
number_estimator!(LinearSvr);

impl LinearSvr {
    /// Sets C > 0, the inverse of the penalty's strength (default 1).
    pub fn c(self, c: f64) -> Self {
        Self { c, ..self }
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

impl NumberEstimator for LinearSvr {
    fn controls(&self) -> &Controls {
        &self.controls
    }

    fn check(&self) -> Result<(), FitError> {
        positive("C", self.c)?;
        positive("intercept_scaling", self.intercept_scaling)?;
        not_negative("epsilon", self.epsilon)
    }

    fn spec<T: Number>(&self, _: &[T], weights: &[f64]) -> ObjectiveSpec {
        let loss = Loss::EpsilonInsensitive {
            epsilon: self.epsilon,
        };
        let strength = (self.c, self.intercept_scaling);
        svm_spec(loss, strength, weights.iter().sum())
    }

    fn into_params(self) -> RegressorParams {
        RegressorParams::LinearSvr(self)
    }
}
