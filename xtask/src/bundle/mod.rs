//! `bundle`: one folder with everything a GPU machine without Rust needs to check and to measure.

mod executables;
mod folder;
mod sanitizer;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use gpu_kernels_builder::{Arch, Install, LineInfo};
use serde_json::json;

use crate::{ptx, step, workspace};
use executables::Kind;

/// What such a machine is commonly reached through carries little more than this.
const LARGEST: u64 = 60 << 20;

const DEFAULT_ARCH: &str = "sm_80,sm_90";

/// Tests that compile programs, and so have nothing to do on a machine without Rust.
const NEED_CARGO: [&str; 1] = ["compile_fail"];

/// The arguments of `bundle`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Architectures, separated by commas.
    #[arg(long, value_name = "LIST", default_value = DEFAULT_ARCH)]
    arch: String,
    /// Keep source lines in the kernels, for compute-sanitizer and profilers.
    #[arg(long)]
    line_info: bool,
    /// Put compute-sanitizer in, fetched from PyPI (28 MiB), in place of the benchmarks.
    #[arg(long)]
    sanitizer: bool,
    /// Where to make it.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Builds in release mode and fills the folder.
///
/// # Errors
/// If a build fails, a file cannot be copied, or the folder is too large.
pub fn run(arguments: &Arguments) -> Result<()> {
    let lines = if arguments.line_info {
        LineInfo::Kept
    } else {
        LineInfo::Omitted
    };
    let kernels = ptx::build(&Arch::parse_list(&arguments.arch)?, Install::Allowed, lines)?;
    let out = match &arguments.out {
        Some(folder) => folder.clone(),
        None => workspace::target_dir().join("bundle"),
    };
    folder::start_afresh(&out)?;
    ptx::copy(&kernels, &out.join("ptx"))?;
    programs(arguments, &out)?;
    folder::copy_tree(
        &workspace::root().join("host/examples/data"),
        &out.join("data"),
    )?;
    if arguments.sanitizer {
        sanitizer::add(&out.join("sanitizer"))?;
    }
    scripts(&out, &kernels.toolchain.version)?;
    let bytes = folder::size(&out)?;
    ensure!(
        bytes <= LARGEST,
        "{} has {bytes} bytes, expected at most {LARGEST}: leave out an architecture with --arch",
        out.display()
    );
    println!(
        "{}: {:.1} MiB; on the GPU machine: ./run.sh RESULTS",
        out.display(),
        bytes as f64 / 1048576.0
    );
    Ok(())
}

/// Builds the programs with the kernels asked for embedded. With compute-sanitizer in the folder there is no
/// room for benchmarks, and nothing to time.
fn programs(arguments: &Arguments, out: &Path) -> Result<()> {
    let release = ["--release", "--package"];
    let program = [&["build"], &release[..], &["warpfuse", "--bins"]].concat();
    let tests = [&["test"], &release[..], &["warpfuse-tests", "--no-run"]].concat();
    add(Kind::Program, arguments, &program, &out.join("bin"))?;
    add(Kind::Test, arguments, &tests, &out.join("tests"))?;
    if arguments.sanitizer {
        return Ok(());
    }
    let tools = [&["build"], &release[..], &["warpfuse-benches", "--bins"]].concat();
    let benches = ["bench", "--package", "warpfuse-benches", "--no-run"];
    add(Kind::Program, arguments, &tools, &out.join("bin"))?;
    add(Kind::Bench, arguments, &benches, &out.join("benches"))
}

fn add(kind: Kind, arguments: &Arguments, cargo: &[&str], folder: &Path) -> Result<()> {
    let mut command = step::cargo(cargo);
    // Unchanged variables leave what is built alone.
    if arguments.arch != DEFAULT_ARCH {
        command.env("WARPFUSE_ARCH", &arguments.arch);
    }
    if arguments.line_info {
        command.env("WARPFUSE_LINE_INFO", "1");
    }
    let found = executables::build(kind, command)?;
    for found in found
        .iter()
        .filter(|f| !NEED_CARGO.contains(&f.name.as_str()))
    {
        strip(&found.path, &folder.join(&found.name))?;
    }
    Ok(())
}

/// Symbols and line tables are most of a Rust program; binutils come with the linker.
fn strip(from: &Path, to: &Path) -> Result<()> {
    folder::copy(from, to)?;
    let status = Command::new("strip").arg(to).status();
    let status = status.context("starting `strip`: install binutils")?;
    ensure!(status.success(), "strip {}: {status}", to.display());
    Ok(())
}

fn scripts(out: &Path, compiler: &str) -> Result<()> {
    folder::write_script(&out.join("run.sh"), include_str!("run.sh"))?;
    folder::write_script(&out.join("sanitize.sh"), include_str!("sanitize.sh"))?;
    let commit = commit().unwrap_or_else(|| "unknown".into());
    folder::write(&out.join("commit.txt"), &format!("{commit}\n"))?;
    let about = json!({ "compiler": compiler, "commit": commit });
    folder::write(&out.join("about.json"), &format!("{about:#}\n"))
}

/// The commit that is bundled, marked if the tree has changes.
fn commit() -> Option<String> {
    let output = step::command("git", &["describe", "--always", "--dirty", "--abbrev=12"]).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
