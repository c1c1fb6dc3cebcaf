//! How a matrix is to be used, and where it lies then.

use crate::matrix::Values;
use crate::plan::fused::{Forced, Maker, Model, Summation};

/// How products of a matrix are planned on a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MatrixOptions {
    /// The launch model.
    pub model: Model,
    /// Parts of the plan that the caller fixes.
    pub forced: Forced,
    /// What is promised of the bits of results. [`Summation::Reproducible`]: all products have the same bits on every
    /// run, grid and device; those with a sparse matrix by fixed-point sums, those with a dense one by an order of sums
    /// ([`gpu_kernels::fused::dense_order`]). A NaN is one, of whatever bits.
    pub summation: Summation,
    /// How [`prepare`](super::Matrix::prepare) may store the values of a sparse matrix, and how values of a matrix that does not fit
    /// its device may cross the link: without loss, or rounded once to few bits. Products add up in the precision of the
    /// matrix, whatever its values are stored in.
    pub values: Values,
    /// Most bytes of a GPU that X may take: what is beyond streams. Without it as many as there is room for, below the
    /// [limit](crate::device::MemoryOptions) of the device.
    pub device_bytes: Option<u64>,
    /// Whether the CPU computes a share of the rows of an X that streams.
    pub host_share: HostShare,
    /// Whether members of a group add up one slice of w while they compute the next.
    pub overlap: Overlap,
    /// Whether members of a group keep a share each of a solve's vectors of n elements.
    pub vectors: Vectors,
    /// Who makes further forms of a sparse matrix ([`prepare`](super::Matrix::prepare)). Without it a GPU makes them and they are
    /// weighed as fast to make; the host makes all forms of an emulated GPU, and those that the device has no kernels or no room
    /// for.
    pub maker: Option<Maker>,
}

impl MatrixOptions {
    /// Whether the same bits are promised on every run and device.
    pub fn is_reproducible(&self) -> bool {
        self.summation == Summation::Reproducible
    }
}

/// How members of a [group](crate::device::group) keep the vectors of n elements of conjugate gradients, which all of them would
/// compute alike: those of [`conjugate_gradient`](crate::learning::conjugate_gradient), of the solver of this name, and of the
/// inner solves of Newton's method, each for coefficients of one target.
///
/// Spread, a member works on a share of the elements and has no more of the solution, the residual and the preconditioner. A
/// product leaves it the sums of its share (reduce-scatter), and the direction is gathered before the next one (all-gather).
/// What products give is one slice then, whatever [`Overlap`] says. Results have the bits of replicated vectors wherever the
/// products have. Vectors that one block of a GPU takes through an iteration, of up to 8,192 elements, are never spread. Members
/// must have the same options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Vectors {
    /// Spread where [`Machines::vector_work`](crate::plan::scaling::Machines::vector_work) predicts that to be faster.
    #[default]
    Planned,
    /// Every member has all elements.
    Replicated,
    /// Each has a share.
    Spread,
}

/// How the sum of `Xᵀ·p` over the members of a [group](crate::device::group) of GPUs overlaps with the product.
///
/// w is computed in slices of columns, and each is added up in a stream of its own while the next is computed. That takes
/// the transpose or panels of a sparse X ([`Matrix::prepare`](super::Matrix::prepare)), over which w is complete slice by
/// slice. Of rows every entry may be of any column. Sums that are [promised to repeat](MatrixOptions::summation) are in one slice.
/// Members must have the same options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overlap {
    /// In two slices where [`Machines::overlap`](crate::plan::scaling::Machines::overlap) predicts that to be faster.
    #[default]
    Planned,
    /// In one slice.
    Never,
    /// In two slices of about as many columns.
    Halves,
    /// In three.
    Thirds,
}

/// The share of the rows of an X that streams which the CPU computes, at the same time as a GPU computes the others.
///
/// Products and objectives are shared; everything else is the GPU's. Sums that are
/// [promised to repeat](MatrixOptions::summation) are never shared.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub enum HostShare {
    /// What [`Fit::host_share`](crate::plan::alternatives::Fit::host_share) predicts to be fastest, where the number of passes
    /// is announced ([`Matrix::prepared`](super::Matrix::prepared)) and the device is a CUDA device; none elsewhere.
    #[default]
    Planned,
    /// About this share, from 0 for none to 1 for all.
    Fixed(f64),
}

/// What of X a device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Residency {
    /// Whether X is in blocks of which some, or all as soon as something else needs the memory, cross the link in every
    /// product.
    pub streams: bool,
    /// Bytes of all blocks as they cross the link; 0 for what does not stream, or not yet.
    pub block_bytes: u64,
    /// Bytes of those that stay on the device.
    pub resident_bytes: u64,
    /// Number of blocks.
    pub blocks: usize,
    /// Rows that the CPU computes.
    pub host_rows: usize,
}
