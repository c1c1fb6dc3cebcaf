//! Devices by name.

use std::str::FromStr;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warpfuse::device::Device as Inner;

use crate::errors;

/// A device of the library: `auto`, `cpu`, `cuda`, `cuda:N`, `emulator`.
#[pyclass(frozen, module = "warpfuse._native")]
pub struct Device(pub Inner);

#[pymethods]
impl Device {
    #[new]
    fn new(py: Python<'_>, name: &str) -> PyResult<Self> {
        py.detach(|| Inner::from_str(name))
            .map(Device)
            .map_err(errors::of_device)
    }

    /// As its manufacturer calls it.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Whether it is a GPU.
    #[getter]
    fn is_cuda(&self) -> bool {
        matches!(self.0, Inner::Cuda(_))
    }

    /// Bytes that its buffers hold now, that are kept for the next ones, and that they held at most, that others
    /// lent, that crossed from and to the host so far, and free and total memory where known.
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let usage = self.0.usage();
        let dict = PyDict::new(py);
        dict.set_item("bytes", usage.live_bytes)?;
        dict.set_item("kept_bytes", usage.kept_bytes)?;
        dict.set_item("peak_bytes", usage.peak_bytes)?;
        dict.set_item("lent_bytes", usage.lent_bytes)?;
        dict.set_item("sent_bytes", usage.sent_bytes)?;
        dict.set_item("received_bytes", usage.received_bytes)?;
        if let Some(memory) = self.0.memory_info() {
            dict.set_item("free_bytes", memory.free_bytes)?;
            dict.set_item("total_bytes", memory.total_bytes)?;
        }
        Ok(dict)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<warpfuse device {} ({})>", self.0, self.0.name())
    }
}
