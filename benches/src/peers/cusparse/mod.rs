//! cuSPARSE: SpMV with the faster of its two algorithms, X as it is and with a stored transpose; SpMM with the fastest of its three.

mod csr;
mod handle;
mod spmm;
mod spmv;

use std::ffi::c_void;
use std::rc::Rc;

use anyhow::Result;
use warpfuse::device::{Buffer, Device};
use warpfuse::matrix::{CsrMatrix, Dtype};
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;

use super::{Inputs, Method, Peer};
use csr::CsrArrays;
use spmm::Spmm;
use spmv::{Operation, Spmv};

pub use handle::Handle;

/// A sparse matrix, its transpose, and its vectors.
pub struct SparsePeer<T: Number> {
    forward: Spmv<T>,
    transposed: Spmv<T>,
    stored: Spmv<T>,
    transposition_us: f64,
    y: Buffer<T>,
    p: Buffer<T>,
    between: Buffer<T>,
    w: Buffer<T>,
}

impl<T: Number> SparsePeer<T> {
    /// Uploads X and the vectors, transposes X, and chooses algorithms.
    pub fn new(
        handle: Rc<Handle>,
        device: &Device,
        x: &CsrMatrix<T>,
        inputs: Inputs<'_, T>,
    ) -> Result<Self> {
        let (y, p) = (device.upload(inputs.y)?, device.upload(inputs.p)?);
        let mut between = device.zeros(x.rows())?;
        let mut w = device.zeros(x.cols())?;
        let arrays = CsrArrays::upload(device, x)?;
        let (transpose, transposition_us) = arrays.transposed(&handle)?;
        let (arrays, transpose) = (Rc::new(arrays), Rc::new(transpose));
        let plain = Operation::AsStored;
        Ok(SparsePeer {
            forward: Spmv::fastest(&handle, &arrays, plain, &y, &mut between)?,
            transposed: Spmv::fastest(&handle, &arrays, Operation::Transposed, &p, &mut w)?,
            stored: Spmv::fastest(&handle, &transpose, plain, &p, &mut w)?,
            transposition_us,
            y,
            p,
            between,
            w,
        })
    }
}

impl<T: Number> Peer<T> for SparsePeer<T> {
    fn methods(&self, product: Product) -> &'static [Method] {
        match product {
            Product::Forward => &[Method::Spmv],
            Product::Fused | Product::Transposed => &[Method::Spmv, Method::SpmvStored],
        }
    }

    fn run(&mut self, method: Method, product: Product) -> Result<()> {
        let SparsePeer {
            forward,
            y,
            p,
            between,
            w,
            ..
        } = self;
        let back = if method == Method::SpmvStored {
            &mut self.stored
        } else {
            &mut self.transposed
        };
        match product {
            Product::Forward => forward.run(y, between),
            Product::Transposed => back.run(p, w),
            Product::Fused => {
                forward.run(y, between)?;
                back.run(between, w)
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
        (&self.between, &mut self.p)
    }

    fn output(&mut self, product: Product) -> &mut Buffer<T> {
        match product {
            Product::Forward => &mut self.between,
            Product::Fused | Product::Transposed => &mut self.w,
        }
    }

    fn once(&self) -> Option<(&'static str, f64)> {
        Some(("cusparse_csr2csc_us", self.transposition_us))
    }
}

/// A sparse matrix, its transpose, and k vectors at a time.
pub struct WidePeer<T: Number> {
    forward: Spmm<T>,
    back: Spmm<T>,
    y: Buffer<T>,
    between: Buffer<T>,
    w: Buffer<T>,
}

impl<T: Number> WidePeer<T> {
    /// Uploads X and Y (n × k, row-major), transposes X, and chooses algorithms.
    pub fn new(
        handle: Rc<Handle>,
        device: &Device,
        x: &CsrMatrix<T>,
        (y, k): (&[T], usize),
    ) -> Result<Self> {
        let y = device.upload(y)?;
        let mut between = device.zeros(x.rows() * k)?;
        let mut w = device.zeros(x.cols() * k)?;
        let arrays = CsrArrays::upload(device, x)?;
        let (transpose, _) = arrays.transposed(&handle)?;
        Ok(WidePeer {
            forward: Spmm::fastest(&handle, &Rc::new(arrays), k, &y, &mut between)?,
            back: Spmm::fastest(&handle, &Rc::new(transpose), k, &between, &mut w)?,
            y,
            between,
            w,
        })
    }

    /// Submits `W = Xᵀ(X·Y)`.
    ///
    /// # Errors
    /// What the library says.
    pub fn run(&mut self) -> Result<()> {
        self.forward.run(&self.y, &mut self.between)?;
        self.back.run(&self.between, &mut self.w)
    }

    /// W, n × k, row-major.
    pub fn output(&self) -> &Buffer<T> {
        &self.w
    }
}

/// α and β in host memory, where the library reads them during the call.
fn one_and_zero<T: Number>() -> [*const c_void; 2] {
    static F32: [f32; 2] = [1.0, 0.0];
    static F64: [f64; 2] = [1.0, 0.0];
    match T::DTYPE {
        Dtype::F32 => [(&raw const F32[0]).cast(), (&raw const F32[1]).cast()],
        Dtype::F64 => [(&raw const F64[0]).cast(), (&raw const F64[1]).cast()],
    }
}
