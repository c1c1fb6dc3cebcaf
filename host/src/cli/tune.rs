//! `warpfuse tune`: the launches of a family on this machine's GPU, checked and timed.

use anyhow::{Context, Result};
use serde::Serialize;

use super::args::{
    DtypeName, TuneArgs, TuneFamily, TuneFusedArgs, TuneMatmulArgs, TuneQrArgs, TuneReplayArgs,
    TuneRunArgs,
};
use super::exit::Exit;
use super::progress::Ui;
use super::report::plain_table;
use super::{device, output, pages};
use crate::device::Device;
use crate::io::synth::{ColumnDistribution, DenseSpec, RowLengths, SparseSpec, SparseValues, Spec};
use crate::ops::Number;
use crate::plan::qr::QrShape;
use crate::report::TuningPage;
use crate::tune::{
    Budget, FusedSubject, Key, Log, MatmulSubject, QrSubject, Replayed, SearchKind, Session, Step,
    Subject, TuneError, Tuned,
};

/// The seed of matrices that are made up.
const SEED: u64 = 1;
/// Launches of the printed table.
const LISTED: usize = 10;

/// Tunes, and prints the fastest launches.
pub(super) fn run(args: &TuneArgs, ui: &Ui) -> Result<Exit> {
    match &args.family {
        TuneFamily::Fused(args) => tune_with(&args.run, ui, |device| match args.run.dtype {
            DtypeName::F32 => fused::<f32>(device, args),
            DtypeName::F64 => fused::<f64>(device, args),
        }),
        TuneFamily::Matmul(args) => tune_with(&args.run, ui, |device| match args.run.dtype {
            DtypeName::F32 => matmul::<f32>(device, args),
            DtypeName::F64 => matmul::<f64>(device, args),
        }),
        TuneFamily::Qr(args) => tune_with(&args.run, ui, |device| match args.run.dtype {
            DtypeName::F32 => qr::<f32>(device, args),
            DtypeName::F64 => qr::<f64>(device, args),
        }),
        TuneFamily::Replay(args) => replay(args),
    }
}

fn fused<T: Number>(device: &Device, args: &TuneFusedArgs) -> Result<Box<dyn Subject>> {
    let (rows, cols) = (args.rows.get(), args.cols.get());
    let (noise, seed) = (0.0, SEED);
    let spec = match args.per_row {
        None => Spec::Dense(DenseSpec {
            rows,
            cols,
            noise,
            seed,
        }),
        Some(per_row) => Spec::Sparse(SparseSpec {
            rows,
            cols,
            row_lengths: RowLengths::Constant(per_row.get()),
            columns: ColumnDistribution::Uniform,
            values: SparseValues::Normal,
            noise,
            seed,
        }),
    };
    let features = spec.generate::<T>()?.dataset.features;
    Ok(Box::new(FusedSubject::new(device, features)?))
}

fn matmul<T: Number>(device: &Device, args: &TuneMatmulArgs) -> Result<Box<dyn Subject>> {
    let size = (args.rows.get(), args.cols.get(), args.inner.get());
    Ok(Box::new(MatmulSubject::<T>::new(device, size)?))
}

fn qr<T: Number>(device: &Device, args: &TuneQrArgs) -> Result<Box<dyn Subject>> {
    let rows = args.rows.get();
    let cols = args.cols.map_or(rows, std::num::NonZeroUsize::get);
    let shape = QrShape { rows, cols };
    Ok(Box::new(QrSubject::<T>::new(
        device,
        args.count.get(),
        shape,
    )?))
}

fn tune_with(
    args: &TuneRunArgs,
    ui: &Ui,
    subject: impl FnOnce(&Device) -> Result<Box<dyn Subject>>,
) -> Result<Exit> {
    pages::check(&args.report)?;
    let device = device::open(args.device, ui)?;
    if device.limits().is_none() {
        // Before anything is made up for it.
        let device = device.to_string();
        return Err(TuneError::NoLaunches { device }).context("nothing can be tuned");
    }
    let mut subject = subject(&device).context("nothing can be tuned")?;
    let mut log = open_log(args, &Key::of(&device, &subject.class()), ui)?;
    let budget = Budget {
        time: args.budget,
        trials: args.trials.map_or(usize::MAX, std::num::NonZeroUsize::get),
    };
    let points = subject.points().len();
    let session = Session::new(&mut *subject, log.as_mut())?;
    let mut tried = 0;
    let told = |step: &Step| {
        tried += 1;
        ui.remark(format_args!("{tried} of {points}: {}", told(step)));
    };
    let tuned = session.run(args.search.into(), args.seed, budget, told)?;
    print(args, &tuned, &device)?;
    if args.report.is_wanted() {
        let page = TuningPage {
            tuned: &tuned,
            device: device.name(),
            command: ui.command(),
        };
        pages::write(&args.report, &page.report(), ui)?;
    }
    Ok(Exit::Success)
}

fn open_log(args: &TuneRunArgs, key: &Key, ui: &Ui) -> Result<Option<Log>> {
    let Some(path) = &args.log else {
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

fn print(args: &TuneRunArgs, tuned: &Tuned, device: &Device) -> Result<()> {
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
    let Tuned {
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
    tuned: &'a Tuned,
}

/// One search over the trials of one problem.
#[derive(Serialize)]
struct Replay {
    class: String,
    points: usize,
    search: SearchKind,
    /// How much longer than the fastest of all the best takes after a twentieth of the points.
    excess_after_5_percent: f64,
    /// Trials until it takes at most 3 % longer.
    trials_within_3_percent: usize,
}

fn replay(args: &TuneReplayArgs) -> Result<Exit> {
    let mut all = Vec::new();
    for recording in Log::recorded(&args.log)? {
        let subject = Replayed::of(recording)?;
        for search in SearchKind::ALL {
            let course = subject.course(search, args.seed)?;
            all.push(Replay {
                class: subject.class(),
                points: subject.points().len(),
                search,
                excess_after_5_percent: course.excess_after(0.05),
                trials_within_3_percent: course.trials_within(0.03),
            });
        }
    }
    if args.json {
        output::print_json(&all)?;
        return Ok(Exit::Success);
    }
    let mut table = plain_table();
    table.set_header([
        "problem",
        "launches",
        "search",
        "above the fastest after 5 %",
        "trials to within 3 %",
    ]);
    for one in &all {
        table.add_row([
            one.class.clone(),
            one.points.to_string(),
            one.search.name().to_owned(),
            format!("{:.1} %", 100.0 * one.excess_after_5_percent),
            one.trials_within_3_percent.to_string(),
        ]);
    }
    output::print(format!("{table}\n"))?;
    Ok(Exit::Success)
}
