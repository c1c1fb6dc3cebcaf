//! CSR arrays on the device, and their transposition by the library.

use std::ffi::{c_int, c_void};

use anyhow::{Context, Result};
use cudarc::cusparse::sys;
use warpfuse::device::{Buffer, Device};
use warpfuse::matrix::CsrMatrix;
use warpfuse::ops::Number;

use super::handle::{Handle, check, data_type};
use crate::peers::pointer;
use crate::sampling::Sampler;

/// A CSR matrix with 32-bit offsets and indices.
pub(super) struct CsrArrays<T> {
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) offsets: Buffer<i32>,
    pub(super) indices: Buffer<i32>,
    pub(super) values: Buffer<T>,
}

impl<T: Number> CsrArrays<T> {
    /// A copy of `x` on the device.
    pub(super) fn upload(device: &Device, x: &CsrMatrix<T>) -> Result<CsrArrays<T>> {
        let too_large = || {
            format!(
                "{} nonzeros and {} columns need 64-bit indices",
                x.nnz(),
                x.cols()
            )
        };
        i32::try_from(x.nnz().max(x.cols()))
            .ok()
            .with_context(too_large)?;
        let offsets: Vec<i32> = x
            .proper_indptr()
            .iter()
            .map(|&offset| offset as i32)
            .collect();
        let indices: Vec<i32> = x.indices().iter().map(|&index| index as i32).collect();
        Ok(CsrArrays {
            rows: x.rows(),
            cols: x.cols(),
            offsets: device.upload(&offsets)?,
            indices: device.upload(&indices)?,
            values: device.upload(x.data())?,
        })
    }

    /// Offsets, indices, values.
    pub(super) fn addresses(&self) -> [*mut c_void; 3] {
        [
            integers(&self.offsets).cast(),
            integers(&self.indices).cast(),
            pointer(self.values.device_address()),
        ]
    }

    /// Xᵀ in CSR form, which is X in CSC form, and the microseconds that making it takes.
    pub(super) fn transposed(&self, handle: &Handle) -> Result<(CsrArrays<T>, f64)> {
        let device = &handle.device;
        let nnz = self.values.len();
        let transpose = CsrArrays {
            rows: self.cols,
            cols: self.rows,
            offsets: device.zeros(self.cols + 1)?,
            indices: device.zeros(nnz)?,
            values: device.zeros(nnz)?,
        };
        let call = Transposition {
            handle,
            from: self,
            to: &transpose,
        };
        let workspace = device.zeros::<u8>(call.workspace_bytes()?.max(1))?;
        let times = Sampler::brief().time(device, || call.run(&workspace))?;
        Ok((transpose, times.median_us))
    }
}

/// One transposition.
struct Transposition<'a, T: Number> {
    handle: &'a Handle,
    from: &'a CsrArrays<T>,
    to: &'a CsrArrays<T>,
}

const NUMERIC: sys::cusparseAction_t = sys::cusparseAction_t::CUSPARSE_ACTION_NUMERIC;
const ZERO: sys::cusparseIndexBase_t = sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO;
const ALGORITHM: sys::cusparseCsr2CscAlg_t =
    sys::cusparseCsr2CscAlg_t::CUSPARSE_CSR2CSC_ALG_DEFAULT;

impl<T: Number> Transposition<'_, T> {
    /// Rows, columns and nonzeros, which [`CsrArrays::upload`] has checked; a CSR matrix whose rows 32 bits do not
    /// count has offsets beyond them too.
    fn shape(&self) -> Result<[c_int; 3]> {
        let CsrArrays {
            rows, cols, values, ..
        } = self.from;
        Ok([
            c_int::try_from(*rows)?,
            c_int::try_from(*cols)?,
            c_int::try_from(values.len())?,
        ])
    }

    fn workspace_bytes(&self) -> Result<usize> {
        let (handle, [m, n, nnz]) = (self.handle.raw, self.shape()?);
        let (from, to, mut bytes) = (self.from, self.to, 0);
        // SAFETY: the arrays have the lengths that the shape demands, and the pointer to the size is writable.
        let status = unsafe {
            sys::cusparseCsr2cscEx2_bufferSize(
                handle,
                m,
                n,
                nnz,
                pointer(from.values.device_address()),
                integers(&from.offsets),
                integers(&from.indices),
                pointer(to.values.device_address()),
                integers(&to.offsets),
                integers(&to.indices),
                data_type::<T>(),
                NUMERIC,
                ZERO,
                ALGORITHM,
                &raw mut bytes,
            )
        };
        check("cusparseCsr2cscEx2_bufferSize", status)?;
        Ok(bytes)
    }

    fn run(&self, workspace: &Buffer<u8>) -> Result<()> {
        let (handle, [m, n, nnz]) = (self.handle.raw, self.shape()?);
        let (from, to) = (self.from, self.to);
        // SAFETY: as above; the workspace has the size that the library requested. Nobody reads or writes the
        // arrays meanwhile, as whatever is done to them is submitted to the same stream.
        let status = unsafe {
            sys::cusparseCsr2cscEx2(
                handle,
                m,
                n,
                nnz,
                pointer(from.values.device_address()),
                integers(&from.offsets),
                integers(&from.indices),
                pointer(to.values.device_address()),
                integers(&to.offsets),
                integers(&to.indices),
                data_type::<T>(),
                NUMERIC,
                ZERO,
                ALGORITHM,
                bytes(workspace),
            )
        };
        check("cusparseCsr2cscEx2", status)
    }
}

fn integers(buffer: &Buffer<i32>) -> *mut c_int {
    pointer(buffer.device_address()).cast()
}

/// A workspace as the library takes it.
pub(super) fn bytes(workspace: &Buffer<u8>) -> *mut c_void {
    pointer(workspace.device_address())
}
