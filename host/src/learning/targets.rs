//! What is learnt to be predicted.

use super::error::mismatch;
use super::{FitError, Labels};

/// What an estimator learns to predict, one for each row.
#[derive(Debug, Clone, Copy)]
pub enum Targets<'a, T> {
    /// Of a regression.
    Numbers(&'a [T]),
    /// Of a classification.
    Labels(&'a Labels),
}

impl<T> Targets<'_, T> {
    /// The error of targets that the other kind of estimator or model learns.
    pub(super) fn mismatch(&self) -> FitError {
        match self {
            Targets::Numbers(_) => mismatch("numbers", "a classifier", "give labels"),
            Targets::Labels(_) => mismatch("labels", "a regression", "give numbers"),
        }
    }
}
