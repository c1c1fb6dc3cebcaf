//! Sparse matrix times several vectors, row-major.

use std::ffi::c_void;
use std::rc::Rc;

use anyhow::{Context, Result};
use cudarc::cusparse::sys;
use warpfuse::device::Buffer;
use warpfuse::ops::Number;

use super::csr::{CsrArrays, bytes};
use super::handle::{Handle, SparseMatrix, check, data_type};
use super::one_and_zero;
use crate::peers::pointer;
use crate::sampling::Sampler;

const ALGORITHMS: [sys::cusparseSpMMAlg_t; 3] = [
    sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG1,
    sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG2,
    sys::cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG3,
];
const PLAIN: sys::cusparseOperation_t = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;

/// A product with its algorithm and its workspace.
pub(super) struct Spmm<T: Number> {
    handle: Rc<Handle>,
    matrix: SparseMatrix<T>,
    /// Rows and columns of the matrix, and k.
    shape: [usize; 3],
    algorithm: sys::cusparseSpMMAlg_t,
    workspace: Buffer<u8>,
}

impl<T: Number> Spmm<T> {
    /// The product of a matrix with k vectors, by the fastest algorithm that the library offers for it.
    pub(super) fn fastest(
        handle: &Rc<Handle>,
        arrays: &Rc<CsrArrays<T>>,
        k: usize,
        from: &Buffer<T>,
        to: &mut Buffer<T>,
    ) -> Result<Spmm<T>> {
        let mut best: Option<(f64, Spmm<T>)> = None;
        let mut last_error = None;
        for algorithm in ALGORITHMS {
            match Spmm::timed(handle, arrays, (k, algorithm), from, to) {
                Ok((us, _)) if best.as_ref().is_some_and(|(least, _)| us >= *least) => {}
                Ok(faster) => best = Some(faster),
                Err(error) => last_error = Some(error),
            }
        }
        match (best, last_error) {
            (Some((_, spmm)), _) => Ok(spmm),
            (None, error) => Err(error.context("there is no algorithm")?),
        }
    }

    fn timed(
        handle: &Rc<Handle>,
        arrays: &Rc<CsrArrays<T>>,
        (k, algorithm): (usize, sys::cusparseSpMMAlg_t),
        from: &Buffer<T>,
        to: &mut Buffer<T>,
    ) -> Result<(f64, Spmm<T>)> {
        let mut spmm = Spmm {
            handle: handle.clone(),
            matrix: SparseMatrix::new(arrays)?,
            shape: [arrays.rows, arrays.cols, k],
            algorithm,
            workspace: handle.device.zeros(1)?,
        };
        spmm.prepare(from, to)?;
        let times = Sampler::brief().time(&handle.device, || spmm.run(from, to))?;
        Ok((times.median_us, spmm))
    }

    /// The vectors before and after the product.
    fn sides(&self, from: &Buffer<T>, to: &Buffer<T>) -> Result<[DenseMatrix; 2]> {
        let [rows, cols, k] = self.shape;
        Ok([
            DenseMatrix::new(from, [cols, k])?,
            DenseMatrix::new(to, [rows, k])?,
        ])
    }

    fn prepare(&mut self, from: &Buffer<T>, to: &mut Buffer<T>) -> Result<()> {
        let [from, to] = self.sides(from, to)?;
        let (handle, matrix, [one, zero]) = (self.handle.raw, self.matrix.raw, one_and_zero::<T>());
        let (kind, algorithm, mut size) = (data_type::<T>(), self.algorithm, 0);
        // SAFETY: handle and descriptions exist, the matrices have the shapes of the product (the library checks them), and
        // the pointer to the size is writable.
        let status = unsafe {
            let size = &raw mut size;
            sys::cusparseSpMM_bufferSize(
                handle, PLAIN, PLAIN, one, matrix, from.0, zero, to.0, kind, algorithm, size,
            )
        };
        check("cusparseSpMM_bufferSize", status)?;
        self.workspace = self.handle.device.zeros(size.max(1))?;
        let workspace = bytes(&self.workspace);
        // SAFETY: as above; the workspace has the size requested and lives as long as the description.
        let status = unsafe {
            sys::cusparseSpMM_preprocess(
                handle, PLAIN, PLAIN, one, matrix, from.0, zero, to.0, kind, algorithm, workspace,
            )
        };
        check("cusparseSpMM_preprocess", status)
    }

    /// Submits `to = X · from`.
    pub(super) fn run(&mut self, from: &Buffer<T>, to: &mut Buffer<T>) -> Result<()> {
        let [from, to] = self.sides(from, to)?;
        let (handle, matrix, [one, zero]) = (self.handle.raw, self.matrix.raw, one_and_zero::<T>());
        let (kind, algorithm, workspace) =
            (data_type::<T>(), self.algorithm, bytes(&self.workspace));
        // SAFETY: as in `prepare`; buffers are freed in the same stream, hence after the product.
        let status = unsafe {
            sys::cusparseSpMM(
                handle, PLAIN, PLAIN, one, matrix, from.0, zero, to.0, kind, algorithm, workspace,
            )
        };
        check("cusparseSpMM", status)
    }
}

/// The description of a row-major matrix for one call; it borrows nothing, so that a result can be described too.
struct DenseMatrix(sys::cusparseDnMatDescr_t);

impl DenseMatrix {
    fn new<T: Number>(buffer: &Buffer<T>, [rows, cols]: [usize; 2]) -> Result<DenseMatrix> {
        assert_eq!(buffer.len(), rows * cols, "a row-major matrix without gaps");
        let mut raw = std::ptr::null_mut();
        let values: *mut c_void = pointer(buffer.device_address());
        let order = sys::cusparseOrder_t::CUSPARSE_ORDER_ROW;
        let [rows, cols] = [rows as i64, cols as i64];
        // SAFETY: the pointer is writable, and the buffer has rows · cols values of the type named.
        let status = unsafe {
            let raw = &raw mut raw;
            sys::cusparseCreateDnMat(raw, rows, cols, cols, values, data_type::<T>(), order)
        };
        check("cusparseCreateDnMat", status)?;
        Ok(DenseMatrix(raw))
    }
}

impl Drop for DenseMatrix {
    fn drop(&mut self) {
        // SAFETY: the description exists, and nobody can use it afterwards; the library reads it during calls only.
        let _ = unsafe { sys::cusparseDestroyDnMat(self.0) };
    }
}
