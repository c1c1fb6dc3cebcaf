//! A cache of a text that memory does not hold.
//!
//! The text is parsed twice: to learn where everything goes, then to put it there. Memory holds the parts that threads are at,
//! and nothing of what is written; the file has no name until it is complete.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::super::error::{Fault, ReadError};
use super::super::libsvm::{Parts, Placed};
use super::super::options::ReadOptions;
use super::super::scan::Meter;
use super::super::source::Content;
use super::Source;
use super::header::{Header, Sections, Sizes};
use crate::mapped::MappedFile;
use crate::matrix::Element;
use crate::parallel::checksum::{checksum, of_sections};
use crate::unfinished::UnfinishedFile;

/// What goes wrong with a part: its text, or the file that is written.
enum Problem {
    Text(Fault),
    File(io::Error),
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Problem::Text(fault)
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Problem::File(error)
    }
}

/// Writes the cache at `path` of a LIBSVM `text`; whether the file system let it.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn convert<T: Element>(
    (path, source): (&Path, Source),
    (text_path, text): (&Path, &Content),
    options: &ReadOptions,
    meter: &Meter<'_>,
) -> Result<bool, ReadError> {
    let parts = Parts::of::<T>(text, options.index_base, options.columns, meter);
    let parts = parts.map_err(|fault| fault.locate(text_path, text))?;
    let sizes = Sizes {
        rows: parts.rows,
        cols: parts.cols,
        nnz: parts.nnz,
        dtype: T::DTYPE,
        has_targets: parts.has_targets,
    };
    match write::<T>((path, source), text, (&parts, sizes)) {
        Ok(()) => Ok(true),
        Err(Problem::Text(fault)) => Err(fault.locate(text_path, text)),
        Err(Problem::File(error)) => {
            tracing::warn!(%error, path = %path.display(), "the cache could not be written");
            Ok(false)
        }
    }
}

fn write<T: Element>(
    (path, source): (&Path, Source),
    text: &Content,
    (parts, sizes): (&Parts, Sizes),
) -> Result<(), Problem> {
    let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
    let sections = sizes.sections().ok_or_else(too_large)?;
    let unfinished = UnfinishedFile::beside(path)?;
    let file = unfinished.file();
    // Offset 0 and all padding are zeros, as a new file is.
    file.set_len(sections.end as u64)?;
    parts.each::<T, Problem>(text, |part| Ok(put(file, &sections, part)?))?;
    let sums = {
        let all = MappedFile::new(path, file.try_clone()?)?;
        let sections = [
            &sections.offsets,
            &sections.indices,
            &sections.values,
            &sections.targets,
        ];
        sections.map(|section| checksum(&all[section.clone()]))
    };
    let header = Header::new(sizes, source, of_sections(sums));
    file.write_all_at(bytemuck::bytes_of(&header), 0)?;
    Ok(unfinished.persist(path)?)
}

/// Writes a part to its places.
fn put<T: Element>(file: &std::fs::File, sections: &Sections, part: Placed<T>) -> io::Result<()> {
    let Placed {
        rows_before,
        entries_before,
        mut block,
        targets,
    } = part;
    for end in &mut block.row_ends {
        *end += entries_before as u64;
    }
    let at = |start: usize, place: usize, size: usize| (start + place * size) as u64;
    let (value, targets_start) = (size_of::<T>(), sections.targets.start);
    let offsets = at(sections.offsets.start, rows_before + 1, size_of::<u64>());
    file.write_all_at(bytemuck::cast_slice(&block.row_ends), offsets)?;
    let indices = at(sections.indices.start, entries_before, size_of::<u32>());
    file.write_all_at(bytemuck::cast_slice(&block.indices), indices)?;
    let values = at(sections.values.start, entries_before, value);
    file.write_all_at(bytemuck::cast_slice(&block.values), values)?;
    file.write_all_at(
        bytemuck::cast_slice(&targets),
        at(targets_start, rows_before, value),
    )
}
