//! Arrays on a GPU: other libraries' by DLPack or `__cuda_array_interface__`, and results for them.

use std::any::Any;
use std::sync::Arc;

use bytemuck::Pod;
use numpy::ToPyArray;
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use warpfuse::device::buffer::RowLayout;
use warpfuse::device::{Buffer, Device as Inner, SharedBuffer};
use warpfuse::ops::{DeviceCsr, DeviceDense, DeviceFeatures, DeviceIntegers};

use crate::arrays::{Either, Scalar};
use crate::device::Device;
use crate::dlpack::{self, Described, Taken};
use crate::errors;

/// X on a GPU in either precision.
pub type AnyDeviceFeatures = Either<DeviceFeatures<f32>, DeviceFeatures<f64>>;

/// An array on a device: borrowed from another library, or a result that other libraries can borrow.
#[pyclass(frozen, module = "warpfuse._native")]
pub struct DeviceArray {
    values: Values,
    shape: Vec<usize>,
    /// Elements from one row to the next.
    pitch: usize,
}

/// Elements by type.
pub enum Values {
    F32(SharedBuffer<f32>),
    F64(SharedBuffer<f64>),
    I32(SharedBuffer<i32>),
    I64(SharedBuffer<i64>),
}

/// Runs the same code on values of any type.
macro_rules! values {
    ($values:expr, $name:ident => $body:expr) => {
        match $values {
            Values::F32($name) => $body,
            Values::F64($name) => $body,
            Values::I32($name) => $body,
            Values::I64($name) => $body,
        }
    };
}

#[pymethods]
impl DeviceArray {
    /// Borrows an array of another library on `device`: by DLPack, where it offers that, else by
    /// `__cuda_array_interface__`. Work that the array waits for is waited for.
    #[new]
    fn new(array: &Bound<'_, PyAny>, device: &Device) -> PyResult<Self> {
        let device = &device.0;
        let (described, owner) = match array.hasattr("__dlpack__")? {
            true => by_dlpack(array, device)?,
            false => by_interface(array, device)?,
        };
        let (len, pitch) = extent(&described)?;
        let (address, py) = (described.address, array.py());
        let values = match &*described.dtype {
            "f4" => Values::F32(borrowed(py, device, (address, len), owner)?),
            "f8" => Values::F64(borrowed(py, device, (address, len), owner)?),
            "i4" => Values::I32(borrowed(py, device, (address, len), owner)?),
            "i8" => Values::I64(borrowed(py, device, (address, len), owner)?),
            other => {
                return Err(PyTypeError::new_err(format!(
                    "an array of float32, float64, int32 or int64 is needed on a GPU, got {other}"
                )));
            }
        };
        let shape = described.shape;
        Ok(DeviceArray {
            values,
            shape,
            pitch,
        })
    }

    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(pyo3::types::PyTuple::new(py, &self.shape)?
            .into_any()
            .unbind())
    }

    /// `float32`, `float64`, `int32` or `int64`.
    #[getter]
    fn dtype(&self) -> &'static str {
        match self.values {
            Values::F32(_) => "float32",
            Values::F64(_) => "float64",
            Values::I32(_) => "int32",
            Values::I64(_) => "int64",
        }
    }

    /// The device's name as one asks for it.
    #[getter]
    fn device(&self) -> String {
        values!(&self.values, x => x.device().to_string())
    }

    /// What other libraries borrow it by; its values are there already.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let address = values!(&self.values, x => x.device_address());
        let address = address.ok_or_else(|| {
            PyAttributeError::new_err("an emulator's memory cannot be borrowed; use numpy()")
        })?;
        let dict = PyDict::new(py);
        let typestr = match self.values {
            Values::F32(_) => "<f4",
            Values::F64(_) => "<f8",
            Values::I32(_) => "<i4",
            Values::I64(_) => "<i8",
        };
        dict.set_item("shape", self.shape(py)?)?;
        dict.set_item("typestr", typestr)?;
        dict.set_item("data", (address, false))?;
        dict.set_item("strides", py.None())?;
        dict.set_item("stream", py.None())?;
        dict.set_item("version", 3)?;
        Ok(dict)
    }

    /// A copy on the host.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let flat = match &self.values {
            Values::F32(x) => on_host(py, x)?.to_pyarray(py).into_any(),
            Values::F64(x) => on_host(py, x)?.to_pyarray(py).into_any(),
            Values::I32(x) => on_host(py, x)?.to_pyarray(py).into_any(),
            Values::I64(x) => on_host(py, x)?.to_pyarray(py).into_any(),
        };
        flat.call_method1("reshape", (self.shape(py)?,))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shape = self.shape(py)?;
        Ok(format!(
            "<warpfuse array {shape} of {} on {}>",
            self.dtype(),
            self.device()
        ))
    }
}

