//! What can go wrong between kernels in Rust and a checked cubin, each with its remedy.

use std::path::PathBuf;

use crate::{Arch, Rejected};

/// An error of [`PtxBuilder`](crate::PtxBuilder).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No architecture of this name is known.
    #[error("expected an architecture among {}, found `{name}`", known_archs())]
    UnknownArch {
        /// What was given.
        name: String,
    },

    /// No rustc with its library source was found, and installing was not allowed or did not help.
    #[error("no Rust compiler with its library source was found, and PTX needs one{}; {}", list_rejected(.considered), remedy_toolchain())]
    NoToolchain {
        /// Every compiler looked at, and why it will not do.
        considered: Vec<Rejected>,
    },

    /// The compiler named by `WARPFUSE_RUSTC` will not do.
    #[error(
        "the compiler named by WARPFUSE_RUSTC will not do: {rejected}; unset the variable or name a rustc whose sysroot holds lib/rustlib/src/rust/library/core/Cargo.toml"
    )]
    NamedToolchain {
        /// The compiler and the reason.
        rejected: Rejected,
    },

    /// A program could not be started at all.
    #[error("`{program}` could not be started; check that it exists and may be executed")]
    Start {
        /// The program.
        program: String,
        /// The operating system's reason.
        source: std::io::Error,
    },

    /// An installation command failed.
    #[error("`{command}` failed: {output}; run it by hand, or name a compiler with WARPFUSE_RUSTC")]
    Install {
        /// The command as one could type it.
        command: String,
        /// The end of what it printed.
        output: String,
    },

    /// The kernel crate's manifest could not be read.
    #[error("the crate at {} cannot be compiled for the GPU: {reason}", .path.display())]
    Crate {
        /// The crate's folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// rustc refused the kernels.
    #[error("compiling the kernels for {arch} failed:\n{output}\nthe command was: {command}")]
    Compile {
        /// For which architecture.
        arch: Arch,
        /// The command as one could type it.
        command: String,
        /// What cargo and rustc printed.
        output: String,
    },

    /// The PTX calls functions that nothing defines, so the driver would refuse it.
    #[error("the PTX for {arch} calls functions that it does not define: {}; avoid what pulls them in (formatting in panics, memcpy of unknown size, 128-bit division)", .functions.join(", "))]
    Unresolved {
        /// For which architecture.
        arch: Arch,
        /// The undefined functions.
        functions: Vec<String>,
    },

    /// Kernels share code or data, and each must be complete.
    #[error(
        "the PTX for {arch} has code or data that kernels share: `{what}`; have it inlined (`#[inline(always)]`), or computed: a kernel is loaded without the others"
    )]
    Shared {
        /// For which architecture.
        arch: Arch,
        /// The kernel or the line of PTX.
        what: String,
    },

    /// Entries that the caller expects are not in the PTX.
    #[error("the PTX for {arch} has {found} entries and lacks {} expected ones: {}; the kernel table and the compiled shims disagree", .missing.len(), some_of(.missing))]
    MissingEntries {
        /// For which architecture.
        arch: Arch,
        /// How many entries there are.
        found: usize,
        /// Those that are not.
        missing: Vec<String>,
    },

    /// Kernels keep variables in local memory.
    #[error("kernels use local memory:\n{}\nkeep array indices constant after unrolling and lower the number of live registers, or exempt the kernel by name with a reason", .kernels.join("\n"))]
    LocalMemory {
        /// One line per kernel: architecture, name, bytes of stack and spills.
        kernels: Vec<String>,
    },

    /// No assembler was found, and fetching it was not allowed or did not help.
    #[error("no usable ptxas was found (looked at {}); install a CUDA toolkit of {} or newer, name one with WARPFUSE_PTXAS, or allow fetching: python3 -m pip download --no-deps {}", .considered.join("; "), crate::ptxas::OLDEST_TEXT, crate::fetch::WHEEL)]
    NoPtxas {
        /// Every place looked at, and why it will not do.
        considered: Vec<String>,
    },

    /// The assembler's wheel could not be fetched.
    #[error(
        "fetching ptxas failed: `{command}`: {output}; check the network, or install a CUDA toolkit"
    )]
    Fetch {
        /// The command as one could type it.
        command: String,
        /// What it printed.
        output: String,
    },

    /// ptxas refused the PTX.
    #[error("ptxas refused {}: {output}; this is a fault of the kernel or of the compiler's PTX version", .ptx.display())]
    Assemble {
        /// The PTX file.
        ptx: PathBuf,
        /// What ptxas printed.
        output: String,
    },

    /// ptxas said nothing about an entry that the PTX has.
    #[error("ptxas reported no registers for {}; its report's wording may have changed: compare gpu-kernels-builder's `report` module with `ptxas -v`", some_of(.entries))]
    Report {
        /// The entries without a figure.
        entries: Vec<String>,
    },

    /// A folder that should hold compiled kernels holds none.
    #[error("expected folders such as sm_90, with an index.json, in {}, found none; make them with `cargo xtask build-ptx --out {}`", .folder.display(), .folder.display())]
    NoImages {
        /// The folder.
        folder: PathBuf,
    },

    /// A file or folder could not be read or written.
    #[error("{} could not be {action}", .path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// `read`, `written` and so on.
        action: &'static str,
        /// The operating system's reason.
        source: std::io::Error,
    },
}

impl BuildError {
    /// Wraps an I/O error with its path, for `map_err`.
    pub(crate) fn io(
        path: impl Into<PathBuf>,
        action: &'static str,
    ) -> impl FnOnce(std::io::Error) -> BuildError {
        let path = path.into();
        move |source| BuildError::Io {
            path,
            action,
            source,
        }
    }
}

fn known_archs() -> String {
    Arch::ALL.map(Arch::name).join(", ")
}

fn list_rejected(considered: &[Rejected]) -> String {
    considered
        .iter()
        .map(|rejected| format!("\n  {rejected}"))
        .collect()
}

fn remedy_toolchain() -> &'static str {
    "\nrun `rustup component add rust-src`, or on Debian as root `apt-get install rustc-web cargo-web rust-web-src`, \
     or name a rustc that has its library source with WARPFUSE_RUSTC"
}

/// The first few of a long list.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}
