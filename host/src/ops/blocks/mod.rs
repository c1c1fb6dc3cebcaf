//! X as a list of row blocks: what kernels get of each, wherever it lies.
//!
//! | file | what |
//! |---|---|
//! | `sparse`, `dense` | a block as the arguments of kernels |
//!
//! Operations walk over blocks (`SparseRows::each`, `DenseRows::each`) and launch for each; what a launch takes of vectors
//! with an element per row begins at the block's first row. A matrix of one block costs no more than one without blocks.

mod dense;
mod sparse;

pub(super) use dense::DenseBlock;
pub(super) use sparse::{SparseBlock, no_matrix};
