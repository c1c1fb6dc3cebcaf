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
    /// Which event of the log began it: the same point begun again is another.
    pub number: usize,
    digest: u64,
}

impl Log {
    /// Points of any key that have begun and not ended.
    ///
    /// # Errors
    /// [`TuneError::Log`] when the file cannot be read. One that is not there has none.
    pub fn under_way(path: &Path) -> Result<Vec<UnderWay>, TuneError> {
        let bytes = bytes_of(path)?;
        let mut open: HashMap<(u64, String), UnderWay> = HashMap::new();
        for (number, (digest, event)) in lines(&bytes).filter_map(|l| event(l).ok()).enumerate() {
            match event {
                Event::Key(_) => {}
                Event::Began { point, by, .. } => {
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

    /// Whether this process has begun a point of any key.
    ///
    /// # Errors
    /// As [`Log::under_way`].
    pub fn has_begun(path: &Path, process: u32) -> Result<bool, TuneError> {
        let bytes = bytes_of(path)?;
        let mut events = lines(&bytes).filter_map(|line| event(line).ok());
        Ok(events.any(|(_, event)| matches!(event, Event::Began { by, .. } if by == process)))
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
        let point = Point::new(begun.point.clone(), Vec::new());
        let reason = reason.to_owned();
        log.ended(&point, &Outcome::Failed { reason })
    }
}

/// What the file has; nothing where there is none.
fn bytes_of(path: &Path) -> Result<Vec<u8>, TuneError> {
    match std::fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(|source| TuneError::Log {
            path: path.to_owned(),
            action: "read",
            source,
        }),
    }
}
