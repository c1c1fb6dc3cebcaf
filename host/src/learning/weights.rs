//! Linear functions of the features, one per right-hand side: what models are made of.

use std::sync::Arc;

use super::FitError;
use super::design::{Columns, Design};
use crate::device::Device;
use crate::matrix::{Element, Features};
use crate::ops::{Matrix, Number};

/// Coefficients and intercepts, one list and one number per right-hand side.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weights {
    pub(super) coef: Vec<Vec<f64>>,
    pub(super) intercept: Vec<f64>,
}

impl Weights {
    /// n.
    pub(super) fn cols(&self) -> usize {
        self.coef.first().map_or(0, Vec::len)
    }

    /// `X·w + b` for each right-hand side in turn, m values each, computed on `device`.
    pub(super) fn apply<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
    ) -> Result<Vec<Vec<T>>, FitError> {
        let features = features.into();
        let (expected, found) = (self.cols(), features.cols());
        if expected != found {
            return Err(FitError::Features { expected, found });
        }
        self.apply_on(&Matrix::new(device, features)?)
    }

    /// [`Weights::apply`] to a matrix that is on a device already, of n columns.
    pub(super) fn apply_on<T: Number>(&self, matrix: &Matrix<T>) -> Result<Vec<Vec<T>>, FitError> {
        let (expected, found) = (self.cols(), matrix.cols());
        if expected != found {
            return Err(FitError::Features { expected, found });
        }
        let columns = Columns {
            intercept: true,
            ..Columns::default()
        };
        let design = Design::new(matrix, &columns, 1);
        let sides = self.coef.iter().zip(&self.intercept);
        sides
            .map(|(coef, intercept)| {
                let theta: Vec<T> = coef
                    .iter()
                    .chain([intercept])
                    .map(|w| <T as Element>::from_f64(*w))
                    .collect();
                Ok(design.forward(&theta, 0)?)
            })
            .collect()
    }
}
