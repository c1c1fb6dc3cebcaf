//! CUB's sum, in a small program of its own that is compiled where there is an `nvcc`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

/// Where nvcc is when it is not on the path.
const NVCC: [&str; 2] = ["nvcc", "/usr/local/cuda/bin/nvcc"];

/// Median microseconds of `cub::DeviceReduce::Sum` over `len` f32; `None` where it cannot be compiled or run,
/// which is said once.
pub fn sum_us(len: usize) -> Option<f64> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    static TIMES: OnceLock<std::sync::Mutex<BTreeMap<usize, f64>>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| super::told("CUB", build)).as_ref()?;
    let mut times = TIMES
        .get_or_init(Default::default)
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(us) = times.get(&len) {
        return Some(*us);
    }
    let us = super::told("CUB", || run(program, len))?;
    times.insert(len, us);
    Some(us)
}

fn build() -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("warpfuse-cub-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (source, program) = (folder.join("cub_reduce.cu"), folder.join("cub_reduce"));
    std::fs::write(&source, include_str!("cub_reduce.cu"))?;
    let compiled = NVCC
        .iter()
        .find_map(|nvcc| compile(nvcc, &source, &program).ok());
    let output = compiled.context("no nvcc was found")?;
    let message = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "nvcc failed: {message}");
    Ok(program)
}

fn compile(nvcc: &str, source: &Path, program: &Path) -> std::io::Result<std::process::Output> {
    Command::new(nvcc)
        .args(["-O3", "-std=c++17", "-arch=native", "-o"])
        .args([program, source])
        .output()
}

fn run(program: &Path, len: usize) -> Result<f64> {
    let output = Command::new(program).arg(len.to_string()).output()?;
    let message = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{message}");
    let text = String::from_utf8_lossy(&output.stdout);
    let figure = text.split_whitespace().nth(1).context("no figure")?;
    figure.parse().context("no figure")
}
