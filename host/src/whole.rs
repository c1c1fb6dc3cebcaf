//! Files that are written as a whole or not at all.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

use crate::unfinished::UnfinishedFile;

/// What a file is to hold, written to wherever it goes first.
pub(crate) type Fill<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;

/// Writes `bytes` to `path`.
///
/// A regular file is replaced at once, by one that had no name before: an interrupted write or a full disk leaves what
/// was there. Its mode stays; a new file has that of the umask. Devices, pipes and sockets are written to, and symbolic
/// links are followed: none of them is ever replaced.
///
/// # Errors
/// When the file system refuses.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    keep_whole(path, &mut |out| out.write_all(bytes))
}

/// Writes to `path` what `fill` writes, as [`write_whole`] does, but leaves it to the system when the disk has it: data can be
/// made again.
///
/// # Errors
/// When the file system refuses, and as `fill`.
pub(crate) fn fill_whole(path: &Path, fill: Fill<'_>) -> io::Result<()> {
    write_following(path, (fill, Kept::WhileThereIsPower), MOST_LINKS)
}

/// [`fill_whole`] of what cannot be made again: it survives that the power is lost.
///
/// # Errors
/// As [`fill_whole`].
pub(crate) fn keep_whole(path: &Path, fill: Fill<'_>) -> io::Result<()> {
    write_following(path, (fill, Kept::AfterPowerIsLost), MOST_LINKS)
}

/// What a file that was written survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    WhileThereIsPower,
    AfterPowerIsLost,
}

/// Symbolic links that lead to each other; Linux follows as many.
const MOST_LINKS: usize = 40;

fn write_following(path: &Path, (fill, kept): (Fill<'_>, Kept), links: usize) -> io::Result<()> {
    if is_stream(path) {
        return write_through(path, fill);
    }
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            let target = fs::read_link(path)?;
            // Beside the link, unless it is absolute.
            let target = path.parent().map_or(target.clone(), |of| of.join(&target));
            let left = links.checked_sub(1).ok_or(ErrorKind::InvalidInput)?;
            write_following(&target, (fill, kept), left)
        }
        Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(found) if found.is_file() => replace(path, (fill, kept), Some(found.permissions())),
        Ok(_) => write_through(path, fill),
        Err(error) if error.kind() == ErrorKind::NotFound => replace(path, (fill, kept), None),
        Err(error) => Err(error),
    }
}

/// Fails where [`write_whole`] would find no place: a folder that is missing or takes no files, or a folder in the
/// file's stead.
///
/// # Errors
/// When the file system refuses.
pub(crate) fn check_place(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => Ok(()),
        _ if is_stream(path) => Ok(()),
        _ => UnfinishedFile::beside(&target_of(path)).map(drop),
    }
}

/// Where a link leads that leads nowhere yet, or the path itself.
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

fn write_through(path: &Path, fill: Fill<'_>) -> io::Result<()> {
    let mut file = BufWriter::new(OpenOptions::new().append(true).open(path)?);
    fill(&mut file)?;
    file.flush()
}

fn replace(
    path: &Path,
    (fill, kept): (Fill<'_>, Kept),
    mode: Option<Permissions>,
) -> io::Result<()> {
    let mut file = UnfinishedFile::beside(path)?;
    let mut buffered = BufWriter::new(&mut file);
    fill(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    if let Some(mode) = mode {
        file.file().set_permissions(mode)?;
    }
    if kept == Kept::AfterPowerIsLost {
        file.file().sync_all()?;
    }
    file.persist(path)
}
