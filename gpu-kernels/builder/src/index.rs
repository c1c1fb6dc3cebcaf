//! What lies in the folder of one architecture, and how it was made: the file `index.json` in it.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{BuildError, Resources};

/// The index of a folder of kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Index {
    /// Fingerprint of the sources and the recipe of which all kernels were made.
    #[serde(default)]
    pub source: String,
    /// By name.
    pub kernels: BTreeMap<String, Record>,
}

/// How a kernel's files were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Fingerprint of its code before optimisation and of the recipe.
    pub code: String,
    /// Fingerprint of its PTX.
    pub ptx: String,
    /// The assembled form, if there is one.
    pub assembled: Option<Assembled>,
}

/// A kernel's machine code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Assembled {
    /// The assembler and the PTX that it was made of.
    pub recipe: String,
    /// What the assembler said.
    pub resources: Resources,
}

impl Index {
    fn path(folder: &Path) -> PathBuf {
        folder.join("index.json")
    }

    /// The index of a folder; `None` if there is none.
    ///
    /// # Errors
    /// [`BuildError::Io`] if it cannot be read or understood.
    pub(crate) fn read(folder: &Path) -> Result<Option<Index>, BuildError> {
        let path = Self::path(folder);
        match fs::read(&path) {
            Ok(json) => serde_json::from_slice(&json)
                .map(Some)
                .map_err(|error| BuildError::io(&path, "understood")(error.into())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(BuildError::io(&path, "read")(error)),
        }
    }

    /// Writes the index aside and renames it: it is never half-written.
    ///
    /// # Errors
    /// [`BuildError::Io`].
    pub(crate) fn save(&self, folder: &Path) -> Result<(), BuildError> {
        let path = Self::path(folder);
        let json = serde_json::to_vec_pretty(self)
            .map_err(|error| BuildError::io(&path, "written")(error.into()))?;
        let unfinished = folder.join("index.part");
        fs::write(&unfinished, json).map_err(BuildError::io(&unfinished, "written"))?;
        fs::rename(&unfinished, &path).map_err(BuildError::io(&path, "written"))
    }
}

/// A short name for something's content.
pub(crate) fn fingerprint(content: impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_reads_back_and_a_folder_without_one_has_none() {
        let folder = std::env::temp_dir().join(format!("warpfuse-index-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a writable temporary folder");
        let none = Index::read(&folder);
        let record = Record {
            code: "1".into(),
            ptx: "2".into(),
            assembled: None,
        };
        let index = Index {
            source: "3".into(),
            kernels: BTreeMap::from([("a".into(), record)]),
        };
        index.save(&folder).expect("writable");
        let read = Index::read(&folder);
        fs::write(Index::path(&folder), "{").expect("writable");
        let broken = Index::read(&folder);
        let _ = fs::remove_dir_all(&folder);
        assert!(matches!(none, Ok(None)));
        assert_eq!(read.ok().flatten(), Some(index));
        assert!(matches!(broken, Err(BuildError::Io { .. })));
    }

    #[test]
    fn fingerprints_tell_texts_apart() {
        assert_eq!(fingerprint("a"), fingerprint("a"));
        assert_ne!(fingerprint("a"), fingerprint("b"));
    }
}
