//! Singular vectors, and rankings of graphs.

use numpy::ToPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use warpfuse::learning::{Hits, PageRank, SpectralReport, TruncatedSvd};

use crate::arrays::{self, either};
use crate::device::Device;
use crate::{checkpoint, lent, watch};

/// The leading singular vectors of X, of the centred X for principal components; what lies on a GPU already is read there.
#[pyfunction]
#[pyo3(signature = (x, device, components, *, centred, tol, max_iter, seed, watch = None))]
#[allow(
    clippy::too_many_arguments,
    reason = "they are Python's, with names there"
)]
pub fn truncated_svd<'py>(
    x: &Bound<'py, PyAny>,
    device: &Device,
    components: usize,
    centred: bool,
    tol: f64,
    max_iter: usize,
    seed: u64,
    watch: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = x.py();
    let params = TruncatedSvd::params(components)
        .tolerance(tol)
        .max_iter(max_iter)
        .seed(seed);
    let params = if centred { params.centred() } else { params };
    let model = match lent::features(x)? {
        Some(there) => either!(there, x => watch::watched(py, watch, |watcher| {
            params.fit_over(x, |progress| watcher.step(progress))
        }))?,
        None => either!(arrays::features(x)?, x => watch::watched(py, watch, |watcher| {
            let tell = |progress| watcher.step(progress);
            match &checkpoint::next() {
                None => params.fit_watched(&device.0, x, tell),
                Some(checkpoint) => params.fit_with_checkpoint(&device.0, x, checkpoint, tell),
            }
        }))?,
    };
    let dict = describe(py, model.report())?;
    dict.set_item("components", model.components().to_pyarray(py))?;
    dict.set_item(
        "singular_values",
        arrays::vector(py, model.singular_values()),
    )?;
    dict.set_item(
        "explained_variance",
        arrays::vector(py, model.explained_variance()),
    )?;
    let ratios = model.explained_variance_ratio();
    dict.set_item("explained_variance_ratio", arrays::vector(py, &ratios))?;
    let means = model.means().map(|means| arrays::vector(py, means));
    dict.set_item("means", means)?;
    Ok(dict)
}

/// Hubs and authorities of a graph.
#[pyfunction]
#[pyo3(signature = (x, device, *, tol, max_iter, watch = None))]
pub fn hits<'py>(
    x: &Bound<'py, PyAny>,
    device: &Device,
    tol: f64,
    max_iter: usize,
    watch: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = x.py();
    let (features, device) = (arrays::features(x)?, &device.0);
    let params = Hits::params().tolerance(tol).max_iter(max_iter);
    let model = either!(features, x => watch::watched(py, watch, |watcher| {
        let tell = |progress| watcher.step(progress);
        match &checkpoint::next() {
            None => params.fit_watched(device, x, tell),
            Some(checkpoint) => params.fit_with_checkpoint(device, x, checkpoint, tell),
        }
    }))?;
    let dict = describe(py, model.report())?;
    dict.set_item("hubs", arrays::vector(py, model.hubs()))?;
    dict.set_item("authorities", arrays::vector(py, model.authorities()))?;
    Ok(dict)
}

/// Page ranks of a graph's nodes.
#[pyfunction]
#[pyo3(signature = (x, device, *, damping, personalization, tol, max_iter, watch = None))]
#[allow(
    clippy::too_many_arguments,
    reason = "they are Python's, with names there"
)]
pub fn page_rank<'py>(
    x: &Bound<'py, PyAny>,
    device: &Device,
    damping: f64,
    personalization: Option<Vec<f64>>,
    tol: f64,
    max_iter: usize,
    watch: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = x.py();
    let (features, device) = (arrays::features(x)?, &device.0);
    let params = PageRank::params()
        .damping(damping)
        .tolerance(tol)
        .max_iter(max_iter);
    let params = match personalization {
        Some(weights) => params.personalisation(weights),
        None => params,
    };
    let model = either!(features, x => watch::watched(py, watch, |watcher| {
        let tell = |progress| watcher.step(progress);
        match &checkpoint::next() {
            None => params.fit_watched(device, x, tell),
            Some(checkpoint) => params.fit_with_checkpoint(device, x, checkpoint, tell),
        }
    }))?;
    let dict = describe(py, model.report())?;
    dict.set_item("scores", arrays::vector(py, model.scores()))?;
    Ok(dict)
}

fn describe<'py>(py: Python<'py>, report: &SpectralReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("n_iter", report.n_iter)?;
    dict.set_item("converged", report.converged)?;
    dict.set_item("change", report.change)?;
    dict.set_item("seconds", report.seconds)?;
    Ok(dict)
}
