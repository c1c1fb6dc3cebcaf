//! The library's errors as Python's exceptions: `ValueError` for what the caller can mend, `MemoryError` for what does
//! not fit, `RuntimeError` for devices that fail.

use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use warpfuse::device::DeviceError;
use warpfuse::learning::FitError;
use warpfuse::matrix::CsrError;
use warpfuse::ops::OpError;

/// What became of a fit that failed.
pub fn of_fit(error: FitError) -> PyErr {
    match error {
        FitError::Op(error) => of_op(error),
        FitError::TooLarge(error) => PyMemoryError::new_err(error.to_string()),
        FitError::TargetNotFinite { .. } => {
            PyValueError::new_err(format!("Input y contains NaN or infinity: {error}"))
        }
        FitError::ColumnNotFinite { .. } => PyValueError::new_err(format!(
            "Input X contains NaN, infinity or a value too large: {error}"
        )),
        FitError::NotFinite { .. } => {
            PyValueError::new_err(format!("Floating-point under-/overflow: {error}"))
        }
        error => PyValueError::new_err(error.to_string()),
    }
}

/// What became of an operation that failed.
pub fn of_op(error: OpError) -> PyErr {
    match error {
        OpError::Device(error) => of_device(error),
        OpError::Length { .. }
        | OpError::TooLarge { .. }
        | OpError::Parameter { .. }
        | OpError::OtherDevice { .. }
        | OpError::NotFinite { .. } => PyValueError::new_err(error.to_string()),
        OpError::Csr(error) => of_csr(error),
        error => PyRuntimeError::new_err(error.to_string()),
    }
}

/// What became of a device.
pub fn of_device(error: DeviceError) -> PyErr {
    match error {
        DeviceError::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        DeviceError::UnknownDevice { .. }
        | DeviceError::WrongDevice { .. }
        | DeviceError::Alignment { .. }
        | DeviceError::OutOfBounds { .. }
        | DeviceError::Unsupported { .. } => PyValueError::new_err(error.to_string()),
        error => PyRuntimeError::new_err(error.to_string()),
    }
}

/// Three arrays that are no CSR matrix.
pub fn of_csr(error: CsrError) -> PyErr {
    PyValueError::new_err(format!("X is no valid CSR matrix: {error}"))
}
