//! Finds ptxas and assembles with it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Arch, BuildError, Resources, process, report};

/// The oldest release that reads the PTX version we ask LLVM for.
const OLDEST: (u32, u32) = (12, 8);
/// The same, for messages.
pub(crate) const OLDEST_TEXT: &str = "CUDA 12.8";

/// An assembler that will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptxas {
    /// The program.
    pub path: PathBuf,
    /// Its release, such as 13.0.
    pub release: (u32, u32),
}

/// Looks for a ptxas that is new enough, fetching nothing: `WARPFUSE_PTXAS` (that one and no other), `PATH`,
/// `CUDA_PATH`, `CUDA_HOME`, `/usr/local/cuda`, and wheels unpacked in `tools_dir`.
///
/// # Errors
/// [`BuildError::NoPtxas`] with every place looked at.
pub fn find(tools_dir: &Path) -> Result<Ptxas, BuildError> {
    if let Some(named) = folder_variable("WARPFUSE_PTXAS") {
        return first_usable(vec![named]);
    }
    let mut candidates: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).map(|f| f.join("ptxas")).collect())
        .unwrap_or_default();
    candidates.extend(
        ["CUDA_PATH", "CUDA_HOME"]
            .into_iter()
            .filter_map(folder_variable)
            .map(|folder| folder.join("bin/ptxas")),
    );
    candidates.push("/usr/local/cuda/bin/ptxas".into());
    candidates.extend(unpacked(tools_dir));
    first_usable(candidates)
}

fn folder_variable(name: &str) -> Option<PathBuf> {
    env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// Where a wheel of NVIDIA's has it: `nvidia/cu13/bin/ptxas`, formerly `nvidia/cuda_nvcc/bin/ptxas`.
pub(crate) fn unpacked(tools_dir: &Path) -> Vec<PathBuf> {
    let Ok(folders) = fs::read_dir(tools_dir.join("nvidia")) else {
        return Vec::new();
    };
    let mut found: Vec<_> = folders
        .flatten()
        .map(|folder| folder.path().join("bin/ptxas"))
        .collect();
    found.sort();
    found
}

fn first_usable(candidates: Vec<PathBuf>) -> Result<Ptxas, BuildError> {
    let mut considered = Vec::new();
    for path in candidates {
        if !path.is_file() {
            continue;
        }
        match release_of(&path) {
            Ok(release) if release >= OLDEST => return Ok(Ptxas { path, release }),
            Ok((major, minor)) => considered.push(format!(
                "{}: release {major}.{minor} is older than {OLDEST_TEXT}",
                path.display()
            )),
            Err(reason) => considered.push(format!("{}: {reason}", path.display())),
        }
    }
    if considered.is_empty() {
        considered.push("PATH, CUDA_PATH, /usr/local/cuda and fetched wheels".into());
    }
    Err(BuildError::NoPtxas { considered })
}

fn release_of(ptxas: &Path) -> Result<(u32, u32), String> {
    let output = process::capture(Command::new(ptxas).arg("--version"))
        .map_err(|error| error.to_string())?;
    parse_release(&process::everything_said(&output))
        .ok_or_else(|| "its version was not understood".into())
}

/// `Cuda compilation tools, release 13.0, V13.0.88`
fn parse_release(said: &str) -> Option<(u32, u32)> {
    let (_, rest) = said.split_once("release ")?;
    let (release, _) = rest.split_once(',')?;
    let (major, minor) = release.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

impl Ptxas {
    /// Assembles a PTX file into a cubin and returns what each kernel needs.
    ///
    /// # Errors
    /// [`BuildError::Assemble`] with ptxas's words.
    pub fn assemble(
        &self,
        ptx: &Path,
        arch: Arch,
        cubin: &Path,
    ) -> Result<Vec<Resources>, BuildError> {
        // Written aside and renamed: another build may be reading the old one.
        let unfinished = cubin.with_extension(format!("{}.part", std::process::id()));
        let mut command = Command::new(&self.path);
        command
            .arg(format!("-arch={arch}"))
            .args(["-v", "-O3", "-o"])
            .arg(&unfinished)
            .arg(ptx);
        let output = process::capture(&mut command)?;
        let said = process::everything_said(&output);
        if !output.status.success() {
            return Err(BuildError::Assemble {
                ptx: ptx.to_owned(),
                output: process::tail(&said, 20),
            });
        }
        fs::rename(&unfinished, cubin).map_err(BuildError::io(cubin, "written"))?;
        Ok(report::parse(&said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read() {
        let said = "ptxas: NVIDIA (R) Ptx optimizing assembler\n\
                    Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0";
        assert_eq!(parse_release(said), Some((13, 0)));
        assert_eq!(parse_release("Cuda compilation tools"), None);
    }

    #[test]
    fn nothing_found_names_the_places_and_the_remedy() {
        let message = first_usable(vec!["/nowhere/ptxas".into()])
            .expect_err("nothing there")
            .to_string();
        assert!(message.contains("CUDA_PATH"), "{message}");
        assert!(message.contains("nvidia-cuda-nvcc=="), "{message}");
    }

    #[cfg(unix)]
    #[test]
    fn an_old_release_is_passed_over() {
        use std::os::unix::fs::PermissionsExt;
        let folder = env::temp_dir().join(format!("warpfuse-ptxas-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a writable temporary folder");
        let make = |name: &str, release: &str| {
            let path = folder.join(name);
            fs::write(
                &path,
                format!("#!/bin/sh\necho 'tools, release {release}, V'\n"),
            )
            .expect("writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("own file");
            path
        };
        let (old, new) = (make("old", "11.8"), make("new", "13.0"));
        let found = first_usable(vec![old.clone(), new.clone()]).map_err(|e| e.to_string());
        let only_old = first_usable(vec![old]).expect_err("too old").to_string();
        let _ = fs::remove_dir_all(&folder);
        assert_eq!(found.map(|ptxas| ptxas.path), Ok(new));
        assert!(only_old.contains("release 11.8 is older"), "{only_old}");
    }
}
