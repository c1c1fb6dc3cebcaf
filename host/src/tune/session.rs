//! The planner's choice first, then what a search says, until the budget is spent or nothing is left.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::trial::expect_sound;
use super::{Log, Outcome, Search, SearchKind, Subject, Trial, TuneError};
use crate::plan::tuned::Launch;

/// A point that takes this many times as long as the best at its first call is not called again.
const HOPELESS: f64 = 1.5;

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// After this time; the point that runs then ends.
    pub time: Duration,
    /// After this many points, those that a log remembers not counted.
    pub trials: usize,
}

impl Budget {
    /// Until nothing is left to try.
    pub const UNLIMITED: Budget = Budget {
        time: Duration::MAX,
        trials: usize::MAX,
    };
}

/// One point that was tried, or remembered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The point.
    #[serde(flatten)]
    pub trial: Trial,
    /// Whether the log had it.
    pub remembered: bool,
    /// The fastest so far, microseconds.
    pub best_us: f64,
}

/// What came of tuning.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tuned {
    /// The problem.
    pub class: String,
    /// Points that are possible.
    pub points: usize,
    /// The planner's choice.
    pub incumbent: Trial,
    /// The fastest.
    pub best: Trial,
    /// The fastest that a table can name, which is no kernel that was generated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// Its median, µs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_us: Option<f64>,
    /// All that were tried, in order.
    pub steps: Vec<Step>,
}

impl Tuned {
    /// Time of the planner's choice over the fastest: 1 where it is the fastest.
    pub fn gain(&self) -> f64 {
        let us = |trial: &Trial| trial.outcome.median_us();
        match (us(&self.incumbent), us(&self.best)) {
            (Some(incumbent), Some(best)) => incumbent / best,
            _ => 1.0,
        }
    }
}

/// Tuning of one subject.
pub struct Session<'a> {
    subject: &'a mut dyn Subject,
    log: Option<&'a mut Log>,
    tried: Vec<Option<Outcome>>,
    steps: Vec<Step>,
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("class", &self.subject.class())
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

