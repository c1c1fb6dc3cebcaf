//! The fused pattern `w = α · Xᵀ( v ⊙ (X·y − s) ) + β · z`, and its halves `X·y` and `Xᵀ·p`.
//!
//! `s` is a scalar that is subtracted from every element of X·y: it centres the columns of X around the
//! product (`s = x̄·y`) without touching X. v, s and z are optional; a missing one costs a uniform branch.

pub mod balanced;
pub mod dense;
pub mod even;
pub mod fixed;
pub mod head;
pub mod hot;
pub mod many;
pub mod panels;
pub mod sparse;
mod team;
pub mod unpack;

pub use balanced::{Balanced, BalancedArgs, BalancedVariant};
pub use dense::order as dense_order;
pub use dense::{
    CarriedArgs, CarriedOrder, CarriedVariant, Dense, DenseArgs, DenseCarried, DenseOrder,
    DenseTotals, DenseVariant, RowStore, SLOTS, TotalArgs, TotalVariant,
};
pub use even::{Even, EvenArgs, EvenPlace, EvenVariant};
pub use fixed::point as fixed_point;
pub use fixed::{CLUSTER, Fixed, FixedArgs, FixedVariant};
pub use head::{Headed, HeadedArgs, HeadedVariant};
pub use hot::{HOT_BYTES, Hot, HotArgs, HotVariant};
pub use many::{
    DenseMany, DenseManyArgs, DenseManyVariant, Sides, SparseMany, SparseManyArgs,
    SparseManyVariant, TileSlices, TilesMany, TilesManyArgs, TilesManyVariant,
};
pub use panels::{PanelArgs, PanelVariant, Panels};
pub use sparse::{Sparse, SparseArgs, SparseVariant, private};
pub use team::{Lanes, Team, WholeBlock};
pub use unpack::{Unpack, UnpackArgs, UnpackVariant};

pub use crate::describe::{Held, HotValues, Place, Product, TeamSize};

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
