//! What the spectral methods share: their report, checks, and small steps on device vectors.

use std::time::Instant;

use super::FitError;
use super::cg::Progress;
use super::checkpoint::{Record, session};
use crate::device::group::{Group, GroupError};
use crate::device::{Buffer, Device};
use crate::matrix::{Element, Features, Storage};
use crate::ops::{Matrix, Number, OpError, interrupt, vector};

/// The three ways to fit a spectral method: `fit`, with its documentation here, `fit_watched` and `fit_with_checkpoint`. The
/// method has `run`, which fits, and `facts`, which adds what a checkpoint must have been written with.
macro_rules! spectral_fits {
    ($method:ident -> $model:ident, watched $when:literal; $(#[$what:meta])+) => {
        impl $method {
            $(#[$what])+
            pub fn fit<T: Number>(
                &self,
                device: &Device,
                x: impl Into<Arc<Features<T>>>,
            ) -> Result<$model, FitError> {
                self.fit_watched(device, x, |_| {})
            }

            #[doc = concat!("[`", stringify!($method), "::fit`], calling `watch` ", $when, ".")]
            ///
            /// # Errors
            #[doc = concat!("As [`", stringify!($method), "::fit`].")]
            pub fn fit_watched<T: Number>(
                &self,
                device: &Device,
                x: impl Into<Arc<Features<T>>>,
                mut watch: impl FnMut(Progress),
            ) -> Result<$model, FitError> {
                self.run(device, x.into(), &mut watch)
            }

            #[doc = concat!("[`", stringify!($method), "::fit_watched`] that writes how far it has got, and goes on from")]
            /// there where the file exists: with the bits of a fit that was never interrupted where sums are reproducible
            /// ([`Summation::Reproducible`](crate::plan::fused::Summation::Reproducible), and on the CPU).
            ///
            /// # Errors
            #[doc = concat!("As [`", stringify!($method), "::fit`], and [`FitError::Checkpoint`].")]
            pub fn fit_with_checkpoint<T: Number>(
                &self,
                device: &Device,
                x: impl Into<Arc<Features<T>>>,
                checkpoint: &Checkpoint,
                mut watch: impl FnMut(Progress),
            ) -> Result<$model, FitError> {
                let x = x.into();
                with_checkpoint_of(
                    checkpoint,
                    (device, &x.clone().storage()),
                    |identity| self.facts(identity),
                    || self.run(device, x, &mut watch),
                )
            }
        }
    };
}
pub(super) use spectral_fits;

/// How a spectral fit went.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SpectralReport {
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
    /// Stored entries of X.
    pub nnz: u64,
    /// Products with X and Xᵀ.
    pub n_iter: usize,
    /// Whether the tolerance was reached.
    pub converged: bool,
    /// What was compared with the tolerance, at the end.
    pub change: f64,
    /// The device's name.
    pub device: String,
    /// Seconds until the data were on the device.
    pub transfer_seconds: f64,
    /// Seconds in all.
    pub seconds: f64,
    /// The most bytes that buffers held on the device.
    pub peak_device_bytes: u64,
}

/// The time of a fit, from its start.
pub(super) struct Clock {
    start: Instant,
    transfer_seconds: f64,
}

/// How an iteration ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Course {
    pub(super) n_iter: usize,
    pub(super) converged: bool,
    pub(super) change: f64,
}

