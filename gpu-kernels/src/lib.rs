#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(abi_ptx, stdarch_nvptx, asm_experimental_arch, core_intrinsics)
)]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]

pub mod cg;
pub mod conv1d;
pub mod cta;
pub mod describe;
pub mod design;
pub mod families;
pub mod fits;
pub mod forms;
pub mod fused;
// The builder says so, and only where the target is a GPU.
#[cfg(target_arch = "nvptx64")]
#[cfg(Generated)]
mod generated;
pub mod kernel_sum;
pub mod kernels;
pub mod math;
pub mod matmul;
pub mod memory;
pub mod objective;
pub mod peers;
pub mod qr;
pub mod reduce;
pub mod scalar;
mod simt;
pub mod sparse_conv;
pub mod stream;
pub mod table;
pub mod vector;
pub mod verbs;

pub use cta::{Cache, Cta, Shuffle};
pub use describe::Description;
pub use kernels::Kernels;
pub use memory::{In, Out};
pub use scalar::{Pack, Real, Word, Words};
pub use table::{Entry, Family, Launch, Violation};

/// This crate's own folder, from which the builder compiles it for the GPU, wherever cargo put it.
pub const MANIFEST_DIR: &str = env!("CARGO_MANIFEST_DIR");
