//! The PTX of the kernel crate alone: the same bytes, whatever else is in the workspace.
//!
//! The emulator runs the same bodies, and must leave no trace in them. So the crate is copied to a workspace
//! that has no other member, compiled there, and compared byte by byte.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use gpu_kernels_builder::{Arch, Assembly, Image, LineInfo, PtxBuilder, PtxOutput, Unit};

use crate::workspace;

const CRATE: &str = "gpu-kernels";

/// Compiles the crate alone for one of the architectures of `output`, the same units, and compares.
///
/// # Errors
/// With the first kernel and line that differs.
pub fn check(output: &PtxOutput, lines: LineInfo, units: Vec<Unit>) -> Result<()> {
    let Some(image) = output.images.last() else {
        bail!("there is no PTX to compare with");
    };
    let folder = workspace::ptx_dir().join("alone");
    copy_crate(&folder).context("copying the kernel crate")?;
    let alone =
        compile(&folder, image.arch, lines, units).context("compiling the kernel crate alone")?;
    for kernel in &image.kernels {
        same(&read(&image.ptx(kernel))?, &read(&alone.ptx(kernel))?)
            .with_context(|| format!("{kernel} of {CRATE} alone for {}", image.arch))?;
    }
    Ok(())
}

fn compile(folder: &Path, arch: Arch, lines: LineInfo, units: Vec<Unit>) -> Result<Image> {
    let output = PtxBuilder::new(folder.join(CRATE))
        .arch(arch)
        .units(units)
        .target_dir(folder.join("ptx"))
        .core_dir(workspace::ptx_dir().join("core"))
        .line_info(lines)
        .assembly(Assembly::Skipped)
        .build()?;
    let mut images = output.images.into_iter();
    images.next().context("nothing was compiled")
}

/// The crate's manifest, page and source, and a workspace manifest for what it inherits.
fn copy_crate(folder: &Path) -> Result<()> {
    let (from, to) = (workspace::root().join(CRATE), folder.join(CRATE));
    let manifest = fs::read_to_string(workspace::root().join("Cargo.toml"))?;
    update(
        &folder.join("Cargo.toml"),
        only_member(&manifest).as_bytes(),
    )?;
    // The page is the crate's documentation, which the compiler reads too.
    for file in ["Cargo.toml", "README.md"] {
        update(&to.join(file), &fs::read(from.join(file))?)?;
    }
    let sources = files(&from.join("src"))?;
    for file in files(&to.join("src")).unwrap_or_default() {
        let original = from.join("src").join(file.strip_prefix(to.join("src"))?);
        if !sources.contains(&original) {
            fs::remove_file(&file)?;
        }
    }
    for file in sources {
        update(&to.join(file.strip_prefix(&from)?), &fs::read(&file)?)?;
    }
    Ok(())
}

/// The workspace's manifest with the kernel crate as its only member.
fn only_member(manifest: &str) -> String {
    let lines = manifest.lines().map(|line| match line.split_once('=') {
        Some((key, _)) if key.trim() == "members" => format!("members = [\"{CRATE}\"]\n"),
        Some((key, _)) if key.trim() == "default-members" => String::new(),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

/// Writes what is new, so that cargo compiles only what has changed.
fn update(file: &Path, content: &[u8]) -> Result<()> {
    if fs::read(file).is_ok_and(|present| present == content) {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, content).with_context(|| format!("writing {}", file.display()))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))
}

fn same(in_workspace: &str, alone: &str) -> Result<()> {
    if in_workspace == alone {
        return Ok(());
    }
    let pairs = in_workspace.lines().zip(alone.lines());
    let differing = pairs.enumerate().find(|(_, (one, other))| one != other);
    match differing {
        Some((at, (one, other))) => bail!(
            "the PTX differs from line {}: `{one}` in the workspace, `{other}` alone",
            at + 1
        ),
        None => bail!("the PTX differs in its length"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_named() {
        assert!(same("a\nb\n", "a\nb\n").is_ok());
        let message = same("a\nb\n", "a\nc\n")
            .expect_err("b is not c")
            .to_string();
        assert!(message.contains("line 2: `b`"), "{message}");
        assert!(same("a\n", "a").is_err());
    }

    #[test]
    fn other_members_are_left_out() {
        let manifest = "[workspace]\nmembers = [\"gpu-kernels\", \"host\"]\ndefault-members = [\"host\"]\n[x]\n";
        assert_eq!(
            only_member(manifest),
            "[workspace]\nmembers = [\"gpu-kernels\"]\n[x]\n"
        );
    }
}
