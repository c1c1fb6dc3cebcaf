//! A binary CSR cache: parsing text is the slow part of every run but the first.
//!
//! Layout, all numbers in the byte order of the machine that wrote it (a mark says which): a header
//! of 128 bytes, row offsets (u64, rows + 1 of them), column indices (u32), values, targets if there
//! are any; each section is padded to a multiple of 8 bytes. The header carries sizes, element type,
//! checksum, and the size, time and reading options of the text that the cache was made from. A
//! cache is checked in full when it is loaded, as any other file from outside. Its arrays are used where the file is
//! mapped; targets are copied. Whoever reads arrays of a file that was cut or written to since gets
//! [`FileChanged`](crate::matrix::FileChanged).

#[cfg(unix)]
mod convert;
mod header;
mod load;
mod part;
#[cfg(unix)]
mod rows;
mod store;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::options::{Columns, IndexBase, ReadOptions};
#[cfg(unix)]
use super::scan::Meter;
use super::source;
use crate::matrix::{Dataset, Element};

pub(super) use header::MAGIC;
pub(super) use load::parse;
pub(super) use part::{Found, Part};
#[cfg(unix)]
#[doc(hidden)]
pub use rows::{CacheRows, write_cache_rows};
#[doc(hidden)]
pub use store::reseal_cache;
pub use store::write_cache;

/// What is added to the name of a text for the name of its cache.
const EXTENSION: &str = "wfc";

/// What a cache was made from, and how that was read. All zero: not made from a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Source {
    /// Size of the text in bytes.
    size: u64,
    /// Time of modification in nanoseconds since 1970.
    modified: u64,
    /// The options that decide what the text means.
    options: u64,
}

/// The cache that belongs to a text file.
#[derive(Debug, Clone)]
pub(super) struct Companion {
    path: PathBuf,
    source: Source,
}

impl Companion {
    /// The companion of `text` as the file is now; `None` for what cannot have one.
    ///
    /// To be called before the text is read: should the file change meanwhile, the cache is stale
    /// rather than wrong.
    pub(super) fn of(text: &Path, options: &ReadOptions) -> Option<Self> {
        let file = std::fs::metadata(text).ok().filter(|file| file.is_file())?;
        if source::is_stdin(text) || text.extension().is_some_and(|e| e == EXTENSION) {
            return None;
        }
        let modified = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let mut path = OsString::from(text);
        path.push(".");
        path.push(EXTENSION);
        Some(Self {
            path: path.into(),
            source: Source {
                size: file.len(),
                modified: u64::try_from(modified.as_nanos()).ok()?,
                options: fingerprint(options),
            },
        })
    }

    /// The cached data, if they are there, fresh, sound and of the right element type.
    pub(super) fn load<T: Element>(&self, options: &ReadOptions) -> Option<Dataset<T>> {
        let limit = options.memory.bytes();
        let content = source::open(&self.path, limit).ok()?;
        let read = |content: &_| load::parse_fresh(&self.path, content, limit, self.source);
        match content.read(read) {
            Ok(data) => data,
            Err(error) => {
                tracing::warn!(%error, "an unsound cache is ignored");
                None
            }
        }
    }

    /// Writes the cache of a LIBSVM text without keeping what it holds in memory; whether it could be written.
    #[cfg(unix)]
    pub(super) fn convert<T: Element>(
        &self,
        (path, text): (&Path, &source::Content),
        options: &ReadOptions,
        meter: &Meter<'_>,
    ) -> Result<bool, super::ReadError> {
        convert::convert::<T>((&self.path, self.source), (path, text), options, meter)
    }

    /// Writes the cache; dense data are left alone.
    pub(super) fn store<T: Element>(&self, data: &Dataset<T>) -> Result<(), super::WriteError> {
        if !data.features.is_sparse() {
            return Ok(());
        }
        store::store(&self.path, data, self.source)
    }
}

/// A number that differs between options under which the same text means different data.
fn fingerprint(options: &ReadOptions) -> u64 {
    let format = options.format.map_or(0, |format| 1 + format as u64);
    let base = match options.index_base {
        IndexBase::Auto => 0,
        IndexBase::Zero => 1,
        IndexBase::One => 2,
    };
    let (rule, columns) = match options.columns {
        Columns::Infer => (0, 0),
        Columns::AtLeast(n) => (1, n as u64),
        Columns::Exactly(n) => (2, n as u64),
    };
    // Columns are checked to fit 32 bits before they get here.
    columns << 32 | rule << 16 | base << 8 | format
}
