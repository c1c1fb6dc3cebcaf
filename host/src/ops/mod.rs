//! One safe operation per kernel family: check shapes → plan → buffers → launch.
//!
//! An operation takes device [`Buffer`](crate::device::Buffer)s and leaves its result on the device. On a CUDA
//! device it launches the compiled kernel that the plan names; on the CPU it calls the body in [`crate::cpu`].
//!
//! ```
//! use ndarray::array;
//! use warpfuse::device::Device;
//! use warpfuse::matrix::Features;
//! use warpfuse::ops::{Matrix, Terms};
//!
//! let device = Device::cpu();
//! let x = Matrix::new(&device, Features::Dense(array![[1.0, 2.0], [0.0, 3.0]]))?;
//! let y = device.upload(&[1.0, 1.0])?;
//! let mut w = device.zeros(2)?;
//! x.fused(&y, &Terms::default(), &mut w)?; // Xᵀ(X·y)
//! assert_eq!(w.to_vec()?, [3.0, 15.0]);
//! # Ok::<(), warpfuse::ops::OpError>(())
//! ```

mod catalog;
pub mod cg;
pub mod conv1d;
pub mod design;
mod error;
mod forms;
pub mod fused;
mod host;
mod kept;
pub mod kernel_sum;
mod launch;
pub mod many;
pub mod matmul;
mod matrix;
pub mod measure;
mod number;
pub mod objective;
pub mod orthant;
mod plans;
mod prepare;
pub mod reduce;
mod terms;
pub mod vector;

pub use catalog::{candidates, candidates_of};
pub use error::OpError;
pub use gpu_kernels::kernel_sum::KernelFunction;
pub use kernel_sum::{Kernel, KernelSum};
pub use many::{ManyTerms, RowWeights};
pub use matrix::{Matrix, MatrixOptions, problem_on_gpu};
pub use number::Number;
pub use prepare::Preparation;
pub use terms::Terms;

// What `Matrix::prepare` takes and returns.
pub use crate::plan::fused::{Product, Stored};
