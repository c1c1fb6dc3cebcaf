//! What the benchmarks share.
//!
//! | module | what |
//! |---|---|
//! | [`shape`], [`data`] | which matrices and vectors, and their seeded values |
//! | [`sampling`], [`ceiling`] | timing by the device's events; what a plain read of memory reaches |
//! | [`truth`] | f64 results on the CPU: nothing is timed before it is right |
//! | [`learning`] | time to objective of whole fits |
//! | [`fused`], [`vector`], [`cg`], [`objective`], [`softmax`], [`kernel_sum`], [`matmul`], [`qr`], [`cpu`], [`parser`] | the families |
//! | [`plan`] | how good plans are, and how long choosing takes |
//! | [`peers`], [`outside`] | cuBLAS and cuSPARSE for the same work; times that other programs measured |
//! | [`case`], [`record`], [`provenance`], [`options`] | names, JSON lines, where they come from, arguments |
//! | [`suite`] | record mode: every case of every family |

pub mod case;
pub mod ceiling;
pub mod cg;
pub mod conv1d;
pub mod cpu;
pub mod data;
pub mod fused;
pub mod gpu;
pub mod kernel_sum;
pub mod learning;
pub mod matmul;
pub mod objective;
pub mod options;
pub mod outside;
pub mod parser;
pub mod peers;
pub mod plan;
pub mod provenance;
pub mod qr;
pub mod record;
pub mod reduce;
mod ridge;
pub mod sampling;
pub mod shape;
pub mod softmax;
pub mod sparse_conv;
pub mod suite;
pub mod truth;
pub mod vector;
