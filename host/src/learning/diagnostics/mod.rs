//! What one figure does not tell of a model on data with known targets: curves, residuals, groups.
//!
//! X is read once; everything else is computed from one linear predictor per row and class, on the host. Lists are short
//! whatever the number of rows, so that they fit a page: curves of more than 200 points are thinned along their length. Of
//! more than 131,072 rows a sample is looked at, which says how many there are (`sampled_from`).

mod classification;
mod groups;
mod ranked;
mod regression;
mod rows;

use serde::Serialize;

pub(super) use classification::Shown;
pub use classification::{ClassCurves, ClassificationDiagnostics, ScoreHistogram};
pub use groups::Group;
pub use regression::{Histogram, Pairs, RegressionDiagnostics, Spread};

use super::metrics::Deviance;
use super::{FitError, Model, SavedModel, Targets};
use crate::matrix::Element;
use crate::ops::{Matrix, Number};

/// Curves, residuals and groups of a model on data with known targets.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Diagnostics {
    /// Of numbers.
    Regression(Box<RegressionDiagnostics>),
    /// Of labels.
    Classification(Box<ClassificationDiagnostics>),
}

impl Model {
    /// Curves, residuals and groups on data with known targets; X is read once.
    ///
    /// # Errors
    /// As [`Model::evaluate_on`].
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::learning::{Diagnostics, Labels, LogisticRegression, Model, Targets};
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::Matrix;
    ///
    /// let (device, labels) = (Device::cpu(), Labels::Numbers(vec![0.0, 0.0, 1.0, 1.0]));
    /// let x = Features::Dense(array![[0.0], [1.0], [2.0], [3.0]]);
    /// let model = LogisticRegression::params().fit(&device, x.clone(), &labels)?;
    /// let matrix = Matrix::<f64>::new(&device, x)?;
    /// let found = Model::Classifier(model).diagnose(&matrix, Targets::Labels(&labels), None)?;
    /// let Diagnostics::Classification(found) = found else { panic!("labels") };
    /// assert_eq!(found.curves[0].auc, Some(1.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn diagnose<T: Number>(
        &self,
        x: &Matrix<T>,
        targets: Targets<'_, T>,
        weights: Option<&[f64]>,
    ) -> Result<Diagnostics, FitError> {
        self.assess(x, targets, weights, None)?.diagnose()
    }

    /// [`Model::diagnose`] with an offset of each row added to its linear predictor, of models with one.
    ///
    /// # Errors
    /// As [`Model::evaluate_with_offset`].
    pub fn diagnose_with_offset<T: Number>(
        &self,
        x: &Matrix<T>,
        targets: Targets<'_, T>,
        weights: Option<&[f64]>,
        offset: &[f64],
    ) -> Result<Diagnostics, FitError> {
        self.assess(x, targets, weights, Some(offset))?.diagnose()
    }
}

impl SavedModel {
    /// As [`Model::diagnose`].
    ///
    /// # Errors
    /// As [`SavedModel::evaluate`].
    pub fn diagnose<T: Number>(
        &self,
        device: &crate::device::Device,
        features: std::sync::Arc<crate::matrix::Features<T>>,
        targets: Targets<'_, T>,
        weights: Option<&[f64]>,
    ) -> Result<Diagnostics, FitError> {
        match (self, targets) {
            (SavedModel::Linear(model), _) => {
                model.diagnose(&Matrix::new(device, features)?, targets, weights)
            }
            (SavedModel::Kernel(model), Targets::Numbers(targets)) => {
                let means = model.predict(device, features.to_dense()?.view())?;
                let wide = |values: &[T]| {
                    values
                        .iter()
                        .map(|b| Element::to_f64(*b))
                        .collect::<Vec<f64>>()
                };
                let found = RegressionDiagnostics::of(
                    &wide(targets),
                    &wide(&means),
                    Deviance::Gaussian,
                    weights,
                )?;
                Ok(Diagnostics::Regression(Box::new(found)))
            }
            (SavedModel::Kernel(_), targets) => Err(targets.mismatch()),
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::device::Device;
    use crate::learning::{Family, FitOptions, Glm};
    use crate::matrix::Features;

    /// The maximum-likelihood fit of a canonical link with an intercept predicts the mean of what was observed, but only
    /// with the offsets that it was fitted with.
    #[test]
    fn offsets_count_in_diagnostics() {
        let rows = 60;
        let x = Array2::from_shape_fn((rows, 2), |(i, j)| ((i * (7 + 4 * j)) % 11) as f64 / 10.0);
        let y: Vec<f64> = (0..rows).map(|i| ((i * 5) % 9) as f64).collect();
        let offset: Vec<f64> = (0..rows).map(|i| (1.0 + (i % 4) as f64).ln()).collect();
        let (device, x) = (Device::cpu(), Features::Dense(x));
        let options = FitOptions {
            offset: Some(&offset),
            ..FitOptions::default()
        };
        let glm = Glm::params()
            .family(Family::Poisson)
            .alpha(0.0)
            .tolerance(1e-12);
        let model = glm
            .fit_with(&device, x.clone(), &y, options)
            .expect("a fit");
        let (model, matrix) = (Model::Regressor(model), Matrix::new(&device, x).expect("X"));
        let targets = Targets::Numbers(&y);
        let means = |found: Diagnostics| match found {
            Diagnostics::Regression(found) => (found.predicted.mean, found.target.mean),
            Diagnostics::Classification(_) => panic!("numbers"),
        };
        let found = model.diagnose_with_offset(&matrix, targets, None, &offset);
        let (predicted, observed) = means(found.expect("residuals"));
        assert!(
            (predicted - observed).abs() <= 1e-9 * observed,
            "{predicted} {observed}"
        );
        let (without, _) = means(model.diagnose(&matrix, targets, None).expect("residuals"));
        assert!((without - observed).abs() > 0.1 * observed);
        let short = model.diagnose_with_offset(&matrix, targets, None, &offset[1..]);
        assert!(matches!(short, Err(FitError::Length { .. })));
    }
}
