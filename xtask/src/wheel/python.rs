//! Virtual environments in cargo's target folder.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{step, workspace};

/// The oldest Python that the package is for.
const OLDEST: &str = "(3, 11)";

/// A virtual environment.
pub struct Environment(PathBuf);

impl Environment {
    /// A new one of this name, with these packages from PyPI.
    ///
    /// # Errors
    /// Without Python 3.11 or newer and its module `venv`; when a package cannot be fetched.
    pub fn fresh(name: &str, packages: &[&str]) -> Result<Environment> {
        let folder = workspace::target_dir().join("python").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("removing {}", folder.display()))?;
        }
        let mut venv = interpreter()?;
        step::run(
            "virtual environment",
            venv.args(["-m", "venv"]).arg(&folder),
        )?;
        let environment = Environment(folder);
        environment.install(packages)?;
        Ok(environment)
    }

    /// Installs packages.
    ///
    /// # Errors
    /// When one cannot be fetched.
    pub fn install(&self, packages: &[&str]) -> Result<()> {
        if packages.is_empty() {
            return Ok(());
        }
        let mut pip = self.python();
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]);
        step::run("packages", pip.args(packages)).map(|_| ())
    }

    /// Its interpreter.
    pub fn python(&self) -> Command {
        self.program("python")
    }

    /// A program of it as its user starts it: nothing of this process's surroundings, no Rust.
    pub fn for_user(&self, name: &str) -> Command {
        let bin = self.0.join("bin");
        let mut command = step::command(bin.join(name), &[]);
        let mut path = OsString::from(bin);
        path.push(":/usr/bin:/bin");
        command.env_clear().env("PATH", path);
        command
    }

    /// A program that one of its packages brought.
    pub fn program(&self, name: &str) -> Command {
        let bin = self.0.join("bin");
        let mut command = step::command(bin.join(name), &[]);
        // maturin and its like call each other by name.
        let mut path = OsString::from(bin);
        if let Some(rest) = env::var_os("PATH") {
            path.push(":");
            path.push(rest);
        }
        command.env("PATH", path).env("VIRTUAL_ENV", &self.0);
        command
    }
}

/// The Python of this machine: `$PYTHON`, or `python3`.
fn interpreter() -> Result<Command> {
    let program = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let start = || step::command(&program, &[]);
    let new_enough = format!("import sys; sys.exit(sys.version_info < {OLDEST})");
    if !step::succeeds(start().args(["-c", &new_enough])) {
        bail!(
            "the Python package needs Python 3.11 or newer: install it, or name one by the variable PYTHON"
        );
    }
    if !step::succeeds(start().args(["-c", "import venv, ensurepip"])) {
        bail!("Python's module venv is missing: install it (Debian: apt-get install python3-venv)");
    }
    Ok(start())
}

/// Whether the Python of this machine has no global lock.
///
/// # Errors
/// Without Python 3.11 or newer and its module `venv`.
pub fn is_free_threaded() -> Result<bool> {
    let has_none =
        "import sys, sysconfig; sys.exit(not sysconfig.get_config_var('Py_GIL_DISABLED'))";
    Ok(step::succeeds(interpreter()?.args(["-c", has_none])))
}
