//! X as a list of row blocks: what kernels get of each, wherever it lies.
//!
//! | file | what |
//! |---|---|
//! | `sparse`, `dense` | a block as the arguments of kernels |
//! | `place` | whether X lies on the device as a whole |
//! | `crossing` | blocks of which as many as fit stay on the device, and the others stream |
//! | `sparse_stream`, `dense_stream` | the images of such blocks, and what kernels get of them |
//! | `unpack` | kernels that make arrays of images |
//!
//! Operations walk over blocks (`SparseRows::each`, `DenseRows::each`) and launch for each; what a launch takes of vectors
//! with an element per row begins at the block's first row. A matrix of one block costs no more than one without blocks.

mod crossing;
mod dense;
mod dense_stream;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod integer_tests;
#[cfg(test)]
mod pass_tests;
mod place;
mod sparse;
mod sparse_stream;
#[cfg(test)]
mod tests;
mod unpack;

pub(super) use dense::DenseBlock;
pub(super) use dense_stream::DenseStream;
pub(super) use place::Place;
pub(super) use sparse::{SparseBlock, no_matrix};
pub(super) use sparse_stream::SparseStream;
pub(super) use unpack::{Unpacking, no_arrays, section};

/// Which blocks a walk reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Part {
    /// All.
    #[default]
    All,
    /// Those whose rows are not the CPU's, where it computes a share of them.
    OfDevice,
}
