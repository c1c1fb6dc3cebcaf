//! Whatever model a file holds.

use std::path::Path;
use std::sync::Arc;

use super::kernel_ridge::holds_kernel_model;
use super::model_file::io_error;
use super::{Classifier, Evaluation, FitError, KernelModel, Model, ModelError, Targets};
use crate::device::Device;
use crate::matrix::{Dtype, Features, Schema};
use crate::ops::Number;

/// A model of any kind, for programs that are given a file.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a program has one, and a box would be the caller's to open"
)]
pub enum SavedModel {
    /// Of a linear estimator or a classifier.
    Linear(Model),
    /// Of [`KernelRidge`](super::KernelRidge).
    Kernel(KernelModel),
}

impl SavedModel {
    /// Reads a model that was saved, or one that LIBLINEAR wrote.
    ///
    /// # Errors
    /// [`ModelError::Io`] when the file cannot be read, [`ModelError::Format`] when it is something else.
    pub fn load(path: &Path) -> Result<SavedModel, ModelError> {
        let read = std::fs::read(path);
        let bytes = read.map_err(|source| io_error(path, "read", source))?;
        if holds_kernel_model(&bytes) {
            KernelModel::read(path, &bytes).map(SavedModel::Kernel)
        } else {
            Model::read(path, &bytes).map(SavedModel::Linear)
        }
    }

    /// The linear model, if it is one.
    pub fn linear(&self) -> Option<&Model> {
        match self {
            SavedModel::Linear(model) => Some(model),
            SavedModel::Kernel(_) => None,
        }
    }

    /// The classifier, if it is one.
    pub fn classifier(&self) -> Option<&Classifier> {
        self.linear().and_then(Model::classifier)
    }

    /// Features of a sample.
    pub fn cols(&self) -> usize {
        match self {
            SavedModel::Linear(model) => model.cols(),
            SavedModel::Kernel(model) => model.points().ncols(),
        }
    }

    /// What is known about the columns that it was trained on.
    pub fn schema(&self) -> &Schema {
        match self {
            SavedModel::Linear(model) => model.schema(),
            SavedModel::Kernel(model) => model.schema(),
        }
    }

    /// The type that the model was fitted in.
    pub fn dtype(&self) -> Dtype {
        match self {
            SavedModel::Linear(model) => model.dtype(),
            SavedModel::Kernel(model) => model.dtype(),
        }
    }

    /// The figures of the model's task on data with known targets.
    ///
    /// # Errors
    /// As [`Model::evaluate`] and [`KernelModel::evaluate`].
    pub fn evaluate<T: Number>(
        &self,
        device: &Device,
        features: Arc<Features<T>>,
        targets: Targets<'_, T>,
        weights: Option<&[f64]>,
    ) -> Result<Evaluation, FitError> {
        match (self, targets) {
            (SavedModel::Linear(model), _) => model.evaluate(device, features, targets, weights),
            (SavedModel::Kernel(model), Targets::Numbers(targets)) => {
                let features = features.to_dense()?;
                let summary = model.evaluate(device, features.view(), targets, weights)?;
                Ok(Evaluation::Regression {
                    summary,
                    deviance: None,
                })
            }
            (SavedModel::Kernel(_), targets) => Err(targets.mismatch()),
        }
    }
}
