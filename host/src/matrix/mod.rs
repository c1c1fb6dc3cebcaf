//! Matrices at the border of the library: sprs and ndarray types, data sets, statistics.
//!
//! | file | what |
//! |---|---|
//! | [`Element`] | what an entry may be: `f32` or `f64` |
//! | [`CsrMatrix`], [`csr_from_parts`], [`csr_from_blocks`] | compressed sparse rows, checked once and in parallel |
//! | [`NarrowCsr`] | the same with 32-bit row offsets, as other libraries have them |
//! | [`SharedSlice`] | arrays that are shared: those of a mapped file are used where they lie |
//! | [`SharedDense`] | a dense matrix in an array that is shared, by rows or by columns |
//! | [`Features`], [`Dataset`] | what readers give and learners take |
//! | [`MatrixStats`] | sizes and row lengths, without a look at the values |
//! | [`filters`] | sparse convolution filters and their formats |
//! | [`Values`] | in how few bits a further form may store values |
//! | [`FileChanged`] | others wrote to a mapped file while it was in use |
//! | [`RowSteps`] | what unequal rows make of a warp's work |
//! | [`Skew`] | how unevenly entries are spread over columns, from a sample |
//! | [`ColumnMoments`], [`column_frequencies`], [`frequencies`] | one pass over the entries, per column |
//!
//! This room knows no files, no devices and no launches.

mod blocks;
mod csr;
mod element;
mod features;
pub mod filters;
mod frequencies;
mod means;
mod moments;
mod narrow;
mod row_steps;
mod sample;
mod schema;
mod seen;
mod shared;
mod shared_dense;
mod skew;
mod stats;
#[cfg(test)]
pub(crate) mod strategy;
#[cfg(test)]
mod tests;
mod values;

pub use crate::mapped::FileChanged;
pub use blocks::{RowBlock, csr_from_blocks};
pub use csr::{CsrError, csr_from_parts, csr_from_shared, with_entries};
pub use element::{Dtype, Element};
pub use features::{CastError, Dataset, Features, Storage, TooLargeError, WidthError};
pub use frequencies::{column_frequencies, frequencies};
pub(crate) use frequencies::{counted_together, frequencies_in};
pub use means::ColumnMeans;
pub use moments::ColumnMoments;
pub(crate) use moments::{PartMoments, RowsOf};
pub use narrow::NarrowCsr;
pub(crate) use narrow::{CsrArrays, RowOffsets, with_offsets};
pub use row_steps::RowSteps;
pub(crate) use sample::RowSample;
pub use schema::{ColumnKind, MissingCategory, Schema, TableColumn, TableEncoding};
pub(crate) use seen::SeenColumns;
pub use shared::SharedSlice;
pub use shared_dense::{Order, SharedDense};
pub(crate) use shared_dense::{copy_rows, rows_of};
pub use skew::Skew;
pub use stats::MatrixStats;
pub use values::Values;

/// A compressed-sparse-row matrix: 32-bit column indices, 64-bit row offsets.
///
/// sprs guarantees that offsets ascend, that indices are below the number of columns and that the
/// indices of a row strictly ascend (no duplicates). Its arrays are shared and never change, so that a clone costs nothing
/// and a mapped file is not copied; [`Features`] are made [`From`] a `sprs::CsMatI<T, u32, u64>`, whose arrays are vectors.
pub type CsrMatrix<T> =
    sprs::CsMatBase<T, u32, SharedSlice<u64>, SharedSlice<u32>, SharedSlice<T>, u64>;
