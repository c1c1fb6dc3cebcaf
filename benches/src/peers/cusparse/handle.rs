//! The library, and its descriptions of matrices and vectors. Level: sys.

use std::ffi::c_void;
use std::rc::Rc;

use anyhow::{Result, ensure};
use cudarc::cusparse::sys;
use warpfuse::device::{Buffer, Device};
use warpfuse::matrix::Dtype;
use warpfuse::ops::Number;

use super::csr::CsrArrays;
use crate::peers::{pointer, raw_stream};

/// The library, tied to a device's stream.
pub struct Handle {
    pub(super) raw: sys::cusparseHandle_t,
    pub(super) device: Device,
}

impl Handle {
    /// Opens the library for a device.
    pub fn open(device: &Device) -> Result<Handle> {
        // SAFETY: the library's initialisers are made to run in any process that opens it.
        let is_present = unsafe { sys::is_culib_present() };
        ensure!(is_present, "the dynamic linker does not find libcusparse");
        let stream = raw_stream(device)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is writable, and the device's context is current.
        check("cusparseCreate", unsafe {
            sys::cusparseCreate(&raw mut raw)
        })?;
        let handle = Handle {
            raw,
            device: device.clone(),
        };
        // SAFETY: the handle was just made; the stream lives as long as the device, which the handle holds.
        check("cusparseSetStream", unsafe {
            sys::cusparseSetStream(raw, stream.cast())
        })?;
        Ok(handle)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle exists, and nobody can use it afterwards.
        let _ = unsafe { sys::cusparseDestroy(self.raw) };
    }
}

/// Success, or the library's name of what happened.
pub(super) fn check(call: &str, status: sys::cusparseStatus_t) -> Result<()> {
    ensure!(
        status == sys::cusparseStatus_t::CUSPARSE_STATUS_SUCCESS,
        "{call}: {status:?}"
    );
    Ok(())
}

/// The library's name of an element type.
pub(super) fn data_type<T: Number>() -> sys::cudaDataType_t {
    match T::DTYPE {
        Dtype::F32 => sys::cudaDataType_t::CUDA_R_32F,
        Dtype::F64 => sys::cudaDataType_t::CUDA_R_64F,
    }
}

/// The description of a CSR matrix, with the arrays that it points to.
pub(super) struct SparseMatrix<T: Number> {
    pub(super) raw: sys::cusparseSpMatDescr_t,
    _arrays: Rc<CsrArrays<T>>,
}

impl<T: Number> SparseMatrix<T> {
    pub(super) fn new(arrays: &Rc<CsrArrays<T>>) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        let (rows, cols, nnz) = (
            arrays.rows as i64,
            arrays.cols as i64,
            arrays.values.len() as i64,
        );
        let [offsets, indices, values] = arrays.addresses();
        let index = sys::cusparseIndexType_t::CUSPARSE_INDEX_32I;
        let base = sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO;
        // SAFETY: the pointer is writable; the arrays have rows + 1 offsets and nnz indices and values of the types
        // named, and live as long as the description, which holds them.
        let status = unsafe {
            let raw = &raw mut raw;
            sys::cusparseCreateCsr(
                raw,
                rows,
                cols,
                nnz,
                offsets,
                indices,
                values,
                index,
                index,
                base,
                data_type::<T>(),
            )
        };
        check("cusparseCreateCsr", status)?;
        Ok(SparseMatrix {
            raw,
            _arrays: arrays.clone(),
        })
    }
}

impl<T: Number> Drop for SparseMatrix<T> {
    fn drop(&mut self) {
        // SAFETY: the description exists, and nobody can use it afterwards.
        let _ = unsafe { sys::cusparseDestroySpMat(self.raw) };
    }
}

/// The description of a vector for one call; it borrows nothing, so that a result can be described too.
pub(super) struct DenseVector(pub(super) sys::cusparseDnVecDescr_t);

impl DenseVector {
    pub(super) fn new<T: Number>(buffer: &Buffer<T>) -> Result<DenseVector> {
        let mut raw = std::ptr::null_mut();
        let (len, values): (i64, *mut c_void) =
            (buffer.len() as i64, pointer(buffer.device_address()));
        // SAFETY: the pointer is writable, and the buffer has this many values of the type named.
        let status =
            unsafe { sys::cusparseCreateDnVec(&raw mut raw, len, values, data_type::<T>()) };
        check("cusparseCreateDnVec", status)?;
        Ok(DenseVector(raw))
    }
}

impl Drop for DenseVector {
    fn drop(&mut self) {
        // SAFETY: the description exists, and nobody can use it afterwards; the library reads it during calls only.
        let _ = unsafe { sys::cusparseDestroyDnVec(self.0) };
    }
}
