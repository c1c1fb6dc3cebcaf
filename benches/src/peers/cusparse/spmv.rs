//! Sparse matrix times vector.

use std::rc::Rc;

use anyhow::{Context, Result};
use cudarc::cusparse::sys;
use warpfuse::device::Buffer;
use warpfuse::ops::Number;

use super::csr::{CsrArrays, bytes};
use super::handle::{DenseVector, Handle, SparseMatrix, check, data_type};
use super::one_and_zero;
use crate::sampling::Sampler;

const ALGORITHMS: [sys::cusparseSpMVAlg_t; 2] = [
    sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_CSR_ALG1,
    sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_CSR_ALG2,
];

/// What is multiplied with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// The matrix that the arrays hold.
    AsStored,
    /// Its transpose.
    Transposed,
}

/// A product with its algorithm and its workspace.
pub(super) struct Spmv<T: Number> {
    handle: Rc<Handle>,
    matrix: SparseMatrix<T>,
    operation: Operation,
    algorithm: sys::cusparseSpMVAlg_t,
    workspace: Buffer<u8>,
}

impl<T: Number> Spmv<T> {
    /// The product with the fastest algorithm that the library offers for it.
    pub(super) fn fastest(
        handle: &Rc<Handle>,
        arrays: &Rc<CsrArrays<T>>,
        operation: Operation,
        from: &Buffer<T>,
        to: &mut Buffer<T>,
    ) -> Result<Spmv<T>> {
        let mut best: Option<(f64, Spmv<T>)> = None;
        let mut last_error = None;
        for algorithm in ALGORITHMS {
            match Spmv::timed(handle, arrays, (operation, algorithm), from, to) {
                Ok((us, _)) if best.as_ref().is_some_and(|(least, _)| us >= *least) => {}
                Ok(faster) => best = Some(faster),
                Err(error) => last_error = Some(error),
            }
        }
        match (best, last_error) {
            (Some((_, spmv)), _) => Ok(spmv),
            (None, error) => Err(error.context("there is no algorithm")?),
        }
    }

    fn timed(
        handle: &Rc<Handle>,
        arrays: &Rc<CsrArrays<T>>,
        (operation, algorithm): (Operation, sys::cusparseSpMVAlg_t),
        from: &Buffer<T>,
        to: &mut Buffer<T>,
    ) -> Result<(f64, Spmv<T>)> {
        // Every product has a description of its own, because preprocessing belongs to the description.
        let matrix = SparseMatrix::new(arrays)?;
        let workspace = handle.device.zeros(1)?;
        let mut spmv = Spmv {
            handle: handle.clone(),
            matrix,
            operation,
            algorithm,
            workspace,
        };
        spmv.prepare(from, to)?;
        let times = Sampler::brief().time(&handle.device, || spmv.run(from, to))?;
        Ok((times.median_us, spmv))
    }

    fn prepare(&mut self, from: &Buffer<T>, to: &mut Buffer<T>) -> Result<()> {
        let (from, to) = (DenseVector::new(from)?, DenseVector::new(to)?);
        let (handle, operation, matrix) = (self.handle.raw, self.raw_operation(), self.matrix.raw);
        let [one, zero] = one_and_zero::<T>();
        let (kind, algorithm, mut size) = (data_type::<T>(), self.algorithm, 0);
        // SAFETY: handle and descriptions exist, the vectors have the lengths of the operation (the library checks
        // them), and the pointer to the size is writable.
        let status = unsafe {
            let size = &raw mut size;
            sys::cusparseSpMV_bufferSize(
                handle, operation, one, matrix, from.0, zero, to.0, kind, algorithm, size,
            )
        };
        check("cusparseSpMV_bufferSize", status)?;
        self.workspace = self.handle.device.zeros(size.max(1))?;
        let workspace = bytes(&self.workspace);
        // SAFETY: as above; the workspace has the size requested and lives as long as the description.
        let status = unsafe {
            sys::cusparseSpMV_preprocess(
                handle, operation, one, matrix, from.0, zero, to.0, kind, algorithm, workspace,
            )
        };
        check("cusparseSpMV_preprocess", status)
    }

    /// Submits `to = op(X) · from`.
    pub(super) fn run(&mut self, from: &Buffer<T>, to: &mut Buffer<T>) -> Result<()> {
        let (from, to) = (DenseVector::new(from)?, DenseVector::new(to)?);
        let [one, zero] = one_and_zero::<T>();
        let (matrix, kind, workspace) = (self.matrix.raw, data_type::<T>(), bytes(&self.workspace));
        // SAFETY: as in `prepare`; buffers are freed in the same stream, hence after the product.
        let status = unsafe {
            let (handle, operation) = (self.handle.raw, self.raw_operation());
            sys::cusparseSpMV(
                handle,
                operation,
                one,
                matrix,
                from.0,
                zero,
                to.0,
                kind,
                self.algorithm,
                workspace,
            )
        };
        check("cusparseSpMV", status)
    }

    fn raw_operation(&self) -> sys::cusparseOperation_t {
        match self.operation {
            Operation::AsStored => sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE,
            Operation::Transposed => sys::cusparseOperation_t::CUSPARSE_OPERATION_TRANSPOSE,
        }
    }
}
