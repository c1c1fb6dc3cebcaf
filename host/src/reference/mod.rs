//! The truth for tests: plain f64 loops, one per family, with the magnitudes that error bounds need.
//!
//! Nothing here is parallel, blocked or reordered: a formula is written down in the order in which it
//! is read. Input elements are widened to f64 as they are loaded, so that the same loops judge f32 and
//! f64 results. Shapes are checked with `assert!`: the callers are tests.

pub mod conv1d;
pub mod fits;
pub mod fused;
pub mod kernel_sum;
pub mod many;
pub mod matmul;
pub mod objective;
pub mod qr;
pub mod reduce;
pub mod rounding;
mod rows;
pub mod softmax;
pub mod sparse_conv;
pub mod vector;

pub use rows::Rows;
