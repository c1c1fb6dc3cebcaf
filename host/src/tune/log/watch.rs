//! What somebody sees of a log who watches the processes that write it.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::path::Path;

use super::{Event, Log, Notice, event, lines};
use crate::tune::{Outcome, Point, TuneError};

/// A point that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnderWay {
    /// The process that began it last.
    pub process: u32,
    /// Its name.
    pub point: String,
    /// How often points have begun in this log before: the same point begun again is another.
    pub number: usize,
    digest: u64,
}

impl Log {
    /// Points of any key that have begun and not ended.
    ///
    /// # Errors
    /// [`TuneError::Log`] when the file cannot be read. One that is not there has none.
    pub fn under_way(path: &Path) -> Result<Vec<UnderWay>, TuneError> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => {
                let (path, action) = (path.to_owned(), "read");
                return Err(TuneError::Log {
                    path,
                    action,
                    source,
                });
            }
        };
        let mut open: HashMap<(u64, String), UnderWay> = HashMap::new();
        for (number, (digest, event)) in lines(&bytes).filter_map(|l| event(l).ok()).enumerate() {
            match event {
                Event::Key(_) => {}
                Event::Began { point, by } => {
                    let begun = UnderWay {
                        process: by,
                        point: point.clone(),
                        number,
                        digest,
                    };
                    open.insert((digest, point), begun);
                }
                Event::Ended { point, .. } => {
                    open.remove(&(digest, point.name));
                }
            }
        }
        Ok(open.into_values().collect())
    }

    /// Says for a process that is gone that its point has failed.
    ///
    /// # Errors
    /// [`TuneError::Log`] when the line cannot be written.
    pub fn condemn(path: &Path, begun: &UnderWay, reason: &str) -> Result<(), TuneError> {
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).open(path);
        let file = opened.map_err(|source| TuneError::Log {
            path: path.to_owned(),
            action: "opened",
            source,
        })?;
        let mut log = Log {
            path: path.to_owned(),
            file,
            digest: begun.digest,
            trials: HashMap::new(),
            open: HashMap::new(),
            seen: 0,
            notice: Notice::default(),
        };
        let point = Point {
            name: begun.point.clone(),
            predicted_us: None,
            coordinates: Vec::new(),
        };
        let reason = reason.to_owned();
        log.ended(&point, &Outcome::Failed { reason })
    }
}