/// Steps of method `name` from `vector` on, until the change is at most `tolerance`, or there were `max_iter` of them. Each is
/// one call of `step`, which changes the vector and returns the change. With a checkpoint they go on from there.
///
/// # Errors
/// [`FitError::NotFinite`] for such a change, when the fit was interrupted, and those of `step`.
pub(super) fn iterate<T: Number>(
    (name, vector): (&'static str, &mut Buffer<T>),
    (tolerance, max_iter): (f64, usize),
    mut watch: impl FnMut(Progress),
    mut step: impl FnMut(&mut Buffer<T>) -> Result<f64, FitError>,
) -> Result<Course, FitError> {
    let mut course = Course::START;
    if let Some(found) = session::begin(name)? {
        course.restore(&found)?;
        found.restore("vector", vector)?;
    }
    while course.n_iter < max_iter && !course.converged {
        if session::is_due() {
            session::save(|record| {
                course.save(record);
                record.vector("vector", vector)
            })?;
        }
        course.change = step(vector)?;
        course.n_iter += 1;
        if !course.change.is_finite() {
            let iterations = course.n_iter;
            return Err(FitError::NotFinite { iterations });
        }
        course.converged = course.change <= tolerance;
        interrupt::proceed()?;
        watch(Progress {
            iteration: course.n_iter,
            max_iter,
            residual_ratio: course.change,
        });
    }
    Ok(course)
}

impl Course {
    /// Before the first step.
    pub(super) const START: Course = Course {
        n_iter: 0,
        converged: false,
        change: f64::INFINITY,
    };

    /// Adds it to a record; it has not converged.
    pub(super) fn save(&self, to: &mut Record) {
        to.numbers("course", &[self.n_iter as f64, self.change]);
    }

    /// Puts it back to where it was.
    pub(super) fn restore(&mut self, from: &Record) -> Result<(), OpError> {
        let [n_iter, change] = from.array("course")?;
        (self.n_iter, self.change) = (n_iter as usize, change);
        Ok(())
    }
}

/// What the models of spectral fits say of the fit, from their field `report`.
macro_rules! spectral_model {
    ($model:ty, $steps:literal) => {
        impl $model {
            #[doc = $steps]
            pub fn n_iter(&self) -> usize {
                self.report.n_iter
            }

            /// Whether the tolerance was reached.
            pub fn converged(&self) -> bool {
                self.report.converged
            }

            /// How the fit went.
            pub fn report(&self) -> &$crate::learning::spectral::SpectralReport {
                &self.report
            }
        }
    };
}
pub(super) use spectral_model;

impl Clock {
    pub(super) fn start() -> Self {
        Clock {
            start: Instant::now(),
            transfer_seconds: 0.0,
        }
    }

    /// The data are on the device.
    pub(super) fn transferred(&mut self) {
        self.transfer_seconds = self.start.elapsed().as_secs_f64();
    }

    pub(super) fn report<T: Number>(&self, x: &Matrix<T>, course: Course) -> SpectralReport {
        let (rows, cols) = (x.rows(), x.cols());
        SpectralReport {
            rows,
            cols,
            nnz: x.problem().nnz.unwrap_or(rows as u64 * cols as u64),
            n_iter: course.n_iter,
            converged: course.converged,
            change: course.change,
            device: x.device().name().to_owned(),
            transfer_seconds: self.transfer_seconds,
            seconds: self.start.elapsed().as_secs_f64(),
            peak_device_bytes: x.device().usage().peak_bytes as u64,
        }
    }
}

/// Fails at a parameter that is not finite and at least 0.
pub(super) fn check_tolerance(found: f64) -> Result<(), FitError> {
    if found.is_finite() && found >= 0.0 {
        return Ok(());
    }
    Err(FitError::Parameter {
        name: "tol",
        expected: "finite and not negative",
        found,
    })
}

/// Fails unless the entries are the weights of a graph's edges: finite, none negative. Returns the rows of the graph, which
/// the members of a group share: every one of them gets the same, or the same error.
pub(super) fn check_edges<T: Number>(
    device: &Device,
    graph: &Features<T>,
) -> Result<usize, FitError> {
    let (rows, wrong) = match device.group() {
        None => (graph.rows(), wrong_edge(graph)),
        Some(group) => of_all(group, graph.rows(), wrong_edge(graph)).map_err(OpError::from)?,
    };
    if rows == 0 || graph.cols() == 0 {
        return Err(FitError::NoRows);
    }
    match wrong {
        Some((row, value)) => Err(FitError::Edge { row, value }),
        None => Ok(rows),
    }
}

/// The rows of all members, and the first wrong edge of any.
fn of_all(
    group: &Group,
    rows: usize,
    wrong: Option<(usize, f64)>,
) -> Result<(usize, Option<(usize, f64)>), GroupError> {
    let (row, value) = wrong.map_or((u64::MAX, 0.0), |(row, value)| (row as u64, value));
    let facts = group.all_gather(&[rows as u64, row, value.to_bits()])?;
    let (mut first, mut found) = (0, None);
    for of in facts.chunks_exact(3) {
        if found.is_none() && of[1] != u64::MAX {
            found = Some((first + of[1] as usize, f64::from_bits(of[2])));
        }
        first += of[0] as usize;
    }
    Ok((first, found))
}

/// The first edge, in the order of the rows, that no graph can have: the row that it leaves, and its weight.
fn wrong_edge<T: Number>(graph: &Features<T>) -> Option<(usize, f64)> {
    let wrong = |value: &T| !(Element::to_f64(*value) >= 0.0 && Element::is_finite(*value));
    match graph.storage() {
        Storage::Sparse(x) => {
            let entry = x.data().iter().position(wrong)?;
            let offsets = x.indptr();
            let row = offsets
                .raw_storage()
                .partition_point(|offset| *offset <= entry as u64);
            Some((row - 1, Element::to_f64(x.data()[entry])))
        }
        Storage::Dense(x) => {
            let ((row, _), value) = x.indexed_iter().find(|(_, value)| wrong(value))?;
            Some((row, Element::to_f64(*value)))
        }
    }
}

/// A host vector on the device, rounded to T.
pub(super) fn upload<T: Number>(device: &Device, values: &[f64]) -> Result<Buffer<T>, OpError> {
    let narrow: Vec<T> = values
        .iter()
        .map(|value| <T as Element>::from_f64(*value))
        .collect();
    Ok(device.upload(&narrow)?)
}

/// A device vector on the host, widened.
pub(super) fn download<T: Number>(vector: &Buffer<T>) -> Result<Vec<f64>, OpError> {
    let values = vector.to_vec()?;
    Ok(values.iter().map(|value| Element::to_f64(*value)).collect())
}

/// ‖v‖₂.
pub(super) fn norm<T: Number>(v: &Buffer<T>) -> Result<f64, OpError> {
    Ok(vector::dot(v, v)?.sqrt())
}

/// `old ← new`, and ‖new − old‖₂; `new` is scratch afterwards.
pub(super) fn advance<T: Number>(old: &mut Buffer<T>, new: &mut Buffer<T>) -> Result<f64, OpError> {
    let one = <T as Element>::from_f64(1.0);
    vector::axpby(one, new, <T as Element>::from_f64(-1.0), old)?;
    let change = norm(old)?;
    std::mem::swap(old, new);
    Ok(change)
}

/// Scales to a sum of 1; leaves zeros alone.
pub(super) fn normalise_sum(values: &mut [f64]) {
    let sum: f64 = values.iter().sum();
    if sum > 0.0 {
        values.iter_mut().for_each(|value| *value /= sum);
    }
}
