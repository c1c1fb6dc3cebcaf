//! The passes against the f64 reference, with tolerances derived from roundoff and length.

mod cases;
mod edges;
mod fused;
mod reproducible;
mod vector;
