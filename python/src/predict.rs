//! Linear predictors of X wherever it lies, from coefficients on the host.

use ndarray::Array2;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use warpfuse::matrix::Element;
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

/// Which rows of a small X in C order are predicted further from y than `limit`; none where X and the coefficients are not of
/// one precision, or y is not of one of the two.
#[pyfunction]
pub fn are_off<'py>(
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    coef: &Bound<'py, PyAny>,
    intercept: f64,
    limit: f64,
) -> PyResult<Option<Bound<'py, PyArray1<bool>>>> {
    macro_rules! of_types {
        ($($x:ty, $y:ty);*) => { $(
            if let (Ok(x), Ok(y), Ok(coef)) = (
                x.cast::<PyArray2<$x>>(),
                y.cast::<PyArray1<$y>>(),
                coef.cast::<PyArray1<$x>>(),
            ) {
                return off::<$x, $y>((x, y, coef), intercept, limit).map(Some);
            }
        )* };
    }
    of_types!(f64, f64; f32, f32; f32, f64; f64, f32);
    Ok(None)
}

type Data<'a, 'py, T, Y> = (
    &'a Bound<'py, PyArray2<T>>,
    &'a Bound<'py, PyArray1<Y>>,
    &'a Bound<'py, PyArray1<T>>,
);

fn off<'py, T: Scalar + ndarray::LinalgScalar, Y: Scalar>(
    (x, y, coef): Data<'_, 'py, T, Y>,
    intercept: f64,
    limit: f64,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    if x.dims()[0] != y.len() || x.dims()[1] != coef.len() {
        return Err(PyValueError::new_err("y or coefficients that do not fit X"));
    }
    let py = x.py();
    let (x, y, coef) = (x.try_readonly()?, y.try_readonly()?, coef.try_readonly()?);
    let predicted = x.as_array().dot(&coef.as_array());
    let is_off = |(t, y): (&T, &Y)| {
        let residual = Element::to_f64(*y) - (Element::to_f64(*t) + intercept);
        residual.abs() > limit
    };
    let found: Vec<bool> = predicted.iter().zip(y.as_array()).map(is_off).collect();
    Ok(found.into_pyarray(py))
}
