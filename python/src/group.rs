//! Processes that fit together: what `torchrun`, `mpirun` and `srun` started.

use std::ops::Range;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use warpfuse::device::Device as Inner;
use warpfuse::device::group::{Group as Joined, GroupError, Launch, Seat};
use warpfuse::io::Portion;

use crate::device::Device;
use crate::errors;

/// This process among those that a launcher started, or alone.
#[pyclass(frozen, module = "warpfuse._native")]
pub struct Group {
    joined: Joined,
    launch: Option<Launch>,
}

#[pymethods]
impl Group {
    /// Joins the others; returns when all have come.
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let joined = py.detach(Joined::from_environment).map_err(of_group)?;
        let launch = Launch::from_environment().map_err(of_group)?;
        Ok(Group { joined, launch })
    }

    /// This process's number.
    #[getter]
    fn rank(&self) -> usize {
        self.joined.rank()
    }

    /// How many there are.
    #[getter]
    fn size(&self) -> usize {
        self.joined.size()
    }

    /// What they talk by.
    #[getter]
    fn engine(&self) -> String {
        self.joined.engine()
    }

    /// The name of this process's device for a `name`: of processes of `torchrun` a GPU each, of others the processor unless
    /// GPUs are named; `cuda:N` is that of a machine's first process.
    fn name(&self, name: &str) -> PyResult<String> {
        match self.launch.filter(|launch| launch.size > 1) {
            Some(launch) => Seat::of(&launch).device(name).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "device: expected a GPU for each process of {}, found 'cpu'; start processes on CPUs by mpirun or srun",
                    launch.launcher.name()
                ))
            }),
            None => Ok(name.to_owned()),
        }
    }

    /// That device.
    fn device(&self, py: Python<'_>, name: &str) -> PyResult<Device> {
        let own = self.name(name)?;
        py.detach(|| {
            let device: Inner = own.parse().map_err(errors::of_device)?;
            device.in_group(&self.joined).map_err(of_group)
        })
        .map(Device)
    }

    /// From which row of `rows` to which those of this process are, on its device.
    fn rows(&self, rows: usize, device: &Device) -> (usize, usize) {
        let Range { start, end } = own_rows(device, rows).unwrap_or(0..rows);
        (start, end)
    }

    /// The bytes of all processes, in the order of their ranks.
    fn gather<'py>(&self, py: Python<'py>, own: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let each = py.detach(|| {
            let lengths = self.joined.all_gather(&[own.len() as u64])?;
            let all = self.joined.all_gather(own)?;
            let mut rest = &all[..];
            let each = lengths.iter().map(|len| {
                let (piece, others) = rest.split_at(*len as usize);
                rest = others;
                piece.to_vec()
            });
            Ok(each.collect::<Vec<Vec<u8>>>())
        });
        let each = each.map_err(of_group)?;
        Ok(each.iter().map(|piece| PyBytes::new(py, piece)).collect())
    }

    /// Waits for all.
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.joined.barrier()).map_err(of_group)
    }

    /// Tells the others why this process cannot go on.
    fn fail(&self, py: Python<'_>, why: &str) {
        py.detach(|| self.joined.fail(why));
    }

    fn __repr__(&self) -> String {
        let (rank, size) = (self.joined.rank(), self.joined.size());
        format!(
            "<warpfuse process {rank} of {size} ({})>",
            self.joined.engine()
        )
    }
}

/// Which of `rows` are this process's; none where the device is of no group.
pub fn own_rows(device: &Device, rows: usize) -> Option<Range<usize>> {
    let group = device.0.group()?;
    Some(Portion::new(group.rank(), group.size()).rows(rows, device.0.row_step()))
}

/// What became of a group.
pub fn of_group(error: GroupError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
