//! Processes that are killed while they tune, and several that tune at once.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::planted::{Planted, key};
use super::{Budget, Log, Outcome, Point, Refusal, SearchKind, Session, Subject, Tuned};

/// Names the log of a child, and so makes one of this program.
const CHILD: &str = "WARPFUSE_TUNED_BY_CHILD";
/// Kills, where there are to be more than a few.
const KILLS: &str = "WARPFUSE_KILLS";
/// Bytes that a child tells for each trial.
const TOLD: usize = 4;

/// A planted subject that says where it is.
struct Telling(Planted);

fn tell() {
    eprint!(".");
}

impl Subject for Telling {
    fn class(&self) -> String {
        self.0.class()
    }

    fn points(&self) -> &[Point] {
        self.0.points()
    }

    fn incumbent(&self) -> usize {
        self.0.incumbent()
    }

    fn check(&mut self, point: usize) -> Result<(), Refusal> {
        tell();
        let checked = self.0.check(point);
        tell();
        if checked.is_err() {
            // As many as of others.
            tell();
            tell();
        }
        checked
    }

    fn time(&mut self, point: usize, hopeless_us: f64) -> Result<f64, Refusal> {
        tell();
        let timed = self.0.time(point, hopeless_us);
        tell();
        timed
    }
}

fn tuned(log: &Path, trials: usize) -> (Tuned, usize) {
    let mut log = Log::open(log, &key()).expect("a log");
    let mut subject = Telling(Planted::new());
    let budget = Budget {
        time: Duration::from_secs(3_600),
        trials,
    };
    let session = Session::new(&mut subject, Some(&mut log)).expect("sound");
    let tuned = session.run(SearchKind::Evolutionary, 3, budget, |_| {});
    (tuned.expect("tuned"), subject.0.runs)
}

/// What [`child`] is in the process that it starts; alone it does nothing.
#[test]
fn as_a_child() {
    if let Some(log) = std::env::var_os(CHILD) {
        tuned(Path::new(&log), usize::MAX);
    }
}

/// A process that tunes with this log.
fn child(log: &Path) -> Child {
    let program = std::env::current_exe().expect("the tests are a program");
    Command::new(program)
        .args(["--exact", "tune::killed::as_a_child", "--nocapture"])
        .env(CHILD, log)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started")
}

/// Kills a child after it has written this number of bytes; whether it was still there.
fn kill_after(mut child: Child, bytes: usize) -> bool {
    let mut told = child.stderr.take().expect("piped");
    let mut seen = Vec::new();
    let read = told.by_ref().take(bytes as u64).read_to_end(&mut seen);
    read.expect("readable");
    child.kill().expect("killed, or over");
    let status = child.wait().expect("over");
    // What a signal ends has no code.
    status.code().is_none()
}

/// How often points began, by the log.
fn beginnings(log: &Path) -> usize {
    let text = std::fs::read_to_string(log).expect("readable");
    text.lines().filter(|line| line.contains("began")).count()
}

#[test]
fn killed_at_any_moment_a_process_loses_one_trial_and_accepts_nothing_wrong() {
    let kills = std::env::var(KILLS)
        .ok()
        .and_then(|kills| kills.parse().ok());
    let kills: usize = kills.unwrap_or(12);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(22);
    let (mut killed, mut logs) = (0, 0);
    while killed < kills {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log.jsonl");
        let mut of_log = 0;
        logs += 1;
        while of_log < 8 && killed < kills {
            // One trial ends at least, so that no point is begun twice without an end.
            let bytes = random.random_range(TOLD + 1..20 * TOLD);
            let was_there = kill_after(child(&log), bytes);
            of_log += usize::from(was_there);
            killed += usize::from(was_there);
            if !was_there {
                break;
            }
        }
        let (tuned, _) = tuned(&log, usize::MAX);
        assert_eq!(tuned.best.point, "p22");
        assert_eq!(tuned.steps.len(), 60);
        let wrong = |outcome: &Outcome| matches!(outcome, Outcome::Wrong { .. });
        let refused = tuned.steps.iter().filter(|step| wrong(&step.trial.outcome));
        assert_eq!(refused.count(), 20);
        let begun = beginnings(&log);
        assert!(
            begun <= 60 + of_log,
            "{begun} beginnings after {of_log} kills"
        );
    }
    eprintln!("{killed} kills of {logs} tunings");
}

#[test]
fn several_processes_share_a_log_and_try_nothing_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log.jsonl");
    let children: Vec<Child> = (0..3).map(|_| child(&log)).collect();
    for child in children {
        let ended = child.wait_with_output().expect("over");
        assert!(ended.status.success());
    }
    // Each may have measured the planner's choice before the others had.
    let begun = beginnings(&log);
    assert!(
        (60..=62).contains(&begun),
        "{begun} beginnings of 60 points"
    );
    let (tuned, runs) = tuned(&log, usize::MAX);
    assert_eq!((runs, tuned.best.point.as_str()), (0, "p22"));
}
