//! Makes one trial per case and device, runs them, reports.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use warpfuse::device::Device;
use warpfuse::matrix::Dtype;
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse_tests::Subset;
use warpfuse_tests::engines::{Engine, Missing, Role};
use warpfuse_tests::report::{Key, Report};
use warpfuse_tests::shard::Shard;
use warpfuse_tests::times::Times;
use warpfuse_tests::tolerance::{Truth, compare};

use super::entries::agreement;

/// The errors of all trials.
static REPORT: Report = Report::new();

/// What all trials took.
static TIMES: Times = Times::new();

/// Which engines a trial is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Any device.
    Device,
    /// A device that launches compiled entries.
    Entries,
    /// A GPU.
    Cuda,
}

/// A test, yet without a device.
pub struct Test {
    name: String,
    needs: Needs,
    subset: Subset,
    roles: &'static [Role],
}

impl Test {
    /// A test for any device, however slow.
    pub fn new(name: impl Into<String>) -> Test {
        Test {
            name: name.into(),
            needs: Needs::Device,
            subset: Subset::Small,
            roles: &[Role::Main],
        }
    }

    /// Repeated by emulators under many orders of blocks and lanes, where it is small.
    pub fn under_every_schedule(self) -> Test {
        let roles: &[Role] = match self.subset {
            Subset::Small => &[Role::Main, Role::Schedule],
            Subset::Full => &[Role::Main],
        };
        Test { roles, ..self }
    }

    /// For devices that launch compiled entries.
    pub fn of_entries(self) -> Test {
        Test {
            needs: Needs::Entries,
            ..self
        }
    }

    /// For GPUs.
    pub fn of_cuda(self) -> Test {
        Test {
            needs: Needs::Cuda,
            ..self
        }
    }

    /// Only where at least `subset` is run.
    pub fn within(self, subset: Subset) -> Test {
        Test { subset, ..self }
    }

    fn suits(&self, engine: &Engine) -> bool {
        let runs = match &engine.device {
            Ok(device) => Subset::of_cases(device),
            Err(_) => Subset::from_environment(),
        };
        let can_run = match self.needs {
            Needs::Device => true,
            Needs::Entries => engine.launches_entries(),
            Needs::Cuda => engine.is_cuda(),
        };
        can_run && runs >= self.subset && self.roles.contains(&engine.role)
    }
}

/// Trials in the making.
pub struct Suite {
    engines: Vec<Engine>,
    trials: Vec<Trial>,
    /// Cases so far that came in both element types.
    turns: usize,
    /// The first part of the names of all tests, whether or not an engine suits them.
    groups: BTreeSet<String>,
}

impl Suite {
    /// No trials, and the engines that the environment names.
    pub fn from_environment() -> Suite {
        Suite {
            engines: Engine::from_environment(),
            trials: Vec::new(),
            turns: 0,
            groups: BTreeSet::new(),
        }
    }

    /// Adds `check` on every engine that suits `test`.
    pub fn add(
        &mut self,
        test: Test,
        check: impl Fn(&Device) -> Result<()> + Clone + Send + 'static,
    ) {
        self.add_where(|_| true, test, check);
    }

    /// Adds a case in both element types. An emulator runs one of them, by turns from case to case and from schedule to
    /// schedule: the bodies are the same but for the type, and most time of all tests goes there. So does the CPU with what no
    /// emulator runs, since it takes long.
    pub fn add_in_both(
        &mut self,
        test: impl Fn(Dtype) -> Test,
        of_f32: impl Fn(&Device) -> Result<()> + Clone + Send + 'static,
        of_f64: impl Fn(&Device) -> Result<()> + Clone + Send + 'static,
    ) {
        self.turns += 1;
        self.add_by_turn(self.turns, test, of_f32, of_f64);
    }

    /// The same, where the case knows its turn: of two lists, one within the other, cases of each are to come in both types.
    pub fn add_by_turn(
        &mut self,
        turn: usize,
        test: impl Fn(Dtype) -> Test,
        of_f32: impl Fn(&Device) -> Result<()> + Clone + Send + 'static,
        of_f64: impl Fn(&Device) -> Result<()> + Clone + Send + 'static,
    ) {
        let subset = test(Dtype::F32).subset;
        let takes = move |dtype: usize| {
            move |engine: &Engine| {
                engine
                    .turn(subset)
                    .is_none_or(|own| (own + turn + dtype).is_multiple_of(2))
            }
        };
        self.add_where(takes(0), test(Dtype::F32), of_f32);
        self.add_where(takes(1), test(Dtype::F64), of_f64);
    }

    fn add_where(
        &mut self,
        takes: impl Fn(&Engine) -> bool,
        test: Test,
        check: impl Fn(&Device) -> Result<()> + Clone + Send + 'static,
    ) {
        let group = test.name.split('/').next().unwrap_or_default();
        self.groups.insert(group.to_owned());
        let suits = |engine: &&Engine| test.suits(engine) && takes(engine);
        for engine in self.engines.iter().filter(suits) {
            let name = format!("{}/{}", test.name, engine.name);
            let (device, check) = (engine.device.clone(), check.clone());
            let run = timed(name.clone(), move || run_on(device, check));
            self.trials.push(Trial::ignorable_test(name, run));
        }
    }

