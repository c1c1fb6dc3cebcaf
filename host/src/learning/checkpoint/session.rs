//! The checkpoint of the fit that runs on this thread.
//!
//! A fit is a sequence of solves, the same in every run. Each solve [begins](begin), [saves](save) where it stands when that
//! [is due](is_due), and [ends](end). A file holds how those before the last ended, which are not done again, and where the
//! last one stands. A solve that never saves is done again from its start.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::error::CheckpointError;
use super::file::{self, Content};
use super::identity::Identity;
use super::record::Record;
use crate::ops::OpError;

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Names of lists that each record has besides those of its solver.
const SOLVER: &str = "solver";
const TOLD: &str = "told";
const BEST: &str = "best";

pub(super) struct Session {
    path: PathBuf,
    every: Duration,
    /// Of members of a group the first one writes: all of them have the same vectors.
    writes: bool,
    identity: Identity,
    /// What is left of the file.
    found: BTreeMap<usize, Record>,
    ended: BTreeMap<usize, Record>,
    /// The number of the next solve.
    next: usize,
    now: Now,
    saved: Instant,
    has_failed: bool,
    /// Why the fit has to end.
    fault: Option<CheckpointError>,
}

/// The solve that is under way.
#[derive(Default)]
struct Now {
    number: usize,
    solver: &'static str,
    /// Figures of its iterations.
    told: Vec<f64>,
    /// What its fit has to keep besides.
    best: Vec<f64>,
}

impl Session {
    pub(super) fn new(
        (path, every): (PathBuf, Duration),
        writes: bool,
        content: Content,
    ) -> Session {
        Session {
            path,
            every,
            writes,
            identity: content.identity,
            found: content.solves,
            ended: BTreeMap::new(),
            next: 0,
            now: Now::default(),
            saved: Instant::now(),
            has_failed: false,
            fault: None,
        }
    }

    fn begin(&mut self, solver: &'static str) -> Option<Record> {
        let number = self.next;
        self.next += 1;
        self.now = Now {
            number,
            solver,
            ..Now::default()
        };
        self.found.remove(&number)
    }

    /// The record is of another solver than that which is under way.
    fn is_by_another(&mut self, found: &str) -> OpError {
        self.end_with(CheckpointError::Foreign {
            path: self.path.clone(),
            what: format!("solve {} (counted from 0) by", self.now.number),
            expected: self.now.solver.to_owned(),
            found: found.to_owned(),
        })
    }

    fn end_with(&mut self, fault: CheckpointError) -> OpError {
        self.fault.get_or_insert(fault);
        OpError::Interrupted
    }

    fn completed(&self, mut record: Record) -> Record {
        record.text(SOLVER, self.now.solver);
        record.numbers(TOLD, &self.now.told);
        record.numbers(BEST, &self.now.best);
        record
    }

    /// A disk that is full for now does not end a fit: the file before is still there.
    fn write(&mut self, record: Record) {
        let record = self.completed(record);
        let ended = self.ended.iter().map(|(number, of)| (*number, of));
        let all = ended.chain([(self.now.number, &record)]).collect();
        let path = &self.path;
        match file::write(path, &self.identity, &all) {
            Ok(()) => {
                tracing::info!("checkpoint {} written", path.display());
                self.has_failed = false;
            }
            Err(error) if self.has_failed => tracing::info!("{error}; the fit goes on"),
            Err(error) => {
                tracing::warn!("{error}; the fit goes on, and tries again later");
                self.has_failed = true;
            }
        }
        self.saved = Instant::now();
    }
}

/// Does `work` with this session, or with none; the session afterwards.
pub(super) fn scope<R>(session: Option<Session>, work: impl FnOnce() -> R) -> (R, Option<Session>) {
    let restored = Restored(SESSION.replace(session));
    let result = work();
    let session = SESSION.take();
    drop(restored);
    (result, session)
}

/// Puts back what was there before, also when the work panics.
struct Restored(Option<Session>);

impl Drop for Restored {
    fn drop(&mut self) {
        SESSION.set(self.0.take());
    }
}

impl Session {
    pub(super) fn into_fault(self) -> Option<CheckpointError> {
        self.fault
    }
}

fn with<R>(does: impl FnOnce(&mut Session) -> R) -> Option<R> {
    SESSION.with_borrow_mut(|session| session.as_mut().map(does))
}

/// Begins the next solve of the fit: what the file has of it.
///
/// # Errors
/// [`OpError::Interrupted`] where that is of another solver; the fit says so when it has ended.
pub(in crate::learning) fn begin(solver: &'static str) -> Result<Option<Record>, OpError> {
    let Some(record) = with(|session| session.begin(solver)).flatten() else {
        return Ok(None);
    };
    let found = record.text_of(SOLVER)?;
    match found == solver {
        true => Ok(Some(record)),
        false => Err(with(|session| session.is_by_another(found)).unwrap_or(OpError::Interrupted)),
    }
}

/// Figures of the iterations that a record tells of. They count as told again, and what was [kept](keep) as kept.
pub(in crate::learning) fn recall(record: &Record) -> Result<Vec<f64>, OpError> {
    let (told, best) = (record.list_of(TOLD)?, record.list_of(BEST)?);
    with(|session| {
        session.now.told.clone_from(&told);
        session.now.best = best;
    });
    Ok(told)
}

/// What was kept last in this solve.
pub(in crate::learning) fn kept() -> Vec<f64> {
    with(|session| session.now.best.clone()).unwrap_or_default()
}

/// Whether it is time to save.
pub(in crate::learning) fn is_due() -> bool {
    let is_due = |session: &mut Session| session.writes && session.saved.elapsed() >= session.every;
    with(is_due).unwrap_or(false)
}

/// Whether members of a group are to ask each other if it is time to save: where there is a checkpoint at all, and at their turn,
/// or always if a file is wanted after each iteration. All members say the same.
pub(in crate::learning) fn asks(is_turn: bool) -> bool {
    with(|session| is_turn || session.every.is_zero()).unwrap_or(false)
}

/// Writes where the solve stands, as `fill` tells.
///
/// # Errors
/// As `fill`.
pub(in crate::learning) fn save(
    fill: impl FnOnce(&mut Record) -> Result<(), OpError>,
) -> Result<(), OpError> {
    let mut record = Record::default();
    fill(&mut record)?;
    with(|session| match session.writes {
        true => session.write(record),
        // It took part in what `fill` gathered.
        false => session.saved = Instant::now(),
    });
    Ok(())
}

/// Keeps how the solve ended, as `fill` tells, for the files to come.
///
/// # Errors
/// As `fill`.
pub(in crate::learning) fn end(
    fill: impl FnOnce(&mut Record) -> Result<(), OpError>,
) -> Result<(), OpError> {
    if SESSION.with_borrow(Option::is_none) {
        return Ok(());
    }
    let mut record = Record::default();
    fill(&mut record)?;
    with(|session| {
        let record = session.completed(record);
        session.ended.insert(session.now.number, record);
    });
    Ok(())
}

/// Keeps the figures of an iteration.
pub(in crate::learning) fn tell(figures: &[f64]) {
    with(|session| session.now.told.extend_from_slice(figures));
}

/// Keeps what is not to be lost besides; nothing is made of it without a checkpoint.
pub(in crate::learning) fn keep(best: impl FnOnce() -> Vec<f64>) {
    with(|session| session.now.best = best());
}
