//! `warpfuse plan`: a shape and a GPU → a launch plan with its reasons.

use anyhow::{Context, Result, anyhow, ensure};
use serde::Serialize;

use super::args::{DtypeName, ForcedPart, GpuName, PlanArgs, summation};
use super::exit::Exit;
use super::fits::{self, Fits};
use super::forms::Forms;
use super::progress::Ui;
use super::report::{Listing, bytes, indented, number, plain_table};
use super::{data, device, measure, output, plan_gpus};
use crate::device::{Device, embedded, tuned};
use crate::io::Columns;
use crate::ops::{Number, candidates_of, problem_on_gpu};
use crate::plan::fused::{
    Candidate, Forced, Maker, Model, Plan, PlanSummary, Planner, Precision, Problem, Product, Trial,
};
use crate::plan::limits::DeviceLimits;
use crate::plan::rates::RateSource;
use crate::plan::scaling::{Machines, Shared};
use crate::plan::tuned::{Site, Table};

/// Threads of the largest block of any GPU so far.
const LARGEST_BLOCK: u32 = 1024;

/// Makes a plan and prints it.
pub(super) fn run(args: &PlanArgs, gpus: Option<usize>, ui: &Ui) -> Result<Exit> {
    if let (Some(_), Some(_)) = (&args.fit, args.measure) {
        return fits::measure(args, ui);
    }
    if let Some(count) = args.measure {
        return measure::run(args, count, ui);
    }
    ensure!(
        !args.report.is_wanted(),
        "--report and --figures: expected --measure, whose launches they show, found a plan without"
    );
    let gpu = Gpu::of(args, ui)?;
    let problem = problem(args, &gpu.limits, ui)?;
    let forced = ForcedPart::combine(&args.force).map_err(|reason| anyhow!("--force: {reason}"))?;
    let planner = Planner::new(&gpu.limits, &gpu.kernels)
        .model(args.model.into())
        .tuned(gpu.tuned.as_ref())
        .forced(forced)
        .maker(Maker::Device)
        .summation(summation(args.reproducible));
    let product = args.product.into();
    let plan = planner
        .plan(&problem, product)
        .context("no plan can be made")?;
    let trials = match args.candidates {
        Some(count) => fastest(&planner, &problem, product, count)?,
        None => Vec::new(),
    };
    let forms = match args.evaluations {
        Some(evaluations) => Some(Forms::of(
            (&planner, &gpu.limits),
            &problem,
            product,
            evaluations,
        )?),
        None => None,
    };
    let fits = match &args.fit {
        Some(_) => Some(Fits::of((&planner, &gpu), &problem, args.evaluations)?),
        None => None,
    };
    let memory_gb_s = gpu.limits.rates.stream_gbs;
    let shared = plan_gpus::shared((&planner, memory_gb_s), (&problem, product), args, gpus)?;
    let report = Report {
        shared,
        fits,
        problem: &problem,
        gpu: &gpu,
        forced,
        plan: &plan,
        trials: &trials,
        forms,
    };
    if args.json {
        output::print_json(&report.summary())?;
    } else {
        output::print(report.text())?;
    }
    Ok(Exit::Success)
}

/// The shape, from DATA or as typed.
fn problem(args: &PlanArgs, limits: &DeviceLimits, ui: &Ui) -> Result<Problem> {
    let precision = args.dtype.into();
    let (Some(rows), Some(cols)) = (args.rows, args.cols) else {
        let problem = match args.dtype {
            DtypeName::F32 => problem_of_data::<f32>(args, limits, ui),
            DtypeName::F64 => problem_of_data::<f64>(args, limits, ui),
        }?;
        return Ok(match args.dense {
            true => Problem::dense(problem.rows, problem.cols, precision).as_stored(),
            false => problem,
        });
    };
    Ok(match args.nnz {
        Some(nnz) => Problem::sparse(rows, cols, nnz, precision),
        None => Problem::dense(rows, cols, precision).as_stored(),
    })
}

fn problem_of_data<T: Number>(args: &PlanArgs, limits: &DeviceLimits, ui: &Ui) -> Result<Problem> {
    let data = args
        .data
        .as_deref()
        .context("expected DATA, or --rows and --cols, found neither")?;
    let data = data::load::<T>(data, None, Columns::Infer, &args.read, ui)?;
    Ok(problem_on_gpu(limits, &data.features, args.values.into()))
}

