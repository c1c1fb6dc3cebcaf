//! Matrix Market text from features.

use std::path::Path;

use super::super::error::WriteError;
use super::super::write::{for_each_entry, push_integer, write_text};
use crate::matrix::{Element, Features, Storage};

/// Writes `features` to `path` as Matrix Market text, values as the shortest decimals that read
/// back exactly: `coordinate real general` if sparse, `array real general` if dense. Targets have
/// no place in this format; put them into an npy file ([`write_vector`](crate::io::write_vector)).
///
/// # Errors
///
/// [`WriteError::Io`] when the file cannot be written.
pub fn write_matrix_market<T: Element>(
    path: &Path,
    features: &Features<T>,
) -> Result<(), WriteError> {
    let (rows, cols) = (features.rows(), features.cols());
    match features.storage() {
        Storage::Sparse(x) => {
            let nnz = x.nnz();
            let head =
                format!("%%MatrixMarket matrix coordinate real general\n{rows} {cols} {nnz}\n");
            write_text(path, head.as_bytes(), rows, |rows, out| {
                for row in rows {
                    for_each_entry(features, row, |column, value| {
                        push_integer(out, row as u64 + 1);
                        out.push(b' ');
                        push_integer(out, column + 1);
                        out.push(b' ');
                        value.write_decimal(out);
                        out.push(b'\n');
                    });
                }
            })
        }
        Storage::Dense(x) => {
            let head = format!("%%MatrixMarket matrix array real general\n{rows} {cols}\n");
            // The format lists columns, so a block of "rows" of the text is a block of columns.
            write_text(path, head.as_bytes(), cols, |columns, out| {
                for column in columns {
                    for value in x.column(column) {
                        value.write_decimal(out);
                        out.push(b'\n');
                    }
                }
            })
        }
    }
}
