//! A binary cache that is cut while its arrays are in use where they are mapped: an error, whatever reads it.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::io::{ReadOptions, read, write_cache};
use warpfuse::learning::{FitError, Ridge};
use warpfuse::matrix::{Dataset, Features, csr_from_parts};
use warpfuse::ops::{Matrix, MatrixOptions, OpError, Terms};

use super::suite::{Suite, Test};

/// A test on a device.
type Run = fn(&Device) -> Result<()>;

/// Adds each way in which the host reads X.
pub fn add(suite: &mut Suite) {
    let ways: [(&str, Run); 4] = [
        ("product", product),
        ("streamed", streamed),
        ("fit", fit),
        ("replaced", replaced),
    ];
    for (name, run) in ways {
        suite.add(Test::new(format!("changed_file/{name}/f64")), run);
    }
}

const ROWS: usize = 4_000;
const COLS: usize = 50;
const PER_ROW: usize = 5;

/// A cache of half a megabyte, and what it holds.
fn cache(folder: &Path) -> Result<Dataset<f64>> {
    let offsets = (0..=ROWS as u64).map(|row| row * PER_ROW as u64).collect();
    let indices = (0..ROWS * PER_ROW)
        .map(|entry| (entry % PER_ROW * 10 + entry / PER_ROW % 10) as u32)
        .collect();
    let values = vec![1.0; ROWS * PER_ROW];
    let data = Dataset {
        features: Features::Sparse(csr_from_parts((ROWS, COLS), offsets, indices, values)?),
        targets: Some((0..ROWS).map(|row| (row % 7) as f64).collect()),
    };
    let path = folder.join("x.wfc");
    write_cache(&path, &data)?;
    Ok(read(&path, &ReadOptions::default())?)
}

/// Leaves the header and a part of the offsets.
fn cut(folder: &Path) -> Result<()> {
    let file = File::options().write(true).open(folder.join("x.wfc"))?;
    Ok(file.set_len(5_000)?)
}

fn fused(device: &Device, matrix: &Matrix<f64>) -> Result<(), OpError> {
    let y = device.upload(&[1.0; COLS])?;
    let mut w = device.zeros(COLS)?;
    matrix.fused(&y, &Terms::default(), &mut w)
}

/// Products of the CPU read the file; a GPU is given X before.
fn product(device: &Device) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let features = cache(folder.path())?.features;
    cut(folder.path())?;
    let found = Matrix::new(device, features).and_then(|matrix| fused(device, &matrix));
    ensure!(matches!(found, Err(OpError::FileChanged(_))), "{found:?}");
    // The device is usable afterwards.
    let features = cache(folder.path())?.features;
    fused(device, &Matrix::new(device, features)?).context("after the error")
}

/// Blocks are read when they cross.
fn streamed(device: &Device) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let features = cache(folder.path())?.features;
    let options = MatrixOptions {
        device_bytes: Some(20_000),
        ..MatrixOptions::default()
    };
    let matrix = Matrix::with_options(device, features, options)?;
    cut(folder.path())?;
    let found = fused(device, &matrix);
    ensure!(matches!(found, Err(OpError::FileChanged(_))), "{found:?}");
    Ok(())
}

fn fit(device: &Device) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let Dataset { features, targets } = cache(folder.path())?;
    cut(folder.path())?;
    let found = Ridge::params().fit(device, features, &targets.context("targets")?);
    let is_refused = matches!(found, Err(FitError::Op(OpError::FileChanged(_))));
    ensure!(is_refused, "{:?}", found.map(|model| model.n_iter()));
    Ok(())
}

/// Another file in its place leaves the first where it is mapped.
fn replaced(device: &Device) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let features = cache(folder.path())?.features;
    cache(folder.path())?;
    Ok(fused(device, &Matrix::new(device, features)?)?)
}