/// The GPU that is planned for, and the kernels that it would run.
pub(super) struct Gpu {
    pub(super) limits: DeviceLimits,
    pub(super) kernels: Vec<Candidate>,
    /// Measured launches of this GPU.
    tuned: Option<Table>,
    /// Where registers are assumed, because no assembler counted them.
    assumed_registers: bool,
}

impl Gpu {
    pub(super) fn of(args: &PlanArgs, ui: &Ui) -> Result<Gpu> {
        let (limits, driver) = match args.gpu {
            GpuName::Auto => this_machine(ui),
            GpuName::Titan => (known("titan"), None),
            GpuName::A100 => (known("a100"), None),
            GpuName::H100 => (known("h100"), None),
            GpuName::H200 => (known("h200"), None),
        };
        let tuned = tuned_launches(&limits, driver, ui)?;
        let mut gpu = match args.gpu {
            GpuName::Titan => Gpu::of_the_source(limits, args.dtype.into()),
            _ => Gpu::with_our_kernels(limits, args.dtype.into()),
        };
        if let Some(registers) = args.registers {
            gpu.override_registers(registers);
        }
        if gpu.assumed_registers {
            ui.remark("registers per thread are assumed: this program was built without ptxas; --registers sets them");
        }
        Ok(Gpu { tuned, ..gpu })
    }

    /// A GPU older than anything that we compile for runs the kernels of the model's source.
    fn of_the_source(limits: DeviceLimits, precision: Precision) -> Gpu {
        Gpu {
            limits,
            kernels: Candidate::of_the_source(precision),
            tuned: None,
            assumed_registers: false,
        }
    }

    fn with_our_kernels(limits: DeviceLimits, precision: Precision) -> Gpu {
        let capability = limits.compute_capability;
        let image = embedded::image_for((capability.major, capability.minor));
        let arch = image.map_or("", |image| image.arch);
        let kernels = candidates_of(precision, arch);
        let counted = kernels
            .iter()
            .any(|kernel| embedded::resources(arch, &kernel.name).is_some());
        Gpu {
            limits,
            kernels,
            tuned: None,
            assumed_registers: !counted,
        }
    }

    fn override_registers(&mut self, registers: u32) {
        for kernel in &mut self.kernels {
            kernel.registers = registers;
            // The table's bound follows from its own count; occupancy bounds this one.
            kernel.max_block = LARGEST_BLOCK;
        }
        self.assumed_registers = false;
    }
}

/// The GPU of this machine and its driver, or an H200 that is not here.
fn this_machine(ui: &Ui) -> (DeviceLimits, Option<u32>) {
    let device = Device::cuda(0).ok();
    if let Some(limits) = device.as_ref().and_then(Device::limits) {
        let driver = device.as_ref().and_then(Device::driver_version);
        return (limits.clone(), driver);
    }
    ui.remark("no GPU here: planning for an H200 (--gpu names another)");
    (known("h200"), None)
}

/// The table that was named, with the entries of this GPU.
fn tuned_launches(limits: &DeviceLimits, driver: Option<u32>, ui: &Ui) -> Result<Option<Table>> {
    let Some(path) = tuned::file() else {
        return Ok(None);
    };
    let device = &limits.name;
    let table = tuned::read(&path, &Site { device, driver })?;
    device::tell_of_table(table.dropped(), ui);
    Ok(Some(table))
}

fn known(name: &str) -> DeviceLimits {
    DeviceLimits::known(name).expect("the names of `--gpu` are those of known devices")
}

fn fastest(
    planner: &Planner<'_>,
    problem: &Problem,
    product: Product,
    count: usize,
) -> Result<Vec<Trial>> {
    let explained = planner
        .explain(problem, product)
        .context("no launches can be compared")?;
    let mut trials = explained.candidates;
    trials.truncate(count);
    Ok(trials)
}

