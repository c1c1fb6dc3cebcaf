//! `bundle`: one folder with everything a GPU machine without Rust needs to check and to measure, and the
//! same folder as one file to carry there.

mod executables;
mod folder;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use gpu_kernels_builder::{Arch, Install, LineInfo};
use serde_json::json;

use crate::{ptx, step, workspace};
use executables::Kind;

/// What such a machine is commonly reached through carries little more than this in one file.
const LARGEST: u64 = 60 << 20;

const DEFAULT_ARCH: &str = "sm_80,sm_90";

/// What runs cargo, or programs where cargo put them, and so has nothing to do on a machine without Rust.
const NEED_CARGO: [&str; 2] = ["cli", "xtask"];

/// The arguments of `bundle`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Architectures, separated by commas.
    #[arg(long, value_name = "LIST", default_value = DEFAULT_ARCH)]
    arch: String,
    /// Keep source lines in the kernels, for compute-sanitizer and profilers.
    #[arg(long)]
    line_info: bool,
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
        Some(folder) => std::path::absolute(folder).context("the current folder")?,
        None => workspace::target_dir().join("bundle"),
    };
    folder::start_afresh(&out)?;
    ptx::copy(&kernels, &out.join("ptx"))?;
    programs(arguments, &out)?;
    folder::copy_tree(
        &workspace::root().join("host/examples/data"),
        &out.join("data"),
    )?;
    scripts(&out, &kernels.toolchain.version)?;
    let archive = pack(&out)?;
    let mebibytes = |bytes: u64| bytes as f64 / 1048576.0;
    println!(
        "{}: {:.1} MiB, {:.1} MiB unpacked; on the GPU machine: `tar xzf {}`, then `{}/run.sh RESULTS`",
        archive.path.display(),
        mebibytes(archive.bytes),
        mebibytes(folder::size(&out)?),
        name(&archive.path),
        name(&out),
    );
    Ok(())
}

/// The folder as one file.
struct Archive {
    path: PathBuf,
    bytes: u64,
}

/// Makes `FOLDER.tar.gz` beside the folder.
fn pack(folder: &Path) -> Result<Archive> {
    let path = PathBuf::from(format!("{}.tar.gz", folder.display()));
    let parent = folder.parent().context("a bundle is inside a folder")?;
    let mut tar = Command::new("tar");
    tar.arg("-czf")
        .arg(&path)
        .arg("-C")
        .arg(parent)
        .arg(name(folder));
    let status = tar.status().context("starting `tar`: install tar")?;
    ensure!(status.success(), "tar -czf {}: {status}", path.display());
    let bytes = path
        .metadata()
        .with_context(|| format!("reading {}", path.display()))?
        .len();
    ensure!(
        bytes <= LARGEST,
        "{} has {bytes} bytes, expected at most {LARGEST}: leave out an architecture with --arch",
        path.display()
    );
    Ok(Archive { path, bytes })
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Builds the programs with the kernels requested embedded. All commands select the whole workspace, so that
/// they agree on the features of every dependency and build it once.
fn programs(arguments: &Arguments, out: &Path) -> Result<()> {
    let program = ["build", "--release", "--workspace", "--bins"];
    let tests = [
        "test",
        "--release",
        "--workspace",
        "--no-run",
        "--test",
        "*",
    ];
    let benches = ["bench", "--workspace", "--no-run", "--bench", "*"];
    add(Kind::Program, arguments, &program, &out.join("bin"))?;
    add(Kind::Test, arguments, &tests, &out.join("tests"))?;
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
    folder::write_script(&out.join("record.sh"), include_str!("record.sh"))?;
    folder::write_script(&out.join("sanitize.sh"), include_str!("sanitize.sh"))?;
    folder::write_script(&out.join("placement.sh"), include_str!("placement.sh"))?;
    folder::write_script(&out.join("scaling.sh"), include_str!("scaling.sh"))?;
    folder::write_script(&out.join("kills.py"), include_str!("kills.py"))?;
    folder::write_script(&out.join("criteo.py"), include_str!("criteo.py"))?;
    folder::write_script(&out.join("system.sh"), include_str!("system.sh"))?;
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
