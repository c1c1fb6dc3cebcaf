//! The fused pattern for people with solvers of their own.

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use warpfuse::device::Buffer;
use warpfuse::learning::FitError;
use warpfuse::ops::objective::{Evaluation, Loss, ObjectiveOut, ObjectiveSums};
use warpfuse::ops::{Matrix as Inner, MatrixOptions, Preparation, Product, Terms};

use crate::arrays::{self, Either, Scalar, either};
use crate::device::Device;
use crate::lent::{self, AnyDeviceFeatures, DeviceArray};
use crate::{errors, predict, there, watch};

/// X on a device, with its products.
#[pyclass(frozen, module = "warpfuse._native")]
pub struct Matrix(Either<Inner<f32>, Inner<f64>>);

/// Vectors of a product besides its input.
struct Given<'py, T: Scalar> {
    alpha: f64,
    weights: Option<PyReadonlyArray1<'py, T>>,
    addend: Option<(f64, PyReadonlyArray1<'py, T>)>,
}

#[pymethods]
impl Matrix {
    /// Puts `x` (see `arrays::features`) on `device`, prepared for this many products.
    #[new]
    #[pyo3(signature = (x, device, evaluations = 0))]
    fn new(x: &Bound<'_, PyAny>, device: &Device, evaluations: u64) -> PyResult<Self> {
        let (py, device) = (x.py(), &device.0);
        if let Some(features) = lent::features(x)? {
            return Matrix::over(py, features);
        }
        let features = arrays::features(x)?;
        let prepared = Preparation::For { evaluations };
        Ok(Matrix(match features {
            Either::F32(x) => {
                Either::F32(watch::watched(py, None, |_| placed(device, x, prepared))?)
            }
            Either::F64(x) => {
                Either::F64(watch::watched(py, None, |_| placed(device, x, prepared))?)
            }
        }))
    }

    /// m and n.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        either!(&self.0, x => (x.rows(), x.cols()))
    }

    /// `float32` or `float64`.
    #[getter]
    fn dtype(&self) -> &'static str {
        match self.0 {
            Either::F32(_) => "float32",
            Either::F64(_) => "float64",
        }
    }

    /// The device's name as one asks for it.
    #[getter]
    fn device(&self) -> String {
        either!(&self.0, x => x.device().to_string())
    }

    /// How a product is launched, as text; none on the CPU, which needs no plan.
    fn plan(&self, product: &str) -> PyResult<Option<String>> {
        let product = product_of(product)?;
        either!(&self.0, x => x.used_plan(product).map(|plan| plan.map(ToString::to_string)))
            .map_err(errors::of_op)
    }

    /// One of `fused`, `forward`, `transposed`: `alpha · op(input, v) + beta · z`.
    #[pyo3(signature = (product, input, v, z, alpha, beta))]
    fn product<'py>(
        &self,
        product: &str,
        input: &Bound<'py, PyAny>,
        v: Option<&Bound<'py, PyAny>>,
        z: Option<&Bound<'py, PyAny>>,
        alpha: f64,
        beta: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let product = product_of(product)?;
        if let Ok(input) = input.cast::<DeviceArray>() {
            let given = (input.get(), v, z, (alpha, beta));
            let found = match &self.0 {
                Either::F32(x) => there::product(input.py(), x, product, given)?,
                Either::F64(x) => there::product(input.py(), x, product, given)?,
            };
            return Ok(Bound::new(input.py(), found)?.into_any());
        }
        match &self.0 {
            Either::F32(x) => {
                let given = Given::new(v, z, (alpha, beta))?;
                run(x, product, &vector("the input", input)?, &given, input.py())
            }
            Either::F64(x) => {
                let given = Given::new(v, z, (alpha, beta))?;
                run(x, product, &vector("the input", input)?, &given, input.py())
            }
        }
    }

    /// `X·coefᵀ + intercept`, m × k, for k × n coefficients, on the host.
    fn decision<'py>(
        &self,
        py: Python<'py>,
        coef: PyReadonlyArray2<'_, f64>,
        intercept: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = predict::Given::new(self.shape().1, &coef, &intercept)?;
        match &self.0 {
            Either::F32(x) => given.decision(py, x),
            Either::F64(x) => given.decision(py, x),
        }
    }

    /// `X·sides − shift`, m × k, all on X's device, for n × k coefficients and k numbers.
    fn decision_there(
        &self,
        py: Python<'_>,
        sides: &DeviceArray,
        shift: &DeviceArray,
    ) -> PyResult<DeviceArray> {
        match &self.0 {
            Either::F32(x) => there::decision(py, x, sides, shift),
            Either::F64(x) => there::decision(py, x, sides, shift),
        }
    }

    /// `Σ v·loss(X·y, target)` and its gradient.
    #[pyo3(signature = (loss, y, target, v, epsilon))]
    fn objective<'py>(
        &self,
        loss: &str,
        y: &Bound<'py, PyAny>,
        target: &Bound<'py, PyAny>,
        v: Option<&Bound<'py, PyAny>>,
        epsilon: f64,
    ) -> PyResult<(f64, Bound<'py, PyAny>)> {
        let loss = loss_of(loss, epsilon)?;
        if let Ok(lent) = y.cast::<DeviceArray>() {
            let given = (lent.get(), target, v);
            let (loss, gradient) = match &self.0 {
                Either::F32(x) => there::objective(y.py(), x, loss, given)?,
                Either::F64(x) => there::objective(y.py(), x, loss, given)?,
            };
            return Ok((loss, Bound::new(y.py(), gradient)?.into_any()));
        }
        match &self.0 {
            Either::F32(x) => evaluate(x, loss, y, target, v),
            Either::F64(x) => evaluate(x, loss, y, target, v),
        }
    }
}

