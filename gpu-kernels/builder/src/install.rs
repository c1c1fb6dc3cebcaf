//! Installs what is missing, where the caller allows it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::toolchain::{LIBRARY, Surroundings, Toolchain, discover};
use crate::{BuildError, process};

/// Whether the builder may install and fetch what it lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Install {
    /// Through rustup, as root through apt-get, and from PyPI.
    Allowed,
    /// Only what is there is used; errors say how to get the rest.
    Forbidden,
}

/// Debian's packages with a recent Rust and its library source.
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

/// Finds a toolchain, and if there is none and it is allowed, installs one and looks again.
///
/// # Errors
/// As [`discover`], or [`BuildError::NoToolchain`] after all installations failed.
pub(crate) fn obtain_toolchain(
    around: &Surroundings,
    install: Install,
) -> Result<Toolchain, BuildError> {
    let missing = match discover(around) {
        Err(error @ BuildError::NoToolchain { .. }) => error,
        outcome => return outcome,
    };
    if install == Install::Forbidden {
        return Err(missing);
    }
    for commands in [rustup_commands(around), debian_commands(around)] {
        if commands.is_empty() {
            continue;
        }
        match commands.into_iter().try_for_each(run_visibly) {
            Ok(()) => match discover(around) {
                Ok(toolchain) => return Ok(toolchain),
                Err(error) => process::say(&format!("still nothing after installing: {error}")),
            },
            Err(error) => process::say(&error.to_string()),
        }
    }
    Err(missing)
}

/// `rustup component add rust-src` for the toolchain in use, if rustup manages it.
fn rustup_commands(around: &Surroundings) -> Vec<Command> {
    let Some(rustup) = find_in(&around.path, "rustup") else {
        return Vec::new();
    };
    let mut command = Command::new(rustup);
    command.args(["component", "add", "rust-src"]);
    if let Some(name) = active_toolchain(around) {
        command.args(["--toolchain", &name]);
    }
    vec![command]
}

/// The name under which rustup knows the toolchain that is running us.
fn active_toolchain(around: &Surroundings) -> Option<String> {
    let toolchains = around.rustup_home.as_ref()?.join("toolchains");
    let sysroot = around.active_cargo.as_ref()?.parent()?.parent()?;
    (sysroot.parent()? == toolchains && !sysroot.join(LIBRARY).is_file()).then(|| {
        sysroot
            .file_name()
            .map(|name| name.to_string_lossy().into())
    })?
}

/// apt-get, if this is Debian and we are root.
fn debian_commands(around: &Surroundings) -> Vec<Command> {
    let Some(apt_get) = find_in(&around.path, "apt-get").filter(|_| is_root()) else {
        return Vec::new();
    };
    apt_commands(&apt_get, &DEBIAN_PACKAGES)
}

/// The two commands that install packages without asking.
pub(crate) fn apt_commands(apt_get: &Path, packages: &[&str]) -> Vec<Command> {
    let mut update = Command::new(apt_get);
    update.args(["update", "-qq"]);
    let mut install = Command::new(apt_get);
    install
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["install", "--no-install-recommends", "-y", "-qq"])
        .args(packages);
    vec![update, install]
}

/// Says what is run, runs it, and keeps its output for the error.
pub(crate) fn run_visibly(mut command: Command) -> Result<(), BuildError> {
    let shown = process::shown(&command);
    process::say(&format!("running: {shown}"));
    let output = process::capture(&mut command)?;
    if output.status.success() {
        return Ok(());
    }
    Err(BuildError::Install {
        command: shown,
        output: process::tail(&process::everything_said(&output), 6),
    })
}

/// The first file of this name among the folders.
pub(crate) fn find_in(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    folders
        .iter()
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// Whether packages may be installed: `id -u` says 0.
pub(crate) fn is_root() -> bool {
    process::capture(Command::new("id").arg("-u"))
        .is_ok_and(|output| process::everything_said(&output) == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_means_that_nothing_is_run() {
        let error = obtain_toolchain(&Surroundings::default(), Install::Forbidden)
            .expect_err("nothing is there");
        assert!(error.to_string().contains("apt-get install rustc-web"));
    }

    #[test]
    fn allowed_without_any_installer_is_the_same_error() {
        let error = obtain_toolchain(&Surroundings::default(), Install::Allowed)
            .expect_err("nothing is there");
        assert!(matches!(error, BuildError::NoToolchain { .. }));
    }

    #[test]
    fn rustup_is_asked_for_the_toolchain_in_use() {
        let around = Surroundings {
            active_cargo: Some("/home/u/.rustup/toolchains/1.95.0-x/bin/cargo".into()),
            rustup_home: Some("/home/u/.rustup".into()),
            ..Surroundings::default()
        };
        assert_eq!(active_toolchain(&around).as_deref(), Some("1.95.0-x"));
    }

    #[test]
    fn a_cargo_outside_rustup_has_no_toolchain_name() {
        let around = Surroundings {
            active_cargo: Some("/usr/bin/cargo".into()),
            rustup_home: Some("/home/u/.rustup".into()),
            ..Surroundings::default()
        };
        assert_eq!(active_toolchain(&around), None);
    }

    #[test]
    fn debian_is_asked_without_recommendations() {
        let commands = apt_commands(Path::new("/usr/bin/apt-get"), &DEBIAN_PACKAGES);
        let shown: Vec<_> = commands.iter().map(process::shown).collect();
        assert!(
            shown[1].contains("--no-install-recommends -y -qq rustc-web cargo-web rust-web-src")
        );
    }
}
