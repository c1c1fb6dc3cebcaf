//! X by the name of a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use numpy::PyArray1;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use warpfuse::device::Device as Inner;
use warpfuse::device::group::Group;
use warpfuse::io::{
    self, CachePolicy, Columns, Portion, ReadError, ReadOptions, TableOptions, TableRows,
    TableTargets, Target,
};
use warpfuse::learning::ResidentDataset;
use warpfuse::matrix::{Element, Features, TableEncoding};
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
    let own = device
        .0
        .group()
        .map(|group| own_lines(path, (group, &device.0), options));
    let (features, targets) = match own.transpose()?.flatten() {
        Some(own) => own,
        None => all_lines(path, device, options)?,
    };
    let (device, how) = (&device.0, MatrixOptions::default());
    let x = ResidentDataset::for_evaluations(device, features, how, evaluations)
        .map_err(errors::of_fit)?;
    let wide = |targets: Vec<T>| targets.into_iter().map(Element::to_f64).collect();
    Ok((x, targets.map(wide)))
}

/// The rows of a process, and the targets of all.
type Rows<T> = (Features<T>, Option<Vec<T>>);

/// What this process computes with of a file that it reads as a whole.
fn all_lines<T: Scalar>(path: &Path, device: &Device, options: &ReadOptions) -> PyResult<Rows<T>> {
    let data = io::read::<T>(path, options).map_err(of_read)?;
    let own = group::own_rows(device, data.features.rows());
    let features = match own {
        Some(own) => Arc::new(data.features).share_rows(own),
        None => data.features,
    };
    Ok((features, data.targets))
}

/// The same of a file of which each member of a group reads its own lines; none where that cannot be, which all members find.
fn own_lines<T: Scalar>(
    path: &Path,
    (group, device): (&Group, &Inner),
    options: &ReadOptions,
) -> PyResult<Option<Rows<T>>> {
    let portion = Portion::new(group.rank(), group.size());
    let read = io::read_portion::<T>(path, options, &TableOptions::default(), portion);
    let read = group.agree(read).map_err(|error| match error {
        Ok(own) => of_read(own),
        Err(other) => group::of_group(other),
    })?;
    let Some(read) = read else { return Ok(None) };
    let facts = group.all_gather_each(&read.facts());
    let facts = facts.map_err(group::of_group)?;
    let own = read.complete(&facts, device.row_step()).map_err(of_read)?;
    // Columns of text are no numbers: the reading of all says so.
    let is_plain = |own: &TableRows<T>| {
        let table = own.table.schema.table.as_ref();
        table.is_none_or(TableEncoding::is_plain)
    };
    let Some(own) = own.filter(is_plain) else {
        return Ok(None);
    };
    let targets = match own.table.targets {
        Some(TableTargets::Numbers(own)) => Some(group.all_gather(&own).map_err(group::of_group)?),
        Some(TableTargets::Text(_)) => return Ok(None),
        None => None,
    };
    Ok(Some((own.table.features, targets)))
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
