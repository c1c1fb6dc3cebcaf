//! Tests of the readers as users see them: files in, data sets or errors out.

mod bad_files;
mod reading;
mod round_trip;

use std::path::PathBuf;

use tempfile::TempDir;

use super::{ReadError, ReadOptions, read};
use crate::matrix::{CsrMatrix, Dataset, Features};

/// A folder for one test, and a file in it.
pub(super) struct Scratch {
    _folder: TempDir,
    pub(super) path: PathBuf,
}

/// A file called `name` with this content.
pub(super) fn file(name: &str, content: impl AsRef<[u8]>) -> Scratch {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    std::fs::write(&path, content).expect("a writable folder");
    Scratch {
        _folder: folder,
        path,
    }
}

/// Reads `content` as a file called `name`.
pub(super) fn read_as(
    name: &str,
    content: impl AsRef<[u8]>,
    options: &ReadOptions,
) -> Result<Dataset<f64>, ReadError> {
    read(&file(name, content).path, options)
}

/// The same with the default options, as sparse features and targets.
pub(super) fn read_sparse(name: &str, content: impl AsRef<[u8]>) -> (CsrMatrix<f64>, Vec<f64>) {
    let data = read_as(name, content, &ReadOptions::default()).expect("a good file");
    match data.features {
        Features::Sparse(x) => (x, data.targets.unwrap_or_default()),
        Features::Narrow(_) | Features::Dense(_) | Features::Shared(_) => {
            panic!("sparse features expected")
        }
    }
}
