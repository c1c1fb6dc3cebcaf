//! Products and objectives whose vectors lie where X does: nothing crosses the link but a number.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use warpfuse::device::Buffer;
use warpfuse::ops::objective::{Evaluation, Loss, ObjectiveOut, ObjectiveSums};
use warpfuse::ops::{ManyTerms, Matrix, Product, Terms};

use crate::arrays::Scalar;
use crate::lent::DeviceArray;
use crate::matrix::{multiplied, number};
use crate::watch;

type Optional<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// A product of the input with v, z, and their factors.
pub fn product<T: Scalar>(
    py: Python<'_>,
    x: &Matrix<T>,
    product: Product,
    (input, v, z, (alpha, beta)): (&DeviceArray, Optional<'_, '_>, Optional<'_, '_>, (f64, f64)),
) -> PyResult<DeviceArray> {
    let v = v.map(|v| vector::<T>("v", v)).transpose()?;
    let z = z.map(|z| vector::<T>("z", z)).transpose()?;
    let input = input.vector::<T>("the input")?;
    watch::watched(py, None, |_| {
        let terms = Terms {
            alpha: number(alpha),
            weights: v,
            addend: z.map(|z| (number(beta), z)),
            ..Terms::default()
        };
        let found = multiplied(x, product, input, &terms)?;
        let len = found.len();
        Ok(DeviceArray::result(found, vec![len])?)
    })
}

/// `X·sides − shift` for several sides.
pub fn decision<T: Scalar>(
    py: Python<'_>,
    x: &Matrix<T>,
    sides: &DeviceArray,
    shift: &DeviceArray,
) -> PyResult<DeviceArray> {
    let (sides, shift) = (sides.vector("coef_")?, shift.vector("intercept_")?);
    let (rows, k) = (x.rows(), shift.len());
    watch::watched(py, None, |_| {
        let terms = ManyTerms {
            shift: Some(shift),
            ..ManyTerms::default()
        };
        let mut found = x.device().zeros(rows * k)?;
        x.forward_many(k, sides, &terms, &mut found)?;
        Ok(DeviceArray::result(found, vec![rows, k])?)
    })
}

/// The sum of a loss, and its gradient.
pub fn objective<T: Scalar>(
    py: Python<'_>,
    x: &Matrix<T>,
    loss: Loss,
    (y, target, v): (&DeviceArray, &Bound<'_, PyAny>, Optional<'_, '_>),
) -> PyResult<(f64, DeviceArray)> {
    let (y, target) = (y.vector::<T>("y")?, vector::<T>("target", target)?);
    let weights = v.map(|v| vector::<T>("v", v)).transpose()?;
    watch::watched(py, None, |_| {
        let device = x.device();
        let mut sums = device.zeros(ObjectiveSums::LEN)?;
        let mut gradient = device.zeros(x.cols())?;
        let evaluation = Evaluation {
            weights,
            ..Evaluation::new(loss, target)
        };
        x.objective(&evaluation, y, ObjectiveOut::new(&mut sums, &mut gradient))?;
        let loss = ObjectiveSums::of(&sums.to_vec()?).loss;
        Ok((loss, DeviceArray::result(gradient, vec![x.cols()])?))
    })
}

/// A vector on a device.
fn vector<'a, T: Scalar>(what: &str, array: &'a Bound<'_, PyAny>) -> PyResult<&'a Buffer<T>> {
    let array = array.cast::<DeviceArray>().map_err(|_| {
        PyTypeError::new_err(format!("{what} must lie on X's device, as the input does"))
    })?;
    array.get().vector(what)
}
