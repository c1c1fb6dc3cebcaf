//! A folder of compiled kernels: what a build leaves behind, what is handed to another machine, and what a
//! build script takes instead of compiling.
//!
//! Per architecture: `kernels.sm_90.ptx`, and where ptxas was at hand `kernels.sm_90.cubin` and
//! `kernels.sm_90.json`, a list of [`Resources`].

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{Arch, BuildError, Resources, checks};

/// The kernels, compiled for one architecture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Image {
    /// For which.
    pub arch: Arch,
    /// The PTX text.
    pub ptx: PathBuf,
    /// The assembled binary, where ptxas was at hand.
    pub cubin: Option<PathBuf>,
    /// What each kernel takes, sorted by name; empty without ptxas.
    pub resources: Vec<Resources>,
}

impl Image {
    /// Where the PTX for an architecture lies in a folder of kernels.
    pub(crate) fn ptx_in(folder: &Path, arch: Arch) -> PathBuf {
        folder.join(format!("kernels.{arch}.ptx"))
    }

    /// Reads the images of a folder, oldest architecture first.
    ///
    /// # Errors
    /// [`BuildError::NoImages`] if there is no PTX in it, [`BuildError::Io`] if its figures cannot be read.
    pub fn read_folder(folder: &Path) -> Result<Vec<Image>, BuildError> {
        let images: Vec<Image> = Arch::ALL
            .into_iter()
            .filter(|&arch| Self::ptx_in(folder, arch).is_file())
            .map(|arch| Self::read(folder, arch))
            .collect::<Result<_, _>>()?;
        if images.is_empty() {
            return Err(BuildError::NoImages {
                folder: folder.to_owned(),
            });
        }
        Ok(images)
    }

    /// Reads the image of one architecture, whose PTX is there.
    pub(crate) fn read(folder: &Path, arch: Arch) -> Result<Image, BuildError> {
        let ptx = Self::ptx_in(folder, arch);
        let cubin = Some(ptx.with_extension("cubin")).filter(|path| path.is_file());
        let figures = ptx.with_extension("json");
        let resources = match fs::read(&figures) {
            Ok(json) => serde_json::from_slice(&json)
                .map_err(|error| BuildError::io(&figures, "understood")(error.into()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(BuildError::io(&figures, "read")(error)),
        };
        Ok(Image {
            arch,
            ptx,
            cubin,
            resources,
        })
    }

    /// Checks that the PTX has every kernel of these names and calls nothing that it does not define.
    ///
    /// # Errors
    /// [`BuildError::MissingEntries`] or [`BuildError::Unresolved`], [`BuildError::Io`] if it cannot be read.
    pub fn require<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<(), BuildError> {
        let text = fs::read_to_string(&self.ptx).map_err(BuildError::io(&self.ptx, "read"))?;
        let expected: Vec<String> = names.into_iter().map(String::from).collect();
        checks::check(&text, self.arch, &expected)
    }

    /// Writes the figures beside the PTX.
    pub(crate) fn save_figures(&self) -> Result<(), BuildError> {
        let path = self.ptx.with_extension("json");
        let json = serde_json::to_vec_pretty(&self.resources)
            .map_err(|error| BuildError::io(&path, "written")(error.into()))?;
        fs::write(&path, json).map_err(BuildError::io(&path, "written"))
    }

    /// Copies the image's files into a folder, which is made if need be.
    ///
    /// # Errors
    /// [`BuildError::Io`] with the path that could not be written.
    pub fn copy_to(&self, folder: &Path) -> Result<(), BuildError> {
        fs::create_dir_all(folder).map_err(BuildError::io(folder, "created"))?;
        let figures = Some(self.ptx.with_extension("json")).filter(|path| path.is_file());
        for file in [Some(&self.ptx), self.cubin.as_ref(), figures.as_ref()]
            .into_iter()
            .flatten()
        {
            let copy = folder.join(file.file_name().unwrap_or_default());
            fs::copy(file, &copy).map_err(BuildError::io(&copy, "written"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("warpfuse-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a writable temporary folder");
        folder
    }

    #[test]
    fn what_is_copied_reads_back_the_same() {
        let (from, to) = (scratch("from"), scratch("to"));
        let ptx = Image::ptx_in(&from, Arch::Sm90);
        fs::write(&ptx, "ptx").expect("writable");
        fs::write(ptx.with_extension("cubin"), "cubin").expect("writable");
        let image = Image {
            arch: Arch::Sm90,
            cubin: Some(ptx.with_extension("cubin")),
            ptx,
            resources: vec![Resources {
                entry: "a".into(),
                registers: 32,
                ..Resources::default()
            }],
        };
        image.save_figures().expect("writable");
        image.copy_to(&to).expect("writable");
        let read = Image::read_folder(&to).expect("one image");
        let _ = (fs::remove_dir_all(&from), fs::remove_dir_all(&to));

        assert_eq!(read.len(), 1);
        assert_eq!(read[0].resources, image.resources);
        assert_eq!(read[0].cubin, Some(to.join("kernels.sm_90.cubin")));
    }

    #[test]
    fn an_empty_folder_and_broken_figures_are_errors() {
        let folder = scratch("broken");
        let empty = Image::read_folder(&folder);
        fs::write(Image::ptx_in(&folder, Arch::Sm80), "ptx").expect("writable");
        let without_figures = Image::read_folder(&folder);
        let required = without_figures
            .as_ref()
            .map(|images| images[0].require(["a"]));
        let required = matches!(required, Ok(Err(BuildError::MissingEntries { .. })));
        fs::write(folder.join("kernels.sm_80.json"), "{").expect("writable");
        let broken = Image::read_folder(&folder);
        let _ = fs::remove_dir_all(&folder);

        assert!(required, "an entry that is not there was not missed");
        assert!(matches!(empty, Err(BuildError::NoImages { .. })));
        assert!(without_figures.is_ok_and(|images| images[0].resources.is_empty()));
        assert!(matches!(broken, Err(BuildError::Io { .. })));
    }
}
