//! The compiler's runs for one architecture: `core` through cargo, once; then rustc on the kernel crate, as often and as many
//! at once as wanted.
//!
//! A `staticlib` is requested because it is the one crate type that needs no GPU linker, and the assembly that rustc
//! emits on the way is complete: fat LTO has pulled in what it uses of `core`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde::Deserialize;

use crate::device_crate::DeviceCrate;
use crate::split::{self, Piece};
use crate::unit::Job;
use crate::{Arch, BuildError, LineInfo, Toolchain, code, index, process};

const TARGET: &str = "nvptx64-nvidia-cuda";

/// How large LLVM may make a loop by unrolling it. An array stays in registers only if every index is a
/// constant, that is, if all loops over it are unrolled; LLVM's own limit for this target stops short of
/// that for tiles of some 100 elements, which then live in local memory.
const UNROLL_THRESHOLD: u32 = 4096;

/// One architecture: what is compiled, by whom, where.
pub(crate) struct Compiler<'a> {
    pub device: &'a DeviceCrate,
    pub toolchain: &'a Toolchain,
    pub arch: Arch,
    pub lines: LineInfo,
    /// The folder of the architecture.
    pub folder: &'a Path,
    /// Where `core` is compiled, for all that use it.
    pub core_dir: &'a Path,
}

/// Where the compiled `core` lies.
pub(crate) struct Core {
    libraries: Vec<Library>,
}

struct Library {
    name: String,
    file: PathBuf,
}

/// What cargo says about something that it made.
#[derive(Deserialize)]
struct Artifact {
    target: Option<Target>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

impl Compiler<'_> {
    /// Fingerprint of everything that the PTX depends on and that is not source.
    pub(crate) fn recipe(&self) -> String {
        let rustc = self.toolchain.rustc.display().to_string();
        let flags = [
            self.flags(),
            self.profile(),
            self.arch_conditions().collect(),
        ]
        .concat();
        index::fingerprint((&self.toolchain.version, rustc, flags))
    }

    /// Compiles `core` for the architecture, unless that was done before.
    ///
    /// # Errors
    /// [`BuildError::Compile`] with cargo's words.
    pub(crate) fn core(&self) -> Result<Core, BuildError> {
        let lines = match self.lines {
            LineInfo::Kept => "-lines",
            LineInfo::Omitted => "",
        };
        let folder = self.core_dir.join(format!("{}{lines}", self.arch));
        let manifest = self.device.write_core_manifest(&folder, self.lines)?;
        let mut command = self.cargo();
        command
            .arg("--manifest-path")
            .arg(&manifest)
            .arg("--target-dir")
            .arg(folder.join("target"));
        let output = self.succeeded(&mut command)?;
        let libraries = libraries(&String::from_utf8_lossy(&output.stdout));
        if !libraries.iter().any(|library| library.name == "core") {
            return Err(self.failed(&command, "cargo named no library `core`".into()));
        }
        Ok(Core { libraries })
    }

    /// The fingerprint of every kernel's code, and of what it is compiled by.
    ///
    /// # Errors
    /// [`BuildError::Compile`] with rustc's words, [`BuildError::Io`] for the files around it.
    pub(crate) fn codes(
        &self,
        core: &Core,
        job: &Job,
    ) -> Result<Vec<(String, String)>, BuildError> {
        let file = self.folder.join("kernels.ll");
        let mut command = self.rustc(core);
        command
            .current_dir(self.scratch("codes")?)
            .arg(joined("--emit=llvm-ir=", &file))
            .args(["-Cno-prepopulate-passes", "-Clto=off"])
            .args(unit_conditions(job));
        self.succeeded(&mut command)?;
        let text =
            fs::read_to_string(&file).map_err(BuildError::io(&file, "read after compiling"))?;
        fs::remove_file(&file).map_err(BuildError::io(&file, "removed"))?;
        let recipe = self.recipe();
        let codes = code::fingerprints(&text).into_iter();
        Ok(codes
            .map(|(name, code)| (name, format!("{recipe}-{code:016x}")))
            .collect())
    }

