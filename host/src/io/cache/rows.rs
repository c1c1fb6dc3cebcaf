//! A cache of rows of one length, which are made where they go: of data that memory does not hold.

use std::fs::OpenOptions;
use std::io;
use std::ops::Range;
use std::path::Path;

use bytemuck::Pod;
use memmap2::MmapMut;

use super::super::error::WriteError;
use super::Source;
use super::header::{Header, LENGTH, Sizes};
use crate::matrix::Element;
use crate::parallel;
use crate::parallel::checksum::{checksum, of_sections};

/// Rows that one task makes.
const ROWS: usize = 1 << 14;

/// Room for some rows of a cache.
#[doc(hidden)]
#[derive(Debug)]
pub struct CacheRows<'a, T> {
    /// Columns of their entries, ascending in each row.
    pub indices: &'a mut [u32],
    /// Values of their entries.
    pub values: &'a mut [T],
    /// A target for each row.
    pub targets: &'a mut [T],
}

/// Writes a cache of (rows, columns, entries of each row), which `fill` makes, some rows at a time on all threads; its length in
/// bytes. For data of any size to try programs on: pages are written where the file is mapped, so that no thread waits for
/// another, and the file has to have the space for them.
///
/// # Errors
/// [`WriteError::Io`] when the file cannot be written or mapped, or is too large for an address.
///
/// ```no_run
/// use std::path::Path;
/// use warpfuse::io::write_cache_rows;
/// write_cache_rows::<f32>(Path::new("diagonal.wfc"), (100, 100, 1), |rows, room| {
///     for (place, row) in rows.enumerate() {
///         room.indices[place] = row as u32;
///         (room.values[place], room.targets[place]) = (1.0, row as f32);
///     }
/// })?;
/// # Ok::<(), warpfuse::io::WriteError>(())
/// ```
#[doc(hidden)]
pub fn write_cache_rows<T: Element>(
    path: &Path,
    shape: (usize, usize, usize),
    fill: impl Fn(Range<usize>, CacheRows<'_, T>) + Sync,
) -> Result<u64, WriteError> {
    write(path, shape, fill).map_err(|source| WriteError::Io {
        path: path.to_owned(),
        source,
    })
}

fn write<T: Element>(
    path: &Path,
    (rows, cols, per_row): (usize, usize, usize),
    fill: impl Fn(Range<usize>, CacheRows<'_, T>) + Sync,
) -> io::Result<u64> {
    let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
    let sizes = Sizes {
        rows,
        cols,
        nnz: rows.checked_mul(per_row).ok_or_else(too_large)?,
        dtype: T::DTYPE,
        has_targets: true,
    };
    let sections = sizes.sections().ok_or_else(too_large)?;
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(true);
    let file = file.open(path)?;
    // Padding is zeros, as a new file is.
    file.set_len(sections.end as u64)?;
    // SAFETY: the file is new, and this function's until it returns; bytes that others write to it meanwhile are any numbers.
    let mut all = unsafe { MmapMut::map_mut(&file)? };
    {
        let (head, targets) = all.split_at_mut(sections.targets.start);
        let (head, values) = head.split_at_mut(sections.values.start);
        let (offsets, indices) = head.split_at_mut(sections.indices.start);
        let offsets = numbers::<u64>(&mut offsets[LENGTH..], rows + 1);
        let indices = numbers::<u32>(indices, sizes.nnz).chunks_mut(ROWS * per_row.max(1));
        let values = numbers::<T>(values, sizes.nnz).chunks_mut(ROWS * per_row.max(1));
        let targets = numbers::<T>(targets, rows).chunks_mut(ROWS);
        let rooms = offsets[1..]
            .chunks_mut(ROWS)
            .zip(indices.zip(values.zip(targets)));
        parallel::for_each_item(rooms, |number, (offsets, (indices, (values, targets)))| {
            let first = number * ROWS;
            for (place, end) in offsets.iter_mut().enumerate() {
                *end = ((first + place + 1) * per_row) as u64;
            }
            let room = CacheRows {
                indices,
                values,
                targets,
            };
            fill(first..first + offsets.len(), room);
        });
    }
    let ranges = [
        &sections.offsets,
        &sections.indices,
        &sections.values,
        &sections.targets,
    ];
    let sums = ranges.map(|section| checksum(&all[section.clone()]));
    let header = Header::new(sizes, Source::default(), of_sections(sums));
    all[..LENGTH].copy_from_slice(bytemuck::bytes_of(&header));
    Ok(sections.end as u64)
}

/// The numbers at the start of a section, whose padding may follow.
fn numbers<V: Pod>(section: &mut [u8], len: usize) -> &mut [V] {
    bytemuck::cast_slice_mut(&mut section[..len * size_of::<V>()])
}
