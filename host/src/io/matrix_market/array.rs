//! All values of a dense matrix, column by column.

use ndarray::{Array2, ShapeBuilder};

use super::super::cursor::Cursor;
use super::super::error::Fault;
use super::super::scan::{self, Meter, Parsed, lines};
use super::coordinate::value;
use super::header::{Header, Symmetry};
use crate::matrix::Element;

struct Values<T>(Vec<T>);

impl<T: Send> Parsed for Values<T> {
    fn bytes(&self) -> u64 {
        (self.0.capacity() * size_of::<T>()) as u64
    }
}

/// Parses the values and lays them out by rows.
pub(super) fn parse<T: Element>(
    text: &[u8],
    header: &Header,
    meter: &Meter<'_>,
) -> Result<Array2<T>, Fault> {
    let body = header.body_at..text.len();
    let chunks = scan::parse_chunks(text, body, meter, |bytes, start| {
        parse_chunk::<T>(bytes, start, header)
    })?;
    // Sizes are 32-bit numbers, so no product of two overflows.
    let (n, m) = (header.cols as u64, header.rows as u64);
    let promised = match header.symmetry {
        Symmetry::General => m * n,
        Symmetry::Symmetric => n * (n + 1) / 2,
        Symmetry::SkewSymmetric => n * (n - 1) / 2,
    };
    let found: u64 = chunks.iter().map(|chunk| chunk.0.len() as u64).sum();
    if found != promised {
        let expected = format!("{promised} values for these sizes (there are {found})");
        return Err(Fault::at(text.len(), expected));
    }
    // The file has half as many values or more, so this too follows the length of the file.
    meter.take(m * n * 2 * size_of::<T>() as u64)?;
    let values: Vec<T> = chunks.into_iter().flat_map(|chunk| chunk.0).collect();
    Ok(lay_out(values, header))
}

fn parse_chunk<T: Element>(
    bytes: &[u8],
    start: usize,
    header: &Header,
) -> Result<Values<T>, Fault> {
    let mut values = Vec::new();
    for (offset, line) in lines(bytes) {
        let mut cursor = Cursor::new(line);
        while cursor.next_word().is_some() {
            let value = value(&mut cursor, header.field);
            values.push(value.map_err(|fault| fault.shifted(start + offset))?);
        }
    }
    Ok(Values(values))
}

/// Row-major from the listing by columns, mirror images filled in.
fn lay_out<T: Element>(values: Vec<T>, header: &Header) -> Array2<T> {
    let shape = (header.rows, header.cols);
    let below = match header.symmetry {
        Symmetry::General => {
            let by_columns = Array2::from_shape_vec(shape.f(), values);
            let by_columns = by_columns.expect("as many values as the shape has places");
            return by_columns.as_standard_layout().into_owned();
        }
        Symmetry::Symmetric => 0,
        Symmetry::SkewSymmetric => 1,
    };
    let mut full = Array2::zeros(shape);
    let mut values = values.into_iter();
    for col in 0..header.cols {
        for (row, value) in (col + below..header.rows).zip(&mut values) {
            full[(row, col)] = value;
            full[(col, row)] = if below == 0 { value } else { -value };
        }
    }
    full
}
