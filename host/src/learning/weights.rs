//! Linear functions of the features, one per right-hand side: what models are made of.

use std::sync::Arc;

use super::FitError;
use crate::device::{Buffer, Device};
use crate::matrix::{Element, Features};
use crate::ops::{ManyTerms, Matrix, Number};
use crate::parallel;

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

    /// Coefficients and intercepts, borrowed.
    pub(super) fn lists(&self) -> (&[Vec<f64>], &[f64]) {
        (&self.coef, &self.intercept)
    }

    /// All coefficients, and all intercepts after them.
    pub(super) fn to_list(&self) -> Vec<f64> {
        [&self.coef.concat()[..], &self.intercept].concat()
    }

    /// Of such a list of `k` right-hand sides.
    pub(super) fn of_list(list: &[f64], k: usize) -> Weights {
        let (coef, intercept) = list.split_at(list.len() - k.min(list.len()));
        let each = coef.chunks(coef.len().div_ceil(k).max(1));
        Weights {
            coef: each.map(<[f64]>::to_vec).collect(),
            intercept: intercept.to_vec(),
        }
    }

    /// With those of another problem after them.
    pub(super) fn and(mut self, other: Weights) -> Weights {
        self.coef.extend(other.coef);
        self.intercept.extend(other.intercept);
        self
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

    /// [`Weights::apply`] to a matrix that is on a device already, of n columns, which is read once for up to eight
    /// right-hand sides.
    pub(super) fn apply_on<T: Number>(&self, matrix: &Matrix<T>) -> Result<Vec<Vec<T>>, FitError> {
        let (k, predictors) = (self.coef.len(), self.predictors_on(matrix)?.to_vec()?);
        if k == 1 {
            return Ok(vec![predictors]);
        }
        let side = |c: usize| parallel::filled(matrix.rows(), |row| predictors[row * k + c]);
        Ok((0..k).map(side).collect())
    }

    /// [`Weights::apply_on`], left on the device: m × k, by rows.
    pub(super) fn predictors_on<T: Number>(
        &self,
        matrix: &Matrix<T>,
    ) -> Result<Buffer<T>, FitError> {
        let (expected, found) = (self.cols(), matrix.cols());
        if expected != found {
            return Err(FitError::Features { expected, found });
        }
        let k = self.coef.len();
        let device = matrix.device();
        let narrow = <T as Element>::from_f64;
        let coef = device.upload_with(expected * k, |range, to: &mut [T]| {
            let elements = to.iter_mut().zip(range);
            elements.for_each(|(to, i)| *to = narrow(self.coef[i % k][i / k]));
        })?;
        let minus: Vec<T> = self.intercept.iter().map(|b| narrow(-b)).collect();
        let shift = device.upload(&minus)?;
        let terms = ManyTerms {
            shift: Some(&shift),
            ..ManyTerms::default()
        };
        let mut predictors = device.zeros(matrix.rows() * k)?;
        matrix.forward_many(k, &coef, &terms, &mut predictors)?;
        Ok(predictors)
    }
}
