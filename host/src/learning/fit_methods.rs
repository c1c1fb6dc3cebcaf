//! What estimators do alike: fits to features of the host, and to those that are on a device.

use super::fit::{Controls, FitOptions, ObjectiveSpec, check_targets, sample_weights};
use super::regressor::RegressorParams;
use super::task::Task;
use super::{FitError, ResidentDataset};
use crate::ops::Number;

/// An estimator of numbers, fitted by one minimisation.
pub(super) trait NumberEstimator: Clone {
    /// Parameters that all estimators have.
    fn controls(&self) -> &Controls;

    /// Checks the parameters.
    fn check(&self) -> Result<(), FitError>;

    /// Checks targets beyond their number and that they are finite.
    fn check_domain<T: Number>(&self, _targets: &[T]) -> Result<(), FitError> {
        Ok(())
    }

    /// What is minimised over these targets and weights.
    fn spec<T: Number>(&self, targets: &[T], weights: &[f64]) -> ObjectiveSpec;

    /// What models keep of the estimator.
    fn into_params(self) -> RegressorParams;

    /// What is to be solved.
    fn task<T: Number>(
        &self,
        data: &ResidentDataset<T>,
        targets: &[T],
        options: &FitOptions<'_>,
    ) -> Result<Task<T, RegressorParams>, FitError> {
        self.check()?;
        check_targets(data.matrix().rows(), targets)?;
        self.check_domain(targets)?;
        let weights = sample_weights(targets.len(), options)?;
        Ok(Task {
            controls: *self.controls(),
            spec: self.spec(targets, &weights),
            targets: targets.to_vec(),
            weights,
            answer: self.clone().into_params(),
        })
    }
}

/// Defines `fit`, `fit_with` and `fit_on` of an estimator that has `check(&self)`, `controls(&self)`,
/// `evaluations(&self, targets)` and `fit_placed(&self, data, targets, options)`.
macro_rules! fit_methods {
    ($estimator:ident, $targets:ident: $type:ty, $model:ident) => {
        impl $estimator {
            #[doc = concat!("Fits to `features` (m × n) and `", stringify!($targets), "` (m) on `device`.")]
            ///
            /// # Errors
            /// [`FitError`](crate::learning::FitError) when shapes, values or parameters do not fit, or the device fails.
            #[doc = concat!("Not converging is not an error: see [`", stringify!($model), "::converged`].")]
            pub fn fit<T: $crate::ops::Number>(
                &self,
                device: &$crate::device::Device,
                features: impl Into<std::sync::Arc<$crate::matrix::Features<T>>>,
                $targets: $type,
            ) -> Result<$model, $crate::learning::FitError> {
                self.fit_with(device, features, $targets, Default::default())
            }

            /// [`Self::fit`] with sample weights, a mask of columns, a warm start or someone watching.
            ///
            /// # Errors
            /// As [`Self::fit`].
            pub fn fit_with<T: $crate::ops::Number>(
                &self,
                device: &$crate::device::Device,
                features: impl Into<std::sync::Arc<$crate::matrix::Features<T>>>,
                $targets: $type,
                options: $crate::learning::FitOptions<'_>,
            ) -> Result<$model, $crate::learning::FitError> {
                self.check()?;
                let (matrix, evaluations) = (self.controls.matrix, self.evaluations($targets));
                let data =
                    $crate::learning::ResidentDataset::for_evaluations(device, features, matrix, evaluations)?;
                self.fit_on(&data, $targets, options)
            }

            /// [`Self::fit_with`] on features that are on a device already.
            ///
            /// # Errors
            /// As [`Self::fit`].
            pub fn fit_on<T: $crate::ops::Number>(
                &self,
                data: &$crate::learning::ResidentDataset<T>,
                $targets: $type,
                options: $crate::learning::FitOptions<'_>,
            ) -> Result<$model, $crate::learning::FitError> {
                self.fit_placed(data, $targets, options)
            }
        }
    };
}
pub(super) use fit_methods;

/// [`fit_methods`] of a [`NumberEstimator`].
macro_rules! number_estimator {
    ($estimator:ident) => {
        $crate::learning::fit_methods::fit_methods!(
            $estimator, targets: &[T], Regressor
        );

        impl $estimator {
            /// Expected reads of X for the one linear predictor of a row.
            pub(super) fn evaluations<T>(&self, _: &[T]) -> u64 {
                self.controls.evaluations()
            }

            fn fit_placed<T: $crate::ops::Number>(
                &self,
                data: &$crate::learning::ResidentDataset<T>,
                targets: &[T],
                mut options: $crate::learning::FitOptions<'_>,
            ) -> Result<Regressor, $crate::learning::FitError> {
                self.task(data, targets, &options)?.fit(data, &mut options)
            }
        }
    };
}
pub(super) use number_estimator;
