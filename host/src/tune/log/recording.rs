//! What a log has of problems that were tuned.

use std::path::Path;

use super::{Event, Log, event, lines};
use crate::tune::{Key, Outcome, Point, TuneError};

/// One problem of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// Where, and what.
    pub key: Key,
    /// The points that were tried; the planner's choice is the first.
    pub trials: Vec<(Point, Outcome)>,
}

impl Recording {
    /// A point that several processes tried keeps the place of the first.
    fn keep(&mut self, point: Point, outcome: Outcome) {
        let mut known = self.trials.iter_mut();
        match known.find(|(known, _)| known.name == point.name) {
            Some(known) => *known = (point, outcome),
            None => self.trials.push((point, outcome)),
        }
    }
}

impl Log {
    /// All problems of a log, of whatever key, in the order in which they were begun.
    ///
    /// # Errors
    /// [`TuneError::Log`] when the file cannot be read.
    pub fn recorded(path: &Path) -> Result<Vec<Recording>, TuneError> {
        let bytes = std::fs::read(path).map_err(|source| TuneError::Log {
            path: path.to_owned(),
            action: "read",
            source,
        })?;
        let mut all: Vec<Recording> = Vec::new();
        for (digest, event) in lines(&bytes).filter_map(|line| event(line).ok()) {
            match event {
                Event::Key(key) if !all.iter().any(|one| one.key.digest() == digest) => {
                    all.push(Recording {
                        key,
                        trials: Vec::new(),
                    });
                }
                Event::Ended { point, outcome } => {
                    let of = all.iter_mut().find(|one| one.key.digest() == digest);
                    if let Some(recording) = of {
                        recording.keep(point, outcome);
                    }
                }
                _ => {}
            }
        }
        Ok(all)
    }
}
