//! cuBLAS's matrix product, in the arithmetic of the element type alone (no TF32). Level: sys.

use std::ffi::c_int;
use std::rc::Rc;

use anyhow::Result;
use cudarc::cublas::sys;
use warpfuse::device::Buffer;
use warpfuse::matrix::Dtype;
use warpfuse::ops::Number;

use super::cublas::{Handle, check};
use super::pointer;

/// `C = A · B`, row-major, m × k by k × n.
pub struct Gemm<'a, T: Number> {
    handle: Rc<Handle>,
    size: [c_int; 3],
    factors: [&'a Buffer<T>; 2],
    c: &'a mut Buffer<T>,
}

impl<'a, T: Number> Gemm<'a, T> {
    /// A product of buffers that hold dense matrices of these sizes (m, n, k).
    ///
    /// # Errors
    /// When a size does not fit the library, or a buffer not its size.
    pub fn new(
        handle: Rc<Handle>,
        factors: [&'a Buffer<T>; 2],
        c: &'a mut Buffer<T>,
        (m, n, k): (usize, usize, usize),
    ) -> Result<Self> {
        let fits = factors[0].len() == m * k && factors[1].len() == k * n && c.len() == m * n;
        anyhow::ensure!(fits, "buffers of other sizes than {m} × {n} × {k}");
        let size = [
            c_int::try_from(m)?,
            c_int::try_from(n)?,
            c_int::try_from(k)?,
        ];
        Ok(Gemm {
            handle,
            size,
            factors,
            c,
        })
    }

    /// Submits the product: for the column-major library, `Cᵀ = Bᵀ · Aᵀ`.
    ///
    /// # Errors
    /// What the library says.
    pub fn run(&mut self) -> Result<()> {
        let [m, n, k] = self.size;
        let [a, b] = self.factors.map(|factor| pointer(factor.device_address()));
        let c = pointer(self.c.device_address());
        let plain = sys::cublasOperation_t::CUBLAS_OP_N;
        let handle = self.handle.0;
        let status = match T::DTYPE {
            // SAFETY: the buffers hold n × k, k × m and n × m elements of f32 as the library counts, checked by
            // `new`, and live until the stream has passed; α and β are read before the call returns.
            Dtype::F32 => unsafe {
                let (a, b, c) = (a.cast(), b.cast(), c.cast());
                sys::cublasSgemm_v2(handle, plain, plain, n, m, k, &1.0, b, n, a, k, &0.0, c, n)
            },
            // SAFETY: as above, with f64.
            Dtype::F64 => unsafe {
                let (a, b, c) = (a.cast(), b.cast(), c.cast());
                sys::cublasDgemm_v2(handle, plain, plain, n, m, k, &1.0, b, n, a, k, &0.0, c, n)
            },
        };
        check("cublas gemm", status)
    }
}
