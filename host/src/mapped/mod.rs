//! Files that are mapped into memory, and what becomes of those that others write to meanwhile.
//!
//! A page beyond the end of a file that was cut raises a signal in whoever reads it, which would end the program. Such a page
//! reads as zeros here instead, and the mapping remembers it. Whoever has used the bytes asks [`MappedFile::check`] before
//! the results are believed.

#[cfg(unix)]
mod guard;

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use memmap2::Mmap;

/// A file was cut or written to while its bytes were in use where they are mapped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FileChanged {
    /// The file.
    pub path: PathBuf,
    /// Bytes that it had when it was opened.
    pub expected_bytes: u64,
    /// Bytes that it has now; `None` where nobody can tell.
    pub found_bytes: Option<u64>,
}

impl fmt::Display for FileChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, expected) = (self.path.display(), self.expected_bytes);
        write!(
            f,
            "{path} changed while it was in use: expected {expected} bytes as they were, found "
        )?;
        match self.found_bytes {
            Some(found) if found != expected => write!(f, "{found} bytes")?,
            _ => f.write_str("others")?,
        }
        f.write_str("; run again when no other program writes to the file")
    }
}

/// The bytes of a file, as they are read.
pub(crate) struct MappedFile {
    // Given up before the memory is, which may be anybody's then.
    #[cfg(unix)]
    guard: guard::Guard,
    map: Mmap,
    file: File,
    path: PathBuf,
    opened: Stamp,
}

/// By what a change is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

impl MappedFile {
    /// Maps a file that is not empty.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn new(path: &Path, file: File) -> io::Result<MappedFile> {
        let opened = Stamp::of(&file.metadata()?);
        // SAFETY: the map is only read. Bytes that others write to it are checked like any others, but for the indices
        // of a binary cache, which are checked once: nobody may write to such a file in its place, as the
        // documentation of `read` says. This library puts another file there. Pages that are cut off read as zeros.
        let map = unsafe { Mmap::map(&file) }?;
        Ok(MappedFile {
            #[cfg(unix)]
            guard: guard::Guard::new(&map),
            map,
            file,
            path: path.to_owned(),
            opened,
        })
    }

    /// Copies the bytes from `start` on to `to`, where that is possible without mapping them: it saves the memory and the
    /// faults of their pages.
    ///
    /// # Errors
    /// When the file cannot be read; [`io::ErrorKind::UnexpectedEof`] when it has become shorter.
    pub(crate) fn copy_to(&self, start: usize, to: &mut [u8]) -> io::Result<()> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_exact_at(&self.file, to, start as u64);
        #[cfg(not(unix))]
        {
            to.copy_from_slice(&self[start..start + to.len()]);
            Ok(())
        }
    }

    /// Whether all bytes that were read were the file's, as it was when it was opened.
    ///
    /// # Errors
    /// [`FileChanged`] if not.
    pub(crate) fn check(&self) -> Result<(), FileChanged> {
        self.check_as(|now| now == self.opened)
    }

    /// [`MappedFile::check`] of a file that may have grown, as logs do.
    ///
    /// # Errors
    /// As [`MappedFile::check`].
    pub(crate) fn check_beginning(&self) -> Result<(), FileChanged> {
        self.check_as(|now| now == self.opened || now.bytes > self.opened.bytes)
    }

    fn check_as(&self, is_sound: impl Fn(Stamp) -> bool) -> Result<(), FileChanged> {
        let now = self.file.metadata().map(|metadata| Stamp::of(&metadata));
        if !self.has_lost_pages() && matches!(now, Ok(now) if is_sound(now)) {
            return Ok(());
        }
        Err(FileChanged {
            path: self.path.clone(),
            expected_bytes: self.opened.bytes,
            found_bytes: now.ok().map(|now| now.bytes),
        })
    }

    #[cfg(unix)]
    fn has_lost_pages(&self) -> bool {
        self.guard.has_lost_pages()
    }

    #[cfg(not(unix))]
    fn has_lost_pages(&self) -> bool {
        false
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, bytes) = (self.path.display(), self.map.len());
        write!(f, "MappedFile({path}, {bytes} bytes)")
    }
}

/// Bytes that one task gives back.
#[cfg(unix)]
const PER_TASK: usize = 64 << 20;

#[cfg(unix)]
impl Drop for MappedFile {
    /// Pages are given back by all cores: one takes a quarter of a second for 19 GB.
    fn drop(&mut self) {
        crate::parallel::for_each(self.map.len().div_ceil(PER_TASK), |task| {
            let start = task * PER_TASK;
            let len = PER_TASK.min(self.map.len() - start);
            // SAFETY: nobody has a reference into the map any more, and pages of a file that is mapped for reading
            // hold nothing but what is in the file.
            let given = unsafe {
                let advice = memmap2::UncheckedAdvice::DontNeed;
                self.map.unchecked_advise_range(advice, start, len)
            };
            // Unmapping gives back what is left.
            drop(given);
        });
    }
}

#[cfg(test)]
mod tests;
