//! From a path to bytes: memory maps, compressed files, standard input.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;
#[cfg(unix)]
use rayon::prelude::*;

use super::error::{Fault, ReadError};

/// The name that stands for standard input.
const STDIN: &str = "-";
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The whole content of a file.
pub(super) enum Content {
    /// Mapped into memory: nothing is copied, and pages come in as they are read.
    Mapped {
        /// The pages.
        map: Pages,
        /// The file, for what is to be copied anyway.
        #[cfg_attr(
            not(unix),
            expect(dead_code, reason = "read where it can be read anywhere")
        )]
        file: File,
    },
    /// Read or decompressed.
    Owned(Vec<u8>),
}

/// A mapped file, whose pages are given back by all cores: one takes a quarter of a second for 19 GB.
pub(super) struct Pages(Mmap);

/// Bytes that one task gives back.
const PER_TASK: usize = 64 << 20;

impl Drop for Pages {
    fn drop(&mut self) {
        #[cfg(unix)]
        (0..self.0.len().div_ceil(PER_TASK))
            .into_par_iter()
            .for_each(|task| {
                let start = task * PER_TASK;
                let len = PER_TASK.min(self.0.len() - start);
                // SAFETY: nobody has a reference into the map any more, and pages of a file that is mapped for reading
                // hold nothing but what is in the file.
                let given = unsafe {
                    let advice = memmap2::UncheckedAdvice::DontNeed;
                    self.0.unchecked_advise_range(advice, start, len)
                };
                // Unmapping gives back what is left.
                drop(given);
            });
    }
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped { map, .. } => &map.0,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl Content {
    /// Copies the bytes from `start` on to `to`: of a file without mapping them, which saves the memory and the faults of
    /// its pages.
    ///
    /// # Errors
    /// When the file cannot be read; [`io::ErrorKind::UnexpectedEof`] when it has become shorter.
    pub(super) fn copy_to(&self, start: usize, to: &mut [u8]) -> io::Result<()> {
        match self {
            #[cfg(unix)]
            Self::Mapped { file, .. } => {
                std::os::unix::fs::FileExt::read_exact_at(file, to, start as u64)
            }
            _ => {
                to.copy_from_slice(&self[start..start + to.len()]);
                Ok(())
            }
        }
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
    let decoded = if raw.starts_with(GZIP) {
        read_all(path, flate2::read::MultiGzDecoder::new(&raw[..]), limit)?
    } else if raw.starts_with(ZSTD) {
        let decoder =
            zstd::stream::read::Decoder::new(&raw[..]).map_err(|e| ReadError::io(path, e))?;
        read_all(path, decoder, limit)?
    } else {
        return Ok(raw);
    };
    Ok(Content::Owned(decoded))
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
    // SAFETY: the map is only read. Should another process shorten the file meanwhile, reading
    // beyond its end raises SIGBUS, as with every tool that maps its input; rewriting it in place
    // changes what is parsed, and every index and size is checked on the bytes that are stored.
    // The arrays of a binary cache are used where they lie: this library never changes such a file
    // but puts another in its place, and the documentation asks the same of others.
    let map = unsafe { Mmap::map(&file) }.map_err(fail)?;
    let map = Pages(map);
    Ok(Content::Mapped { map, file })
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
