//! The bodies of the CPU device: slices in, slices out.
//!
//! Multi-threaded with rayon, vectorised for the processor at hand by `pulp` (AVX2 with FMA, AVX-512,
//! NEON; plain loops elsewhere). Nothing here knows plans, files or devices.

pub mod conv1d;
mod dense;
mod dispatch;
pub mod fits;
pub mod fixed;
mod fused;
pub mod grid;
pub mod kernel_sum;
mod lanes;
pub mod many;
pub mod matmul;
mod matrix;
pub mod objective;
pub mod ordered;
pub mod qr;
pub mod reduce;
mod scalar;
mod scratch;
pub mod sell;
mod sparse;
pub mod sparse_conv;
pub mod stream;
mod terms;
#[cfg(test)]
mod tests;
pub mod vector;
mod wide;

use crate::parallel::chunks;
pub(crate) use dispatch::clear_upper;
pub use fused::{RowMatrix, Workspace, forward, fused, transposed};
pub use matrix::{Csr, Dense, LayoutError};
pub use scalar::Scalar;
pub use terms::{Addend, Terms};
