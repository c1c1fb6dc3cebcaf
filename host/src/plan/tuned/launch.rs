//! The launch of a family.

use serde::{Deserialize, Serialize};

use crate::plan::conv1d::Conv1dPlan;
use crate::plan::fused::Forced;
use crate::plan::reduce::WholePlan;
use crate::plan::sparse_conv::ConvStrategy;

/// What a table says of a launch: as much as the family's planner needs to make it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "snake_case")]
pub enum Launch {
    /// Parts of the plan of a fused product.
    Fused(Forced),
    /// A variant of the ladder of matrix products, with k in one part.
    Matmul {
        /// Its name.
        variant: String,
    },
    /// A point of the space of QR factorisations ([`qr::space`](crate::plan::qr::space)).
    Qr {
        /// Values of the parameters, in the order of the space.
        values: Vec<i64>,
    },
    /// The chunks of a sum.
    Reduce(WholePlan),
    /// The launch of a one-dimensional convolution.
    Conv1d(Conv1dPlan),
    /// A point of the space of sums over a kernel ([`kernel_sum::space`](fn@crate::plan::kernel_sum::space)).
    KernelSum {
        /// Values of the parameters, in the order of the space.
        values: Vec<i64>,
    },
    /// The strategy of a convolutional layer.
    SparseConv {
        /// The strategy.
        strategy: ConvStrategy,
    },
}
