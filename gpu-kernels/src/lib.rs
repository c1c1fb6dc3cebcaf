//! Kernel bodies, argument structs and the table of compiled variants.
//!
//! The same crate is compiled twice: for `nvptx64-nvidia-cuda` (by the builder, to PTX) and for the
//! host, where the table tells the launcher each entry's name, argument type and contract, and where
//! another [`Cta`] can run the very same bodies on a CPU.
//!
//! A body is a function generic over a [`Cta`]: what the threads of one block can do. On the device
//! the token is zero-sized and vanishes. A kernel reads as a sentence: load, reduce, store.
//!
//! Adding a kernel: write the body, add a row to its family's [`kernels!`] table. Nothing else knows
//! its name. A new family is added to [`for_each_family!`] too.
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
pub mod fused;
pub mod kernel_sum;
pub mod kernels;
pub mod math;
pub mod matmul;
pub mod memory;
pub mod objective;
pub mod reduce;
pub mod scalar;
mod simt;
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
