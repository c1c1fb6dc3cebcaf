//! Trials as lines of JSON, appended one by one.
//!
//! A line is written in one call, and begins on a line of its own even where the one before was cut off: whenever the
//! process ends, at most the trial that was running is lost. Each line has a digest of its key and a checksum of its text;
//! lines of other keys, and such that were changed, are dropped and counted.
//!
//! Several processes may write one log, each with a GPU of its own: lines are appended under a lock of the file, what the
//! others have appended is read before a point is chosen, and a point that a living process has begun is theirs.
//!
//! Before a point runs a line says so. One that began twice and never ended takes the process with it: it counts as failed.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Key, Outcome, Point, TuneError};
use crate::plan::tuned::{START, fnv};
use crate::process;

mod recording;
mod watch;

pub use recording::Recording;
pub use watch::UnderWay;

/// How often a point may begin without an end.
const MOST_BEGINNINGS: u32 = 2;

/// What was found in a log besides trials of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Notice {
    /// Lines of other devices, drivers, versions or problems.
    pub foreign: usize,
    /// Lines that are cut off, changed, or no trials.
    pub damaged: usize,
    /// Points that began and did not end.
    pub interrupted: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    /// What the digest of the following lines stands for.
    Key(Key),
    /// A point is about to run.
    Began {
        point: String,
        /// The process.
        #[serde(default)]
        by: u32,
        /// When it started, as the machine counts: numbers are used again. 0 where nobody says.
        #[serde(default)]
        started: u64,
    },
    /// It has run.
    Ended {
        /// All that is known of it, for whoever replays the log.
        point: Point,
        /// What became of it.
        #[serde(flatten)]
        outcome: Outcome,
    },
}

#[derive(Serialize, Deserialize)]
struct Line {
    /// The digest of the key.
    key: String,
    /// The checksum of the event's text, started with the key's digest.
    sum: String,
    /// The event, as text of JSON: what the checksum is of.
    text: String,
}

/// A point that has begun and not ended.
#[derive(Debug, Clone, Copy, Default)]
struct Begun {
    times: u32,
    /// The last process that began it, and when that process started.
    by: u32,
    started: u64,
}

impl Begun {
    /// Whether that process is another one, and runs.
    fn is_elsewhere(&self) -> bool {
        let now = process::started(self.by);
        let is_same = |now| self.started == 0 || self.started == now;
        self.by != std::process::id() && now.is_some_and(is_same)
    }
}

/// A log of one key.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    digest: u64,
    trials: HashMap<String, Outcome>,
    /// Points that have begun since they last ended.
    open: HashMap<String, Begun>,
    /// Bytes that were read.
    seen: u64,
    notice: Notice,
}

