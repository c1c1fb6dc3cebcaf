//! Files that are written as a whole or not at all.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use crate::unfinished::UnfinishedFile;

/// Writes `bytes` to `path`.
///
/// A regular file is replaced at once, by one that had no name before: an interrupted write or a full disk leaves what
/// was there. Its mode stays; a new file has that of the umask. Devices, pipes and sockets are written to, and symbolic
/// links are followed: none of them is ever replaced.
///
/// # Errors
/// When the file system refuses.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_following(path, bytes, MOST_LINKS)
}

/// Symbolic links that lead to each other; Linux follows as many.
const MOST_LINKS: usize = 40;

fn write_following(path: &Path, bytes: &[u8], links: usize) -> io::Result<()> {
    if is_stream(path) {
        return write_through(path, bytes);
    }
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            let target = fs::read_link(path)?;
            // Beside the link, unless it is absolute.
            let target = path.parent().map_or(target.clone(), |of| of.join(&target));
            let left = links.checked_sub(1).ok_or(ErrorKind::InvalidInput)?;
            write_following(&target, bytes, left)
        }
        Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(found) if found.is_file() => replace(path, bytes, Some(found.permissions())),
        Ok(_) => write_through(path, bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => replace(path, bytes, None),
        Err(error) => Err(error),
    }
}

/// Fails where [`write_whole`] would find no place: a folder that is missing or takes no files, or a folder in the
/// file's stead.
///
/// # Errors
/// When the file system refuses.
#[cfg(feature = "cli")]
pub(crate) fn check_place(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => Ok(()),
        _ if is_stream(path) => Ok(()),
        _ => UnfinishedFile::beside(&target_of(path)).map(drop),
    }
}

/// Where a link leads that leads nowhere yet, or the path itself.
#[cfg(feature = "cli")]
fn target_of(path: &Path) -> std::path::PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else {
            break;
        };
        path = path.parent().map_or(target.clone(), |of| of.join(&target));
    }
    path
}

/// Whether a path names an open file of the process, such as `/dev/stdout`, whatever that is.
fn is_stream(path: &Path) -> bool {
    let of_process = |path: &Path| path.starts_with("/proc") || path.starts_with("/dev/fd");
    of_process(path) || fs::read_link(path).is_ok_and(|target| of_process(&target))
}

fn write_through(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(bytes)?;
    file.flush()
}

fn replace(path: &Path, bytes: &[u8], mode: Option<Permissions>) -> io::Result<()> {
    let mut file = UnfinishedFile::beside(path)?;
    file.write_all(bytes)?;
    if let Some(mode) = mode {
        file.file().set_permissions(mode)?;
    }
    file.file().sync_all()?;
    file.persist(path)
}
