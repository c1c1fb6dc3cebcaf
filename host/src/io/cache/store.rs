//! A cache from a data set.

use std::io::Write;
use std::path::Path;

use super::super::error::WriteError;
use super::super::options::Format;
use super::Source;
use super::header::{Header, LENGTH, Sizes};
use crate::matrix::{Dataset, Element, Storage};
use crate::parallel::checksum::{checksum, of_sections};
use crate::whole::fill_whole;

/// Writes sparse `data` to `path` in the binary cache format, which
/// [`read`](crate::io::read) takes like any other file.
///
/// The file appears complete or not at all, whatever interrupts the process: on Linux it has no name until it is complete,
/// elsewhere another one in the same folder. Symbolic links are followed, and devices and pipes written to.
///
/// # Errors
///
/// [`WriteError::Unsupported`] for dense features, [`WriteError::Io`] when the file cannot be
/// written.
pub fn write_cache<T: Element>(path: &Path, data: &Dataset<T>) -> Result<(), WriteError> {
    store(path, data, Source::default())
}

/// Makes the checksums of a tampered cache agree with what it holds, as far as its header says where that is; whether it
/// does. For tests of what is behind the checksums.
#[doc(hidden)]
pub fn reseal_cache(bytes: &mut [u8]) -> bool {
    let Some(header) = bytes.get(..LENGTH) else {
        return false;
    };
    let header: Header = bytemuck::pod_read_unaligned(header);
    let (Some(sizes), source) = (header.sizes(), header.source()) else {
        return false;
    };
    let Some(sections) = sizes.sections().filter(|all| all.end <= bytes.len()) else {
        return false;
    };
    let all = [
        sections.offsets,
        sections.indices,
        sections.values,
        sections.targets,
    ];
    let sum = of_sections(all.map(|section| checksum(&bytes[section])));
    bytes[..LENGTH].copy_from_slice(bytemuck::bytes_of(&Header::new(sizes, source, sum)));
    true
}

pub(super) fn store<T: Element>(
    path: &Path,
    data: &Dataset<T>,
    source: Source,
) -> Result<(), WriteError> {
    let Storage::Sparse(x) = data.features.storage() else {
        return Err(WriteError::Unsupported {
            format: Format::Cache,
            expected: "sparse features",
            found: "dense features".to_owned(),
        });
    };
    let offsets = x.indptr();
    let sections: [&[u8]; 4] = [
        bytemuck::cast_slice(offsets.raw_storage()),
        bytemuck::cast_slice(x.indices()),
        bytemuck::cast_slice(x.data()),
        bytemuck::cast_slice(data.targets.as_deref().unwrap_or(&[])),
    ];
    let sizes = Sizes {
        rows: x.rows(),
        cols: x.cols(),
        nnz: x.nnz(),
        dtype: T::DTYPE,
        has_targets: data.targets.is_some(),
    };
    let header = Header::new(sizes, source, of_sections(sections.map(checksum)));
    let fill = &mut |out: &mut dyn Write| {
        out.write_all(bytemuck::bytes_of(&header))?;
        sections.iter().try_for_each(|section| {
            let padding = section.len().next_multiple_of(8) - section.len();
            out.write_all(section)?;
            out.write_all(&[0; 8][..padding])
        })
    };
    fill_whole(path, fill).map_err(|source| WriteError::Io {
        path: path.to_owned(),
        source,
    })
}
