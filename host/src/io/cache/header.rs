//! The first 128 bytes of a cache, and what they say about the rest.

use std::ops::Range;
use std::path::Path;

use bytemuck::{Pod, Zeroable};

use super::super::error::{ReadError, excerpt};
use super::Source;
use crate::matrix::Dtype;
use crate::parallel::checksum::combine;

/// How every cache starts; the line ends show a transfer that took it for text.
pub(in super::super) const MAGIC: &[u8] = b"WFCSR\r\n\0";
/// Goes up with every change of the layout.
const VERSION: u32 = 1;
/// Reads differently on a machine of the other byte order.
const BYTE_ORDER_MARK: u32 = 0x0102_0304;

/// As it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Header {
    magic: [u8; 8],
    version: u32,
    byte_order: u32,
    element_size: u32,
    has_targets: u32,
    pub(super) rows: u64,
    pub(super) cols: u64,
    pub(super) nnz: u64,
    source_size: u64,
    source_modified: u64,
    source_options: u64,
    /// Of the sections, in order.
    pub(super) checksum: u64,
    /// Of everything above.
    own_checksum: u64,
    reserved: [u64; 5],
}

/// Length of the header in bytes.
pub(super) const LENGTH: usize = size_of::<Header>();

/// Sizes of what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) nnz: usize,
    pub(super) dtype: Dtype,
    pub(super) has_targets: bool,
}

/// Where the sections lie, in bytes from the start of the file, without their padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sections {
    pub(super) offsets: Range<usize>,
    pub(super) indices: Range<usize>,
    pub(super) values: Range<usize>,
    pub(super) targets: Range<usize>,
    /// Length of the file.
    pub(super) end: usize,
}

impl Sizes {
    /// The places of the sections; `None` where a size overflows.
    pub(super) fn sections(&self) -> Option<Sections> {
        let mut end = LENGTH;
        let mut section = |count: usize, size: usize| {
            let start = end;
            let stop = start.checked_add(count.checked_mul(size)?)?;
            end = stop.checked_next_multiple_of(8)?;
            Some(start..stop)
        };
        let size = self.dtype.size();
        let targets = if self.has_targets { self.rows } else { 0 };
        Some(Sections {
            offsets: section(self.rows.checked_add(1)?, 8)?,
            indices: section(self.nnz, 4)?,
            values: section(self.nnz, size)?,
            targets: section(targets, size)?,
            end,
        })
    }
}

impl Header {
    pub(super) fn new(sizes: Sizes, source: Source, checksum: u64) -> Self {
        let mut header = Self {
            magic: MAGIC.try_into().expect("eight bytes"),
            version: VERSION,
            byte_order: BYTE_ORDER_MARK,
            element_size: sizes.dtype.size() as u32,
            has_targets: u32::from(sizes.has_targets),
            rows: sizes.rows as u64,
            cols: sizes.cols as u64,
            nnz: sizes.nnz as u64,
            source_size: source.size,
            source_modified: source.modified,
            source_options: source.options,
            checksum,
            own_checksum: 0,
            reserved: [0; 5],
        };
        header.own_checksum = header.sum();
        header
    }

    /// Reads and checks the header at the start of `content`.
    pub(super) fn parse(path: &Path, content: &[u8]) -> Result<Self, ReadError> {
        let bad = |expected: &str, found: String| ReadError::binary(path, 0, expected, found);
        if !content.starts_with(MAGIC) {
            return Err(bad("the magic bytes of a CSR cache", excerpt(content)));
        }
        let Some(bytes) = content.get(..LENGTH) else {
            let found = format!("{} bytes", content.len());
            return Err(bad("a header of 128 bytes", found));
        };
        let header: Self = bytemuck::pod_read_unaligned(bytes);
        if header.byte_order != BYTE_ORDER_MARK {
            let found = format!("the byte order mark {:#010x}", header.byte_order);
            return Err(bad(
                "a cache written by a machine of the same byte order",
                found,
            ));
        }
        if header.version != VERSION {
            let found = format!("version {}", header.version);
            return Err(bad("a cache of version 1 (write it anew)", found));
        }
        if header.own_checksum != header.sum() {
            return Err(bad(
                "a header that agrees with its checksum",
                "damage".to_owned(),
            ));
        }
        Ok(header)
    }

    /// What is stored, if the numbers make sense.
    pub(super) fn sizes(&self) -> Option<Sizes> {
        Some(Sizes {
            rows: usize::try_from(self.rows).ok()?,
            cols: usize::try_from(self.cols).ok()?,
            nnz: usize::try_from(self.nnz).ok()?,
            dtype: match self.element_size {
                4 => Dtype::F32,
                8 => Dtype::F64,
                _ => return None,
            },
            has_targets: match self.has_targets {
                0 => false,
                1 => true,
                _ => return None,
            },
        })
    }

    /// What the cache was made from.
    pub(super) fn source(&self) -> Source {
        Source {
            size: self.source_size,
            modified: self.source_modified,
            options: self.source_options,
        }
    }

    fn sum(&self) -> u64 {
        let mut plain = *self;
        plain.own_checksum = 0;
        let words: [u64; LENGTH / 8] = bytemuck::cast(plain);
        words.into_iter().fold(0, combine)
    }
}
