//! Finds a rustc that can compile `core` for the GPU: one whose sysroot holds the library's source.
//!
//! rustup's list of components is not asked, since it is wrong where a toolchain was copied or installed
//! with auto-install off; the file is what counts. Compiler and source must be of one version, so the
//! source is only ever taken from the compiler's own sysroot.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{BuildError, process};

/// The file, under a sysroot, whose presence shows that the library's source is there.
pub(crate) const LIBRARY: &str = "lib/rustlib/src/rust/library/core/Cargo.toml";

/// The oldest compiler that builds the kernels: `rust-version` of the workspace.
const OLDEST: (u32, u32) = (1, 95);

/// A compiler that can make PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler itself, not a rustup proxy where that can be avoided.
    pub rustc: PathBuf,
    /// The cargo that drives it.
    pub cargo: PathBuf,
    /// Where its library source lies, under `lib/rustlib/src/rust`.
    pub sysroot: PathBuf,
    /// As `rustc --version` prints it.
    pub version: String,
    /// How it was found.
    pub origin: Origin,
}

/// How a compiler was found; earlier ones are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Named by `WARPFUSE_RUSTC`.
    Variable,
    /// Beside the cargo that is running us.
    Active,
    /// Another toolchain of rustup's.
    Rustup,
    /// The first `rustc` of `PATH`.
    Path,
    /// The distribution's, in `/usr/bin`.
    System,
}

/// A compiler that was looked at and will not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The compiler.
    pub rustc: PathBuf,
    /// Why not.
    pub reason: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rustc.display(), self.reason)
    }
}

/// Where [`discover`] looks. Made from the environment, or by hand in tests.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// `WARPFUSE_RUSTC`: this compiler and no other.
    pub rustc: Option<PathBuf>,
    /// `WARPFUSE_CARGO`: the cargo that goes with it, if not the one beside it.
    pub cargo: Option<PathBuf>,
    /// `CARGO`: the cargo that is running us, if one is.
    pub active_cargo: Option<PathBuf>,
    /// rustup's folder, with `toolchains/` in it.
    pub rustup_home: Option<PathBuf>,
    /// The folders of `PATH`.
    pub path: Vec<PathBuf>,
    /// Where the distribution puts its compiler.
    pub system_bin: Option<PathBuf>,
}

impl Surroundings {
    /// What the environment says.
    pub fn from_env() -> Self {
        let variable = |name| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let home = variable("HOME").map(|home| home.join(".rustup"));
        Surroundings {
            rustc: variable("WARPFUSE_RUSTC"),
            cargo: variable("WARPFUSE_CARGO"),
            active_cargo: variable("CARGO"),
            rustup_home: variable("RUSTUP_HOME").or(home),
            path: env::var_os("PATH")
                .map(|path| env::split_paths(&path).collect())
                .unwrap_or_default(),
            system_bin: Some("/usr/bin".into()),
        }
    }

    /// Compilers to look at, best first.
    fn candidates(&self) -> Vec<(PathBuf, Origin)> {
        let beside_cargo = self
            .active_cargo
            .as_ref()
            .map(|cargo| (cargo.with_file_name("rustc"), Origin::Active));
        let of_rustup = self
            .rustup_toolchains()
            .into_iter()
            .map(|sysroot| (sysroot.join("bin/rustc"), Origin::Rustup));
        let in_path = self
            .path
            .iter()
            .map(|folder| folder.join("rustc"))
            .find(|rustc| rustc.is_file())
            .map(|rustc| (rustc, Origin::Path));
        let of_system = self
            .system_bin
            .as_ref()
            .map(|folder| (folder.join("rustc"), Origin::System));

        let mut found: Vec<(PathBuf, Origin)> = Vec::new();
        for (rustc, origin) in beside_cargo
            .into_iter()
            .chain(of_rustup)
            .chain(in_path)
            .chain(of_system)
        {
            if rustc.is_file() && !found.iter().any(|(known, _)| *known == rustc) {
                found.push((rustc, origin));
            }
        }
        found
    }

    /// rustup's toolchains: numbered ones first, then `stable`, then what changes from day to day.
    fn rustup_toolchains(&self) -> Vec<PathBuf> {
        let folder = self
            .rustup_home
            .as_ref()
            .map(|home| home.join("toolchains"));
        let mut toolchains: Vec<PathBuf> = folder
            .and_then(|folder| folder.read_dir().ok())
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default();
        toolchains.sort_by_key(|path| (steadiness(path), path.clone()));
        toolchains
    }
}

fn steadiness(toolchain: &Path) -> u8 {
    let name = toolchain.file_name().unwrap_or_default().to_string_lossy();
    match name.split('-').next() {
        Some(channel) if channel.starts_with(|c: char| c.is_ascii_digit()) => 0,
        Some("stable") => 1,
        _ => 2,
    }
}

/// Finds a compiler with its library source.
///
/// # Errors
/// [`BuildError::NamedToolchain`] if `WARPFUSE_RUSTC` names one that will not do (no other is tried then),
/// [`BuildError::NoToolchain`] with the reasons if none will do.
pub fn discover(around: &Surroundings) -> Result<Toolchain, BuildError> {
    if let Some(rustc) = &around.rustc {
        return probe(rustc, around.cargo.as_deref(), Origin::Variable)
            .map_err(|rejected| BuildError::NamedToolchain { rejected });
    }
    let mut considered = Vec::new();
    for (rustc, origin) in around.candidates() {
        match probe(&rustc, around.cargo.as_deref(), origin) {
            Ok(toolchain) => return Ok(toolchain),
            Err(rejected) => considered.push(rejected),
        }
    }
    Err(BuildError::NoToolchain { considered })
}

/// Looks at one compiler.
fn probe(rustc: &Path, cargo: Option<&Path>, origin: Origin) -> Result<Toolchain, Rejected> {
    let reject = |reason: String| Rejected {
        rustc: rustc.to_owned(),
        reason,
    };
    let sysroot = PathBuf::from(ask(rustc, &["--print", "sysroot"]).map_err(reject)?);
    if !sysroot.join(LIBRARY).is_file() {
        return Err(reject(format!(
            "its library source is missing ({})",
            sysroot.join(LIBRARY).display()
        )));
    }
    let version = ask(rustc, &["--version"]).map_err(reject)?;
    if release(&version).is_none_or(|found| found < OLDEST) {
        let (major, minor) = OLDEST;
        return Err(reject(format!(
            "it is `{version}`, older than {major}.{minor}"
        )));
    }
    // The sysroot's own binaries are taken rather than rustup's proxies: those would choose again.
    let own = |name: &str| Some(sysroot.join("bin").join(name)).filter(|path| path.is_file());
    let cargo = cargo
        .map(Path::to_owned)
        .or_else(|| own("cargo"))
        .unwrap_or_else(|| rustc.with_file_name("cargo"));
    if !cargo.is_file() {
        return Err(reject(format!("there is no {}", cargo.display())));
    }
    Ok(Toolchain {
        rustc: own("rustc").unwrap_or_else(|| rustc.to_owned()),
        cargo,
        sysroot,
        version,
        origin,
    })
}

/// One line of answer from a compiler.
fn ask(rustc: &Path, arguments: &[&str]) -> Result<String, String> {
    let output =
        process::capture(Command::new(rustc).args(arguments)).map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = process::tail(&process::everything_said(&output), 2);
        return Err(format!("it does not run: {said}"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Major and minor of `rustc 1.95.0 (… 2026-04-14)`.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split_whitespace().nth(1)?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(all(test, unix))]
mod tests;