impl<'a> Session<'a> {
    /// Begins; with a log, where it left off.
    ///
    /// # Errors
    /// [`TuneError::Incumbent`] when the subject has no launch of its planner.
    pub fn new(
        subject: &'a mut dyn Subject,
        log: Option<&'a mut Log>,
    ) -> Result<Session<'a>, TuneError> {
        expect_sound(subject)?;
        let tried = vec![None; subject.points().len()];
        Ok(Session {
            subject,
            log,
            tried,
            steps: Vec::new(),
        })
    }

    /// Tries points; `told` hears of each.
    ///
    /// # Errors
    /// [`TuneError::Incumbent`] when the planner's own choice is refused, [`TuneError::Log`] when the log cannot be
    /// written.
    pub fn run(
        mut self,
        kind: SearchKind,
        seed: u64,
        budget: Budget,
        mut told: impl FnMut(&Step),
    ) -> Result<Tuned, TuneError> {
        let started = Instant::now();
        let incumbent = self.subject.incumbent();
        let mut fresh = self.take_on(incumbent, &mut told)?;
        self.expect_timed(incumbent)?;
        self.remember(&mut told)?;
        let search = Search::new(kind, self.tried.len(), seed);
        while fresh < budget.trials && started.elapsed() < budget.time {
            let Some(next) = self.next(&search)? else {
                break;
            };
            // What other processes have measured meanwhile counts for the next choice.
            self.remember(&mut told)?;
            fresh += self.finish(next, &mut told)?;
        }
        self.remember(&mut told)?;
        Ok(self.tuned(incumbent))
    }

    /// The point that is next, which the log says has begun.
    fn next(&mut self, search: &Search) -> Result<Option<usize>, TuneError> {
        let points = self.subject.points();
        let Some(log) = &mut self.log else {
            return Ok(search.next(points, &self.tried));
        };
        let mut next = None;
        let tried = &self.tried;
        log.claim(|log| {
            // Points of others count as tried: they teach nothing yet.
            let known = points.iter().zip(tried).map(|(point, tried)| match tried {
                Some(outcome) => Some(outcome.clone()),
                None if log.is_claimed(&point.name) => Some(elsewhere()),
                None => log.outcome(&point.name).cloned(),
            });
            let known: Vec<Option<Outcome>> = known.collect();
            next = search.next(points, &known);
            next.map(|next| points[next].name.clone())
        })?;
        Ok(next)
    }

    /// All that the log has of points that exist.
    fn remember(&mut self, told: &mut impl FnMut(&Step)) -> Result<(), TuneError> {
        let Some(log) = &self.log else {
            return Ok(());
        };
        let points = self.subject.points().iter().enumerate();
        let places: HashMap<&str, usize> =
            points.map(|(i, point)| (point.name.as_str(), i)).collect();
        let found = log
            .trials()
            .keys()
            .filter_map(|name| places.get(name.as_str()));
        let mut found: Vec<usize> = found.copied().collect();
        found.sort_unstable();
        for point in found {
            if self.tried[point].is_none() {
                self.take_on(point, told)?;
            }
        }
        Ok(())
    }

    /// Tries a point, unless the log knows it; how many were run.
    fn take_on(&mut self, point: usize, told: &mut impl FnMut(&Step)) -> Result<usize, TuneError> {
        let name = self.subject.points()[point].name.clone();
        let known = self
            .log
            .as_ref()
            .and_then(|log| log.outcome(&name).cloned());
        let remembered = known.is_some();
        let outcome = match known {
            Some(outcome) => outcome,
            None => self.try_out(point, &name)?,
        };
        self.keep((point, name), outcome, remembered, told);
        Ok(usize::from(!remembered))
    }

    /// Runs a point that the log says has begun.
    fn finish(&mut self, point: usize, told: &mut impl FnMut(&Step)) -> Result<usize, TuneError> {
        let name = self.subject.points()[point].name.clone();
        let outcome = self.run_and_log(point)?;
        self.keep((point, name), outcome, false, told);
        Ok(1)
    }

    fn keep(
        &mut self,
        (point, name): (usize, String),
        outcome: Outcome,
        remembered: bool,
        told: &mut impl FnMut(&Step),
    ) {
        self.tried[point] = Some(outcome.clone());
        let step = Step {
            trial: Trial {
                point: name,
                outcome,
            },
            remembered,
            best_us: self.best_us(),
        };
        told(&step);
        self.steps.push(step);
    }

    fn try_out(&mut self, point: usize, name: &str) -> Result<Outcome, TuneError> {
        if let Some(log) = &mut self.log {
            log.began(name)?;
        }
        self.run_and_log(point)
    }

    fn run_and_log(&mut self, point: usize) -> Result<Outcome, TuneError> {
        let outcome = self.subject.run(point, HOPELESS * self.best_us());
        if let Some(log) = &mut self.log {
            log.ended(&self.subject.points()[point], &outcome)?;
        }
        match &outcome {
            Outcome::Failed { reason } if !self.subject.is_usable() => Err(TuneError::DeviceLost {
                point: self.subject.points()[point].name.clone(),
                reason: reason.clone(),
            }),
            _ => Ok(outcome),
        }
    }

    /// The fastest so far; infinity where there is none.
    fn best_us(&self) -> f64 {
        let times = self.tried.iter().flatten().filter_map(Outcome::median_us);
        times.fold(f64::INFINITY, f64::min)
    }

    fn expect_timed(&self, incumbent: usize) -> Result<(), TuneError> {
        let reason = match self.tried[incumbent].as_ref() {
            Some(Outcome::Timed { .. }) => return Ok(()),
            Some(Outcome::Wrong { found }) => found.clone(),
            Some(Outcome::Failed { reason }) => reason.clone(),
            None => "it was not tried".into(),
        };
        Err(TuneError::Incumbent {
            point: self.subject.points()[incumbent].name.clone(),
            reason,
        })
    }

    fn tuned(self, incumbent: usize) -> Tuned {
        let trial = |i: usize| Trial {
            point: self.subject.points()[i].name.clone(),
            outcome: self.tried[i].clone().expect("it was tried"),
        };
        let us = |i: &usize| self.tried[*i].as_ref().and_then(Outcome::median_us);
        let timed = (0..self.tried.len()).filter(|i| us(i).is_some());
        let faster = |a: &usize, b: &usize| us(a).partial_cmp(&us(b)).expect("times are finite");
        let best = timed.clone().min_by(faster).unwrap_or(incumbent);
        let launch = |i: usize| self.subject.points()[i].launch.clone();
        let named = timed.filter(|i| launch(*i).is_some()).min_by(faster);
        Tuned {
            class: self.subject.class(),
            points: self.tried.len(),
            incumbent: trial(incumbent),
            best: trial(best),
            launch: named.and_then(launch),
            launch_us: named.as_ref().and_then(us),
            steps: self.steps,
        }
    }
}

