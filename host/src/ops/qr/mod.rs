//! QR factorisations of many small matrices on a device.
//!
//! A = Q·R with Q = H₁·H₂⋯ = I − V·T·Vᵀ, Hₖ = I − τₖ·vₖ·vₖᵀ, vₖ as in Higham's formulation: of the column below the diagonal
//! all but the first component stay as they are ([`gpu_kernels::qr::reflector`]). R has the signs that come of it:
//! its diagonal is −sign(x₁)·‖x‖, not always positive.
//!
//! ```
//! use warpfuse::device::Device;
//! use warpfuse::ops::qr::{Batch, Qr, Status, TriangleForm};
//!
//! let device = Device::auto();
//! let a = device.upload(&[3.0_f64, 4.0, 1.0, 2.0])?; // one 2 × 2 matrix, column by column
//! let mut qr = Qr::new(&device, Batch::column_major(2, 2, 1), TriangleForm::Whole)?;
//! qr.factor(&a)?;
//! assert_eq!(qr.factors().to_vec()?[0], -5.0);
//! assert_eq!(qr.statuses()?, [Status::FINE]);
//! let mut x = device.upload(&[5.0, 6.0])?; // A·x = (5, 6)
//! qr.solve(&mut x, &Batch::column_major(2, 1, 1))?;
//! let x = x.to_vec()?;
//! assert!((x[0] - 2.0).abs() + (x[1] + 1.0).abs() < 1e-14);
//! # Ok::<(), warpfuse::ops::OpError>(())
//! ```
//!
//! # What is promised
//! For every matrix of 1 to 4,096 rows and columns, whatever lies beside it in the batch:
//! ‖R − QᵀA‖₁ ≤ 20·n·ε·‖A‖₁ and ‖QᵀQ − I‖₁ ≤ 100·n·ε. Rank-deficient matrices are factored like others; where a column is
//! exactly in the span of those before, an element of R's diagonal may be 0, which [`Status`] says. Columns of any norm
//! are: those whose squares overflow or underflow are scaled by a power of two, and so is their v.
//! An infinity or a NaN, or an overflow, makes that matrix's factors meaningless, which its status says, and no other's.
//!
//! Results have the same bits on every run on one device; those of matrices of at most 32 × 32 on every GPU and emulator. Larger
//! ones are multiplied by tensor cores, which round and order sums as they do, and which card has room for that differs.
//! On the CPU sums are added in another order.

mod apart;
mod apply;
mod batch;
mod factor;
mod factors;
mod host;
mod launch;
mod least;
mod of_matrix;
mod streams;
mod tall;
mod values;

pub use crate::plan::qr::{QrShape, QrShapeError, TriangleForm};
pub use crate::plan::tall::MOST_TALL;
pub use batch::{Batch, Matrices, Order, Piece};
pub use factors::{Parts, Qr};
pub use least::LeastSquares;
pub use tall::{Dressing, TallQr, TallSource};
pub use values::{Side, Status};
