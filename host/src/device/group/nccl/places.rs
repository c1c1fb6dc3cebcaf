//! Where NCCL may be.

use std::error::Error;
use std::ffi::c_int;
use std::path::{Path, PathBuf};

use libloading::Library as Opened;
use libloading::os::unix::{Library as UnixLibrary, RTLD_LOCAL, RTLD_NOW};

/// The name that its package has, and the system's.
const NAME: &str = "libnccl.so.2";
/// Where the package of PyPI puts it, below a folder of Python's packages.
const IN_PACKAGES: &str = "nvidia/nccl/lib/libnccl.so.2";
/// A place to look at.
pub(super) enum Candidate {
    /// What the process has opened.
    Loaded,
    File(PathBuf),
}

impl std::fmt::Display for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Candidate::Loaded => write!(f, "{NAME} of this process"),
            Candidate::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Candidate {
    pub(super) fn open(&self) -> Result<Opened, String> {
        const NOLOAD: c_int = 4;
        let opened = match self {
            // SAFETY: the library's initialisers have run.
            Candidate::Loaded => unsafe {
                UnixLibrary::open(Some(NAME), RTLD_NOW | RTLD_LOCAL | NOLOAD)
            },
            // SAFETY: the initialisers of NCCL are made to run in any process that opens it.
            Candidate::File(path) => unsafe {
                UnixLibrary::open(Some(path), RTLD_NOW | RTLD_LOCAL)
            },
        };
        opened.map(Into::into).map_err(|error| {
            let source = error.source();
            source.map_or_else(|| format!("{self}: {error}"), ToString::to_string)
        })
    }
}

/// Where it may be, in the order in which it is looked for.
pub(super) fn candidates() -> Vec<Candidate> {
    if let Some(named) = std::env::var_os("WARPFUSE_NCCL").filter(|named| !named.is_empty()) {
        return vec![Candidate::File(named.into())];
    }
    let mut all = vec![Candidate::Loaded];
    let installed = roots().into_iter().flat_map(|root| packages_of(&root));
    let installed = installed.map(|packages| packages.join(IN_PACKAGES));
    all.extend(installed.filter(|path| path.exists()).map(Candidate::File));
    all.push(Candidate::File(NAME.into()));
    all
}

/// Folders that have `lib/pythonX.Y`: of environments, of whatever Python the search path has, of the system, of the user.
fn roots() -> Vec<PathBuf> {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let mut roots: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .into_iter()
        .filter_map(of)
        .collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        if folder.join("python3").exists() {
            roots.extend(folder.parent().map(Path::to_owned));
        }
    }
    roots.extend(["/usr/local", "/usr", "/opt/conda"].map(PathBuf::from));
    roots.extend(of("HOME").map(|home| home.join(".local")));
    roots.dedup();
    roots
}

/// The folders of packages below a root.
fn packages_of(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root.join("lib")) else {
        return Vec::new();
    };
    let pythons = entries.flatten().map(|entry| entry.path());
    let pythons = pythons.filter(|path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("python3")
    });
    let each = pythons.flat_map(|path| ["site-packages", "dist-packages"].map(|of| path.join(of)));
    each.filter(|path| path.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_found_below_any_python() {
        let root = tempfile::tempdir().expect("a folder");
        let packages = root.path().join("lib/python3.12/site-packages");
        std::fs::create_dir_all(&packages).expect("folders");
        std::fs::create_dir_all(root.path().join("lib/perl5/site-packages")).expect("folders");
        assert_eq!(packages_of(root.path()), [packages]);
    }

    #[test]
    fn a_file_that_is_missing_is_an_error_that_names_it() {
        let missing = Candidate::File("/no/such/libnccl.so.2".into());
        let reason = missing.open().expect_err("there is none");
        assert!(reason.contains("/no/such/libnccl.so.2"), "{reason}");
    }
}
