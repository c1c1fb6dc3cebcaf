//! What a build leaves behind: a folder for each architecture, with PTX and machine code of every kernel and an index.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::index::Index;
use crate::{Arch, BuildError, Resources, checks};

/// The kernels for one architecture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Image {
    /// For which.
    pub arch: Arch,
    /// Where their files lie.
    pub folder: PathBuf,
    /// Their names, sorted.
    pub kernels: Vec<String>,
    /// Whether machine code was made too: ptxas was at hand.
    pub assembled: bool,
    /// What each kernel takes, sorted by name; empty without ptxas.
    pub resources: Vec<Resources>,
}

/// Where the kernels for an architecture lie in a folder of kernels.
pub(crate) fn folder_of(folder: &Path, arch: Arch) -> PathBuf {
    folder.join(arch.name())
}

/// Where a kernel's PTX lies in the folder of its architecture.
pub(crate) fn ptx_file(folder: &Path, kernel: &str) -> PathBuf {
    folder.join("kernels").join(format!("{kernel}.ptx"))
}

impl Image {
    /// The file with a kernel's PTX.
    pub fn ptx(&self, kernel: &str) -> PathBuf {
        ptx_file(&self.folder, kernel)
    }

    /// The file with a kernel's machine code, if it was made.
    pub fn cubin(&self, kernel: &str) -> Option<PathBuf> {
        self.assembled
            .then(|| ptx_file(&self.folder, kernel).with_extension("cubin"))
    }

    /// Reads the images of a folder, oldest architecture first.
    ///
    /// # Errors
    /// [`BuildError::NoImages`] if there is none in it, [`BuildError::Io`] if an index cannot be read.
    pub fn read_folder(folder: &Path) -> Result<Vec<Image>, BuildError> {
        let mut images = Vec::new();
        for arch in Arch::ALL {
            let of_arch = folder_of(folder, arch);
            if let Some(index) = Index::read(&of_arch)? {
                images.push(Self::of(arch, of_arch, &index));
            }
        }
        if images.is_empty() {
            return Err(BuildError::NoImages {
                folder: folder.to_owned(),
            });
        }
        Ok(images)
    }

    /// The image of a folder with this index.
    pub(crate) fn of(arch: Arch, folder: PathBuf, index: &Index) -> Image {
        let assembled = |(_, record): (_, &crate::index::Record)| record.assembled.clone();
        let made: Vec<_> = index.kernels.iter().filter_map(assembled).collect();
        let assembled = !made.is_empty() && made.len() == index.kernels.len();
        Image {
            arch,
            folder,
            kernels: index.kernels.keys().cloned().collect(),
            assembled,
            resources: made
                .into_iter()
                .filter(|_| assembled)
                .map(|made| made.resources)
                .collect(),
        }
    }

    /// The same without machine code: that of an earlier build may be of other PTX.
    pub(crate) fn without_machine_code(self) -> Image {
        Image {
            assembled: false,
            resources: Vec::new(),
            ..self
        }
    }

    /// Checks that it has every kernel of these names.
    ///
    /// # Errors
    /// [`BuildError::MissingEntries`].
    pub fn require<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<(), BuildError> {
        let found: Vec<&str> = self.kernels.iter().map(String::as_str).collect();
        checks::require(&found, self.arch, names)
    }

    /// Copies the image's files into a folder, which is made if need be.
    ///
    /// # Errors
    /// [`BuildError::Io`] with the path that could not be written.
    pub fn copy_to(&self, folder: &Path) -> Result<(), BuildError> {
        let to = folder_of(folder, self.arch);
        let kernels = to.join("kernels");
        fs::create_dir_all(&kernels).map_err(BuildError::io(&kernels, "created"))?;
        let copy =
            |from: &Path, to: PathBuf| fs::copy(from, &to).map_err(BuildError::io(&to, "written"));
        for kernel in &self.kernels {
            copy(&self.ptx(kernel), ptx_file(&to, kernel))?;
            if let Some(cubin) = self.cubin(kernel) {
                copy(&cubin, ptx_file(&to, kernel).with_extension("cubin"))?;
            }
        }
        copy(&self.folder.join("index.json"), to.join("index.json")).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Assembled, Record};

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("warpfuse-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a writable temporary folder");
        folder
    }

    fn record(registers: Option<u32>) -> Record {
        let resources = |registers| Resources {
            entry: "a".into(),
            registers,
            ..Resources::default()
        };
        Record {
            code: "code".into(),
            ptx: "ptx".into(),
            assembled: registers.map(|registers| Assembled {
                recipe: "ptxas".into(),
                resources: resources(registers),
            }),
        }
    }

    fn index(kernels: &[(&str, Option<u32>)]) -> Index {
        let kernels = kernels.iter().map(|&(name, r)| (name.into(), record(r)));
        Index {
            source: String::new(),
            kernels: kernels.collect(),
        }
    }

    #[test]
    fn what_is_copied_reads_back_the_same() {
        let (from, to) = (scratch("from"), scratch("to"));
        let of_arch = folder_of(&from, Arch::Sm90);
        fs::create_dir_all(of_arch.join("kernels")).expect("writable");
        let ptx = ptx_file(&of_arch, "a");
        fs::write(&ptx, "ptx").expect("writable");
        fs::write(ptx.with_extension("cubin"), "cubin").expect("writable");
        index(&[("a", Some(32))]).save(&of_arch).expect("writable");
        let image = Image::read_folder(&from).expect("one image").remove(0);
        image.copy_to(&to).expect("writable");
        let read = Image::read_folder(&to).expect("one image");
        let copied = read[0].cubin("a").map(fs::read);
        let required = image.require(["a", "b"]);
        let _ = (fs::remove_dir_all(&from), fs::remove_dir_all(&to));

        assert_eq!(read.len(), 1);
        assert_eq!(read[0].resources, image.resources);
        assert_eq!(image.resources[0].registers, 32);
        assert_eq!(copied.and_then(Result::ok), Some(b"cubin".to_vec()));
        assert!(matches!(required, Err(BuildError::MissingEntries { .. })));
    }

    #[test]
    fn an_empty_folder_is_an_error_and_half_an_image_has_no_machine_code() {
        let folder = scratch("empty");
        let empty = Image::read_folder(&folder);
        let _ = fs::remove_dir_all(&folder);
        assert!(matches!(empty, Err(BuildError::NoImages { .. })));
        let half = index(&[("a", Some(32)), ("b", None)]);
        let image = Image::of(Arch::Sm80, folder.clone(), &half);
        assert!(!image.assembled && image.resources.is_empty());
        assert_eq!(image.cubin("a"), None);
        let image = Image::of(Arch::Sm80, folder, &index(&[("a", Some(32))]));
        assert!(image.cubin("a").is_some());
        assert_eq!(image.without_machine_code().cubin("a"), None);
    }
}
