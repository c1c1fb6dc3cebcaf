//! The one cargo command that turns the kernel crate into PTX.
//!
//! A `staticlib` is asked for because it is the one crate type for which cargo needs no GPU linker, and
//! the assembly that rustc emits on the way is complete: fat LTO has pulled in what it uses of `core`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::device_crate::DeviceCrate;
use crate::stamp::Stamp;
use crate::{Arch, BuildError, Image, Toolchain, bounds, process};

const TARGET: &str = "nvptx64-nvidia-cuda";

/// How large LLVM may make a loop by unrolling it. An array stays in registers only if every index is a
/// constant, that is, if all loops over it are unrolled; LLVM's own limit for this target stops short of
/// that for tiles of some 100 elements, which then live in local memory.
const UNROLL_THRESHOLD: u32 = 4096;

/// One compilation: what, by whom, for which architecture.
pub(crate) struct Job<'a> {
    pub device: &'a DeviceCrate,
    pub toolchain: &'a Toolchain,
    pub arch: Arch,
    /// The generated manifest.
    pub manifest: &'a Path,
    /// Where the PTX goes; cargo's own files go below.
    pub folder: &'a Path,
    /// Conditions of `cfg` attributes.
    pub cfgs: &'a [String],
}

impl Job<'_> {
    /// Compiles and returns the PTX file.
    ///
    /// # Errors
    /// [`BuildError::Compile`] with rustc's words, [`BuildError::Io`] for the files around it.
    pub(crate) fn compile(&self) -> Result<PathBuf, BuildError> {
        let stamp = Stamp::new(&self.ptx(), self.recipe()?);
        self.forget_unless_current(&stamp)?;
        self.run()?;
        stamp.save()?;
        Ok(self.ptx())
    }

    fn ptx(&self) -> PathBuf {
        Image::ptx_in(self.folder, self.arch)
    }

    fn cargo_dir(&self) -> PathBuf {
        self.folder.join(self.arch.name())
    }

    /// Everything that the PTX depends on and that is not source.
    fn recipe(&self) -> Result<String, BuildError> {
        let manifest =
            fs::read_to_string(self.manifest).map_err(BuildError::io(self.manifest, "read"))?;
        let (rustc, flags) = (self.toolchain.rustc.display(), self.flags().join(" "));
        let cfgs = self.cfgs.join(" ");
        Ok(format!(
            "{}\n{rustc}\n{flags}\n{cfgs}\n{manifest}",
            self.toolchain.version
        ))
    }

    /// cargo does not notice that an extra output was deleted, or that it is another compiler's: it must
    /// forget the crate to write it again.
    fn forget_unless_current(&self, stamp: &Stamp) -> Result<(), BuildError> {
        if !self.cargo_dir().exists() || (self.ptx().exists() && stamp.is_current()) {
            return Ok(());
        }
        let mut command = self.cargo("clean");
        command.args(["-p", &self.device.name]);
        process::capture(&mut command).map(|_| ())
    }

    fn run(&self) -> Result<(), BuildError> {
        let mut command = self.rustc_command();
        let output = process::capture(&mut command)?;
        let said = process::everything_said(&output);
        if !output.status.success() {
            return Err(BuildError::Compile {
                arch: self.arch,
                command: process::shown(&command),
                output: process::tail(&said, 60),
            });
        }
        // Only warnings with a place: every build warns that `ptx86` is an unstable target feature.
        if said.contains(" --> ") {
            eprintln!("{said}");
        }
        self.bound()
    }

    /// Makes directives of the launch bounds in the text.
    fn bound(&self) -> Result<(), BuildError> {
        let ptx = self.ptx();
        let text =
            fs::read_to_string(&ptx).map_err(BuildError::io(&ptx, "read after compiling"))?;
        let bounded = bounds::applied(&text);
        if bounded == text {
            return Ok(());
        }
        fs::write(&ptx, bounded).map_err(BuildError::io(&ptx, "written"))
    }

    fn rustc_command(&self) -> Command {
        let mut command = self.cargo("rustc");
        command
            .args(["--lib", "--crate-type", "staticlib"])
            .arg("-Zbuild-std=core")
            .args(["--", "--emit"])
            .arg(joined("asm=", &self.ptx()))
            .args(self.conditions());
        command
    }

    /// Conditions of the kernel crate: the caller's, and which architectures have all that this one has, so that
    /// a body may use an instruction which older ones lack.
    fn conditions(&self) -> impl Iterator<Item = String> {
        let older = Arch::ALL.into_iter().filter(|arch| *arch <= self.arch);
        let of_arch = older.map(|arch| format!("--cfg=gpu_at_least=\"{arch}\""));
        let of_caller = self
            .cfgs
            .iter()
            .map(|condition| format!("--cfg={condition}"));
        of_arch.chain(of_caller)
    }

    /// A cargo that hears nothing of the one that may be running us: neither its flags and wrappers, nor
    /// what it tells build scripts.
    fn cargo(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.toolchain.cargo);
        for (name, _) in env::vars_os() {
            if disturbs(&name.to_string_lossy()) {
                command.env_remove(name);
            }
        }
        command
            .arg(subcommand)
            .arg("--manifest-path")
            .arg(self.manifest)
            .args(["--profile", "ptx", "--target", TARGET, "--target-dir"])
            .arg(self.cargo_dir())
            .env("RUSTC", &self.toolchain.rustc)
            .env("RUSTC_BOOTSTRAP", "1")
            // Empty, not removed: a wrapper may also come from the user's cargo configuration.
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "")
            .env("CARGO_ENCODED_RUSTFLAGS", self.flags().join("\x1f"));
        command
    }

    /// Flags of every crate, `core` included: the target's processor may not differ between crates. Source
    /// paths are shortened so that the same source gives the same PTX on every machine.
    fn flags(&self) -> Vec<String> {
        let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
        vec![
            format!("-Ctarget-cpu={}", self.arch),
            format!("-Ctarget-feature={}", self.arch.ptx_feature()),
            "-Zunstable-options".into(),
            // A failed bounds check becomes a trap instead of formatted text.
            "-Cpanic=immediate-abort".into(),
            format!("-Cllvm-args=-unroll-threshold={UNROLL_THRESHOLD}"),
            remap(&self.device.folder, &self.device.name),
            remap(&self.toolchain.sysroot.join("lib/rustlib/src/rust"), "rust"),
        ]
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
}
