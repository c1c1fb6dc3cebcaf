//! Linear predictors of X wherever it lies, from coefficients on the host.

use ndarray::Array2;
use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use warpfuse::ops::{ManyTerms, Matrix};

use crate::arrays::{self, Scalar};
use crate::watch;

/// k × n coefficients and k intercepts.
pub struct Given {
    coef: Array2<f64>,
    intercept: Vec<f64>,
}

impl Given {
    /// Those for an X of this many columns.
    ///
    /// # Errors
    /// `ValueError` where they do not fit.
    pub fn new(
        cols: usize,
        coef: &PyReadonlyArray2<'_, f64>,
        intercept: &PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Given> {
        let (coef, intercept) = (coef.as_array().to_owned(), intercept.as_slice()?.to_vec());
        if coef.ncols() != cols || coef.nrows() != intercept.len() {
            return Err(PyValueError::new_err("coefficients that do not fit X"));
        }
        Ok(Given { coef, intercept })
    }

    /// `X·coefᵀ + intercept`, m × k, on the host.
    pub fn decision<'py, T: Scalar>(
        &self,
        py: Python<'py>,
        x: &Matrix<T>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (rows, k) = (x.rows(), self.intercept.len());
        let found = watch::watched(py, None, |_| {
            let device = x.device();
            let sides = self.coef.t().iter().copied().collect::<Vec<f64>>();
            let minus: Vec<f64> = self.intercept.iter().map(|b| -b).collect();
            let (sides, shift) = (
                device.upload(&arrays::narrow::<T>(&sides))?,
                device.upload(&arrays::narrow::<T>(&minus))?,
            );
            let terms = ManyTerms {
                shift: Some(&shift),
                ..ManyTerms::default()
            };
            let mut found = device.zeros(rows * k)?;
            x.forward_many(k, &sides, &terms, &mut found)?;
            Ok(found.to_vec()?)
        })?;
        let found = Array2::from_shape_vec((rows, k), found).expect("m × k elements");
        Ok(found.into_pyarray(py).into_any())
    }
}
