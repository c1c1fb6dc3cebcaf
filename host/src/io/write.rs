//! Writing text in parallel: blocks of rows are formatted by all threads and written in order.

use std::ops::Range;
use std::path::Path;

use super::error::WriteError;
use crate::parallel;
use crate::whole::fill_whole;

/// Rows that one task formats.
const ROWS_PER_BLOCK: usize = 1024;
/// Blocks formatted before they are written; bounds the text held in memory.
const BLOCKS_PER_BATCH: usize = 64;

/// Writes to `path`, as a whole or not at all, `head`, then what `format` appends for each block of `0..rows`.
pub(super) fn write_text(
    path: &Path,
    head: &[u8],
    rows: usize,
    format: impl Fn(Range<usize>, &mut Vec<u8>) + Sync,
) -> Result<(), WriteError> {
    let fail = |source| WriteError::Io {
        path: path.to_owned(),
        source,
    };
    let blocks: Vec<_> = (0..rows)
        .step_by(ROWS_PER_BLOCK)
        .map(|start| start..rows.min(start + ROWS_PER_BLOCK))
        .collect();
    fill_whole(path, &mut |out| {
        out.write_all(head)?;
        for batch in blocks.chunks(BLOCKS_PER_BATCH) {
            let texts = parallel::map(batch.len(), |block| {
                let mut text = Vec::new();
                format(batch[block].clone(), &mut text);
                text
            });
            texts.iter().try_for_each(|text| out.write_all(text))?;
        }
        Ok(())
    })
    .map_err(fail)
}

/// Appends a whole number.
pub(super) fn push_integer(out: &mut Vec<u8>, number: u64) {
    let mut buffer = [0_u8; lexical_core::BUFFER_SIZE];
    out.extend_from_slice(lexical_core::write(number, &mut buffer));
}

/// The entries of a row that a sparse text shows: those stored, and of dense ones the nonzeros.
pub(super) fn for_each_entry<T: crate::matrix::Element>(
    features: &crate::matrix::Features<T>,
    row: usize,
    mut visit: impl FnMut(u64, T),
) {
    use crate::matrix::Storage;
    match features.storage() {
        Storage::Sparse(x) => {
            let entries = x.indptr().outer_inds_sz(row);
            let indices = &x.indices()[entries.clone()];
            for (&j, &value) in indices.iter().zip(&x.data()[entries]) {
                visit(u64::from(j), value);
            }
        }
        Storage::Dense(x) => {
            for (j, &value) in x.row(row).iter().enumerate() {
                if value != T::default() {
                    visit(j as u64, value);
                }
            }
        }
    }
}