    /// Compiles the units of a job, number so-and-so, and takes the text apart.
    ///
    /// # Errors
    /// As [`Compiler::codes`], and [`BuildError::Shared`].
    pub(crate) fn ptx(
        &self,
        core: &Core,
        (number, job): (usize, &Job),
    ) -> Result<Vec<Piece>, BuildError> {
        let file = self.folder.join(format!("kernels.{number}.ptx"));
        let mut command = self.rustc(core);
        command
            .current_dir(self.scratch(&number.to_string())?)
            .arg(joined("--emit=asm=", &file))
            .args(self.profile())
            .args(unit_conditions(job));
        let output = self.succeeded(&mut command)?;
        let said = process::everything_said(&output);
        // Only warnings with a place: every build warns that `ptx86` is an unstable target feature.
        if said.contains(" --> ") {
            eprintln!("{said}");
        }
        let text =
            fs::read_to_string(&file).map_err(BuildError::io(&file, "read after compiling"))?;
        fs::remove_file(&file).map_err(BuildError::io(&file, "removed"))?;
        split::split(&text, self.arch)
    }

    /// A folder of a run's own: rustc puts files of the same names where it runs, and several run at once.
    fn scratch(&self, name: &str) -> Result<PathBuf, BuildError> {
        let folder = self.folder.join("runs").join(name);
        fs::create_dir_all(&folder).map_err(BuildError::io(&folder, "created"))?;
        Ok(folder)
    }

    /// rustc on the kernel crate, with what cargo would tell it.
    fn rustc(&self, core: &Core) -> Command {
        let mut command = Command::new(&self.toolchain.rustc);
        clean_environment(&mut command);
        command
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_MANIFEST_DIR", &self.device.folder)
            .env("CARGO_PKG_NAME", &self.device.name)
            .env("CARGO_PKG_VERSION", &self.device.version)
            .args(["--crate-name", &self.device.lib_name])
            .args(["--edition", &self.device.edition])
            .arg(&self.device.lib_path)
            .args(["--crate-type", "staticlib", "--target", TARGET])
            .args(["-Copt-level=3", "-Cpanic=abort", "-Ccodegen-units=1"])
            // Which conditions are known is checked where the crate is compiled through its own manifest.
            .arg("--allow=unexpected_cfgs")
            .arg("-Zunstable-options");
        for library in &core.libraries {
            let folder = library.file.parent().unwrap_or(Path::new("."));
            command.arg(joined("-Ldependency=", folder));
            let named = joined(&format!("noprelude:{}=", library.name), &library.file);
            command.arg("--extern").arg(named);
        }
        command.args(self.flags()).args(self.arch_conditions());
        command
    }

    /// How code is optimised, link time and debug information included.
    fn profile(&self) -> Vec<String> {
        let debug = match self.lines {
            LineInfo::Kept => "-Cdebuginfo=line-directives-only",
            LineInfo::Omitted => "-Cstrip=debuginfo",
        };
        vec!["-Clto=fat".into(), debug.into()]
    }

    /// Which architectures have all that this one has, so that a body may use an instruction which older ones lack.
    fn arch_conditions(&self) -> impl Iterator<Item = String> {
        let older = Arch::ALL.into_iter().filter(|arch| *arch <= self.arch);
        older.map(|arch| format!("--cfg=gpu_at_least=\"{arch}\""))
    }

    /// cargo, about to build `core`.
    fn cargo(&self) -> Command {
        let mut command = Command::new(&self.toolchain.cargo);
        clean_environment(&mut command);
        command
            .args(["build", "--profile", "ptx", "--target", TARGET])
            .args(["-Zbuild-std=core", "--message-format=json"])
            .env("RUSTC", &self.toolchain.rustc)
            .env("RUSTC_BOOTSTRAP", "1")
            // Empty, not removed: a wrapper may also come from the user's cargo configuration.
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "")
            .env("CARGO_ENCODED_RUSTFLAGS", self.shared_flags().join("\x1f"));
        command
    }

    /// Flags of the kernel crate. Source paths are shortened so that the same source gives the same PTX on every machine.
    fn flags(&self) -> Vec<String> {
        let mut flags = self.shared_flags();
        flags.push(remap(&self.device.folder, &self.device.name));
        flags
    }

    /// Flags of every crate, `core` included: the target's processor may not differ between crates.
    fn shared_flags(&self) -> Vec<String> {
        vec![
            format!("-Ctarget-cpu={}", self.arch),
            format!("-Ctarget-feature={}", self.arch.ptx_feature()),
            "-Zunstable-options".into(),
            // A failed bounds check becomes a trap instead of formatted text.
            "-Cpanic=immediate-abort".into(),
            format!("-Cllvm-args=-unroll-threshold={UNROLL_THRESHOLD}"),
            remap(&self.toolchain.sysroot.join("lib/rustlib/src/rust"), "rust"),
        ]
    }

    fn succeeded(&self, command: &mut Command) -> Result<Output, BuildError> {
        let output = process::capture(command)?;
        if output.status.success() {
            return Ok(output);
        }
        let said = process::tail(&String::from_utf8_lossy(&output.stderr), 60);
        Err(self.failed(command, said))
    }

    fn failed(&self, command: &Command, output: String) -> BuildError {
        BuildError::Compile {
            arch: self.arch,
            command: process::shown(command),
            output,
        }
    }
}

