//! Least squares on signs of classes.

use super::FitError;
use super::checks::not_negative;
use super::controls::{Controls, control_setters};
use super::penalty::ClassWeight;
use super::problem::{Classification, Coding};
use super::spec::ObjectiveSpec;

/// Ridge classification: minimises `Σ vᵢ·(yᵢ − xᵢ·w − b)² + α‖w‖²` for each class against all others, y = ±1, the intercept
/// unpenalised.
///
/// The same numbers as scikit-learn's `RidgeClassifier`. A row is of the class with the largest `x·w + b`; of two classes, of
/// the second where that is positive. Every fit is one linear system, so that it is the fastest of the linear classifiers;
/// it has no probabilities, and rows far on the right side of their margin pull as much as those on the wrong side:
/// [`LinearSvc`](super::LinearSvc) and [`LogisticRegression`](super::LogisticRegression) have neither fault.
///
/// **Solver.** As [`Ridge`](super::Ridge), once for each class.
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `alpha` | 1 | `alpha=1.0` |
/// | `class_weight` | none | `class_weight=None` |
/// | `fit_intercept` | yes | `fit_intercept=True` |
/// | `tolerance` | 1e-6, of the gradient's norm over that at the start | `tol=1e-4` |
/// | `max_iter` | 1000 Newton steps, of which one is enough | `max_iter=None` |
/// | `standardize` | no | a `StandardScaler` before it |
///
/// Source: Rifkin, Yeo and Poggio 2003, "Regularized least-squares classification".
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::{Labels, RidgeClassifier};
/// use warpfuse::matrix::Features;
///
/// let x = Features::Dense(array![[0.0], [1.0], [3.0], [4.0]]);
/// let y = Labels::Numbers(vec![0.0, 0.0, 1.0, 1.0]);
/// let model = RidgeClassifier::params().alpha(2.0).fit(&Device::cpu(), x.clone(), &y)?;
/// assert!((model.coef()[0][0] - 0.5).abs() < 1e-6); // Σ(x − x̄)·y / (Σ(x − x̄)² + α) = 6 / 12
/// assert_eq!(model.score(&Device::cpu(), x, &y)?, 1.0);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RidgeClassifier {
    alpha: f64,
    class_weight: ClassWeight,
    controls: Controls,
}

impl Default for RidgeClassifier {
    fn default() -> Self {
        RidgeClassifier {
            alpha: 1.0,
            class_weight: ClassWeight::Uniform,
            controls: Controls::default(),
        }
    }
}

control_setters!(RidgeClassifier);

impl RidgeClassifier {
    /// Sets α ≥ 0, the weight of ‖w‖² (default 1).
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    /// Sets what rows of each class weigh (default: all the same).
    pub fn class_weight(self, class_weight: ClassWeight) -> Self {
        Self {
            class_weight,
            ..self
        }
    }
}

impl Classification for RidgeClassifier {
    fn check(&self) -> Result<(), FitError> {
        not_negative("alpha", self.alpha)
    }

    fn class_weight(&self) -> &ClassWeight {
        &self.class_weight
    }

    fn coding(&self) -> Coding {
        Coding::Signs
    }

    fn spec(&self, _: usize, total: f64) -> ObjectiveSpec {
        ObjectiveSpec::sum_of_squares(self.alpha, total)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::device::Device;
    use crate::learning::{FitOptions, Labels, Ridge};
    use crate::matrix::Features;

    fn features() -> Features<f64> {
        let value = |(i, j): (usize, usize)| ((i * (3 + 2 * j) + 7 * j) % 13) as f64 - 6.0;
        Features::Dense(Array2::from_shape_fn((40, 3), value))
    }

    /// As the definition has it: a ridge regression on the signs of each class.
    #[test]
    fn each_class_is_a_ridge_regression_on_signs() {
        let weights: Vec<f64> = (0..40).map(|row| 0.5 + (row % 3) as f64).collect();
        let options = || FitOptions {
            sample_weight: Some(&weights[..]),
            ..FitOptions::default()
        };
        for classes in [2, 3] {
            let class = |row: usize| (row * row + row / 7) % classes;
            let labels = Labels::Numbers((0..40).map(|row| class(row) as f64).collect());
            let params = RidgeClassifier::params().alpha(0.7).tolerance(1e-12);
            let model = params.fit_with(&Device::cpu(), features(), &labels, options());
            let model = model.expect("fitted");
            let of = if classes == 2 { 1..2 } else { 0..classes };
            assert_eq!(model.coef().len(), of.len());
            for (side, wanted) in of.enumerate() {
                let sign = |row: usize| if class(row) == wanted { 1.0 } else { -1.0 };
                let signs: Vec<f64> = (0..40).map(sign).collect();
                let ridge = Ridge::params().alpha(0.7).tolerance(1e-12);
                let ridge = ridge.fit_with(&Device::cpu(), features(), &signs, options());
                let ridge = ridge.expect("fitted");
                let pairs = model.coef()[side].iter().zip(ridge.coef());
                let differ = pairs.fold(
                    model.intercept()[side] - ridge.intercept(),
                    |most, (a, b)| f64::max(most.abs(), (a - b).abs()),
                );
                // NaN is no agreement.
                assert!(
                    differ.abs() < 1e-10,
                    "{classes} classes, side {side}: {differ}"
                );
            }
        }
    }
}