impl Log {
    /// Opens or begins the log at `path`, and reads what it has of `key`.
    ///
    /// # Errors
    /// [`TuneError::Log`] when the file cannot be read or written.
    pub fn open(path: &Path, key: &Key) -> Result<Log, TuneError> {
        let failed = |action| {
            let path = path.to_owned();
            move |source| TuneError::Log {
                path,
                action,
                source,
            }
        };
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).create(true).open(path);
        let mut log = Log {
            path: path.to_owned(),
            file: opened.map_err(failed("opened"))?,
            digest: key.digest(),
            trials: HashMap::new(),
            open: HashMap::new(),
            seen: 0,
            notice: Notice::default(),
        };
        log.locked(|log| {
            log.end_line()?;
            log.read_on()
        })?;
        log.notice.interrupted = log.give_up();
        if log.trials.is_empty() {
            log.locked(|log| log.append(&Event::Key(key.clone())))?;
        }
        Ok(log)
    }

    /// What became of a point, if it was tried.
    pub fn outcome(&self, point: &str) -> Option<&Outcome> {
        self.trials.get(point)
    }

    /// All outcomes, by the names of points.
    pub fn trials(&self) -> &HashMap<String, Outcome> {
        &self.trials
    }

    /// What else the file had when it was opened.
    pub fn notice(&self) -> Notice {
        self.notice
    }

    /// Says that a point is about to run.
    ///
    /// # Errors
    /// [`TuneError::Log`] when the line cannot be written.
    pub fn began(&mut self, point: &str) -> Result<(), TuneError> {
        self.locked(|log| log.begin(point))
    }

    /// Reads what other processes have appended, has `choose` name a point, and says that it is about to run, before any of
    /// them can do the same; what was named.
    ///
    /// # Errors
    /// [`TuneError::Log`] when the file cannot be read or written.
    pub fn claim(
        &mut self,
        choose: impl FnOnce(&Log) -> Option<String>,
    ) -> Result<Option<String>, TuneError> {
        self.locked(|log| {
            log.read_on()?;
            log.give_up();
            let chosen = choose(log);
            if let Some(point) = &chosen {
                log.begin(point)?;
            }
            Ok(chosen)
        })
    }

    /// Counts points that began [`MOST_BEGINNINGS`] times and never ended as failed; how many points were cut off.
    fn give_up(&mut self) -> usize {
        let open = self.open.iter();
        let cut_off: Vec<(String, u32)> = open
            .filter(|(point, _)| !self.is_claimed(point))
            .map(|(point, begun)| (point.clone(), begun.times))
            .collect();
        let count = cut_off.len();
        for (point, beginnings) in cut_off {
            if beginnings >= MOST_BEGINNINGS {
                let reason = format!("it began {beginnings} times and never ended");
                let outcome = Outcome::Failed { reason };
                self.trials.entry(point).or_insert(outcome);
            }
        }
        count
    }

    /// Whether another process that is alive has begun a point and not ended it.
    pub fn is_claimed(&self, point: &str) -> bool {
        self.open.get(point).is_some_and(Begun::is_elsewhere)
    }

    fn begin(&mut self, point: &str) -> Result<(), TuneError> {
        self.append(&Event::Began {
            point: point.to_owned(),
            by: std::process::id(),
            started: process::started(std::process::id()).unwrap_or(0),
        })
    }

    /// Keeps what became of a point.
    ///
    /// # Errors
    /// As [`began`](Self::began).
    pub fn ended(&mut self, point: &Point, outcome: &Outcome) -> Result<(), TuneError> {
        let event = Event::Ended {
            point: point.clone(),
            outcome: outcome.clone(),
        };
        self.locked(|log| log.append(&event))?;
        self.open.remove(&point.name);
        self.trials.insert(point.name.clone(), outcome.clone());
        Ok(())
    }

    /// Does `work` while no other process appends.
    fn locked<R>(
        &mut self,
        work: impl FnOnce(&mut Log) -> Result<R, TuneError>,
    ) -> Result<R, TuneError> {
        self.file.lock().map_err(self.failed("locked"))?;
        let done = work(self);
        self.file.unlock().map_err(self.failed("unlocked"))?;
        done
    }

    fn failed(&self, action: &'static str) -> impl Fn(std::io::Error) -> TuneError + use<> {
        let path = self.path.clone();
        move |source| TuneError::Log {
            path: path.clone(),
            action,
            source,
        }
    }

    /// Ends a line that a process left cut off.
    fn end_line(&mut self) -> Result<(), TuneError> {
        let failed = self.failed("read");
        let end = self.file.seek(SeekFrom::End(0)).map_err(&failed)?;
        if end == 0 {
            return Ok(());
        }
        let mut last = [0];
        self.file.seek(SeekFrom::End(-1)).map_err(&failed)?;
        self.file.read_exact(&mut last).map_err(&failed)?;
        match last {
            [b'\n'] => Ok(()),
            _ => self.file.write_all(b"\n").map_err(self.failed("written")),
        }
    }

    /// Takes in whole lines that were appended since.
    fn read_on(&mut self) -> Result<(), TuneError> {
        let failed = self.failed("read");
        let mut bytes = Vec::new();
        self.file
            .seek(SeekFrom::Start(self.seen))
            .map_err(&failed)?;
        self.file.read_to_end(&mut bytes).map_err(&failed)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        let whole = &bytes[..whole.map_or(0, |at| at + 1)];
        self.seen += whole.len() as u64;
        for line in lines(whole) {
            match event(line) {
                Err(Damaged) => self.notice.damaged += 1,
                Ok((key, _)) if key != self.digest => self.notice.foreign += 1,
                Ok((_, Event::Key(_))) => {}
                Ok((_, Event::Began { point, by, started })) => {
                    let open = self.open.entry(point).or_default();
                    let times = open.times + 1;
                    *open = Begun { times, by, started };
                }
                Ok((_, Event::Ended { point, outcome })) => {
                    self.open.remove(&point.name);
                    self.trials.insert(point.name, outcome);
                }
            }
        }
        Ok(())
    }

    fn append(&mut self, event: &Event) -> Result<(), TuneError> {
        self.end_line()?;
        let text = serde_json::to_string(event).expect("an event has no keys but strings");
        let line = Line {
            key: format!("{:016x}", self.digest),
            sum: format!(
                "{:016x}",
                fnv(fnv(START, &self.digest.to_le_bytes()), text.as_bytes())
            ),
            text,
        };
        let mut line = serde_json::to_string(&line).expect("a line has no keys but strings");
        line.push('\n');
        let written = self.file.write_all(line.as_bytes());
        written.map_err(self.failed("written"))
    }
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
}

/// A line that is cut off, changed, or something else.
struct Damaged;

