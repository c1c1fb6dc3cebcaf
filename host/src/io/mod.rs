//! Files in and out, and synthetic data.
//!
//! | file | what |
//! |---|---|
//! | [`read`], [`ReadOptions`] | the one entry to all readers |
//! | `libsvm` | LIBSVM (SVMlight) text |
//! | `matrix_market` | Matrix Market text, sparse and dense |
//! | `npy` | NumPy arrays, dense; target vectors |
//! | [`read_text_column`] | class labels, one per line |
//! | `npz` | NumPy's archives: dense features and targets |
//! | `csv` | text with separated values, dense |
//! | `cache` | the binary CSR cache next to a text file |
//! | [`synth`] | seeded synthetic data |
//!
//! All readers check sizes against what the file really has before they allocate, and report the
//! first fault in the file with its place. This room knows matrices, and no devices.

mod cache;
mod csv;
mod cursor;
mod error;
mod libsvm;
mod matrix_market;
mod npy;
mod npz;
mod options;
mod read;
mod scan;
mod source;
pub mod synth;
#[cfg(test)]
mod tests;
mod text_column;
mod write;

pub use cache::write_cache;
pub use error::{ReadError, WriteError};
pub use libsvm::write_libsvm;
pub use matrix_market::write_matrix_market;
pub use npy::{read_vector, write_npy, write_vector};
pub use options::{
    CachePolicy, Columns, CsvOptions, Format, Header, IndexBase, MemoryLimit, Progress,
    ReadOptions, Target,
};
pub use read::read;
pub use text_column::read_text_column;