    /// Whether there are tests whose names begin with `group` and a slash.
    pub fn has(&self, group: &str) -> bool {
        self.groups.contains(group)
    }

    /// Runs what the arguments select, and prints and writes the report.
    pub fn run(self, arguments: &Arguments) -> ExitCode {
        let shard = match Shard::from_environment() {
            Ok(shard) => shard,
            Err(mistake) => {
                eprintln!("error: {mistake}");
                return ExitCode::FAILURE;
            }
        };
        self.engines.iter().for_each(announce);
        let conclusion = libtest_mimic::run(arguments, shard.select(self.trials));
        if arguments.list {
            return conclusion.exit_code();
        }
        println!("{REPORT}\n{TIMES}");
        let mut good = !conclusion.has_failed();
        for written in [write_report(), agreement::write()] {
            if let Err(error) = written {
                eprintln!("error: {error:#}");
                good = false;
            }
        }
        self.engines.iter().for_each(print_counters);
        good &= self.engines.iter().all(nothing_is_left);
        if good {
            ExitCode::SUCCESS
        } else {
            conclusion_code(&conclusion)
        }
    }
}

/// Says on stderr which devices there are, and why one is missing.
fn announce(engine: &Engine) {
    match &engine.device {
        Ok(device) => eprintln!("{}: {}", engine.name, device.name()),
        Err(Missing::Optional(why)) => eprintln!("{}: ignored; {why}", engine.name),
        Err(Missing::Required(why)) => eprintln!("{}: missing; {why}", engine.name),
    }
}

/// libtest's exit code for failed tests.
fn conclusion_code(conclusion: &libtest_mimic::Conclusion) -> ExitCode {
    if conclusion.has_failed() {
        conclusion.exit_code()
    } else {
        ExitCode::FAILURE
    }
}

/// `run`, which leaves in [`TIMES`] what it took.
fn timed<R>(name: String, run: impl FnOnce() -> R) -> impl FnOnce() -> R {
    move || {
        let start = Instant::now();
        let result = run();
        TIMES.record(&name, start.elapsed());
        result
    }
}

fn run_on(
    device: Result<Device, Missing>,
    check: impl Fn(&Device) -> Result<()>,
) -> Result<Completion, Failed> {
    match device {
        Ok(device) => match check(&device) {
            Ok(()) => Ok(Completion::Completed),
            Err(error) => Err(format!("{error:#}").into()),
        },
        Err(Missing::Optional(_)) => Ok(Completion::ignored()),
        Err(Missing::Required(why)) => Err(why.into()),
    }
}

fn write_report() -> Result<()> {
    let Some(path) = std::env::var_os("WARPFUSE_TEST_REPORT") else {
        return Ok(());
    };
    let text = serde_json::to_string_pretty(&REPORT.to_json())?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// What the kernels did to an emulator's memory, if it counted.
fn print_counters(engine: &Engine) {
    if let Ok(Device::Emulator(emulator)) = &engine.device {
        for (entry, profile) in emulator.profiles() {
            println!("{entry} on {}\n{profile}", engine.name);
        }
    }
}

/// Whether all buffers of all trials have been freed.
fn nothing_is_left(engine: &Engine) -> bool {
    let Ok(device) = &engine.device else {
        return true;
    };
    let usage = device.usage();
    println!(
        "memory of {}: {} bytes at most",
        engine.name, usage.peak_bytes
    );
    if usage.live_bytes != 0 {
        eprintln!(
            "error: {} bytes were never freed on {}",
            usage.live_bytes, engine.name
        );
    }
    usage.live_bytes == 0
}

/// Compares a result with the truth and records the error under `family`.
pub fn check<T: Number>(
    device: &Device,
    family: &str,
    computed: &[T],
    truth: &Truth,
) -> Result<()> {
    check_on(&device.to_string(), family, computed, truth)
}

fn check_on<T: Number>(device: &str, family: &str, computed: &[T], truth: &Truth) -> Result<()> {
    let worst = compare(computed, truth)?;
    let key = Key {
        device: device.to_owned(),
        family: family.to_owned(),
        dtype: T::DTYPE.to_string(),
    };
    REPORT.record(key, worst);
    Ok(())
}

/// [`check`] for an entry that was launched by itself.
pub fn check_entry<T: Number>(
    device: &str,
    kernel: &str,
    product: Product,
    computed: &[T],
    truth: &Truth,
) -> Result<()> {
    let storage = kernel.split('_').next().unwrap_or_default();
    check_on(
        device,
        &format!("entry {storage} {product:?}").to_lowercase(),
        computed,
        truth,
    )
}
