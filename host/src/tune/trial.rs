//! Points, what became of them, and who runs them.

use serde::{Deserialize, Serialize};

use super::TuneError;
use crate::plan::tuned::Launch;

/// One way to compute a problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Unique among those of its problem, and the same whenever it is enumerated.
    pub name: String,
    /// What the planner's model expects, microseconds, where it has a model.
    pub predicted_us: Option<f64>,
    /// Its parameters, as numbers whose differences mean something: points that are near are alike.
    pub coordinates: Vec<f64>,
    /// What a table says of it; none where it is whatever the planner chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
}

impl Point {
    /// A point of which no model expects anything.
    pub fn new(name: impl Into<String>, coordinates: Vec<f64>) -> Point {
        Point {
            name: name.into(),
            predicted_us: None,
            coordinates,
            launch: None,
        }
    }

    /// The same with what a model expects, microseconds.
    pub fn predicted(self, us: f64) -> Point {
        Point {
            predicted_us: Some(us),
            ..self
        }
    }

    /// The same with what a table says of its launch.
    pub fn launched_by(self, launch: Launch) -> Point {
        Point {
            launch: Some(launch),
            ..self
        }
    }
}

/// What became of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Its result was right, and it took this time.
    Timed {
        /// The median, microseconds.
        median_us: f64,
    },
    /// Its result was not.
    Wrong {
        /// What was found.
        found: String,
    },
    /// It did not run.
    Failed {
        /// The reason.
        reason: String,
    },
}

impl Outcome {
    /// The median, of what was right.
    pub fn median_us(&self) -> Option<f64> {
        match self {
            Outcome::Timed { median_us } => Some(*median_us),
            _ => None,
        }
    }
}

/// A point that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its name.
    pub point: String,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Why a point is not taken.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// Its result is not right.
    Wrong(String),
    /// It does not run.
    Failed(String),
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Outcome {
        match refusal {
            Refusal::Wrong(found) => Outcome::Wrong { found },
            Refusal::Failed(reason) => Outcome::Failed { reason },
        }
    }
}

impl<E: std::error::Error> From<E> for Refusal {
    fn from(error: E) -> Refusal {
        Refusal::Failed(error.to_string())
    }
}

/// A problem of a family, and all launches that it could be computed by.
pub trait Subject {
    /// The problem: family, element type, sizes; see [`class`](crate::plan::tuned::class).
    fn class(&self) -> String;

    /// The possible launches.
    fn points(&self) -> &[Point];

    /// The number of the one that the planner would make.
    fn incumbent(&self) -> usize;

    /// Runs a point once and compares its result with the reference.
    ///
    /// # Errors
    /// [`Refusal`], which the log remembers.
    fn check(&mut self, point: usize) -> Result<(), Refusal>;

    /// The median time of a point whose result was right, microseconds. One that is slower than `hopeless_us` at its first call
    /// need not be called again.
    ///
    /// # Errors
    /// [`Refusal`], which the log remembers.
    fn time(&mut self, point: usize, hopeless_us: f64) -> Result<f64, Refusal>;

    /// Whether the device still works: a launch that reads where nothing is takes its context with it.
    fn is_usable(&self) -> bool {
        true
    }

    /// A point, run, checked and, where it is right, timed.
    fn run(&mut self, point: usize, hopeless_us: f64) -> Outcome {
        let timed = self
            .check(point)
            .and_then(|()| self.time(point, hopeless_us));
        match timed {
            Ok(median_us) if median_us > 0.0 && median_us.is_finite() => {
                Outcome::Timed { median_us }
            }
            Ok(median_us) => Outcome::Failed {
                reason: format!("it was timed as {median_us} µs"),
            },
            Err(refusal) => refusal.into(),
        }
    }
}

/// Fails where a subject's points cannot be distinguished or its incumbent is none of them.
pub(super) fn expect_sound(subject: &dyn Subject) -> Result<(), TuneError> {
    let points = subject.points();
    match points.get(subject.incumbent()) {
        Some(_) => Ok(()),
        None => Err(TuneError::Incumbent {
            point: format!("number {}", subject.incumbent()),
            reason: format!("there are {} points", points.len()),
        }),
    }
}