impl Matrix {
    /// X where it lies.
    fn over(py: Python<'_>, x: AnyDeviceFeatures) -> PyResult<Self> {
        let options = MatrixOptions::default();
        let over = match x {
            Either::F32(x) => py.detach(|| Inner::over(x, options)).map(Either::F32),
            Either::F64(x) => py.detach(|| Inner::over(x, options)).map(Either::F64),
        };
        over.map(Matrix).map_err(errors::of_op)
    }
}

fn placed<T: Scalar>(
    device: &warpfuse::device::Device,
    x: warpfuse::matrix::Features<T>,
    prepared: Preparation,
) -> Result<Inner<T>, FitError> {
    let mut matrix = Inner::new(device, x)?;
    matrix.prepare(prepared)?;
    Ok(matrix)
}

pub fn product_of(name: &str) -> PyResult<Product> {
    Ok(match name {
        "fused" => Product::Fused,
        "forward" => Product::Forward,
        "transposed" => Product::Transposed,
        _ => {
            return Err(PyValueError::new_err(format!(
                "there is no product {name}: expected fused, forward or transposed"
            )));
        }
    })
}

fn loss_of(name: &str, epsilon: f64) -> PyResult<Loss> {
    Ok(match name {
        "squared" => Loss::Squared,
        "logistic" => Loss::Logistic,
        "squared_hinge" => Loss::SquaredHinge,
        "huber" => Loss::Huber { delta: epsilon },
        "squared_epsilon_insensitive" => Loss::EpsilonInsensitive { epsilon },
        _ => {
            return Err(PyValueError::new_err(format!(
                "there is no loss {name}: expected squared, logistic, squared_hinge, huber or squared_epsilon_insensitive"
            )));
        }
    })
}

fn vector<'py, T: Scalar>(
    what: &str,
    array: &Bound<'py, PyAny>,
) -> PyResult<PyReadonlyArray1<'py, T>> {
    let wrong = |_| PyTypeError::new_err(format!("{what} must be a vector of X's type"));
    Ok(array.cast::<PyArray1<T>>().map_err(wrong)?.try_readonly()?)
}

