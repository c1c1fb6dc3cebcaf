//! Checkpoints of the fits inside a `with` block: of this thread.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use warpfuse::learning::Checkpoint;

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// A block.
struct Current {
    path: PathBuf,
    every: Duration,
    /// Fits that have begun in it.
    fits: usize,
}

impl Current {
    /// The file of a fit: that of the first has the name that was given, the others a number behind it.
    fn of(&self, fit: usize) -> Checkpoint {
        let mut name = self.path.clone().into_os_string();
        if fit > 0 {
            name.push(format!(".{fit}"));
        }
        Checkpoint::new(name).every(self.every)
    }
}

/// Where the next fit of this thread writes how far it has got, if it does.
pub fn next() -> Option<Checkpoint> {
    CURRENT.with_borrow_mut(|current| {
        let current = current.as_mut()?;
        current.fits += 1;
        Some(current.of(current.fits - 1))
    })
}

/// Has the fits of this thread write how far they have got, with `every` seconds between.
#[pyfunction]
pub fn begin_checkpoint(path: PathBuf, every: f64) -> PyResult<()> {
    let every = Duration::try_from_secs_f64(every).map_err(|_| {
        PyValueError::new_err(format!(
            "every must be a number of seconds, at least 0, got {every}"
        ))
    })?;
    let fits = 0;
    CURRENT.with_borrow_mut(|current| match current {
        Some(_) => Err(PyRuntimeError::new_err(
            "checkpoints do not nest: leave the `with warpfuse.checkpoint(...)` block before the next",
        )),
        None => {
            *current = Some(Current { path, every, fits });
            Ok(())
        }
    })
}

/// Ends that; the files are removed when all fits have ended.
#[pyfunction]
pub fn end_checkpoint(remove: bool) -> PyResult<()> {
    let Some(current) = CURRENT.take().filter(|_| remove) else {
        return Ok(());
    };
    for fit in 0..current.fits {
        let removed = current.of(fit).remove();
        removed.map_err(|error| PyOSError::new_err(error.to_string()))?;
    }
    Ok(())
}
