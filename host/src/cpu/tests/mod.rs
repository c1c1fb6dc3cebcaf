//! The passes against the f64 reference, with tolerances derived from roundoff and length.

pub mod cases;
mod edges;
mod fused;
mod reproducible;
mod vector;
