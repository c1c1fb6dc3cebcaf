//! The list of all families: whoever has to do something for each of them asks [`for_each_family!`](crate::for_each_family).
//!
//! A family that is not in the list does not compile, because [`Family`] asks for [`Listed`].

use crate::table::{Entry, Family, Listed};

/// Calls a macro with the types of all families, each followed by a semicolon.
///
/// ```
/// macro_rules! count {
///     ($( $family:ty; )*) => { [$( stringify!($family) ),*].len() };
/// }
/// assert!(gpu_kernels::for_each_family!(count) > 40);
/// ```
#[macro_export]
macro_rules! for_each_family {
    ($callback:ident) => {
        $callback! {
            $crate::fused::Sparse<f32>;
            $crate::fused::Sparse<f64>;
            $crate::fused::Headed<f32>;
            $crate::fused::Headed<f64>;
            $crate::fused::Fixed<f32>;
            $crate::fused::Fixed<f64>;
            $crate::fused::Hot<f32>;
            $crate::fused::Hot<f64>;
            $crate::fused::Balanced<f32>;
            $crate::fused::Balanced<f64>;
            $crate::fused::Even<f32>;
            $crate::fused::Even<f64>;
            $crate::fused::Panels<f32>;
            $crate::fused::Panels<f64>;
            $crate::fused::Dense<f32>;
            $crate::fused::Dense<f64>;
            $crate::fused::DenseTotals<f32>;
            $crate::fused::DenseTotals<f64>;
            $crate::fused::DenseCarried<f32>;
            $crate::fused::DenseCarried<f64>;
            $crate::fused::DenseMany<f32>;
            $crate::fused::DenseMany<f64>;
            $crate::fused::SparseMany<f32>;
            $crate::fused::SparseMany<f64>;
            $crate::fused::TilesMany<f32>;
            $crate::fused::TilesMany<f64>;
            $crate::fused::Unpack<f32>;
            $crate::fused::Unpack<f64>;
            $crate::forms::hot::HotOrder;
            $crate::forms::hot::HotMaking<f32>;
            $crate::forms::hot::HotMaking<f64>;
            $crate::forms::panels::PanelMaking<f32>;
            $crate::forms::panels::PanelMaking<f64>;
            $crate::objective::SparseObjective<f32>;
            $crate::objective::SparseObjective<f64>;
            $crate::objective::DenseObjective<f32>;
            $crate::objective::DenseObjective<f64>;
            $crate::objective::RowObjective<f32>;
            $crate::objective::RowObjective<f64>;
            $crate::objective::Scores<f32>;
            $crate::objective::Scores<f64>;
            $crate::objective::SparseSoftmax<f32>;
            $crate::objective::SparseSoftmax<f64>;
            $crate::objective::SoftmaxColumns<f32>;
            $crate::objective::SoftmaxColumns<f64>;
            $crate::objective::DenseSoftmax<f32>;
            $crate::objective::DenseSoftmax<f64>;
            $crate::vector::Vectors<f32>;
            $crate::vector::Vectors<f64>;
            $crate::cg::Cg<f32>;
            $crate::cg::Cg<f64>;
            $crate::kernel_sum::KernelSums<f32>;
            $crate::kernel_sum::KernelSums<f64>;
            $crate::matmul::Matmul<f32>;
            $crate::matmul::Matmul<f64>;
            $crate::design::Designs<f32>;
            $crate::design::Designs<f64>;
            $crate::design::orthant::Orthants<f32>;
            $crate::design::orthant::Orthants<f64>;
            $crate::stream::Stream<f32>;
            $crate::stream::probe::Probes<f32>;
            $crate::stream::probe::Probes<f64>;
            $crate::conv1d::Conv1d<f32>;
            $crate::conv1d::Conv1d<f64>;
            $crate::sparse_conv::SparseConv<$crate::sparse_conv::I8>;
            $crate::sparse_conv::SparseConv<$crate::sparse_conv::I8Wide>;
            $crate::sparse_conv::SparseConv<$crate::sparse_conv::I16>;
            $crate::sparse_conv::SparseConv<$crate::sparse_conv::I16Wide>;
            $crate::sparse_conv::SparseConv<$crate::sparse_conv::F16>;
            $crate::sparse_conv::SparseConv<$crate::sparse_conv::Bf16>;
            $crate::sparse_conv::SparseConv<f32>;
            $crate::sparse_conv::SparseConv<f64>;
            $crate::fits::Fits<f32>;
            $crate::fits::Fits<f64>;
            $crate::qr::Qr<f32>;
            $crate::qr::Qr<f64>;
            $crate::reduce::Reduce<f32>;
            $crate::reduce::Reduce<f64>;
            $crate::reduce::Reduce<i32>;
            $crate::reduce::Reduce<i64>;
            $crate::reduce::ladder::Ladder;
            $crate::peers::PeerSums<f32>;
            $crate::peers::PeerSums<f64>;
            $crate::peers::PeerSums<u64>;
        }
    };
}

/// A compiled kernel and where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compiled {
    /// Its family, as [`Family::NAME`] says.
    pub family: &'static str,
    /// Its unit, as [`Family::UNIT`] says.
    pub unit: &'static str,
    /// Its name in the PTX.
    pub kernel: &'static str,
}

macro_rules! list {
    ($( $family:ty; )*) => {
        $( impl Listed for $family {} )*

        /// [`Family::NAME`] of each family, as often as there are families of the name.
        pub fn family_names() -> impl Iterator<Item = &'static str> {
            [$( <$family as Family>::NAME ),*].into_iter()
        }

        /// All entries of all families: what the PTX must contain.
        pub fn all() -> impl Iterator<Item = Compiled> {
            // Not a chain, whose type would grow with each family.
            let numbered = [$( entry::<$family> as fn(usize) -> Option<Compiled> ),*];
            numbered.into_iter().flat_map(|entry| (0..).map_while(entry))
        }
    };
}

for_each_family!(list);

/// Entry number `i` of a family.
fn entry<F: Family>(i: usize) -> Option<Compiled> {
    F::entries().get(i).map(|entry: &Entry<F>| Compiled {
        family: F::NAME,
        unit: F::UNIT,
        kernel: entry.name,
    })
}
