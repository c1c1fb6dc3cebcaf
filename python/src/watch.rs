//! Progress, Ctrl-C, and the border between panics and exceptions.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use warpfuse::learning::{FitError, Iteration, Progress};

use crate::errors;

/// What unwinds a fit that was asked to stop.
struct Stopped;

/// Whoever watches a fit: Python's signals, and a function if there is one.
pub struct Watcher {
    told: Option<Py<PyAny>>,
    error: Option<PyErr>,
}

impl Watcher {
    /// After each iteration: its number, the objective where it is known, and what the tolerance is compared with.
    /// Unwinds the fit when a signal is pending or the function raised.
    pub fn tell(&mut self, iteration: usize, objective: Option<f64>, ratio: f64) {
        let found = Python::attach(|py| {
            py.check_signals()?;
            match &self.told {
                Some(told) => told.call1(py, (iteration, objective, ratio)).map(|_| ()),
                None => Ok(()),
            }
        });
        if let Err(error) = found {
            self.error = Some(error);
            // No panic: no hook prints anything.
            resume_unwind(Box::new(Stopped));
        }
    }

    /// After a step of a spectral method or of conjugate gradients.
    pub fn step(&mut self, progress: Progress) {
        self.tell(progress.iteration, None, progress.residual_ratio);
    }
}

/// Runs `fit` without the interpreter's lock.
///
/// # Errors
/// What it returns as an exception; what the watching function or a signal raised; `RuntimeError` for a panic.
pub fn watched<R: Send>(
    py: Python<'_>,
    told: Option<Py<PyAny>>,
    fit: impl FnOnce(&mut Watcher) -> Result<R, FitError> + Send,
) -> PyResult<R> {
    let mut watcher = Watcher { told, error: None };
    let end = py.detach(|| catch_unwind(AssertUnwindSafe(|| fit(&mut watcher))));
    match (end, watcher.error) {
        (Ok(found), _) => found.map_err(errors::of_fit),
        (Err(panic), Some(error)) if panic.is::<Stopped>() => Err(error),
        (Err(panic), _) => Err(of_panic(&*panic)),
    }
}

/// A closure for estimators that tell of each iteration.
pub fn counted(watcher: &mut Watcher) -> impl FnMut(Iteration) {
    let mut done = 0;
    move |iteration| {
        done += 1;
        watcher.tell(done, Some(iteration.objective), iteration.gradient_ratio);
    }
}

/// A panic is a defect of the library. It must not end the interpreter.
fn of_panic(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    PyRuntimeError::new_err(format!(
        "a defect in warpfuse: {text}; please report it with the parameters and the shape of the data"
    ))
}