fn on_host<T: Pod + Send + Sync>(py: Python<'_>, x: &SharedBuffer<T>) -> PyResult<Vec<T>> {
    py.detach(|| x.to_vec()).map_err(errors::of_device)
}

type Owner = Arc<dyn Any + Send + Sync>;

/// By a capsule. The producer has this device's stream wait for its own.
fn by_dlpack(array: &Bound<'_, PyAny>, device: &Inner) -> PyResult<(Described, Owner)> {
    let (kind, id): (i32, i64) = array.call_method0("__dlpack_device__")?.extract()?;
    expect_place(kind, id, device)?;
    let named = PyDict::new(array.py());
    if let Some(stream) = device.stream_handle() {
        named.set_item("stream", stream)?;
    }
    let taken = Taken::of(&array.call_method("__dlpack__", (), Some(&named))?)?;
    Ok((taken.described()?, Arc::new(taken)))
}

fn expect_place(kind: i32, id: i64, device: &Inner) -> PyResult<()> {
    let found = match kind {
        dlpack::CUDA => format!("cuda:{id}"),
        dlpack::HOST => "the host".to_owned(),
        other => format!("a device of DLPack's kind {other}"),
    };
    let is_there = match device {
        Inner::Cuda(own) => kind == dlpack::CUDA && id == i64::from(own.ordinal()),
        // Its memory is this process's.
        Inner::Emulator(_) => kind == dlpack::HOST,
        Inner::Cpu(_) => false,
    };
    match is_there {
        true => Ok(()),
        false => Err(PyValueError::new_err(format!(
            "the array lies on {found}, and {device} was requested; move it there, or set the device to where it lies"
        ))),
    }
}

/// By `__cuda_array_interface__`, version 2 or 3. This device's stream waits for the one that it names.
fn by_interface(array: &Bound<'_, PyAny>, device: &Inner) -> PyResult<(Described, Owner)> {
    let interface = array.getattr("__cuda_array_interface__")?;
    let item = |name: &str| interface.get_item(name);
    let optional = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
        match interface.contains(name)? {
            true => Ok(Some(item(name)?).filter(|value| !value.is_none())),
            false => Ok(None),
        }
    };
    if optional("mask")?.is_some() {
        return Err(PyTypeError::new_err(
            "arrays with a mask cannot be borrowed",
        ));
    }
    let typestr: String = item("typestr")?.extract()?;
    let dtype = typestr.trim_start_matches(['<', '|', '=']).to_owned();
    let size: i64 = dtype[dtype.len().min(1)..].parse().unwrap_or(1);
    let (address, _): (u64, bool) = item("data")?.extract()?;
    let strides: Option<Vec<i64>> = optional("strides")?.map(|s| s.extract()).transpose()?;
    if let Some(stream) = optional("stream")? {
        let stream: u64 = stream.extract()?;
        if stream == 0 {
            return Err(PyBufferError::new_err(
                "__cuda_array_interface__ names the stream 0, which it must not: 1 is the default stream",
            ));
        }
        // SAFETY: the interface says that it is a stream of the array's context, which is the primary one.
        unsafe { device.wait_for(stream) }.map_err(errors::of_device)?;
    }
    let described = Described {
        address,
        dtype,
        shape: item("shape")?.extract()?,
        strides: strides.map(|strides| strides.iter().map(|bytes| bytes / size.max(1)).collect()),
    };
    Ok((described, Arc::new(array.clone().unbind())))
}

/// How many elements lie from the first to the last of an array, and how far apart rows are.
fn extent(array: &Described) -> PyResult<(usize, usize)> {
    let contiguous = |n: usize, stride: i64| n <= 1 || stride == 1;
    let wrong = || {
        PyTypeError::new_err(
            "an array on a GPU must be a vector, or a matrix whose rows lie one after the other (C order)",
        )
    };
    match (&*array.shape, array.strides.as_deref()) {
        (&[], _) => Ok((1, 1)),
        (&[n], None) => Ok((n, n)),
        (&[n], Some(&[stride])) if contiguous(n, stride) => Ok((n, n)),
        (&[m, n], None) => Ok((m * n, n)),
        (&[m, n], Some(&[rows, cols])) if contiguous(n, cols) => {
            let pitch = if m <= 1 { n as i64 } else { rows };
            let pitch = usize::try_from(pitch).ok().filter(|pitch| *pitch >= n);
            let pitch = pitch.ok_or_else(wrong)?;
            Ok((
                m.saturating_sub(1) * pitch + if m == 0 { 0 } else { n },
                pitch,
            ))
        }
        _ => Err(wrong()),
    }
}

