//! Dense X (row-major): one pass over the rows, everything in registers.
//!
//! Formula: `w += α · Xᵀ( v ⊙ (X·y − s) )`, X m × n with leading dimension `ld`; w holds β·z (or zero)
//! before. Rows start at multiples of the load width.
//!
//! Mapping: a [`Team`](crate::fused::team::Team) of threads owns R rows at a time; each thread holds K packs of every row, the same
//! K packs of y for the whole kernel, and K packs of the partial w. Thread `t`'s packs are t, t + size, …
//! so that a team's loads are contiguous. Columns past n are guarded, not padded.
//!
//! [`crate::fused::Product::Transposed`] cuts X into panels of `size · K` packs of columns, a block working on one panel,
//! so that any n is possible; [`crate::fused::Product::Forward`] walks a row in steps of `size · K` packs.
//!
//! Shared memory: one panel's elements (aggregation over the block's warps), or the sums' scratch for whole
//! blocks. Result: in w when the kernel has ended. Guarantees: atomics add in any order, but with
//! [`DenseArgs::chunks`] no atomic is involved: [`crate::fused::dense::order`].
//!
//! Source: registers for y, row and result, coarsening and TL × VS follow the published method for fused
//! dense kernels; rows in flight, 16-byte packs and panels are ours.

mod args;
pub mod carried;
pub(crate) mod contract;
mod flush;
mod forward;
pub(crate) mod load;
pub mod order;
pub(crate) mod ring;
pub(crate) mod step;
mod table;
mod tiles;
pub mod totals;
pub(crate) mod variant;
pub(crate) mod walk;

pub use args::{Dense, DenseArgs, MAX_COLUMNS};
pub use carried::{CarriedArgs, CarriedOrder, CarriedVariant, DenseCarried};
pub use order::{DenseOrder, SLOTS};
pub use totals::{DenseTotals, TotalArgs, TotalVariant};
pub use variant::{DenseVariant, RowStore};
