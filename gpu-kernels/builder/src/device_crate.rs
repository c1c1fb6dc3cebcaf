//! The kernel crate as cargo describes it, and the empty crate through which cargo compiles `core`.
//!
//! The kernel crate is not compiled through its own manifest: that one may be a member of a workspace whose lock
//! file names a hundred packages that the GPU has no use for, may lie in a read-only registry folder, and
//! takes its profile from whatever workspace it happens to be in. rustc is told its name, version, edition and source,
//! which has none of these ties and needs no network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::{BuildError, LineInfo, Toolchain, index, process};

/// What rustc needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceCrate {
    pub folder: PathBuf,
    pub name: String,
    pub version: String,
    pub edition: String,
    pub lib_name: String,
    pub lib_path: PathBuf,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    edition: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

impl DeviceCrate {
    /// Asks cargo about the crate in `folder`. No network is needed.
    ///
    /// # Errors
    /// [`BuildError::Crate`] if there is no such crate, it has no library, or it has dependencies.
    pub(crate) fn read(folder: &Path, toolchain: &Toolchain) -> Result<Self, BuildError> {
        let folder = folder
            .canonicalize()
            .map_err(|error| refuse(folder, error.to_string()))?;
        let mut command = Command::new(&toolchain.cargo);
        command
            .args(["metadata", "--no-deps", "--format-version=1"])
            .arg("--manifest-path")
            .arg(folder.join("Cargo.toml"))
            .env("RUSTC", &toolchain.rustc)
            .env_remove("RUSTUP_TOOLCHAIN");
        let output = process::capture(&mut command)?;
        if !output.status.success() {
            let said = process::tail(&process::everything_said(&output), 6);
            return Err(refuse(&folder, said));
        }
        Self::from_metadata(&folder, &output.stdout)
    }

    fn from_metadata(folder: &Path, json: &[u8]) -> Result<Self, BuildError> {
        let metadata: Metadata = serde_json::from_slice(json).map_err(|error| {
            refuse(
                folder,
                format!("cargo metadata was not understood: {error}"),
            )
        })?;
        let package = metadata
            .packages
            .into_iter()
            .find(|package| package.manifest_path.parent() == Some(folder))
            .ok_or_else(|| refuse(folder, "it has no Cargo.toml of its own".into()))?;
        if let Some(found) = package.dependencies.iter().find(|d| d.kind.is_none()) {
            let reason = format!(
                "it depends on `{}`; device code may use `core` only",
                found.name
            );
            return Err(refuse(folder, reason));
        }
        let library = package
            .targets
            .into_iter()
            .find(|target| target.kind.iter().any(|kind| kind == "lib"))
            .ok_or_else(|| refuse(folder, "it has no library target".into()))?;
        Ok(DeviceCrate {
            folder: folder.to_owned(),
            name: package.name,
            version: package.version,
            edition: package.edition,
            lib_name: library.name,
            lib_path: library.src_path,
        })
    }

    /// Writes an empty crate into `folder`, if it would change, through which cargo compiles `core` as the kernels need it;
    /// returns its manifest.
    pub(crate) fn write_core_manifest(
        &self,
        folder: &Path,
        lines: LineInfo,
    ) -> Result<PathBuf, BuildError> {
        let manifest = folder.join("Cargo.toml");
        update(&folder.join("lib.rs"), "#![no_std]\n")?;
        update(&manifest, &self.core_manifest(lines))?;
        Ok(manifest)
    }

    /// The empty `[workspace]` keeps cargo from looking for one further up.
    fn core_manifest(&self, lines: LineInfo) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        format!(
            "# Written by gpu-kernels-builder: nothing, so that cargo compiles `core` for the GPU.\n\
             [package]\nname = \"gpu-core\"\nversion = \"0.0.0\"\nedition = {}\n\n\
             [lib]\npath = \"lib.rs\"\n\n\
             [profile.ptx]\ninherits = \"release\"\nlto = \"fat\"\ncodegen-units = 1\nopt-level = 3\n\
             panic = \"abort\"\ndebug = {}\n\n\
             [workspace]\n",
            quoted(&self.edition),
            match lines {
                LineInfo::Kept => "\"line-directives-only\"",
                LineInfo::Omitted => "false",
            },
        )
    }

    /// Fingerprint of the crate's source files.
    ///
    /// # Errors
    /// [`BuildError::Io`] with the file that could not be read.
    pub(crate) fn source(&self) -> Result<String, BuildError> {
        let mut files = Vec::new();
        read_all(self.lib_path.parent().unwrap_or(&self.folder), &mut files)?;
        files.sort();
        Ok(index::fingerprint(files))
    }
}

/// Every file below a folder with its content.
fn read_all(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) -> Result<(), BuildError> {
    for entry in fs::read_dir(folder).map_err(BuildError::io(folder, "read"))? {
        let path = entry.map_err(BuildError::io(folder, "read"))?.path();
        if path.is_dir() {
            read_all(&path, files)?;
        } else {
            let content = fs::read(&path).map_err(BuildError::io(&path, "read"))?;
            files.push((path, content));
        }
    }
    Ok(())
}

/// Writes a file if that changes it.
fn update(path: &Path, text: &str) -> Result<(), BuildError> {
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(BuildError::io(folder, "created"))?;
    }
    fs::write(path, text).map_err(BuildError::io(path, "written"))
}

fn refuse(folder: &Path, reason: String) -> BuildError {
    BuildError::Crate {
        path: folder.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(dependencies: &str, kind: &str) -> Vec<u8> {
        format!(
            r#"{{"packages":[{{"name":"k-k","version":"1.2.3","edition":"2024","manifest_path":"/k/Cargo.toml",
            "dependencies":[{dependencies}],"targets":[{{"name":"k_k","kind":["{kind}"],"src_path":"/k/src/lib.rs"}}]}}]}}"#
        )
        .into_bytes()
    }

    #[test]
    fn the_crate_is_described_and_the_manifest_stands_alone() {
        let found = DeviceCrate::from_metadata(Path::new("/k"), &metadata("", "lib"))
            .expect("a plain library");
        assert_eq!(
            (found.name.as_str(), found.version.as_str()),
            ("k-k", "1.2.3")
        );
        assert_eq!(found.lib_name, "k_k");
        assert_eq!(found.lib_path, Path::new("/k/src/lib.rs"));
        let text = found.core_manifest(LineInfo::Omitted);
        assert!(text.contains("edition = \"2024\""), "{text}");
        assert!(text.ends_with("[workspace]\n"), "{text}");
    }

    #[test]
    fn dependencies_are_refused_but_those_of_its_tests_are_not() {
        let normal = metadata(r#"{"name":"libm","kind":null}"#, "lib");
        let message = DeviceCrate::from_metadata(Path::new("/k"), &normal)
            .expect_err("a dependency")
            .to_string();
        assert!(message.contains("`libm`"), "{message}");

        let dev = metadata(r#"{"name":"approx","kind":"dev"}"#, "lib");
        assert!(DeviceCrate::from_metadata(Path::new("/k"), &dev).is_ok());
    }

    #[test]
    fn a_crate_without_a_library_is_refused() {
        let outcome = DeviceCrate::from_metadata(Path::new("/k"), &metadata("", "bin"));
        assert!(matches!(outcome, Err(BuildError::Crate { .. })));
    }
}
