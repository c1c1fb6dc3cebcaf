//! From a path to bytes: memory maps, compressed files, standard input.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use super::error::{Fault, ReadError};
use crate::mapped::MappedFile;

/// The name that stands for standard input.
const STDIN: &str = "-";
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The whole content of a file.
pub(super) enum Content {
    /// Mapped into memory: nothing is copied, and pages come in as they are read.
    Mapped(Arc<MappedFile>),
    /// Read or decompressed.
    Owned(Vec<u8>),
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(file) => file,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl Content {
    /// Copies the bytes from `start` on to `to`: of a file without mapping them.
    ///
    /// # Errors
    /// As [`MappedFile::copy_to`].
    pub(super) fn copy_to(&self, start: usize, to: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Mapped(file) => file.copy_to(start, to),
            Self::Owned(bytes) => {
                to.copy_from_slice(&bytes[start..start + to.len()]);
                Ok(())
            }
        }
    }

    /// What `parse` makes of the bytes, unless the file was cut or written to meanwhile, which would be found to be some
    /// other mistake. It may have grown.
    ///
    /// # Errors
    /// [`ReadError::Changed`], and those of `parse`.
    pub(super) fn read<R>(
        &self,
        parse: impl FnOnce(&Content) -> Result<R, ReadError>,
    ) -> Result<R, ReadError> {
        let parsed = parse(self);
        if let Self::Mapped(file) = self {
            file.check_beginning()?;
        }
        parsed
    }
}

/// Whether `path` stands for standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN
}

/// The content of `path`, decompressed if it is gzip or zstd, of at most `limit` bytes when it has
/// to be held in memory.
pub(super) fn open(path: &Path, limit: u64) -> Result<Content, ReadError> {
    let raw = open_raw(path, limit)?;
    match raw.read(|raw| decompress(path, raw, limit))? {
        Some(decoded) => Ok(Content::Owned(decoded)),
        None => Ok(raw),
    }
}

/// What compressed bytes are; `None` of others.
fn decompress(path: &Path, raw: &[u8], limit: u64) -> Result<Option<Vec<u8>>, ReadError> {
    let decoded = if raw.starts_with(GZIP) {
        read_all(path, flate2::read::MultiGzDecoder::new(raw), limit)?
    } else if raw.starts_with(ZSTD) {
        let decoder = zstd::stream::read::Decoder::new(raw).map_err(|e| ReadError::io(path, e))?;
        read_all(path, decoder, limit)?
    } else {
        return Ok(None);
    };
    Ok(Some(decoded))
}

fn open_raw(path: &Path, limit: u64) -> Result<Content, ReadError> {
    let fail = |e| ReadError::io(path, e);
    if is_stdin(path) {
        return Ok(Content::Owned(read_all(path, io::stdin().lock(), limit)?));
    }
    let file = File::open(path).map_err(fail)?;
    let kind = file.metadata().map_err(fail)?;
    if kind.is_dir() {
        return Err(fail(io::ErrorKind::IsADirectory.into()));
    }
    // Pipes and the like have no length and cannot be mapped; an empty file has nothing to map.
    if !kind.is_file() || kind.len() == 0 {
        return Ok(Content::Owned(read_all(path, file, limit)?));
    }
    let mapped = MappedFile::new(path, file).map_err(fail)?;
    Ok(Content::Mapped(Arc::new(mapped)))
}

/// Reads to the end, but never more than `limit` bytes: a few bytes can decompress to anything.
fn read_all(path: &Path, reader: impl Read, limit: u64) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let read = reader
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|e| ReadError::io(path, e))? as u64;
    if read > limit {
        let needed = read;
        let why = Some("the decompressed or piped text".to_owned());
        return Err(Fault::Memory { needed, limit, why }.locate(path, &[]));
    }
    Ok(bytes)
}
