//! Launch models: from the shape of a problem and the limits of a device to a launch.
//!
//! This room is pure: no driver, no clock, no input or output. Everything is a value that can be
//! compared, printed, serialised, and forced by the user.
//!
//! | module | what lives there |
//! |---|---|
//! | [`limits`] | what one GPU allows, with tables of known ones |
//! | [`rates`] | how quick one GPU is: bandwidth, gathers, atomic additions |
//! | [`occupancy`] | blocks and warps that an SM holds at once, and which limit binds |
//! | [`alternatives`] | what a fit would take on the CPU, on a GPU, and through one |
//! | [`conv1d`] | shapes and launches of one-dimensional convolutions |
//! | [`fits`] | launches of many small fits |
//! | [`fused`] | the plan of `w = α·Xᵀ(v ⊙ (X·y)) + β·z` and of its two halves |
//! | [`sparse_conv`] | shapes and launches of convolutional layers with sparse filters |
//! | [`reduce`] | chunks, teams and tiles of reductions |
//! | [`objective`] | the plan of Σ loss and gradient in one pass over X |
//! | [`matmul`] | launches of matrix products |
//! | [`many`] | launches of the pattern with several right-hand sides |
//! | [`tiles`] | tiles of a sparse X for several right-hand sides |
//! | [`template`] | instances of kernels that are not compiled |
//! | [`tuned`] | tables of measured launches, which planners take instead of their own choice |
//! | [`space`] | spaces of tuning parameters with constraints |
//! | [`qr`] | launches of QR factorisations |
//! | [`kernel_sum`] | launches of sums over kernels |
//! | `panel_making` | runs and windows in which entries are split into panels on a device |
//! | [`scaling`] | what a product takes over several GPUs and machines |
//! | [`streaming`] | what of an X larger than a device's memory stays there, and how the rest crosses the link |
//! | [`vector`] | launches of elementwise kernels and of dot products |
//! | [`work`] | CPU or GPU, before anything is read |
//!
//! ```
//! use warpfuse::plan::fused::{Candidate, Model, Planner};
//! use warpfuse::plan::limits::DeviceLimits;
//! use warpfuse::plan::{Precision, Problem, Product};
//!
//! let titan = DeviceLimits::known("titan").expect("a listed device");
//! let kernels = Candidate::of_the_source(Precision::F64);
//! let problem = Problem::sparse(500_000, 1_024, 5_000_000, Precision::F64);
//! let plan = Planner::new(&titan, &kernels).model(Model::Published).plan(&problem, Product::Fused)?;
//! assert_eq!((plan.vs, plan.bs, plan.grid, plan.c), (8, 640, 28, 224));
//! # Ok::<(), warpfuse::plan::PlanError>(())
//! ```

mod error;
mod known;
mod limiter;
mod problem;

pub mod alternatives;
pub mod conv1d;
pub mod fits;
pub mod form;
pub mod fused;
pub mod kernel_sum;
pub mod limits;
pub mod many;
pub mod matmul;
pub mod objective;
pub mod occupancy;
pub(crate) mod panel_making;
pub mod qr;
pub mod rates;
pub mod reduce;
pub mod scaling;
pub mod space;
pub mod sparse_conv;
pub mod streaming;
pub mod tall;
pub mod template;
pub mod tiles;
pub mod tuned;
pub mod vector;
pub mod work;

pub use error::PlanError;
pub use problem::{
    ColumnUse, Precision, Problem, Processor, Product, Stored, StoredValues, Summation,
};
