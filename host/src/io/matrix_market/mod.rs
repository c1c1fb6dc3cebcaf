//! Matrix Market text: coordinate (sparse) and array (dense) matrices.
//!
//! Fields real, integer and pattern (every entry 1); symmetries general, symmetric and
//! skew-symmetric, expanded to full storage. Complex and hermitian matrices are refused, as are
//! values that are not finite and counts that do not match the header. Entries given twice are
//! added up, as SciPy does. The header's counts allocate nothing: memory follows what the file
//! really has.
//!
//! Source of the format: Boisvert, Pozo and Remington, "The Matrix Market Exchange Formats:
//! Initial Design", NISTIR 5935, 1996.

mod array;
mod assemble;
mod coordinate;
mod header;
#[cfg(test)]
mod tests;
mod write;

use super::error::Fault;
use super::options::Columns;
use super::scan::Meter;
use crate::matrix::{Dataset, Element, Features};
use header::{Header, Layout};

pub use write::write_matrix_market;

/// How the first line of every Matrix Market file starts.
pub(super) const BANNER: &[u8] = b"%%MatrixMarket";

/// Parses a whole Matrix Market text into features without targets.
pub(super) fn parse<T: Element>(
    text: &[u8],
    columns: Columns,
    meter: &Meter<'_>,
) -> Result<Dataset<T>, Fault> {
    let header = header::parse(text)?;
    check_width(&header, columns)?;
    let features = match header.layout {
        Layout::Coordinate { entries } => {
            meter.check_columns(header.cols)?;
            let chunks = coordinate::parse::<T>(text, &header, entries, meter)?;
            Features::Sparse(assemble::assemble(chunks, &header, meter)?)
        }
        Layout::Array => Features::Dense(array::parse::<T>(text, &header, meter)?),
    };
    let targets = None;
    Ok(Dataset { features, targets })
}

/// A sparse matrix may be widened later; more columns than requested are a fault of the size line.
fn check_width(header: &Header, columns: Columns) -> Result<(), Fault> {
    match columns.resolve(header.cols) {
        Ok(_) => Ok(()),
        Err(wanted) => Err(Fault::at(
            header.sizes_at,
            format!("sizes with at most {wanted} columns"),
        )),
    }
}