impl<'py, T: Scalar> Given<'py, T> {
    fn new(
        v: Option<&Bound<'py, PyAny>>,
        z: Option<&Bound<'py, PyAny>>,
        (alpha, beta): (f64, f64),
    ) -> PyResult<Self> {
        let addend = z.map(|z| Ok::<_, PyErr>((beta, vector("z", z)?)));
        Ok(Given {
            alpha,
            weights: v.map(|v| vector("v", v)).transpose()?,
            addend: addend.transpose()?,
        })
    }
}

fn run<'py, T: Scalar>(
    x: &Inner<T>,
    product: Product,
    input: &PyReadonlyArray1<'py, T>,
    given: &Given<'py, T>,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let input = input.as_slice()?;
    let weights = given.weights.as_ref().map(|v| v.as_slice()).transpose()?;
    let addend = given.addend.as_ref();
    let addend = addend.map(|(beta, z)| Ok::<_, PyErr>((*beta, z.as_slice()?)));
    let (addend, alpha) = (addend.transpose()?, given.alpha);
    let found = watch::watched(py, None, |_| {
        let upload = |values: &[T]| x.device().upload(values);
        let (input, v) = (upload(input)?, weights.map(upload).transpose()?);
        let z = addend.map(|(_, z)| upload(z)).transpose()?;
        let terms = Terms {
            alpha: number(alpha),
            weights: v.as_ref(),
            addend: addend
                .zip(z.as_ref())
                .map(|((beta, _), z)| (number(beta), z)),
            ..Terms::default()
        };
        Ok(multiplied(x, product, &input, &terms)?.to_vec()?)
    })?;
    Ok(found.to_pyarray(py).into_any())
}

/// A product, on X's device.
pub fn multiplied<T: Scalar>(
    x: &Inner<T>,
    product: Product,
    input: &Buffer<T>,
    terms: &Terms<'_, T>,
) -> Result<Buffer<T>, FitError> {
    let forward = product == Product::Forward;
    let mut out = x
        .device()
        .zeros(if forward { x.rows() } else { x.cols() })?;
    match product {
        Product::Fused => x.fused(input, terms, &mut out)?,
        Product::Forward => x.forward(input, terms, &mut out)?,
        Product::Transposed => x.transposed(input, terms, &mut out)?,
    }
    Ok(out)
}

fn evaluate<'py, T: Scalar>(
    x: &Inner<T>,
    loss: Loss,
    y: &Bound<'py, PyAny>,
    target: &Bound<'py, PyAny>,
    v: Option<&Bound<'py, PyAny>>,
) -> PyResult<(f64, Bound<'py, PyAny>)> {
    let (py, y, target) = (y.py(), vector::<T>("y", y)?, vector::<T>("target", target)?);
    let v = v.map(|v| vector::<T>("v", v)).transpose()?;
    let (y, target) = (y.as_slice()?, target.as_slice()?);
    let v = v.as_ref().map(|v| v.as_slice()).transpose()?;
    let (loss, gradient) = watch::watched(py, None, |_| {
        let device = x.device();
        let (y, target) = (device.upload(y)?, device.upload(target)?);
        let weights = v.map(|v| device.upload(v)).transpose()?;
        let mut sums = device.zeros(ObjectiveSums::LEN)?;
        let mut gradient = device.zeros(x.cols())?;
        let evaluation = Evaluation {
            weights: weights.as_ref(),
            ..Evaluation::new(loss, &target)
        };
        x.objective(&evaluation, &y, ObjectiveOut::new(&mut sums, &mut gradient))?;
        Ok((ObjectiveSums::of(&sums.to_vec()?).loss, gradient.to_vec()?))
    })?;
    Ok((loss, gradient.to_pyarray(py).into_any()))
}

/// As an element.
pub fn number<T: Scalar>(value: f64) -> T {
    <T as warpfuse::matrix::Element>::from_f64(value)
}
