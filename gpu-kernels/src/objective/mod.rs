//! Objectives of learning in one pass over X: `Σ vᵣ·loss(tᵣ, bᵣ)` with `t = X·y + c + o`, and its gradient
//! `Xᵀg`, `gᵣ = vᵣ·loss'(tᵣ, bᵣ)`.
//!
//! A loss is a type: one small implementation of [`RowLoss`], which says what a row contributes. Kernels are
//! compiled for three of them: [`Squared`] and [`Logistic`], which most solvers spend their time in, and
//! [`AnyLoss`], which holds a [`LossCode`] and branches on it. The branch goes the same way for all rows of a
//! launch, so that warps do not diverge, and the number of entries does not grow with families times links
//! (8 × 8). A new loss is one implementation, one [`Loss`] and one arm of [`AnyLoss`]; a row of the tables gives
//! it entries of its own.
//!
//! [`Scores`] judge predictions instead of fitting them.
//!
//! The multinomial loss has k predictors per row: see [`SoftmaxRows`], [`SparseSoftmax`],
//! [`SoftmaxColumns`] and [`DenseSoftmax`].

mod args;
mod dense;
pub mod deviance;
mod glm;
mod head;
mod judge;
mod loss;
mod rows;
pub mod score;
mod softmax;
mod softmax_columns;
mod softmax_dense;
mod softmax_sparse;
mod sparse;

pub use args::{ObjectiveArgs, Products, RowArgs};
pub use dense::{DenseObjective, DenseObjectiveArgs, DenseObjectiveVariant};

pub use glm::{Distribution, Link};
pub use loss::{
    AnyLoss, EpsilonInsensitive, Glm, Huber, Logistic, Loss, LossClass, LossCode, Squared,
    SquaredHinge,
};

pub use deviance::MeanCode;
pub use rows::{RowObjective, RowObjectiveArgs, RowObjectiveVariant, in_order_bytes};
pub use score::{ScoreArgs, ScoreVariant, Scores};
pub use softmax::SoftmaxRows;
pub use softmax_columns::{SoftmaxColumns, SoftmaxColumnsArgs, SoftmaxColumnsVariant};
pub use softmax_dense::{DenseSoftmax, DenseSoftmaxArgs, DenseSoftmaxVariant};
pub use softmax_sparse::{SparseSoftmax, SparseSoftmaxArgs, SparseSoftmaxVariant};
pub use sparse::{Columns, SparseObjective, SparseObjectiveArgs, SparseObjectiveVariant};

use crate::cta::WARP;
use crate::describe::Description;
use crate::math::Elementary;
use crate::table::{Launch, Violation};

/// What one row contributes, before its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point<T> {
    /// The loss; +∞ where t is outside the domain of the link.
    pub loss: T,
    /// Its first derivative by t; NaN outside the domain.
    pub slope: T,
    /// Its second derivative by t, or what stands for it: the expected one (Fisher's weight) of a generalised
    /// linear model, which equals the second derivative for canonical links, and never is negative.
    pub curvature: T,
}

impl<T: Elementary> Point<T> {
    /// t is outside the domain.
    pub const OUTSIDE: Self = Point {
        loss: T::INFINITY,
        slope: T::NAN,
        curvature: T::NAN,
    };

    /// The contribution with a weight; a row of weight 0 takes no part, even outside the domain.
    #[inline(always)]
    pub fn weighted(self, weight: T) -> Self {
        if weight == T::ZERO {
            return Point {
                loss: T::ZERO,
                slope: T::ZERO,
                curvature: T::ZERO,
            };
        }
        Point {
            loss: weight * self.loss,
            slope: weight * self.slope,
            curvature: weight * self.curvature,
        }
    }
}

/// The loss of one row as a function of its linear predictor t and its target b.
pub trait RowLoss<T>: Copy + Send + Sync + 'static {
    /// Loss and derivatives at t.
    fn at(&self, t: T, b: T) -> Point<T>;
}

/// Shared memory that the sums over a block take of each warp, bytes: one f64.
const SUM_BYTES: u32 = 8;

/// Bytes of the scratch for the sums that a block of `block` threads needs: one f64 per warp.
pub const fn scratch_bytes(block: u32) -> u64 {
    (block / WARP) as u64 * SUM_BYTES as u64
}

/// A kernel of the pattern as one of objectives, with shared memory for its sums.
const fn with_sums(pattern: Description) -> Description {
    Description {
        shared: pattern.shared.and_per_warp(SUM_BYTES),
        ..pattern
    }
}

fn check_scratch(launch: &Launch) -> Result<(), Violation> {
    let given = launch.shared_bytes as u64;
    Violation::at_least("shared bytes", scratch_bytes(launch.block), given)
}

#[cfg(test)]
mod tests;
