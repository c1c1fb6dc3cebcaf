//! What a matrix keeps for its objectives.

use std::sync::{Arc, Mutex, OnceLock};

use super::block_slopes::BlockSlopes;
use super::row_kernel::RowKernel;
use crate::device::{Buffer, Prepared};
use crate::ops::forms::carried::CarriedKernels;
use crate::ops::forms::dense::DenseRows;
use crate::ops::forms::fixed::FixedKernels;
use crate::ops::forms::halves::Halves;
use crate::ops::forms::rows::SparseRows;
use crate::ops::forms::transpose::Transpose;
use crate::ops::{Number, OpError};
use crate::plan::fused::Plan;

/// What a matrix keeps for its objectives: plans by class of losses.
pub(in crate::ops) struct ObjectiveLaunches<T: Number> {
    pub(super) by_class: [OnceLock<Result<Planned<T>, OpError>>; 3],
    pub(super) rows: OnceLock<Result<RowKernel<T>, OpError>>,
    pub(super) softmax: SoftmaxLaunches<T>,
    /// Of rows that stream.
    pub(super) halves: OnceLock<Result<Option<Halves<T>>, OpError>>,
    /// Of dense rows that stream, where sums are promised to repeat.
    pub(super) in_order: OnceLock<Result<Option<InOrder<T>>, OpError>>,
    /// Of sparse rows that stream, where sums are promised to repeat.
    pub(super) in_scale: OnceLock<Result<Option<InScale<T>>, OpError>>,
    /// Whether products of a Hessian are fused products over a further form, without an intercept and with one.
    pub(super) in_one_product: [OnceLock<Result<bool, OpError>>; 2],
}

/// What is launched for a block, and after the last.
pub(in crate::ops) struct InOrder<T: Number> {
    pub(super) forward: Prepared<T::Dense>,
    pub(super) gradient: CarriedKernels<T>,
    pub(super) slopes: BlockSlopes<T>,
    pub(super) rows: Arc<DenseRows<T>>,
}

/// The same of sparse rows, with fixed-point sums.
pub(in crate::ops) struct InScale<T: Number> {
    pub(super) forward: Prepared<T::Sparse>,
    pub(super) gradient: FixedKernels<T>,
    pub(super) slopes: BlockSlopes<T>,
    pub(super) rows: Arc<SparseRows<T>>,
}

impl<T: Number> Default for ObjectiveLaunches<T> {
    fn default() -> Self {
        ObjectiveLaunches {
            by_class: Default::default(),
            rows: OnceLock::new(),
            softmax: SoftmaxLaunches::default(),
            halves: OnceLock::new(),
            in_order: OnceLock::new(),
            in_scale: OnceLock::new(),
            in_one_product: [const { OnceLock::new() }; 2],
        }
    }
}

pub(super) struct Planned<T: Number> {
    pub(super) plan: Plan,
    pub(super) step: Step<T>,
    /// Two products over a further form of X, where that is expected to be faster.
    pub(super) prepared: Option<Plan>,
}

pub(super) enum Step<T: Number> {
    Sparse(Prepared<T::SparseObjective>),
    Headed(Prepared<T::SparseObjective>),
    Dense(Prepared<T::DenseObjective>),
    TwoProducts,
}

/// The launches of a matrix for one number of classes.
pub(super) struct SoftmaxLaunches<T: Number>(
    pub(super) Mutex<Option<(usize, Arc<SoftmaxStep<T>>)>>,
);

impl<T: Number> Default for SoftmaxLaunches<T> {
    fn default() -> Self {
        SoftmaxLaunches(Mutex::new(None))
    }
}

pub(super) enum SoftmaxStep<T: Number> {
    Sparse {
        rows: Prepared<T::SparseSoftmax>,
        /// Where it adds up.
        gradient: Mutex<Gradient<T>>,
    },
    Dense(Prepared<T::DenseSoftmax>),
    /// There is no kernel for this many classes or columns.
    Absent,
}

/// How Xᵀ·S is added up.
pub(super) enum Gradient<T: Number> {
    /// By the kernel over the rows, after this many products.
    Rows(u32),
    /// The same, whatever is to come.
    RowsForGood,
    Columns(Box<ByColumns<T>>),
}

/// What is launched over the rows of Xᵀ.
pub(super) struct ByColumns<T: Number> {
    /// Over the rows of X: S is all that it leaves.
    pub(super) rows: Prepared<T::SparseSoftmax>,
    pub(super) columns: Prepared<T::SoftmaxColumns>,
    pub(super) transpose: Arc<Transpose<T>>,
    /// S, m × k.
    pub(super) slopes: Buffer<T>,
}
