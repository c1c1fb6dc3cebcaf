//! LIBSVM text from a data set.

use std::path::Path;

use super::super::error::WriteError;
use super::super::write::{for_each_entry, push_integer, write_text};
use crate::matrix::{Dataset, Element};

/// Writes `data` to `path` as LIBSVM text with indices from 1, values as the shortest decimals that
/// read back exactly, and label 0 where there are no targets.
///
/// Of dense features the zeros are left out. The format does not say how many columns there are:
/// empty columns at the end are lost unless the reader is told
/// ([`Columns::AtLeast`](crate::io::Columns::AtLeast)).
///
/// # Errors
///
/// [`WriteError::Io`] when the file cannot be written.
pub fn write_libsvm<T: Element>(path: &Path, data: &Dataset<T>) -> Result<(), WriteError> {
    let targets = data.targets.as_deref();
    write_text(path, b"", data.features.rows(), |rows, out| {
        for row in rows {
            let target = targets.map_or_else(T::default, |targets| targets[row]);
            target.write_decimal(out);
            for_each_entry(&data.features, row, |column, value| {
                out.push(b' ');
                push_integer(out, column + 1);
                out.push(b':');
                value.write_decimal(out);
            });
            out.push(b'\n');
        }
    })
}
