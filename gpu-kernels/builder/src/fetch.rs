//! Fetches ptxas where no CUDA toolkit is: NVIDIA publishes it as a Python wheel, which is a zip file.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ptxas::{self, Ptxas};
use crate::{BuildError, Install, install, process};

/// The release whose PTX compiler is known to work, of the driver generation that we measure on: cubins of
/// a newer major release would not load there.
pub(crate) const WHEEL: &str = "nvidia-cuda-nvcc==13.0.88";

/// Finds ptxas, and fetches it into `tools_dir` if there is none and it is allowed.
///
/// # Errors
/// [`BuildError::NoPtxas`] if there is none and fetching is forbidden, [`BuildError::Fetch`] or
/// [`BuildError::Install`] if fetching failed.
pub(crate) fn obtain_ptxas(tools_dir: &Path, install: Install) -> Result<Ptxas, BuildError> {
    match ptxas::find(tools_dir) {
        Err(BuildError::NoPtxas { .. }) if install == Install::Allowed => {
            fetch(tools_dir)?;
            ptxas::find(tools_dir)
        }
        outcome => outcome,
    }
}

fn fetch(tools_dir: &Path) -> Result<(), BuildError> {
    fetch_wheel(WHEEL, tools_dir)?;
    make_executable(tools_dir)
}

/// Downloads one Python wheel, such as `nvidia-cuda-nvcc==13.0.88`, without what it depends on, and unpacks
/// it into a folder. Files do not become executable: a wheel is a zip file.
///
/// # Errors
/// [`BuildError::Fetch`] with what pip or Python's zipfile said.
pub fn fetch_wheel(wheel: &str, folder: &Path) -> Result<(), BuildError> {
    fs::create_dir_all(folder).map_err(BuildError::io(folder, "created"))?;
    ensure_pip()?;
    let mut download = python();
    download
        .args(["-m", "pip", "download", "--quiet", "--no-deps"])
        .args(["--only-binary", ":all:", "--dest"])
        .arg(folder)
        .arg(wheel);
    run(download)?;
    for file in wheels(folder)? {
        let mut unpack = python();
        unpack.args(["-m", "zipfile", "-e"]).arg(&file).arg(folder);
        run(unpack)?;
        fs::remove_file(&file).map_err(BuildError::io(&file, "removed"))?;
    }
    Ok(())
}

fn python() -> Command {
    Command::new("python3")
}

/// A bare Debian has neither python3 nor pip; root can install both.
fn ensure_pip() -> Result<(), BuildError> {
    let has_pip = process::capture(python().args(["-m", "pip", "--version"]))
        .is_ok_and(|output| output.status.success());
    let folders: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    let apt_get = install::find_in(&folders, "apt-get");
    match apt_get {
        Some(apt_get) if !has_pip && install::is_root() => {
            install::apt_commands(&apt_get, &["python3", "python3-pip"])
                .into_iter()
                .try_for_each(install::run_visibly)
        }
        // Without pip the download fails and its error says so.
        _ => Ok(()),
    }
}

fn run(mut command: Command) -> Result<(), BuildError> {
    let shown = process::shown(&command);
    process::say(&format!("running: {shown}"));
    let output = process::capture(&mut command)?;
    if output.status.success() {
        return Ok(());
    }
    Err(BuildError::Fetch {
        command: shown,
        output: process::tail(&process::everything_said(&output), 6),
    })
}

fn wheels(folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let entries = fs::read_dir(folder).map_err(BuildError::io(folder, "read"))?;
    Ok(entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .collect())
}

/// Python's zipfile does not restore permissions.
fn make_executable(tools_dir: &Path) -> Result<(), BuildError> {
    for program in ptxas::unpacked(tools_dir) {
        if program.is_file() {
            set_executable(&program).map_err(BuildError::io(&program, "made executable"))?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn set_executable(program: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(program, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn set_executable(_program: &Path) -> std::io::Result<()> {
    Ok(())
}
