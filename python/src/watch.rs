//! Progress, Ctrl-C, and the border between panics and exceptions.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use warpfuse::learning::{FitError, Iteration, Progress};
use warpfuse::ops::interruptible;

use crate::errors;

/// What unwinds a fit whose progress nobody wants to hear of any longer.
struct Stopped;

/// How long Ctrl-C may have to wait: to ask for signals takes the interpreter's lock, which others may hold.
const SIGNALS_EVERY: Duration = Duration::from_millis(20);

/// What was raised while the library worked.
type Raised = Rc<RefCell<Option<PyErr>>>;

/// Whoever watches a fit: a function, if there is one.
pub struct Watcher {
    told: Option<Py<PyAny>>,
    raised: Raised,
}

impl Watcher {
    /// After each iteration: its number, the objective where it is known, and what the tolerance is compared with.
    /// Unwinds the fit when the function raised.
    pub fn tell(&mut self, iteration: usize, objective: Option<f64>, ratio: f64) {
        let Some(told) = &self.told else { return };
        let found = Python::attach(|py| told.call1(py, (iteration, objective, ratio)).map(|_| ()));
        if let Err(error) = found {
            *self.raised.borrow_mut() = Some(error);
            // No panic: no hook prints anything.
            resume_unwind(Box::new(Stopped));
        }
    }

    /// After a step of a spectral method or of conjugate gradients.
    pub fn step(&mut self, progress: Progress) {
        self.tell(progress.iteration, None, progress.residual_ratio);
    }
}

/// Nanoseconds that the library's fits have taken, those of all threads.
static IN_CALLS: AtomicU64 = AtomicU64::new(0);

/// Runs a fit of the library, whose time is added up.
pub fn timed<R>(fit: impl FnOnce() -> R) -> R {
    let begun = Instant::now();
    let found = fit();
    let taken = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    IN_CALLS.fetch_add(taken, Ordering::Relaxed);
    found
}

/// Seconds that the library's fits have taken in this process, those of all threads: what else a fit takes is Python's.
#[pyfunction]
pub fn call_seconds() -> f64 {
    Duration::from_nanos(IN_CALLS.load(Ordering::Relaxed)).as_secs_f64()
}

/// Runs `fit` without the interpreter's lock; it ends when a signal's handler raises, as that of Ctrl-C does.
///
/// # Errors
/// What it returns as an exception; what the watching function or a handler raised; `RuntimeError` for a panic.
pub fn watched<R: Send>(
    py: Python<'_>,
    told: Option<Py<PyAny>>,
    fit: impl FnOnce(&mut Watcher) -> Result<R, FitError> + Send,
) -> PyResult<R> {
    let (end, raised) = py.detach(|| {
        let raised = Raised::default();
        let mut watcher = Watcher {
            told,
            raised: raised.clone(),
        };
        let signals = signals(raised.clone());
        let work = || interruptible(signals, || fit(&mut watcher));
        (catch_unwind(AssertUnwindSafe(work)), raised.take())
    });
    match (end, raised) {
        (_, Some(error)) => Err(error),
        (Ok(found), None) => found.map_err(errors::of_fit),
        (Err(panic), None) => Err(of_panic(&*panic)),
    }
}

/// Whether a signal's handler raised, which is kept.
fn signals(raised: Raised) -> impl Fn() -> bool {
    let asked = Cell::new(Instant::now());
    move || {
        if asked.get().elapsed() < SIGNALS_EVERY {
            return false;
        }
        let found = Python::attach(|py| py.check_signals());
        asked.set(Instant::now());
        found.is_err_and(|error| {
            *raised.borrow_mut() = Some(error);
            true
        })
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