fn remap(from: &Path, to: &str) -> String {
    format!("--remap-path-prefix={}={to}", from.display())
}

/// Under which the kernel crate has the units of a job; a crate without units has none.
fn unit_conditions(job: &Job) -> Vec<String> {
    let conditions = job.conditions().into_iter();
    let each = conditions.map(|condition| format!("--cfg={condition}"));
    let some = (!job.units.is_empty()).then(|| "--cfg=warpfuse_units".to_owned());
    some.into_iter().chain(each).collect()
}

/// The libraries among cargo's messages.
fn libraries(messages: &str) -> Vec<Library> {
    let artifact = |line| serde_json::from_str::<Artifact>(line).ok();
    let library = |artifact: Artifact| {
        let is_library = |file: &PathBuf| file.extension().is_some_and(|end| end == "rlib");
        Some(Library {
            name: artifact.target?.name,
            file: artifact.filenames.into_iter().find(is_library)?,
        })
    };
    messages
        .lines()
        .filter_map(artifact)
        .filter_map(library)
        .filter(|library| ["core", "compiler_builtins"].contains(&library.name.as_str()))
        .collect()
}

/// A command that hears nothing of the cargo that may be running us: neither its flags and wrappers, nor what it tells
/// build scripts.
fn clean_environment(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if disturbs(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
}

fn joined(prefix: &str, path: &Path) -> std::ffi::OsString {
    let mut text = std::ffi::OsString::from(prefix);
    text.push(path);
    text
}

/// Whether a variable of the environment would change what the inner cargo does. Where cargo keeps its
/// files and how it reaches the network stays the user's choice.
fn disturbs(name: &str) -> bool {
    const KEPT: [&str; 5] = [
        "CARGO_HOME",
        "CARGO_HTTP_",
        "CARGO_NET_",
        "CARGO_REGISTR",
        "CARGO_TERM_",
    ];
    const EXACT: [&str; 4] = ["RUSTFLAGS", "RUSTDOCFLAGS", "RUSTDOC", "RUSTUP_TOOLCHAIN"];
    EXACT.contains(&name)
        || name.starts_with("RUSTC")
        || name == "CARGO"
        || (name.starts_with("CARGO_") && !KEPT.iter().any(|kept| name.starts_with(kept)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_outer_cargo_sets_is_not_passed_on() {
        for name in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTUP_TOOLCHAIN",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "CARGO_TARGET_DIR",
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_MAKEFLAGS",
            "CARGO",
        ] {
            assert!(disturbs(name), "{name}");
        }
    }

    #[test]
    fn where_files_and_the_network_are_is_passed_on() {
        for name in [
            "CARGO_HOME",
            "CARGO_NET_OFFLINE",
            "HOME",
            "PATH",
            "HTTPS_PROXY",
        ] {
            assert!(!disturbs(name), "{name}");
        }
    }

    #[test]
    fn libraries_are_found_among_messages() {
        let messages = r#"
{"reason":"compiler-artifact","target":{"name":"core"},"filenames":["/t/libcore-1.rlib","/t/libcore-1.rmeta"]}
{"reason":"compiler-artifact","target":{"name":"kernels_core"},"filenames":["/t/libkernels_core.rlib"]}
{"reason":"build-finished","success":true}
"#;
        let found = libraries(messages);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].file, Path::new("/t/libcore-1.rlib"));
    }
}
