//! What the benchmarks share.

pub mod data;
