//! `warpfuse plan --fit`: where a fit could be computed, what each place would take, and what it does take.

use std::fmt;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::args::{DeviceName, DtypeName, GpuName, PlanArgs, matrix_options, summation};
use super::exit::Exit;
use super::plan::Gpu;
use super::progress::Ui;
use super::report::{Listing, seconds};
use super::{device, measure, output};
use crate::device::{Device, MemoryOptions};
use crate::matrix::Features;
use crate::ops::{MeasuredPlace, Number, problem_on_gpu};
use crate::plan::alternatives::{Alternative, Fit, Passes, usual_memory};
use crate::plan::fused::{Planner, Problem};
use crate::plan::streaming::{Beside, Footprint};

/// All places, with what they take.
#[derive(Serialize)]
pub(super) struct Fits {
    reads: u64,
    #[serde(skip)]
    room: u64,
    alternatives: [Alternative; 4],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    measured: Vec<MeasuredPlace>,
}

impl Fits {
    /// Predictions for a GPU.
    ///
    /// # Errors
    /// When no plan can be made, or a limit is no number of bytes.
    pub(super) fn of(
        (planner, gpu): (&Planner<'_>, &Gpu),
        problem: &Problem,
        reads: Option<u64>,
    ) -> Result<Fits> {
        let limit = MemoryOptions::from_environment()?.limit_bytes;
        let memory = match Device::cuda(0) {
            Ok(device) if device.name() == gpu.limits.name => {
                device.memory_info().map(|info| info.total_bytes as u64)
            }
            _ => None,
        };
        let memory = memory.unwrap_or_else(|| usual_memory(&gpu.limits.name));
        let memory = limit.map_or(memory, |limit| memory.min(limit as u64));
        let footprint = Footprint::of(&problem.as_stored());
        let passes = Passes {
            reads: reads.unwrap_or(device::FIT_READS),
            room: memory - footprint.reserve(memory, Beside::Solver(planner.sums())),
            values: problem.values,
            is_open: false,
            host: gpu.limits.rates.host(rayon::current_num_threads()),
        };
        let (reads, room) = (passes.reads, passes.room);
        let fit = Fit::of(planner, problem, passes).context("no plan can be made")?;
        Ok(Fits {
            reads,
            room,
            alternatives: fit.alternatives(),
            measured: Vec::new(),
        })
    }
}

/// Times passes in every place that this machine has, and prints them beside the predictions.
///
/// # Errors
/// When data cannot be read, or a device fails.
pub(super) fn measure(args: &PlanArgs, ui: &Ui) -> Result<Exit> {
    ensure!(
        args.gpu == GpuName::Auto,
        "--measure runs on this machine's GPU: leave out --gpu"
    );
    ensure!(
        !args.report.is_wanted(),
        "--report and --figures show launches: expected --measure without --fit, found both"
    );
    let device = device::open(DeviceName::Auto, ui)?;
    match args.dtype {
        DtypeName::F32 => compare::<f32>(args, &device, ui),
        DtypeName::F64 => compare::<f64>(args, &device, ui),
    }
}

fn compare<T: Number>(args: &PlanArgs, device: &Device, ui: &Ui) -> Result<Exit> {
    let features: Arc<Features<T>> = measure::features(args, ui)?;
    let gpu = Gpu::of(args, ui)?;
    let problem = problem_on_gpu(&gpu.limits, &features, args.values.into());
    let planner = Planner::new(&gpu.limits, &gpu.kernels).summation(summation(args.reproducible));
    let fits = Fits::of((&planner, &gpu), &problem, args.evaluations)?;
    let options = matrix_options(args.model, summation(args.reproducible), args.values);
    // Without a GPU there is one place.
    let here = |one: &&Alternative| one.fits && (!device.is_cpu() || one.host_share == 1.0);
    let places = fits.alternatives.iter().filter(here);
    let measured = places.map(|one| {
        let what = (one, fits.reads, fits.room);
        MeasuredPlace::of(device, &features, what, options)
            .with_context(|| format!("{} cannot be timed", one.place))
    });
    let measured = measured.collect::<Result<Vec<_>>>()?;
    let fits = Fits { measured, ..fits };
    match args.json {
        true => output::print_json(&fits)?,
        false => {
            let mut head = Listing::new();
            head.line("gpu", &gpu.limits.name).line("matrix", problem);
            output::print(format!("{head}{fits}"))?;
        }
    }
    Ok(Exit::Success)
}

impl fmt::Display for Fits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Listing::new();
        lines.line("reads of X", self.reads);
        for alternative in &self.alternatives {
            lines.line("a fit", alternative);
        }
        for measured in &self.measured {
            let (all, one) = (seconds(measured.seconds), seconds(measured.pass_seconds));
            let text = format_args!("{}: {all}, {one} a pass", measured.place);
            lines.line("measured", text);
        }
        lines.fmt(f)
    }
}
