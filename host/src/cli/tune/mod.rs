//! `warpfuse tune`: the launches of a family on this machine's GPU, checked and timed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Subcommand;
use serde::Serialize;

use super::args::{DtypeName, TuneArgs, TuneExportArgs, TuneReplayArgs, TuneRunArgs};
use super::exit::Exit;
use super::progress::Ui;
use super::report::plain_table;
use super::{device, output, pages};
use crate::device::Device;
use crate::ops::conv1d::Conv1dNumber;
use crate::ops::reduce::Reducible;
use crate::ops::sparse_conv::ConvElement;
use crate::report::TuningPage;
use crate::tune::{Budget, Key, Log, Session, Step, Subject, TuneError, Tuned as Found};

mod replay;
mod table;
mod workers;

/// The seed of matrices that are made up.
const SEED: u64 = 1;
/// Launches of the printed table.
const LISTED: usize = 10;

/// An element type that all families can be tuned for.
trait Tuned: Conv1dNumber + Reducible<Sum = f64> + ConvElement {}

impl<T: Conv1dNumber + Reducible<Sum = f64> + ConvElement> Tuned for T {}

/// A family's part of the command line.
trait Tunable {
    /// What all families take.
    fn run(&self) -> &TuneRunArgs;

    /// What is tuned.
    fn subject<T: Tuned>(&self, device: &Device) -> Result<Box<dyn Subject>>;
}