/// The key's digest and the event of a line.
fn event(line: &[u8]) -> Result<(u64, Event), Damaged> {
    let line: Line = serde_json::from_slice(line).map_err(|_| Damaged)?;
    let key = u64::from_str_radix(&line.key, 16).map_err(|_| Damaged)?;
    let sum = fnv(fnv(START, &key.to_le_bytes()), line.text.as_bytes());
    if line.sum != format!("{sum:016x}") {
        return Err(Damaged);
    }
    let event = serde_json::from_str(&line.text).map_err(|_| Damaged)?;
    Ok((key, event))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(class: &str) -> Key {
        Key {
            device: "a device".into(),
            driver: 1,
            code: "1".into(),
            class: class.into(),
        }
    }

    fn named(name: &str) -> Point {
        Point::new(name, vec![2.0]).predicted(1.0)
    }

    fn timed(median_us: f64) -> Outcome {
        Outcome::Timed { median_us }
    }

    /// A log of ten points, and its bytes.
    fn ten(path: &Path) -> Vec<u8> {
        let mut log = Log::open(path, &key("a")).expect("a new log");
        for i in 0..10 {
            let name = format!("point {i}");
            log.began(&name).expect("written");
            log.ended(&named(&name), &timed(f64::from(i) + 0.5))
                .expect("written");
        }
        std::fs::read(path).expect("readable")
    }

    #[test]
    fn whatever_is_cut_off_costs_one_trial_at_most() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.jsonl");
        let whole = ten(&path);
        // Some two hundred places, wherever the process may have been.
        for cut in (0..=whole.len()).step_by(whole.len() / 200) {
            std::fs::write(&path, &whole[..cut]).expect("written");
            let ended = whole[..cut].split(|b| *b == b'\n');
            let is_end =
                |line: &&[u8]| line.windows(5).any(|w| w == b"ended") && line.ends_with(b"\"}");
            let lines = ended.filter(is_end).count();
            let mut log = Log::open(&path, &key("a")).expect("a log");
            assert_eq!(log.trials().len(), lines, "cut at {cut}");
            log.ended(&named("another"), &timed(1.0)).expect("written");
            let again = Log::open(&path, &key("a")).expect("a log");
            assert_eq!(again.trials().len(), lines + 1, "cut at {cut}");
        }
    }

    #[test]
    fn changed_and_foreign_lines_are_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.jsonl");
        let whole = String::from_utf8(ten(&path)).expect("text");
        let poisoned = whole.replace("3.5", "0.5");
        assert_ne!(poisoned, whole);
        std::fs::write(&path, poisoned + "{}\nnonsense\n").expect("written");
        let log = Log::open(&path, &key("a")).expect("a log");
        assert_eq!((log.trials().len(), log.notice().damaged), (9, 3));
        assert_eq!(log.outcome("point 3"), None);
        let other = Log::open(&path, &key("b")).expect("a log");
        assert_eq!((other.trials().len(), other.notice().foreign), (0, 20));
    }

    #[test]
    fn a_log_has_all_that_a_replay_takes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.jsonl");
        ten(&path);
        let mut other = Log::open(&path, &key("b")).expect("a log");
        other.ended(&named("first"), &timed(2.0)).expect("written");
        let recorded = Log::recorded(&path).expect("readable");
        assert_eq!(recorded.len(), 2);
        assert_eq!(recorded[0].trials.len(), 10);
        assert_eq!(recorded[0].trials[3], (named("point 3"), timed(3.5)));
        assert_eq!(
            (recorded[1].key.class.as_str(), recorded[1].trials.len()),
            ("b", 1)
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_claim_is_of_a_process_and_not_of_its_number() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.jsonl");
        let mut log = Log::open(&path, &key("a")).expect("a log");
        let parent = std::os::unix::process::parent_id();
        let started = process::started(parent).expect("it waits for this one");
        for (point, started) in [("of it", started), ("of its number", started + 1)] {
            let begun = Event::Began {
                point: point.into(),
                by: parent,
                started,
            };
            log.locked(|log| log.append(&begun)).expect("written");
        }
        let log = Log::open(&path, &key("a")).expect("a log");
        assert!(log.is_claimed("of it") && !log.is_claimed("of its number"));
        assert_eq!(log.notice().interrupted, 1);
    }

    #[test]
    fn what_takes_the_process_with_it_twice_has_failed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.jsonl");
        for beginnings in 1..=2 {
            let mut log = Log::open(&path, &key("a")).expect("a log");
            assert_eq!(log.outcome("bad"), None);
            log.began("bad").expect("written");
            drop(log);
            let log = Log::open(&path, &key("a")).expect("a log");
            assert_eq!(log.notice().interrupted, 1);
            let failed = matches!(log.outcome("bad"), Some(Outcome::Failed { .. }));
            assert_eq!(failed, beginnings == 2);
        }
    }
}
