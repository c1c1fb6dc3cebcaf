//! A cache that several readers share: each checks its own blocks of the arrays, and takes its own rows.

use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::super::error::ReadError;
use super::super::finite::{all_finite, first_not_finite};
use super::super::source::Content;
use super::header::{Header, LENGTH, Sections, Sizes};
use super::load::{array, check_sizes, copy};
use crate::matrix::{Dataset, Element, Features, SharedSlice, csr_from_shared};
use crate::parallel::checksum::{of_blocks, of_sections, sums_of_part};

/// What a reader has found in its blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Found {
    /// Sums of its blocks of each section.
    sums: [Vec<u64>; 4],
    /// Where the first value stands that is not finite, in bytes from the start of the file, and the value.
    not_finite: Option<(usize, String)>,
}

/// A cache of which one reader has checked its blocks.
pub(in super::super) struct Part {
    header: Header,
    sizes: Sizes,
    sections: Sections,
    pub(in super::super) found: Found,
}

impl Part {
    /// Checks the blocks of reader `number` of `of`; `None` for a cache of another element type.
    pub(in super::super) fn read<T: Element>(
        path: &Path,
        content: &Content,
        limit: u64,
        portion: (usize, usize),
    ) -> Result<Option<Part>, ReadError> {
        let header = Header::parse(path, content)?;
        let (sizes, sections) = check_sizes(path, content, &header, limit)?;
        if sizes.dtype != T::DTYPE {
            return Ok(None);
        }
        let bytes = |section: &Range<usize>| {
            let (sums, ..) = sums_of_part(&content[section.clone()], portion, |_| true);
            sums
        };
        let (values, in_values) = numbers::<T>(content, &sections.values, portion);
        let (targets, in_targets) = numbers::<T>(content, &sections.targets, portion);
        let found = Found {
            sums: [
                bytes(&sections.offsets),
                bytes(&sections.indices),
                values,
                targets,
            ],
            not_finite: in_values.or(in_targets),
        };
        Ok(Some(Part {
            header,
            sizes,
            sections,
            found,
        }))
    }

    pub(in super::super) fn rows(&self) -> usize {
        self.sizes.rows
    }

    /// Bytes of this many of the rows, about.
    pub(in super::super) fn bytes(&self, rows: usize) -> u64 {
        let all = self.sections.end as u128 * rows as u128;
        (all / self.sizes.rows.max(1) as u128) as u64
    }

    /// These rows, once `all` readers have found nothing wrong.
    pub(in super::super) fn take<'f, T: Element>(
        &self,
        (path, content): (&Path, &Content),
        all: impl Iterator<Item = &'f Found> + Clone,
        rows: Range<usize>,
    ) -> Result<Dataset<T>, ReadError> {
        let bad = |at: usize, expected: &str, found: String| {
            ReadError::binary(path, at as u64, expected, found)
        };
        let sections = &self.sections;
        let [a, b, c, d] = [0, 1, 2, 3].map(|number: usize| {
            let sums = all.clone().flat_map(|found| &found.sums[number]).copied();
            let ranges = [
                &sections.offsets,
                &sections.indices,
                &sections.values,
                &sections.targets,
            ];
            of_blocks(ranges[number].len(), sums)
        });
        let found = of_sections([a, b, c, d]);
        if found != self.header.checksum {
            let expected = format!("data with the checksum {:016x}", self.header.checksum);
            return Err(bad(LENGTH, &expected, format!("{found:016x}")));
        }
        let mut not_finite = all.filter_map(|found| found.not_finite.as_ref());
        if let Some((at, value)) = not_finite.next() {
            return Err(bad(*at, "finite values", value.clone()));
        }
        let unsound = |why: String| bad(LENGTH, "a sound CSR matrix", format!("none: {why}"));
        let (offsets, entries) = self.offsets(content, &rows).map_err(unsound)?;
        let indices: SharedSlice<u32> = array(content, &sections.indices);
        let values: SharedSlice<T> = array(content, &sections.values);
        let features = csr_from_shared(
            (rows.len(), self.sizes.cols),
            offsets.into(),
            indices.part(entries.clone()),
            values.part(entries),
        );
        let size = size_of::<T>();
        let targets = self.sizes.has_targets.then(|| {
            let first = sections.targets.start + rows.start * size;
            copy(&content[first..first + rows.len() * size])
        });
        Ok(Dataset {
            features: Features::Sparse(features.map_err(|error| unsound(error.to_string()))?),
            targets,
        })
    }

    /// Offsets of some rows from the first entry of theirs, and which entries of all they are.
    fn offsets(
        &self,
        content: &Content,
        rows: &Range<usize>,
    ) -> Result<(Vec<u64>, Range<usize>), String> {
        let all: SharedSlice<u64> = array(content, &self.sections.offsets);
        let (nnz, last) = (self.sizes.nnz as u64, self.sizes.rows);
        let (first, end) = (all[rows.start], all[rows.end]);
        if all[0] != 0 || all[last] != nnz || first > end || end > nnz {
            return Err(format!(
                "expected offsets from 0 to {nnz} that ascend, found {} to {}, and {first} to {end}",
                all[0], all[last]
            ));
        }
        // Offsets that do not ascend are found with all else that may be wrong with a matrix.
        let own = all[rows.start..=rows.end].iter();
        let own = own.map(|offset| offset.wrapping_sub(first)).collect();
        Ok((own, first as usize..end as usize))
    }
}

/// The sums of a reader's blocks of a section of numbers, and the first number in them that is not finite.
fn numbers<T: Element>(
    content: &Content,
    section: &Range<usize>,
    portion: (usize, usize),
) -> (Vec<u64>, Option<(usize, String)>) {
    let all: SharedSlice<T> = array(content, section);
    let (sums, own, is_sound) = sums_of_part(&all, portion, all_finite);
    if is_sound {
        return (sums, None);
    }
    let at = first_not_finite(&all[own.clone()]).map(|at| own.start + at);
    let place = |at: usize| (section.start + at * size_of::<T>(), all[at].to_string());
    (sums, at.map(place))
}
