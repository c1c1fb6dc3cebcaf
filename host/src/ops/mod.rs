#![doc = include_str!("README.md")]

mod beside;
mod blocks;
mod catalog;
pub mod cg;
pub(crate) mod checks;
pub mod conv1d;
pub mod design;
mod device_features;
mod error;
mod forms;
pub mod fused;
pub(crate) mod generated;
mod head;
mod host;
mod host_rates;
pub(crate) mod interrupt;
mod kept;
pub mod kernel_sum;
mod launch;
pub mod many;
pub mod matmul;
mod matrix;
pub mod measure;
mod members;
mod number;
pub mod objective;
mod options;
pub mod orthant;
mod places;
mod plans;
mod prepare;
pub mod qr;
pub mod reduce;
mod share;
pub mod sparse_conv;
mod terms;
pub mod vector;

pub(crate) use crate::cpu::clear_upper;
pub use catalog::{candidates, candidates_of};
pub use device_features::{DeviceCsr, DeviceDense, DeviceFeatures, DeviceIntegers};
pub use error::OpError;
pub use gpu_kernels::kernel_sum::KernelFunction;
pub use host_rates::measure_host;
pub use interrupt::interruptible;
pub(crate) use kernel_sum::points_of_all;
pub use kernel_sum::{Kernel, KernelSum};
pub use many::{ManyTerms, RowWeights};
pub use matrix::{Matrix, problem_on_gpu};
pub use number::Number;
pub use options::{HostShare, MatrixOptions, Residency};
pub use places::{MeasuredPlace, predicted_places};
pub use prepare::Preparation;
pub use terms::Terms;

// What `Matrix::prepare` takes and returns.
pub use crate::plan::fused::{Product, Stored};
