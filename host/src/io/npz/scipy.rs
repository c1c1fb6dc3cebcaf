//! What `scipy.sparse.save_npz` writes: the arrays of a sparse matrix, with its format and shape.
//!
//! Source of the format: `scipy.sparse.save_npz`, SciPy 1.0 to 1.16.

use std::path::Path;

use super::super::error::{Fault, ReadError};
use super::super::npy;
use super::zip::{Archive, Member};
use super::{find, listed};
use crate::matrix::{CsrMatrix, Dataset, Element, Features, csr_from_parts};

/// The arrays of an archive.
struct Arrays<'a> {
    path: &'a Path,
    content: &'a [u8],
    archive: &'a Archive,
    limit: u64,
}

/// The matrix of an archive whose array `format` is a member.
pub(super) fn parse<T: Element>(
    path: &Path,
    content: &[u8],
    archive: &Archive,
    format: &Member,
    limit: u64,
) -> Result<Dataset<T>, ReadError> {
    let arrays = Arrays {
        path,
        content,
        archive,
        limit,
    };
    let text = format.read(path, content, limit)?;
    let shape = arrays.indices("shape")?;
    let &[rows, cols] = &shape[..] else {
        return Err(arrays.fault("a shape of two numbers", format!("{} numbers", shape.len())));
    };
    if u32::try_from(cols).is_err() {
        return Err(arrays.fault("at most 4294967295 columns", cols.to_string()));
    }
    let values: Vec<T> = arrays.vector("data")?;
    let matrix = match &name(&text)[..] {
        "csr" => {
            let (offsets, columns) = (arrays.indices("indptr")?, arrays.indices("indices")?);
            arrays.rows((rows, cols), offsets, columns, values)?
        }
        "csc" => {
            let (offsets, of_rows) = (arrays.indices("indptr")?, arrays.indices("indices")?);
            let columns = arrays.expanded(&offsets, cols, of_rows.len())?;
            arrays.triplets((rows, cols), &of_rows, &columns, &values)?
        }
        "coo" => {
            let (of_rows, columns) = (arrays.indices("row")?, arrays.indices("col")?);
            arrays.triplets((rows, cols), &of_rows, &columns, &values)?
        }
        other => {
            let found = format!("`{}`", other.escape_debug());
            return Err(arrays.fault("a matrix of format csr, csc or coo", found));
        }
    };
    Ok(Dataset {
        features: Features::Sparse(matrix),
        targets: None,
    })
}

/// The last letters of an array of bytes or of wide characters.
fn name(array: &[u8]) -> String {
    let letters = array.iter().rev().filter(|byte| **byte != 0);
    let last: Vec<u8> = letters.take(3).copied().collect();
    last.into_iter().rev().map(char::from).collect()
}

impl Arrays<'_> {
    fn vector<V: Element>(&self, name: &str) -> Result<Vec<V>, ReadError> {
        let member = find(self.archive, name).ok_or_else(|| {
            self.fault(&format!("an array called `{name}`"), listed(self.archive))
        })?;
        let bytes = member.read(self.path, self.content, self.limit)?;
        let inner = self.path.join(&member.name);
        npy::parse_vector(&inner, npy::Bytes::of_memory(&bytes), self.limit)
    }

    /// Whole numbers, none negative.
    fn indices(&self, name: &str) -> Result<Vec<usize>, ReadError> {
        /// From here on not every whole number is an f64.
        const MOST: f64 = 9_007_199_254_740_992.0;
        let numbers = self.vector::<f64>(name)?;
        let whole = |number: &f64| {
            let fits = number.fract() == 0.0 && (0.0..MOST).contains(number);
            fits.then_some(*number as usize)
        };
        let indices: Option<Vec<usize>> = numbers.iter().map(whole).collect();
        indices.ok_or_else(|| {
            let expected = format!("whole numbers, 0 or more, in `{name}`");
            self.fault(&expected, "others".to_owned())
        })
    }

    fn fault(&self, expected: &str, found: String) -> ReadError {
        ReadError::binary(self.path, 0, expected, found)
    }

    fn unsound(&self) -> ReadError {
        let expected = "arrays of one sparse matrix: offsets that ascend to the number of values, indices within the shape";
        self.fault(expected, "others".to_owned())
    }

    /// Of rows in order; their entries may be in any.
    fn rows<T: Element>(
        &self,
        (rows, cols): (usize, usize),
        offsets: Vec<usize>,
        columns: Vec<usize>,
        values: Vec<T>,
    ) -> Result<CsrMatrix<T>, ReadError> {
        if columns.iter().any(|column| *column >= cols) {
            return Err(self.unsound());
        }
        let of_rows = self.expanded(&offsets, rows, columns.len())?;
        let wide = offsets.iter().map(|offset| *offset as u64).collect();
        let narrow = columns.iter().map(|column| *column as u32).collect();
        match csr_from_parts((rows, cols), wide, narrow, values.clone()) {
            Ok(matrix) => Ok(matrix),
            Err(_) => self.triplets((rows, cols), &of_rows, &columns, &values),
        }
    }

    /// For each entry the number of the row or column that it is in.
    fn expanded(
        &self,
        offsets: &[usize],
        count: usize,
        entries: usize,
    ) -> Result<Vec<usize>, ReadError> {
        let sound = count.checked_add(1) == Some(offsets.len())
            && offsets.first() == Some(&0)
            && offsets.last() == Some(&entries)
            && offsets.is_sorted();
        if !sound {
            return Err(self.unsound());
        }
        let lengths = offsets.windows(2).map(|pair| pair[1] - pair[0]);
        Ok(lengths
            .enumerate()
            .flat_map(|(of, length)| std::iter::repeat_n(of, length))
            .collect())
    }

    /// Of entries in any order; those in one place are added.
    fn triplets<T: Element>(
        &self,
        (rows, cols): (usize, usize),
        of_rows: &[usize],
        columns: &[usize],
        values: &[T],
    ) -> Result<CsrMatrix<T>, ReadError> {
        let inside = |(row, column): (&usize, &usize)| *row < rows && *column < cols;
        let all = of_rows.iter().zip(columns).all(inside);
        if !all || of_rows.len() != columns.len() || columns.len() != values.len() {
            return Err(self.unsound());
        }
        let needed = (rows as u64 + 1) * 8;
        if needed > self.limit {
            let (limit, why) = (self.limit, Some("row offsets".to_owned()));
            return Err(Fault::Memory { needed, limit, why }.locate(self.path, &[]));
        }
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by_key(|&at| (of_rows[at], columns[at]));
        let mut offsets = vec![0_u64; rows + 1];
        let (mut indices, mut sums) = (Vec::new(), Vec::<T>::new());
        let mut last = None;
        for at in order {
            let place = (of_rows[at], columns[at]);
            if last == Some(place) {
                *sums.last_mut().expect("a place was seen") += values[at];
                continue;
            }
            last = Some(place);
            indices.push(columns[at] as u32);
            sums.push(values[at]);
            offsets[place.0 + 1] += 1;
        }
        for row in 0..rows {
            offsets[row + 1] += offsets[row];
        }
        csr_from_parts((rows, cols), offsets, indices, sums).map_err(|_| self.unsound())
    }
}
