//! compute-sanitizer, which a machine with a driver alone does not have.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use gpu_kernels_builder::fetch_wheel;

use super::folder;
use crate::workspace;

/// Of the same release as the assembler; it follows the driver's major version.
const WHEEL: &str = "nvidia-cuda-sanitizer-api==13.0.85";

/// Fetches it, once, and copies it into `folder` as a toolkit lays it out: the program beside its libraries.
pub fn add(folder: &Path) -> Result<()> {
    let unpacked = workspace::tools_dir().join("sanitizer");
    if !unpacked.join("nvidia").is_dir() {
        fetch_wheel(WHEEL, &unpacked)?;
    }
    for part in ["nvidia/cu13/bin", "nvidia/cu13/lib"] {
        copy_files(&unpacked.join(part), folder)?;
    }
    let program = folder.join("compute-sanitizer");
    ensure!(
        program.is_file(),
        "expected {} from {WHEEL}, found nothing: the wheel's layout has changed",
        program.display()
    );
    folder::make_executable(&program)
}

fn copy_files(from: &Path, to: &Path) -> Result<()> {
    let entries = fs::read_dir(from).with_context(|| format!("reading {}", from.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_file() {
            folder::copy(&path, &to.join(path.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}
