//! The fused pattern `w = α · Xᵀ( v ⊙ (X·y − s) ) + β · z`, and its halves `X·y` and `Xᵀ·p`.
//!
//! `s` is a scalar that is subtracted from every element of X·y: it centres the columns of X around the
//! product (`s = x̄·y`) without touching X. v, s and z are optional; a missing one costs a uniform branch.

pub mod balanced;
mod balanced_finish;
mod balanced_walk;
pub mod dense;
pub(crate) mod dense_contract;
mod dense_flush;
mod dense_forward;
pub mod dense_order;
mod dense_ring;
mod dense_table;
mod dense_tiles;
pub mod dense_totals;
pub(crate) mod dense_variant;
pub mod fixed;
mod fixed_cluster;
mod fixed_contract;
mod fixed_halves;
pub mod fixed_point;
mod fixed_range;
mod fixed_sums;
mod fixed_table;
mod fixed_variant;
pub mod hot;
mod hot_addend;
mod hot_contract;
mod hot_share;
mod hot_table;
mod hot_values;
mod hot_variant;
mod hot_walk;
pub mod many;
pub mod panels;
pub mod private;
pub mod sparse;
mod sparse_table;
pub(crate) mod sparse_variant;
mod team;

pub use balanced::{Balanced, BalancedArgs, BalancedVariant};
pub use dense::{Dense, DenseArgs};
pub use dense_order::{DenseOrder, Held, SLOTS};
pub use dense_totals::{DenseTotals, TotalArgs, TotalVariant};
pub use dense_variant::{DenseVariant, RowStore};
pub use fixed::{Fixed, FixedArgs};
pub use fixed_variant::{CLUSTER, FixedVariant};
pub use hot::{Hot, HotArgs, HotValues};
pub use hot_variant::{HOT_BYTES, HotVariant};
pub use many::{
    DenseMany, DenseManyArgs, DenseManyVariant, Sides, SparseMany, SparseManyArgs,
    SparseManyVariant, TileSlices, TilesMany, TilesManyArgs, TilesManyVariant,
};
pub use panels::{PanelArgs, PanelVariant, Panels};
pub use sparse::{Sparse, SparseArgs};
pub use sparse_variant::SparseVariant;
pub use team::{Lanes, Team, TeamSize, WholeBlock};

/// Which product an entry computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Product {
    /// `w += α · Xᵀ( v ⊙ (X·y − s) )`.
    Fused,
    /// `p = α · v ⊙ (X·y − s) + β · z`.
    Forward,
    /// `w += α · Xᵀ( v ⊙ p )`.
    Transposed,
}

impl Product {
    /// Of X with m rows and n columns, the lengths of the vector that is multiplied and of the one that comes out.
    pub const fn lengths<N: Copy>(self, m: N, n: N) -> (N, N) {
        match self {
            Product::Fused => (n, n),
            Product::Forward => (n, m),
            Product::Transposed => (m, n),
        }
    }
}

/// [`Product`] as a type, so that a body is compiled for one product only.
pub trait Compute: 'static {
    /// Whether rows are multiplied by y.
    const DOTS: bool;
    /// Whether rows are added into w.
    const ACCUMULATES: bool;
}

/// [`Product::Fused`].
pub struct Fused;
/// [`Product::Forward`].
pub struct Forward;
/// [`Product::Transposed`].
pub struct Transposed;

impl Compute for Fused {
    const DOTS: bool = true;
    const ACCUMULATES: bool = true;
}
impl Compute for Forward {
    const DOTS: bool = true;
    const ACCUMULATES: bool = false;
}
impl Compute for Transposed {
    const DOTS: bool = false;
    const ACCUMULATES: bool = true;
}

/// Where sums of w are while rows are walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the block's shared memory, flushed once at the end.
    Shared,
    /// In the block's shared memory, a copy for each vector of lanes, summed up and flushed once at the end.
    Private,
    /// In the shared memory of a cluster's blocks, which walk rows of their own and add to the sums of each other.
    Spread,
    /// In the shared memory of a cluster's blocks, which walk the same rows and each add to their part of the columns.
    Split,
    /// In global memory, one atomic per nonzero.
    Global,
    /// In registers, aggregated over the block in shared memory at the end.
    Registers,
    /// Nowhere: the entry has no w.
    Absent,
}

/// Checks the length of an argument that may be absent.
pub(crate) fn check_optional<T>(
    argument: &crate::In<'_, T>,
    what: &'static str,
    required: u64,
) -> Result<(), crate::Violation> {
    if argument.is_some() {
        crate::Violation::at_least(what, required, argument.len())?;
    }
    Ok(())
}
