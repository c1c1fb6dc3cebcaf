//! Files that have no name until they are complete.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is being written, to take a name when it is complete. What is interrupted before, even by a signal that
/// nobody can catch, leaves nothing in the folder: on Linux the file has no name there until then. Where the file system
/// knows no such files, it has a name of its own, and is removed unless the process is killed.
pub(crate) struct UnfinishedFile {
    kind: Kind,
    folder: PathBuf,
}

enum Kind {
    #[cfg(target_os = "linux")]
    Nameless(File),
    Named(tempfile::NamedTempFile),
}

impl UnfinishedFile {
    /// A new file that is to be `path`, readable by those whom the umask allows.
    ///
    /// # Errors
    /// When the folder does not exist, or takes no files.
    pub(crate) fn beside(path: &Path) -> io::Result<UnfinishedFile> {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        #[cfg(target_os = "linux")]
        if let Ok(file) = linux::nameless_in(&folder) {
            let kind = Kind::Nameless(file);
            return Ok(UnfinishedFile { kind, folder });
        }
        let kind = Kind::Named(named_in(&folder)?);
        Ok(UnfinishedFile { kind, folder })
    }

    /// The file.
    pub(crate) fn file(&self) -> &File {
        match &self.kind {
            #[cfg(target_os = "linux")]
            Kind::Nameless(file) => file,
            Kind::Named(file) => file.as_file(),
        }
    }

    /// Gives the file its name, instead of what had it.
    ///
    /// # Errors
    /// When the file system refuses; nothing is left then, and what had the name still has it.
    pub(crate) fn persist(self, path: &Path) -> io::Result<()> {
        match self.kind {
            // A link does not replace what is there, and a new name does: so it gets two names, one after the other.
            #[cfg(target_os = "linux")]
            Kind::Nameless(file) => {
                let link = |name: &Path| linux::link(&file, name);
                let named = builder().make_in(&self.folder, link)?;
                named.persist(path).map_err(|error| error.error)
            }
            Kind::Named(file) => {
                let persisted = file.persist(path);
                persisted.map(drop).map_err(|error| error.error)
            }
        }
    }
}

impl Write for UnfinishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".warpfuse-");
    builder
}

fn named_in(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = builder();
    #[cfg(unix)]
    {
        // Data folders are shared, and temporary files are private by default; the umask takes its part.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CString;
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::Path;

    /// A file without a name on the file system of `folder`.
    pub(super) fn nameless_in(folder: &Path) -> io::Result<File> {
        let mut options = File::options();
        let options = options.read(true).write(true).mode(0o666);
        options.custom_flags(libc::O_TMPFILE).open(folder)
    }

    /// Gives a file without a name one.
    pub(super) fn link(file: &File, path: &Path) -> io::Result<()> {
        let own = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let path = CString::new(path.as_os_str().as_bytes())?;
        let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
        // SAFETY: both texts end with a zero and outlive the call, which keeps neither.
        let result = unsafe { libc::linkat(here, own.as_ptr(), here, path.as_ptr(), follow) };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> usize {
        std::fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn a_file_has_a_name_when_it_is_complete_and_none_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("whole");
        for text in ["first", "second"] {
            let before = names(folder.path());
            let mut file = UnfinishedFile::beside(&path).expect("a file");
            file.write_all(text.as_bytes()).expect("written");
            #[cfg(target_os = "linux")]
            if matches!(file.kind, Kind::Nameless(_)) {
                assert_eq!(names(folder.path()), before);
            }
            file.persist(&path).expect("a name");
            assert_eq!(std::fs::read_to_string(&path).expect("read"), text);
            assert_eq!(names(folder.path()), 1);
        }
    }

    #[test]
    fn what_is_not_completed_leaves_what_was_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("whole");
        std::fs::write(&path, "before").expect("written");
        let mut file = UnfinishedFile::beside(&path).expect("a file");
        file.write_all(b"half").expect("written");
        drop(file);
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "before");
        assert_eq!(names(folder.path()), 1);
        // A folder is not replaced, and nothing is left beside it.
        let taken = folder.path().join("folder");
        std::fs::create_dir(&taken).expect("a folder");
        let file = UnfinishedFile::beside(&taken).expect("a file");
        assert!(file.persist(&taken).is_err());
        assert_eq!(names(folder.path()), 2);
        assert!(UnfinishedFile::beside(Path::new("/no/such/folder/file")).is_err());
    }
}
