//! A record instead of a device.

use super::{
    Budget, Outcome, Point, Recording, Refusal, SearchKind, Session, Step, Subject, TuneError,
};

/// A subject whose outcomes were recorded: its points are those that were tried.
#[derive(Debug, Clone)]
pub struct Replayed {
    class: String,
    points: Vec<Point>,
    outcomes: Vec<Outcome>,
    incumbent: usize,
}

impl Replayed {
    /// Recorded points; the planner's choice is the first that was timed.
    ///
    /// # Errors
    /// [`TuneError::NothingToReplay`] where none was.
    pub fn new(
        class: impl Into<String>,
        trials: impl IntoIterator<Item = (Point, Outcome)>,
    ) -> Result<Replayed, TuneError> {
        let class = class.into();
        let (points, outcomes): (Vec<Point>, Vec<Outcome>) = trials.into_iter().unzip();
        let first = outcomes
            .iter()
            .position(|outcome| outcome.median_us().is_some());
        let Some(incumbent) = first else {
            return Err(TuneError::NothingToReplay { class });
        };
        Ok(Replayed {
            class,
            points,
            outcomes,
            incumbent,
        })
    }

    /// A problem of a log.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(recording: Recording) -> Result<Replayed, TuneError> {
        let class = format!("{} on {}", recording.key.class, recording.key.device);
        Self::new(class, recording.trials)
    }

    /// The fastest recorded time, microseconds.
    pub fn best_us(&self) -> f64 {
        let times = self.outcomes.iter().filter_map(Outcome::median_us);
        times.fold(f64::INFINITY, f64::min)
    }

    /// How a search would have gone: all points, in its order.
    ///
    /// # Errors
    /// [`TuneError::Incumbent`] never: the first point was timed.
    pub fn course(&self, kind: SearchKind, seed: u64) -> Result<Course, TuneError> {
        let mut subject = self.clone();
        let budget = Budget {
            time: std::time::Duration::MAX,
            trials: usize::MAX,
        };
        let mut best_us = Vec::with_capacity(self.points.len());
        let session = Session::new(&mut subject, None)?;
        session.run(kind, seed, budget, |step: &Step| best_us.push(step.best_us))?;
        Ok(Course {
            best_us,
            least_us: self.best_us(),
        })
    }
}

/// The fastest after each trial of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// After each trial, microseconds.
    pub best_us: Vec<f64>,
    /// Of all points.
    pub least_us: f64,
}

impl Course {
    /// How much longer than the fastest of all the best takes after a share of the points, of which one is tried at least.
    pub fn excess_after(&self, share: f64) -> f64 {
        let tried = (share * self.best_us.len() as f64).ceil() as usize;
        let at = tried.clamp(1, self.best_us.len()) - 1;
        self.best_us[at] / self.least_us - 1.0
    }

    /// Trials until the best takes at most `excess` longer than the fastest of all.
    pub fn trials_within(&self, excess: f64) -> usize {
        let enough = |best: &f64| best / self.least_us - 1.0 <= excess;
        self.best_us
            .iter()
            .position(enough)
            .map_or(self.best_us.len(), |at| at + 1)
    }
}

impl Subject for Replayed {
    fn class(&self) -> String {
        self.class.clone()
    }

    fn points(&self) -> &[Point] {
        &self.points
    }

    fn incumbent(&self) -> usize {
        self.incumbent
    }

    fn check(&mut self, point: usize) -> Result<(), Refusal> {
        match &self.outcomes[point] {
            Outcome::Timed { .. } => Ok(()),
            Outcome::Wrong { found } => Err(Refusal::Wrong(found.clone())),
            Outcome::Failed { reason } => Err(Refusal::Failed(reason.clone())),
        }
    }

    fn time(&mut self, point: usize, _: f64) -> Result<f64, Refusal> {
        let us = self.outcomes[point].median_us();
        us.ok_or_else(|| Refusal::Failed("it was not timed".into()))
    }
}
