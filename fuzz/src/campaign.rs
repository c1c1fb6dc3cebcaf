//! Many inputs, and how they ended.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use super::subject::{Subject, Workshop};
use super::{memory, processor};

/// An input that is under way this many times when the watch looks, hangs: after a minute of a process that runs.
const PATIENCE: u32 = 300;
/// How long the watch waits between two looks.
const WAIT: Duration = Duration::from_millis(200);

/// How the inputs of a subject ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Count {
    /// All.
    pub inputs: u64,
    /// Those that were taken; the others were answered with an error.
    pub taken: u64,
    /// Most bytes of memory that one took.
    pub peak_bytes: usize,
    /// The most processor time that one took, in seconds: what else the machine does is not counted.
    pub longest_seconds: f64,
}

/// An input that ended as none may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// What it was given to.
    pub subject: String,
    /// Its number.
    pub number: u64,
    /// What happened.
    pub what: String,
    /// The input.
    pub input: String,
}

/// How all ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// By subject.
    pub counts: BTreeMap<String, Count>,
    /// The first hundred.
    pub failures: Vec<Failure>,
}

/// The number of the input under way.
static NUMBER: AtomicU64 = AtomicU64::new(0);
/// What the last panic said.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Gives inputs of these numbers to their subjects, or all to `only`. The folder of the process becomes a temporary one and
/// what is printed is dropped meanwhile. Parallel loops run on the calling thread where none ran before: inputs are so
/// small that waking another one takes longer.
///
/// # Errors
/// When files cannot be written or no models be trained.
pub fn run(numbers: Range<u64>, only: Option<Subject>) -> Result<Outcome> {
    // Refused where there are threads already: they do as well.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    let _ = pool.use_current_thread().build_global();
    // Where there is one in memory: models are written through to the disk.
    let memory = std::path::Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    let folder = folder.context("no temporary folder")?;
    std::env::set_current_dir(folder.path()).context("cannot enter the temporary folder")?;
    let silence = Silence::start()?;
    let kept = panic::take_hook();
    panic::set_hook(Box::new(|info| {
        let mut last = PANIC
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *last = info.to_string();
    }));
    let done = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| watch(&done, &silence));
        let outcome = Workshop::new(folder.path()).map(|workshop| {
            let mut outcome = Outcome::default();
            for number in numbers {
                let subject = only.unwrap_or_else(|| Subject::of(number));
                one(&workshop, subject, number, &mut outcome);
            }
            outcome
        });
        done.store(true, Ordering::Relaxed);
        outcome
    });
    panic::set_hook(kept);
    outcome
}

fn one(workshop: &Workshop, subject: Subject, number: u64, outcome: &mut Outcome) {
    NUMBER.store(number, Ordering::Relaxed);
    let input = workshop.input(subject, number);
    let (begun, held) = (processor::seconds(), memory::start());
    let given = panic::catch_unwind(AssertUnwindSafe(|| workshop.give(subject, &input, number)));
    let (seconds, peak) = (processor::seconds() - begun, memory::peak_since(held));
    let bound = subject.bound(input.len());
    let what = match &given {
        Err(_) => Some(
            PANIC
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .clone(),
        ),
        Ok(Err(error)) => Some(format!("{error:#}")),
        Ok(Ok(_)) if peak > bound => {
            Some(format!("took {peak} bytes of memory, the bound is {bound}"))
        }
        Ok(Ok(_)) => None,
    };
    let count = outcome.counts.entry(format!("{subject:?}")).or_default();
    count.inputs += 1;
    count.taken += u64::from(matches!(given, Ok(Ok(true))));
    count.peak_bytes = count.peak_bytes.max(peak);
    count.longest_seconds = count.longest_seconds.max(seconds);
    if let Some(what) = what
        && outcome.failures.len() < 100
    {
        let (subject, input) = (format!("{subject:?}"), input.shown());
        outcome.failures.push(Failure {
            subject,
            number,
            what,
            input,
        });
    }
}

/// Ends the process when an input hangs. Looks are counted, not seconds: a process that was stopped does not hang.
fn watch(done: &AtomicBool, silence: &Silence) {
    let (mut number, mut looks) = (NUMBER.load(Ordering::Relaxed), 0);
    while !done.load(Ordering::Relaxed) {
        thread::park_timeout(WAIT);
        let now = NUMBER.load(Ordering::Relaxed);
        looks = if now == number { looks + 1 } else { 0 };
        number = now;
        if looks > PATIENCE {
            silence.say(&format!("input {number} hangs\n"));
            std::process::exit(1);
        }
    }
}

/// Standard output and standard error lead nowhere while this lives.
#[derive(Debug)]
struct Silence {
    #[cfg(unix)]
    kept: [i32; 2],
}

#[cfg(unix)]
impl Silence {
    fn start() -> Result<Silence> {
        use std::os::fd::AsRawFd;
        let nowhere = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/null")
            .context("no /dev/null")?;
        let kept = [1, 2].map(|stream| {
            // SAFETY: numbers of open files go in and come out.
            unsafe {
                let kept = libc::dup(stream);
                libc::dup2(nowhere.as_raw_fd(), stream);
                kept
            }
        });
        Ok(Silence { kept })
    }

    /// Writes to what was standard error.
    fn say(&self, text: &str) {
        // SAFETY: the text is that long. Nothing is to be done where nobody listens.
        let _ = unsafe { libc::write(self.kept[1], text.as_ptr().cast(), text.len()) };
    }
}

#[cfg(unix)]
impl Drop for Silence {
    fn drop(&mut self) {
        for (stream, kept) in [1, 2].into_iter().zip(self.kept) {
            // SAFETY: both are numbers of open files.
            unsafe {
                libc::dup2(kept, stream);
                libc::close(kept);
            }
        }
    }
}

#[cfg(not(unix))]
impl Silence {
    fn start() -> Result<Silence> {
        Ok(Silence {})
    }

    fn say(&self, text: &str) {
        eprint!("{text}");
    }
}
