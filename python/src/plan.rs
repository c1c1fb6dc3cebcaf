//! How a product would be launched on a GPU, which need not be there.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use warpfuse::device::{Device, embedded};
use warpfuse::matrix::Values;
use warpfuse::ops::{candidates_of, problem_on_gpu};
use warpfuse::plan::fused::{Plan, Planner, Precision, Problem};
use warpfuse::plan::limits::DeviceLimits;

use crate::arrays::{self, either};
use crate::matrix::product_of;

/// GPUs that are planned for without being there.
const KNOWN: [&str; 3] = ["h200", "h100", "a100"];

/// The plan of `product` with `x` (see `arrays::features`) on `gpu`: what the figures are called, and what they are.
#[pyfunction]
#[pyo3(signature = (x, product, gpu))]
pub fn plan<'py>(x: &Bound<'py, PyAny>, product: &str, gpu: &str) -> PyResult<Bound<'py, PyDict>> {
    let features = arrays::features(x)?;
    let py = x.py();
    let limits = limits_of(gpu)?;
    let problem = either!(&features, x => py.detach(|| problem_on_gpu(&limits, x, Values::Exact)));
    planned(py, &problem, product, &limits)
}

/// The same of a shape alone: sparse where `nnz` is given.
#[pyfunction]
#[pyo3(signature = (rows, cols, nnz, dtype, product, gpu))]
pub fn plan_of_shape<'py>(
    py: Python<'py>,
    rows: u64,
    cols: u64,
    nnz: Option<u64>,
    dtype: &str,
    product: &str,
    gpu: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let precision = match dtype {
        "float32" => Precision::F32,
        _ => Precision::F64,
    };
    let problem = match nnz {
        Some(nnz) => Problem::sparse(rows, cols, nnz, precision),
        None => Problem::dense(rows, cols, precision).as_stored(),
    };
    planned(py, &problem, product, &limits_of(gpu)?)
}

fn planned<'py>(
    py: Python<'py>,
    problem: &Problem,
    product: &str,
    limits: &DeviceLimits,
) -> PyResult<Bound<'py, PyDict>> {
    let product = product_of(product)?;
    let capability = limits.compute_capability;
    let image = embedded::image_for((capability.major, capability.minor));
    let kernels = candidates_of(problem.dtype, image.map_or("", |image| image.arch));
    let plan = Planner::new(limits, &kernels).plan(problem, product);
    let plan = plan.map_err(|error| PyValueError::new_err(error.to_string()))?;
    described(py, limits, &plan)
}

/// `auto`: the GPU of this machine, or an H200 where there is none.
fn limits_of(gpu: &str) -> PyResult<DeviceLimits> {
    let h200 = || DeviceLimits::known("h200").expect("a listed device");
    match gpu {
        "auto" => Ok(Device::cuda(0)
            .ok()
            .and_then(|device| device.limits().cloned())
            .unwrap_or_else(h200)),
        name if KNOWN.contains(&name) => Ok(DeviceLimits::known(name).expect("a listed device")),
        name => Err(PyValueError::new_err(format!(
            "gpu must be \"auto\" or one of {}, got {name:?}",
            KNOWN.join(", ")
        ))),
    }
}

fn described<'py>(
    py: Python<'py>,
    limits: &DeviceLimits,
    plan: &Plan,
) -> PyResult<Bound<'py, PyDict>> {
    let (dict, summary) = (PyDict::new(py), plan.summary());
    dict.set_item("text", plan.to_string())?;
    dict.set_item("gpu", &limits.name)?;
    dict.set_item("kernel", &summary.kernel)?;
    dict.set_item("blocks", summary.grid)?;
    dict.set_item("threads of a block", summary.bs)?;
    dict.set_item("threads of a row", summary.vs)?;
    dict.set_item("shared bytes of a block", summary.shared_bytes)?;
    dict.set_item("registers of a thread", summary.registers)?;
    dict.set_item("warps of a multiprocessor", summary.warps_per_sm)?;
    dict.set_item("predicted microseconds", summary.predicted_us)?;
    dict.set_item("reasons", &summary.reasons)?;
    Ok(dict)
}
