//! A data set from the bytes of a cache.

use std::ops::Range;
use std::path::Path;

use bytemuck::Pod;

use super::super::error::{Fault, ReadError};
use super::super::finite::{all_finite, first_not_finite};
use super::super::source::Content;
use super::Source;
use super::header::{Header, LENGTH, Sections, Sizes};
use crate::matrix::{Dataset, Dtype, Element, Features, SharedSlice, csr_from_shared};
use crate::parallel;
use crate::parallel::checksum::{checksum, checksum_and, of_sections};

/// Bytes that one task copies.
const PER_TASK: usize = 1 << 20;

/// Loads a cache as a file in its own right, in whatever element type it was written.
pub(in super::super) fn parse<T: Element>(
    path: &Path,
    content: &Content,
    limit: u64,
) -> Result<Dataset<T>, ReadError> {
    let header = Header::parse(path, content)?;
    let (sizes, sections) = check_sizes(path, content, &header, limit)?;
    if sizes.dtype == T::DTYPE {
        return load(path, content, &header, &sizes, &sections);
    }
    check_cast(path, &sizes, (T::DTYPE, limit))?;
    let cast = |source| ReadError::Cast {
        path: path.to_owned(),
        source,
    };
    match sizes.dtype {
        Dtype::F32 => load::<f32>(path, content, &header, &sizes, &sections)?.cast(),
        Dtype::F64 => load::<f64>(path, content, &header, &sizes, &sections)?.cast(),
    }
    .map_err(cast)
}

/// Checks that there is room for values of another element type than the file's, which cannot stay where they are mapped.
fn check_cast(path: &Path, sizes: &Sizes, (to, limit): (Dtype, u64)) -> Result<(), ReadError> {
    let numbers = sizes.nnz as u64 + sizes.rows as u64 * u64::from(sizes.has_targets);
    let needed = numbers.saturating_mul(to.size() as u64);
    if needed <= limit {
        return Ok(());
    }
    let why = Some(format!(
        "for the numbers as {to}; as {} they would be read where they lie in the file",
        sizes.dtype
    ));
    Err(Fault::Memory { needed, limit, why }.locate(path, &[]))
}

/// Loads a cache if it was made from `source` with this element type, else gives `None`.
pub(super) fn parse_fresh<T: Element>(
    path: &Path,
    content: &Content,
    limit: u64,
    source: Source,
) -> Result<Option<Dataset<T>>, ReadError> {
    let header = Header::parse(path, content)?;
    if header.source() != source {
        return Ok(None);
    }
    let (sizes, sections) = check_sizes(path, content, &header, limit)?;
    if sizes.dtype != T::DTYPE {
        return Ok(None);
    }
    load(path, content, &header, &sizes, &sections).map(Some)
}

/// Checks the promised sizes against the length of the file, before anything is allocated.
pub(super) fn check_sizes(
    path: &Path,
    content: &Content,
    header: &Header,
    limit: u64,
) -> Result<(Sizes, Sections), ReadError> {
    let sizes = header.sizes();
    let parts = sizes.and_then(|sizes| Some((sizes, sizes.sections()?)));
    let Some((sizes, sections)) = parts.filter(|(_, s)| s.end == content.len()) else {
        let (rows, nnz) = (header.rows, header.nnz);
        let expected = format!("a file as long as {rows} rows with {nnz} entries take");
        let found = format!("{} bytes", content.len());
        return Err(ReadError::binary(path, LENGTH as u64, expected, found));
    };
    // What is mapped takes no memory but for the targets.
    let copied = match content {
        Content::Mapped(_) => sections.targets.len(),
        Content::Owned(_) => content.len(),
    };
    let needed = copied as u64;
    if needed > limit {
        let why = None;
        return Err(Fault::Memory { needed, limit, why }.locate(path, content));
    }
    Ok((sizes, sections))
}

fn load<T: Element>(
    path: &Path,
    content: &Content,
    header: &Header,
    sizes: &Sizes,
    sections: &Sections,
) -> Result<Dataset<T>, ReadError> {
    let bad = |at: usize, expected: &str, found: String| {
        ReadError::binary(path, at as u64, expected, found)
    };
    let values: SharedSlice<T> = array(content, &sections.values);
    let targets: Vec<T> = copy(&content[sections.targets.clone()]);
    let (of_values, are_finite) = checksum_and(&values, all_finite);
    let of = |section: &Range<usize>| checksum(&content[section.clone()]);
    let found = of_sections([
        of(&sections.offsets),
        of(&sections.indices),
        of_values,
        of(&sections.targets),
    ]);
    if found != header.checksum {
        let found = format!("{found:016x}");
        let expected = format!("data with the checksum {:016x}", header.checksum);
        return Err(bad(LENGTH, &expected, found));
    }
    let looked_at = if are_finite { &[] } else { &values[..] };
    for (section, start) in [(looked_at, &sections.values), (&targets, &sections.targets)] {
        if let Some(i) = first_not_finite(section) {
            let at = start.start + i * size_of::<T>();
            return Err(bad(at, "finite values", section[i].to_string()));
        }
    }
    let offsets = array(content, &sections.offsets);
    let indices = array(content, &sections.indices);
    let features = csr_from_shared((sizes.rows, sizes.cols), offsets, indices, values)
        .map_err(|error| bad(LENGTH, "a sound CSR matrix", format!("none: {error}")))?;
    Ok(Dataset {
        features: Features::Sparse(features),
        targets: sizes.has_targets.then_some(targets),
    })
}

/// The numbers of a section: where they lie in a mapped file, or copied where they are not aligned.
pub(super) fn array<V: Pod + Send + Sync>(
    content: &Content,
    section: &Range<usize>,
) -> SharedSlice<V> {
    let bytes = &content[section.clone()];
    match content {
        Content::Mapped(file) if bytemuck::try_cast_slice::<u8, V>(bytes).is_ok() => {
            SharedSlice::of_file(file.clone(), |all| {
                bytemuck::cast_slice(&all[section.clone()])
            })
        }
        _ => copy(bytes).into(),
    }
}

/// Copies bytes, wherever they lie, into a vector of numbers, with all threads.
pub(super) fn copy<V: Pod + Send>(bytes: &[u8]) -> Vec<V> {
    let mut out = vec![V::zeroed(); bytes.len() / size_of::<V>()];
    let pieces = bytemuck::cast_slice_mut::<V, u8>(&mut out).chunks_mut(PER_TASK);
    parallel::for_each_item(pieces.zip(bytes.chunks(PER_TASK)), |_, (out, bytes)| {
        out.copy_from_slice(bytes);
    });
    out
}