/// Everything that is printed.
struct Report<'a> {
    /// The GPUs that share the rows, and what 1, 2, 4, … of them take.
    shared: Option<(Machines, Vec<Shared>)>,
    fits: Option<Fits>,
    problem: &'a Problem,
    gpu: &'a Gpu,
    forced: Forced,
    plan: &'a Plan,
    trials: &'a [Trial],
    forms: Option<Forms>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Summary<'a> {
    gpu: &'a str,
    rates: RateSource,
    problem: &'a Problem,
    product: Product,
    forced: Forced,
    #[serde(flatten)]
    plan: PlanSummary,
    blocks_per_sm: u32,
    assumed_registers: bool,
    #[serde(skip_serializing_if = "<[Trial]>::is_empty")]
    candidates: &'a [Trial],
    #[serde(skip_serializing_if = "Option::is_none")]
    forms: Option<&'a Forms>,
    #[serde(flatten)]
    fits: Option<&'a Fits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    machines: Option<Machines>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared: Option<&'a [Shared]>,
}

impl Report<'_> {
    fn summary(&self) -> Summary<'_> {
        Summary {
            gpu: &self.gpu.limits.name,
            rates: self.gpu.limits.rates.source,
            problem: self.problem,
            product: self.plan.product,
            forced: self.forced,
            plan: self.plan.summary(),
            blocks_per_sm: self.plan.blocks_per_sm,
            assumed_registers: self.gpu.assumed_registers,
            candidates: self.trials,
            forms: self.forms.as_ref(),
            fits: self.fits.as_ref(),
            machines: self.shared.as_ref().map(|(machines, _)| *machines),
            shared: self.shared.as_ref().map(|(_, shared)| &shared[..]),
        }
    }

    fn text(&self) -> String {
        let mut head = Listing::new();
        head.line("gpu", &self.gpu.limits.name)
            .line("matrix", self.problem);
        if self.plan.model == Model::Predicted {
            head.line("rates", self.gpu.limits.rates.source);
        }
        let mut text = format!("{head}{}", launch(self.plan, &self.gpu.limits));
        if let Some(next) = &self.plan.then {
            text += &format!("then\n{}", launch(next, &self.gpu.limits));
        }
        if !self.trials.is_empty() {
            text += &trials(self.trials);
        }
        if let Some(forms) = &self.forms {
            text += &forms.to_string();
        }
        if let Some((machines, shared)) = &self.shared {
            text += &plan_gpus::text(machines, shared);
        }
        if let Some(fits) = &self.fits {
            text += &fits.to_string();
        }
        text
    }
}

fn launch(plan: &Plan, limits: &DeviceLimits) -> Listing {
    let mut lines = Listing::new();
    lines
        .line(
            "strategy",
            format_args!("{}, for {}", plan.strategy, plan.product),
        )
        .line("kernel", &plan.kernel)
        .line("vector size VS", plan.vs)
        .line("block size BS", plan.bs)
        .line("rows per vector C", plan.c)
        .line("per thread TL", plan.tl)
        .line("rows in flight", plan.rows_in_flight)
        .line("grid", plan.grid)
        .line("shared memory", bytes(plan.shared_bytes.into()))
        .line("registers", plan.registers)
        .line(
            "occupancy",
            format_args!(
                "{} of {} warps per SM",
                plan.warps_per_sm, limits.max_warps_per_sm
            ),
        );
    if let Some(prediction) = &plan.prediction {
        let us = prediction.total_ns as f64 / 1e3;
        lines.line(
            "predicted time",
            format_args!("{us:.1} µs, bound by {}", prediction.bound),
        );
    }
    for reason in &plan.reasons {
        lines.line("because", reason);
    }
    lines
}

fn trials(trials: &[Trial]) -> String {
    let mut table = plain_table();
    table.set_header([
        "µs",
        "strategy",
        "VS",
        "BS",
        "TL",
        "rows",
        "blocks/SM",
        "grid",
        "bound by",
    ]);
    for trial in trials {
        table.add_row([
            number(format_args!(
                "{:.1}",
                trial.prediction.total_ns as f64 / 1e3
            )),
            trial.strategy.name().into(),
            number(trial.vs),
            number(trial.bs),
            number(trial.tl),
            number(trial.rows_in_flight),
            number(trial.blocks_per_sm),
            number(trial.grid),
            trial.prediction.bound.to_string().into(),
        ]);
    }
    indented(&table)
}