fn borrowed<T: Pod + Send + Sync>(
    py: Python<'_>,
    device: &Inner,
    (address, len): (u64, usize),
    owner: Owner,
) -> PyResult<SharedBuffer<T>> {
    // SAFETY: the array's library says that this many elements of this type are there, and keeps them as long as their owner
    // is kept. Its stream was waited for. Python code that writes into an array during a fit gets what it gets from SciPy:
    // it is asked not to. On an emulator the address is NumPy's.
    py.detach(|| unsafe { device.borrow(address, len, owner) })
        .map_err(errors::of_device)
}

/// X as `DeviceArray`, or as the tuple `(data, indices, indptr, shape)` of such; `None` where it is of the host.
pub fn features(x: &Bound<'_, PyAny>) -> PyResult<Option<AnyDeviceFeatures>> {
    if let Ok(x) = x.cast::<DeviceArray>() {
        let x = x.get();
        return Ok(Some(match &x.values {
            Values::F32(values) => Either::F32(x.dense(values)?),
            Values::F64(values) => Either::F64(x.dense(values)?),
            Values::I32(_) | Values::I64(_) => {
                return Err(PyTypeError::new_err("X must be of float32 or float64"));
            }
        }));
    }
    type Parts<'py> = (
        Bound<'py, DeviceArray>,
        Bound<'py, DeviceArray>,
        Bound<'py, DeviceArray>,
        (usize, usize),
    );
    let Ok((data, indices, indptr, shape)) = x.extract::<Parts<'_>>() else {
        return Ok(None);
    };
    let (offsets, indices) = (indptr.get().integers()?, indices.get().integers()?);
    let sparse = (x.py(), shape, offsets, indices);
    Ok(Some(match &data.get().values {
        Values::F32(values) => Either::F32(csr(sparse, values)?),
        Values::F64(values) => Either::F64(csr(sparse, values)?),
        Values::I32(_) | Values::I64(_) => {
            return Err(PyTypeError::new_err("X must be of float32 or float64"));
        }
    }))
}

fn csr<T: Scalar>(
    (py, shape, offsets, indices): (Python<'_>, (usize, usize), DeviceIntegers, DeviceIntegers),
    values: &SharedBuffer<T>,
) -> PyResult<DeviceFeatures<T>> {
    let values = values.clone();
    let x = py.detach(|| DeviceCsr::new(shape, offsets, indices, values));
    x.map(DeviceFeatures::Sparse).map_err(errors::of_op)
}

impl DeviceArray {
    /// A result: all work for it has ended.
    pub fn result<T: Scalar>(
        values: Buffer<T>,
        shape: Vec<usize>,
    ) -> Result<Self, warpfuse::ops::OpError> {
        values.device().synchronize()?;
        let pitch = shape.last().copied().unwrap_or(1);
        let values = SharedBuffer::from(values);
        Ok(DeviceArray {
            values: T::values(values),
            shape,
            pitch,
        })
    }

    /// Its elements, if they are of this type and lie one after the other.
    pub fn vector<T: Scalar>(&self, what: &str) -> PyResult<&Buffer<T>> {
        let len: usize = self.shape.iter().product();
        let own = T::of(&self.values).filter(|own| own.len() == len);
        own.map(|own| &**own).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{what} must be contiguous and of X's type on a GPU"
            ))
        })
    }

    fn dense<T: Scalar>(&self, values: &SharedBuffer<T>) -> PyResult<DeviceFeatures<T>> {
        let &[rows, cols] = &*self.shape else {
            return Err(PyValueError::new_err("X must be a matrix"));
        };
        let layout = RowLayout {
            rows,
            cols,
            pitch: self.pitch,
        };
        let x = DeviceDense::new(layout, values.clone());
        x.map(DeviceFeatures::Dense).map_err(errors::of_op)
    }

    fn integers(&self) -> PyResult<DeviceIntegers> {
        match &self.values {
            Values::I32(integers) => Ok(DeviceIntegers::Narrow(integers.clone())),
            Values::I64(integers) => Ok(DeviceIntegers::Wide(integers.clone())),
            Values::F32(_) | Values::F64(_) => Err(PyTypeError::new_err(
                "the indices of X must be of int32 or int64",
            )),
        }
    }
}

/// Which of an array's values are of a type.
pub trait Typed: Sized {
    /// Those values, if the array's are.
    fn of(values: &Values) -> Option<&SharedBuffer<Self>>;
    /// Values of this type.
    fn values(values: SharedBuffer<Self>) -> Values;
}

macro_rules! typed {
    ($($type:ty => $variant:ident),*) => { $(
        impl Typed for $type {
            fn of(values: &Values) -> Option<&SharedBuffer<Self>> {
                match values {
                    Values::$variant(own) => Some(own),
                    _ => None,
                }
            }

            fn values(values: SharedBuffer<Self>) -> Values {
                Values::$variant(values)
            }
        }
    )* };
}

typed!(f32 => F32, f64 => F64);
