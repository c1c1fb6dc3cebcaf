//! Host arrays of the forms in which a GPU stores a sparse X, made from its rows by all cores.
//!
//! | file | what |
//! |---|---|
//! | [`hot`] | entries with the most frequent columns told apart |
//! | [`packed`] | blocks of rows in as few bytes as cross a link |
//! | [`panels`] | entries in an order in which all that is random fits in shared memory |
//! | [`tiles`] | entries of tiles in both orders, for several right-hand sides |
//! | [`sparse_conv`] | filters of a convolutional layer as fragments of sparse tensor cores, and by chunks of channels |
//! | [`transpose`] | the columns of X as rows |
//! | [`columns`] | some columns of X |
//! | [`frequent`] | a table in which a column finds its slot among the most frequent ones |
//! | [`head`] | indices in which the most frequent columns are marked |
//! | `banks` | the order of entries in which lanes meet in few banks of shared memory |
//! | `parallel` | arrays cut for tasks that write them side by side |
//!
//! The arrays of a matrix do not depend on how many threads make them. This room knows how kernels read a form and what
//! a device takes for it ([`crate::plan`]); it knows no device and no launch.

mod banks;
pub mod columns;
pub mod frequent;
pub mod head;
pub mod hot;
pub mod packed;
pub mod panels;
pub(crate) mod parallel;
pub mod sparse_conv;
#[cfg(test)]
mod tests;
pub mod tiles;
pub mod transpose;