/// What a point is that another process runs.
fn elsewhere() -> Outcome {
    Outcome::Failed {
        reason: "another process runs it".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::planted::{self, Planted};
    use crate::tune::{Point, Refusal};

    fn unlimited(trials: usize) -> Budget {
        Budget {
            time: Duration::from_secs(3_600),
            trials,
        }
    }

    #[test]
    fn of_twenty_planted_wrong_points_none_is_timed_or_taken() {
        for kind in SearchKind::ALL {
            let mut subject = Planted::new();
            let session = Session::new(&mut subject, None).expect("sound");
            let tuned = session
                .run(kind, 5, unlimited(1_000), |_| {})
                .expect("tuned");
            assert_eq!(tuned.best.point, "p22", "{kind:?}");
            assert_eq!(tuned.incumbent.point, "p40");
            assert_eq!(tuned.steps.len(), 60);
            let refused = |step: &&Step| matches!(step.trial.outcome, Outcome::Wrong { .. });
            assert_eq!(tuned.steps.iter().filter(refused).count(), 20);
            assert!(subject.timed.iter().all(|point| !Planted::is_wrong(*point)));
            assert_eq!(
                tuned.steps[0].trial.point, "p40",
                "the planner's choice comes first"
            );
            assert!(tuned.gain() > 1.0);
        }
    }

    #[test]
    fn a_session_goes_on_where_it_was_killed_and_retries_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.jsonl");
        let key = planted::key();
        let mut runs = 0;
        let mut tuned = None;
        // Ten trials of each process, and the last line of each cut off.
        for _ in 0..7 {
            let mut log = Log::open(&path, &key).expect("a log");
            let mut subject = Planted::new();
            let session = Session::new(&mut subject, Some(&mut log)).expect("sound");
            tuned = Some(
                session
                    .run(SearchKind::Random, 1, unlimited(10), |_| {})
                    .expect("tuned"),
            );
            runs += subject.runs;
            let bytes = std::fs::read(&path).expect("readable");
            std::fs::write(&path, &bytes[..bytes.len() - 20]).expect("written");
        }
        let tuned = tuned.expect("seven sessions");
        assert_eq!((tuned.steps.len(), tuned.best.point.as_str()), (60, "p22"));
        assert!(runs <= 60 + 7, "{runs} runs of 60 points and 7 lost lines");
    }

    #[test]
    fn a_planner_that_is_wrong_is_an_error() {
        struct Wrong(Planted);
        impl Subject for Wrong {
            fn class(&self) -> String {
                self.0.class()
            }
            fn points(&self) -> &[Point] {
                self.0.points()
            }
            fn incumbent(&self) -> usize {
                3
            }
            fn check(&mut self, point: usize) -> Result<(), Refusal> {
                self.0.check(point)
            }
            fn time(&mut self, point: usize, hopeless_us: f64) -> Result<f64, Refusal> {
                self.0.time(point, hopeless_us)
            }
        }
        let mut subject = Wrong(Planted::new());
        let session = Session::new(&mut subject, None).expect("sound");
        let refused = session.run(SearchKind::Guided, 0, unlimited(5), |_| {});
        assert!(matches!(refused, Err(TuneError::Incumbent { .. })));
    }
}
