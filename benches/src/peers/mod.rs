//! Other libraries for the same work, in the same process, context and stream.
//!
//! A library that the dynamic linker does not find is left out; so is a method that fails or whose result is
//! wrong, with a message.

pub mod cub;
pub mod cublas;
mod cusparse;
pub mod gemm;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use anyhow::{Result, anyhow, bail};
use warpfuse::device::{Buffer, Device};
use warpfuse::matrix::{Element, Features, Storage};
use warpfuse::ops::{Number, vector};
use warpfuse::plan::fused::Product;

use crate::sampling::Sampler;
use crate::truth;

/// What stands in a result before it is computed: finite, as 0 · NaN would spoil a library that reads it.
const POISON: f64 = 1e30;

/// A way in which a library computes a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// cuBLAS: one gemv, or for the fused pattern two.
    Gemv,
    /// cuSPARSE: SpMV, with its transposed operation for Xᵀ.
    Spmv,
    /// cuSPARSE: SpMV, for Xᵀ with a transpose that was stored before.
    SpmvStored,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 3] = [Method::Gemv, Method::Spmv, Method::SpmvStored];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Method::Gemv => "cublas",
            Method::Spmv => "cusparse",
            Method::SpmvStored => "cusparse_stored_transpose",
        }
    }
}

/// One matrix in the hands of a library.
pub trait Peer<T: Number> {
    /// How the library computes `product`.
    fn methods(&self, product: Product) -> &'static [Method];

    /// Submits `product` to the device's stream.
    ///
    /// # Errors
    /// What the library says.
    fn run(&mut self, method: Method, product: Product) -> Result<()>;

    /// The vector that `product` starts from, n or m elements.
    fn input(&mut self, product: Product) -> &mut Buffer<T>;

    /// What [`Product::Forward`] leaves, and what [`Product::Transposed`] starts from.
    fn between(&mut self) -> (&Buffer<T>, &mut Buffer<T>);

    /// Where the result of `product` lies.
    fn output(&mut self, product: Product) -> &mut Buffer<T>;

    /// Microseconds of what has to be done once, by name.
    fn once(&self) -> Option<(&'static str, f64)> {
        None
    }
}

/// The libraries that were found.
#[derive(Default)]
pub struct Libraries {
    cublas: Option<Rc<cublas::Handle>>,
    cusparse: Option<Rc<cusparse::Handle>>,
}

/// The vectors that products start from.
#[derive(Clone, Copy)]
pub struct Inputs<'a, T> {
    /// n elements.
    pub y: &'a [T],
    /// m elements.
    pub p: &'a [T],
}

impl Libraries {
    /// Looks for the libraries; what is missing is said once.
    pub fn open(device: &Device) -> Libraries {
        Libraries {
            cublas: told("cuBLAS", || cublas::Handle::open(device)).map(Rc::new),
            cusparse: told("cuSPARSE", || cusparse::Handle::open(device)).map(Rc::new),
        }
    }

    /// cuBLAS, where it was found.
    pub fn cublas(&self) -> Option<Rc<cublas::Handle>> {
        self.cublas.clone()
    }

    /// A copy of `x` for the library that knows its layout; `None` where there is none.
    pub fn peer<T: Number>(
        &self,
        device: &Device,
        x: &Features<T>,
        inputs: Inputs<'_, T>,
    ) -> Option<Box<dyn Peer<T>>> {
        match x.storage() {
            Storage::Dense(x) => {
                let handle = self.cublas.clone()?;
                told("cuBLAS", || {
                    cublas::DensePeer::new(handle, device, x, inputs)
                })
                .map(|peer| Box::new(peer) as _)
            }
            Storage::Sparse(x) => {
                let handle = self.cusparse.clone()?;
                told("cuSPARSE", || {
                    cusparse::SparsePeer::new(handle, device, x, inputs)
                })
                .map(|peer| Box::new(peer) as _)
            }
        }
    }
}

/// Median microseconds of `Xᵀ(X·Y)` by cuSPARSE over a stored transpose, Y being n × k and row-major; `None` where the library is
/// missing, X is dense, or the result is not `truth`.
pub fn wide_us<T: Number>(
    libraries: &Libraries,
    (device, sampler): (&Device, &Sampler),
    x: &Features<T>,
    (y, k): (&[T], usize),
    truth: &[f64],
) -> Option<f64> {
    let handle = libraries.cusparse.clone()?;
    let Storage::Sparse(x) = x.storage() else {
        return None;
    };
    told("cuSPARSE", || {
        let mut peer = cusparse::WidePeer::new(handle, device, x, (y, k))?;
        peer.run()?;
        truth::checked_error(&peer.output().to_vec()?, truth)?;
        Ok(sampler.time(device, || peer.run())?.median_us)
    })
}

/// Median microseconds of every method of `product` whose result agrees with `truth`.
pub fn measure<T: Number>(
    peer: &mut dyn Peer<T>,
    product: Product,
    truth: &[f64],
    sampler: &Sampler,
) -> BTreeMap<String, f64> {
    let methods = peer.methods(product).iter();
    let times = methods.filter_map(|&method| {
        let us = told(method.name(), || {
            checked_time(peer, method, product, truth, sampler)
        })?;
        Some((method.name().to_owned(), us))
    });
    times.collect()
}

fn checked_time<T: Number>(
    peer: &mut dyn Peer<T>,
    method: Method,
    product: Product,
    truth: &[f64],
    sampler: &Sampler,
) -> Result<f64> {
    vector::fill(<T as Element>::from_f64(POISON), peer.output(product))?;
    peer.run(method, product)?;
    truth::checked_error(&peer.output(product).to_vec()?, truth)?;
    let device = peer.output(product).device();
    let times = sampler.time(&device, || peer.run(method, product))?;
    Ok(times.median_us)
}

/// The result of `work`, or a message that says why there is none. Panics count as failures: the loader of
/// the libraries panics where a function is missing.
fn told<R>(name: &str, work: impl FnOnce() -> Result<R>) -> Option<R> {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    match outcome
        .unwrap_or_else(|_| Err(anyhow!("a function is missing; another version is needed")))
    {
        Ok(result) => Some(result),
        Err(error) => {
            eprintln!("{name} is left out: {error:#}");
            None
        }
    }
}

/// The stream that a library is to work in.
fn raw_stream(device: &Device) -> Result<*mut std::ffi::c_void> {
    let Device::Cuda(cuda) = device else {
        bail!("{device} has no stream")
    };
    // Makes the device's context that of this thread, where the library will find it.
    cuda.synchronize()?;
    Ok(cuda.raw_stream().cast())
}

/// A buffer's device address as a pointer that the host never follows.
fn pointer(address: Option<u64>) -> *mut std::ffi::c_void {
    let address = address.expect("peers hold buffers of a GPU");
    std::ptr::without_provenance_mut(address as usize)
}
