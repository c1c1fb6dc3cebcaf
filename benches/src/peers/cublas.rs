//! cuBLAS: a row-major X is a column-major Xᵀ, n × m with leading dimension n. Level: sys.

use std::ffi::{c_int, c_void};
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use cudarc::cublas::sys;
use ndarray::ArrayView2;
use warpfuse::device::{Buffer, Device};
use warpfuse::matrix::Dtype;
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;

use super::{Inputs, Method, Peer, pointer, raw_stream};

/// Copies an array as the library's own call does it, and waits: what a caller has without page-locked memory.
///
/// # Errors
/// If the library is missing or says so, or for lengths that differ or exceed 2³¹ − 1.
pub fn set_vector<T: bytemuck::Pod>(from: &[T], to: &mut Buffer<T>) -> Result<()> {
    // SAFETY: the library's initialisers are made to run in any process that opens it.
    let is_present = unsafe { sys::is_culib_present() };
    ensure!(is_present, "the dynamic linker does not find libcublas");
    ensure!(from.len() == to.len(), "the arrays have different lengths");
    let (len, size) = (c_int::try_from(from.len())?, size_of::<T>() as c_int);
    // Which makes the context current.
    raw_stream(&to.device())?;
    let to = pointer(to.device_address());
    // SAFETY: both arrays have `len` elements of this size, `to` on the device whose context is current.
    check("cublasSetVector", unsafe {
        sys::cublasSetVector(len, size, from.as_ptr().cast(), 1, to, 1)
    })
}

/// The library, tied to a device's stream.
pub struct Handle(pub(super) sys::cublasHandle_t);

impl Handle {
    /// Opens the library for a device.
    pub fn open(device: &Device) -> Result<Handle> {
        // SAFETY: the library's initialisers are made to run in any process that opens it.
        let is_present = unsafe { sys::is_culib_present() };
        ensure!(is_present, "the dynamic linker does not find libcublas");
        let stream = raw_stream(device)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is writable, and the device's context is current.
        check("cublasCreate", unsafe {
            sys::cublasCreate_v2(&raw mut raw)
        })?;
        let handle = Handle(raw);
        // SAFETY: the handle was just made, the stream lives as long as the device, which outlives all cases.
        check("cublasSetStream", unsafe {
            sys::cublasSetStream_v2(handle.0, stream.cast())
        })?;
        Ok(handle)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle exists, and nobody can use it afterwards.
        let _ = unsafe { sys::cublasDestroy_v2(self.0) };
    }
}

pub(super) fn check(call: &str, status: sys::cublasStatus_t) -> Result<()> {
    ensure!(
        status == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS,
        "{call}: {status:?}"
    );
    Ok(())
}

/// A dense matrix and its vectors.
pub struct DensePeer<T: Number> {
    handle: Rc<Handle>,
    rows: c_int,
    cols: c_int,
    x: Buffer<T>,
    y: Buffer<T>,
    p: Buffer<T>,
    forward: Buffer<T>,
    w: Buffer<T>,
}

impl<T: Number> DensePeer<T> {
    /// Uploads X and the vectors.
    pub fn new(
        handle: Rc<Handle>,
        device: &Device,
        x: ArrayView2<'_, T>,
        inputs: Inputs<'_, T>,
    ) -> Result<Self> {
        let values = x.as_slice().context("benchmark data are row-major")?;
        let (rows, cols) = x.dim();
        Ok(DensePeer {
            handle,
            rows: c_int::try_from(rows)?,
            cols: c_int::try_from(cols)?,
            x: device.upload(values)?,
            y: device.upload(inputs.y)?,
            p: device.upload(inputs.p)?,
            forward: device.zeros(rows)?,
            w: device.zeros(cols)?,
        })
    }

    /// X·y.
    fn dots(&mut self) -> Result<()> {
        self.gemv(
            sys::cublasOperation_t::CUBLAS_OP_T,
            pointer(self.y.device_address()),
            pointer(self.forward.device_address()),
        )
    }

    /// Xᵀ·p.
    fn sums(&mut self, p: *const c_void) -> Result<()> {
        self.gemv(
            sys::cublasOperation_t::CUBLAS_OP_N,
            p,
            pointer(self.w.device_address()),
        )
    }

    fn gemv(
        &mut self,
        op: sys::cublasOperation_t,
        from: *const c_void,
        to: *mut c_void,
    ) -> Result<()> {
        let (handle, n, m, x) = (
            self.handle.0,
            self.cols,
            self.rows,
            pointer(self.x.device_address()),
        );
        let status = match T::DTYPE {
            // SAFETY: X has n × m elements of f32; `from` and `to` are vectors of this peer, of m and n elements as
            // the operation has it; all are alive until the stream has passed, because freeing them is submitted
            // to the same stream. α and β are read before the call returns.
            Dtype::F32 => unsafe {
                let (x, from, to) = (x.cast(), from.cast(), to.cast());
                sys::cublasSgemv_v2(handle, op, n, m, &1.0, x, n, from, 1, &0.0, to, 1)
            },
            // SAFETY: as above, with f64.
            Dtype::F64 => unsafe {
                let (x, from, to) = (x.cast(), from.cast(), to.cast());
                sys::cublasDgemv_v2(handle, op, n, m, &1.0, x, n, from, 1, &0.0, to, 1)
            },
        };
        check("cublas gemv", status)
    }
}

impl<T: Number> Peer<T> for DensePeer<T> {
    fn methods(&self, _: Product) -> &'static [Method] {
        &[Method::Gemv]
    }

    fn run(&mut self, _: Method, product: Product) -> Result<()> {
        match product {
            Product::Forward => self.dots(),
            Product::Transposed => self.sums(pointer(self.p.device_address())),
            Product::Fused => {
                self.dots()?;
                self.sums(pointer(self.forward.device_address()))
            }
        }
    }

    fn input(&mut self, product: Product) -> &mut Buffer<T> {
        match product {
            Product::Transposed => &mut self.p,
            Product::Fused | Product::Forward => &mut self.y,
        }
    }

    fn between(&mut self) -> (&Buffer<T>, &mut Buffer<T>) {
        (&self.forward, &mut self.p)
    }

    fn output(&mut self, product: Product) -> &mut Buffer<T> {
        match product {
            Product::Forward => &mut self.forward,
            Product::Fused | Product::Transposed => &mut self.w,
        }
    }
}
