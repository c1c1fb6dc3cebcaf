//! DLPack's structures, as far as memory is taken from other libraries; version 0.8, which all of them export.
//!
//! Source: `dlpack.h` of <https://github.com/dmlc/dlpack>, and the Python array API's `__dlpack__`.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::slice;

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi::{PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_SetName};
use pyo3::prelude::*;

/// `kDLCPU` and `kDLCUDA`.
pub const HOST: i32 = 1;
pub const CUDA: i32 = 2;

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

#[repr(C)]
struct ManagedTensor {
    tensor: Tensor,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

/// An array whose capsule was taken: it is given back when this is dropped.
pub struct Taken(NonNull<ManagedTensor>);

// SAFETY: the structure is only read, and its deleter, which runs with the interpreter's lock, may be called by any thread.
unsafe impl Send for Taken {}
// SAFETY: as above.
unsafe impl Sync for Taken {}

/// What a capsule says of its array.
pub struct Described {
    pub address: u64,
    /// As in NumPy's `typestr`, without the byte order: `f4`.
    pub dtype: String,
    pub shape: Vec<usize>,
    /// In elements.
    pub strides: Option<Vec<i64>>,
}

impl Taken {
    /// Takes what `capsule` holds; nobody else can then.
    ///
    /// # Errors
    /// `BufferError` for a capsule of another kind or one that was taken before.
    pub fn of(capsule: &Bound<'_, PyAny>) -> PyResult<Taken> {
        let name = c"dltensor".as_ptr();
        // SAFETY: any object may be asked, and the name ends in NUL.
        if unsafe { PyCapsule_IsValid(capsule.as_ptr(), name) } == 0 {
            return Err(PyBufferError::new_err(
                "__dlpack__ gave no capsule of a dltensor",
            ));
        }
        // SAFETY: it is a capsule of this name, as was just found, which the interpreter's lock keeps it.
        let found = unsafe { PyCapsule_GetPointer(capsule.as_ptr(), name) };
        let taken = NonNull::new(found.cast()).map(Taken);
        let taken = taken.ok_or_else(|| PyBufferError::new_err("an empty capsule of DLPack"))?;
        // SAFETY: as above; the new name is static, and tells the capsule's owner that the array is ours.
        unsafe { PyCapsule_SetName(capsule.as_ptr(), c"used_dltensor".as_ptr()) };
        Ok(taken)
    }

    /// What it is.
    ///
    /// # Errors
    /// `TypeError` for elements that are neither integers nor floats.
    pub fn described(&self) -> PyResult<Described> {
        // SAFETY: the exporter fills the structure and keeps it until its deleter is called.
        let tensor = unsafe { &self.0.as_ref().tensor };
        let kind = match (tensor.code, tensor.lanes) {
            (0, 1) => "i",
            (2, 1) => "f",
            _ => {
                return Err(PyTypeError::new_err(
                    "an array of integers or floats is needed",
                ));
            }
        };
        let ndim = usize::try_from(tensor.ndim).unwrap_or(0);
        let shape = extents(tensor.shape, ndim).unwrap_or_default();
        Ok(Described {
            address: tensor.data.addr() as u64 + tensor.byte_offset,
            dtype: format!("{kind}{}", tensor.bits / 8),
            shape: shape
                .iter()
                .map(|&n| usize::try_from(n).unwrap_or(0))
                .collect(),
            strides: extents(tensor.strides, ndim).map(<[i64]>::to_vec),
        })
    }
}

fn extents<'a>(numbers: *const i64, count: usize) -> Option<&'a [i64]> {
    // SAFETY: DLPack says that a shape, and strides that are there, are as many numbers as there are dimensions.
    (!numbers.is_null()).then(|| unsafe { slice::from_raw_parts(numbers, count) })
}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: the structure lives until its deleter is called, here.
        let Some(deleter) = (unsafe { self.0.as_ref().deleter }) else {
            return;
        };
        // An interpreter that has ended takes its memory with it.
        let _ = Python::try_attach(|_| {
            // SAFETY: it is called once, with the interpreter's lock, which exporters of Python objects may need.
            unsafe { deleter(self.0.as_ptr()) }
        });
    }
}