/// The families: each row is a file with its arguments.
macro_rules! families {
    ($($(#[doc = $doc:literal])* $file:ident $name:ident($arguments:ident),)*) => {
        $(mod $file;)*

        /// What is tuned.
        #[derive(Debug, Subcommand)]
        pub(in crate::cli) enum TuneFamily {
            $($(#[doc = $doc])* $name($file::$arguments),)*
            /// How each search would have gone over the trials of a log; needs no GPU
            Replay(TuneReplayArgs),
            /// Write the fastest launches of logs into a table that plans take; needs no GPU
            Export(TuneExportArgs),
        }

        /// Tunes, and prints the fastest launches.
        pub(super) fn run(args: &TuneArgs, ui: &Ui) -> Result<Exit> {
            match &args.family {
                $(TuneFamily::$name(args) => tune(args, ui),)*
                TuneFamily::Replay(args) => replay::replay(args),
                TuneFamily::Export(args) => table::export(args, ui),
            }
        }
    };
}

families! {
    /// w = Xᵀ(X·y) over a made-up matrix
    fused Fused(TuneFusedArgs),
    /// C = A·B
    matmul Matmul(TuneMatmulArgs),
    /// QR factorisations of many matrices
    qr Qr(TuneQrArgs),
    /// The sum of an array
    reduce Reduce(TuneReduceArgs),
    /// A one-dimensional convolution
    conv1d Conv1d(TuneConv1dArgs),
    /// Sums over a kernel between points
    kernel_sum KernelSum(TuneKernelSumArgs),
    /// A convolutional layer with sparse filters
    sparse_conv SparseConv(TuneSparseConvArgs),
}

fn tune(family: &impl Tunable, ui: &Ui) -> Result<Exit> {
    tune_with(family.run(), ui, |device| match family.run().dtype {
        DtypeName::F32 => family.subject::<f32>(device),
        DtypeName::F64 => family.subject::<f64>(device),
    })
}

fn tune_with(
    args: &TuneRunArgs,
    ui: &Ui,
    subject: impl FnOnce(&Device) -> Result<Box<dyn Subject>>,
) -> Result<Exit> {
    pages::check(&args.report)?;
    if let Some(path) = &args.table {
        // What is no table is said before the budget is spent.
        table::read(path, ui)?;
    }
    let kept = match workers::are_wanted(args) {
        true => Some(Kept::by_workers(args, ui)?),
        false => None,
    };
    let log = kept.as_ref().map(Kept::path).or(args.log.as_deref());
    let device = open(args, ui)?;
    let mut subject = subject(&device).context("nothing can be tuned")?;
    let key = Key::of(&device, &subject.class());
    let mut log = open_log(log, &key, ui)?;
    let budget = budget(args, kept.is_some());
    let points = subject.points().len();
    let session = Session::new(&mut *subject, log.as_mut())?;
    let mut tried = 0;
    let told = |step: &Step| {
        tried += 1;
        // Those who watch tell what a process has found.
        if !(step.remembered && args.worker.is_some()) {
            ui.remark(format_args!("{tried} of {points}: {}", told(step)));
        }
    };
    let tuned = session.run(args.search.into(), args.seed, budget, told)?;
    if args.worker.is_none() {
        show(args, &tuned, &device, ui)?;
        if let Some(path) = &args.table {
            table::keep(path, &key, tuned.entry(key.clone()), ui)?;
        }
    }
    Ok(Exit::Success)
}

/// The device, whose planners choose for themselves: their own choice is what is to be beaten.
fn open(args: &TuneRunArgs, ui: &Ui) -> Result<Device> {
    let device = device::open(args.worker.unwrap_or(args.device), ui)?;
    if device.limits().is_none() {
        // Before anything is made up for it.
        let device = device.to_string();
        return Err(TuneError::NoLaunches { device }).context("nothing can be tuned");
    }
    device.use_tuned(None);
    Ok(device)
}

/// What other processes have tried is all that there will be.
fn budget(args: &TuneRunArgs, is_over: bool) -> Budget {
    let most = args.trials.map_or(usize::MAX, std::num::NonZeroUsize::get);
    Budget {
        time: args.left.unwrap_or(args.budget),
        trials: if is_over { 0 } else { most },
    }
}

fn show(args: &TuneRunArgs, tuned: &Found, device: &Device, ui: &Ui) -> Result<()> {
    print(args, tuned, device)?;
    if args.report.is_wanted() {
        let page = TuningPage {
            tuned,
            device: device.name(),
            command: ui.command(),
        };
        pages::write(&args.report, &page.report(), ui)?;
    }
    Ok(())
}

/// The log of processes that have tuned.
enum Kept {
    Named(PathBuf),
    /// No log was named: it goes with the command.
    Temporary(tempfile::TempPath),
}

impl Kept {
    fn by_workers(args: &TuneRunArgs, ui: &Ui) -> Result<Kept> {
        let kept = match &args.log {
            Some(path) => Kept::Named(path.clone()),
            None => {
                let file = tempfile::NamedTempFile::new().context("no file for a log")?;
                Kept::Temporary(file.into_temp_path())
            }
        };
        workers::run(args, kept.path(), ui)?;
        Ok(kept)
    }

    fn path(&self) -> &Path {
        match self {
            Kept::Named(path) => path,
            Kept::Temporary(path) => path,
        }
    }
}

fn open_log(path: Option<&Path>, key: &Key, ui: &Ui) -> Result<Option<Log>> {
    let Some(path) = path else {
        return Ok(None);
    };
    let log = Log::open(path, key)?;
    let notice = log.notice();
    if !log.trials().is_empty() {
        ui.remark(format_args!("{} trials are known", log.trials().len()));
    }
    if notice.damaged > 0 {
        ui.warn(format_args!(
            "{} lines of the log are damaged and do not count",
            notice.damaged
        ));
    }
    if notice.interrupted > 0 {
        ui.remark(format_args!("{} trials were cut off", notice.interrupted));
    }
    Ok(Some(log))
}

fn told(step: &Step) -> String {
    use crate::tune::Outcome::{Failed, Timed, Wrong};
    let known = if step.remembered { " (known)" } else { "" };
    let point = &step.trial.point;
    match &step.trial.outcome {
        Timed { median_us } => format!(
            "{median_us:.1} µs, fastest {:.1}: {point}{known}",
            step.best_us
        ),
        Wrong { found } => format!("WRONG, {found}: {point}{known}"),
        Failed { reason } => format!("failed, {reason}: {point}{known}"),
    }
}

fn print(args: &TuneRunArgs, tuned: &Found, device: &Device) -> Result<()> {
    if args.json {
        return output::print_json(&Printed {
            device: device.name(),
            gain: tuned.gain(),
            tuned,
        });
    }
    let mut timed: Vec<&Step> = tuned.steps.iter().collect();
    timed.retain(|step| step.trial.outcome.median_us().is_some());
    let us = |step: &&Step| step.trial.outcome.median_us().unwrap_or(f64::INFINITY);
    timed.sort_by(|a, b| us(a).total_cmp(&us(b)));
    let mut table = plain_table();
    table.set_header(["launch", "µs", "planner's"]);
    for step in timed.iter().take(LISTED) {
        let is_planned = step.trial.point == tuned.incumbent.point;
        let mark = if is_planned { "yes" } else { "" };
        table.add_row([
            step.trial.point.clone(),
            format!("{:.1}", us(step)),
            mark.to_owned(),
        ]);
    }
    let Found {
        class,
        points,
        steps,
        ..
    } = tuned;
    let refused = steps.len() - timed.len();
    let text = format!(
        "{class} on {}: {} of {points} launches tried, {refused} refused\n{table}\nfastest over the planner's choice: {:.2} ×\n",
        device.name(),
        steps.len(),
        tuned.gain(),
    );
    output::print(text)
}

#[derive(Serialize)]
struct Printed<'a> {
    device: &'a str,
    gain: f64,
    #[serde(flatten)]
    tuned: &'a Found,
}
