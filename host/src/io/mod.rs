#![doc = include_str!("README.md")]

mod cache;
mod csv;
mod cursor;
mod error;
mod finite;
mod libsvm;
mod matrix_market;
mod npy;
mod npz;
mod options;
mod read;
mod scan;
mod source;
pub mod synth;
mod table;
#[cfg(test)]
mod tests;
mod text_column;
mod write;

#[doc(hidden)]
pub use cache::reseal_cache;
pub use cache::write_cache;
#[cfg(unix)]
#[doc(hidden)]
pub use cache::{CacheRows, write_cache_rows};
pub use error::{ReadError, WriteError};
pub use libsvm::write_libsvm;
pub use matrix_market::write_matrix_market;
pub use npy::{
    npy_columns, read_columns, read_text_vector, read_vector, write_npy, write_text_vector,
    write_vector,
};
pub use options::{
    CachePolicy, Columns, CsvOptions, Format, Header, IndexBase, MemoryLimit, Progress,
    ReadOptions, ReadSoFar, Target,
};
pub use read::read;
pub use table::{
    FurtherTarget, Missing, Portion, PortionFacts, ReadPortion, Table, TableOptions, TableProblem,
    TableRows, TableTargets, Unseen, UnseenCount, read_names, read_portion, read_table,
};
pub use text_column::{read_numbers, read_text_column};
