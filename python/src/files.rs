//! X by the name of a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use numpy::PyArray1;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use warpfuse::io::{self, CachePolicy, Columns, ReadError, ReadOptions, Target};
use warpfuse::learning::ResidentDataset;
use warpfuse::matrix::Element;
use warpfuse::ops::MatrixOptions;

use crate::arrays::{self, Either, Scalar};
use crate::dataset::Dataset;
use crate::device::Device;
use crate::{errors, group};

/// X of a file on a device, prepared for this many reads, and the targets that the file has.
type FromFile<'py> = (Dataset, Option<Bound<'py, PyArray1<f64>>>);

/// Reads LIBSVM, Matrix Market, CSV, npy or npz and puts X on `device`. With `cache` a text leaves a binary file next to
/// it, which is read instead the next time.
#[pyfunction]
#[pyo3(signature = (path, device, *, dtype, cache, columns, target, evaluations))]
#[allow(
    clippy::too_many_arguments,
    reason = "they are Python's, with names there"
)]
pub fn read_file<'py>(
    py: Python<'py>,
    path: PathBuf,
    device: &Device,
    dtype: &str,
    cache: bool,
    columns: Option<usize>,
    target: Option<String>,
    evaluations: u64,
) -> PyResult<FromFile<'py>> {
    let options = ReadOptions {
        cache: match cache {
            true => CachePolicy::ReadWrite,
            false => CachePolicy::Off,
        },
        columns: columns.map_or(Columns::Infer, Columns::Exactly),
        target: target.map(Target::new),
        ..ReadOptions::default()
    };
    let place = (&*path, device, evaluations);
    let (x, targets) = py.detach(|| match dtype {
        "float32" => placed::<f32>(place, &options).map(|(x, y)| (Either::F32(x), y)),
        _ => placed::<f64>(place, &options).map(|(x, y)| (Either::F64(x), y)),
    })?;
    let targets = targets.map(|targets| arrays::vector(py, &targets));
    Ok((Dataset(x), targets))
}

fn placed<T: Scalar>(
    (path, device, evaluations): (&Path, &Device, u64),
    options: &ReadOptions,
) -> PyResult<(ResidentDataset<T>, Option<Vec<f64>>)> {
    let data = io::read::<T>(path, options).map_err(of_read)?;
    let own = group::own_rows(device, data.features.rows());
    let features = match own {
        Some(own) => Arc::new(data.features).share_rows(own),
        None => data.features,
    };
    let (device, how) = (&device.0, MatrixOptions::default());
    let x = ResidentDataset::for_evaluations(device, features, how, evaluations)
        .map_err(errors::of_fit)?;
    let wide = |targets: Vec<T>| targets.into_iter().map(Element::to_f64).collect();
    Ok((x, data.targets.map(wide)))
}

fn of_read(error: ReadError) -> PyErr {
    match error {
        ReadError::Io { path, source } => match source.raw_os_error() {
            // With its number Python chooses the subclass, such as FileNotFoundError.
            Some(number) => PyOSError::new_err((number, source.to_string(), path)),
            None => PyOSError::new_err(format!("cannot read {}: {source}", path.display())),
        },
        error => PyValueError::new_err(error.to_string()),
    }
}
