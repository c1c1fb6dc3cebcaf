//! Where the time went, and how that compares with what the hardware allows.

use serde::Serialize;
use warpfuse_figures::{Axis, Figure, Tone};

use super::number::Unit;
use super::page::{Fact, Mood, Report, Section, Table, Value};
use crate::device::{Device, Phase, PhaseCost, Phases};
use crate::learning::{FitReport, Solver};
use crate::ops::{Matrix, Number, Residency};
use crate::plan::fused::Product;

/// Share of the memory's bandwidth from which on a GPU counts as used well.
const WELL: f64 = 0.5;
/// Seconds from which on that matters.
const MATTERS: f64 = 0.1;

/// What ran where, and what it took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hardware {
    /// The device's name.
    pub name: String,
    /// Such as `cuda:0`.
    pub device: String,
    /// Type of the elements.
    pub dtype: String,
    /// Whether two runs give the same bits.
    pub bits_repeat: bool,
    /// The most bytes that buffers held on the device.
    pub peak_device_bytes: u64,
    /// The memory of the device, where it says.
    pub memory_bytes: Option<u64>,
    /// Bandwidth of the device's memory by its data sheet, 10⁹ bytes per second; GPUs only.
    pub bandwidth_gbs: Option<f64>,
    /// What of X lies on the device.
    pub residency: Residency,
    /// The solve beside that limit, where the solver reads X on the device.
    pub solve: Option<Solve>,
    /// Why the product is computed as it is, and what else was weighed; GPUs only.
    pub plan_reasons: Vec<String>,
}

/// What a solve read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Solve {
    /// Evaluations and Hessian products, each of which reads X once at least.
    pub reads: u64,
    /// Bytes of X as it was uploaded, times the reads.
    pub bytes: f64,
    /// 10⁹ bytes per second that this makes.
    pub gbs: f64,
    /// That over the bandwidth of the device.
    pub share_of_limit: Option<f64>,
}

impl Hardware {
    /// Of a fit over `matrix`, whose solve took `solve_seconds`.
    pub fn of<T: Number>(matrix: &Matrix<T>, fit: &FitReport, solve_seconds: f64) -> Hardware {
        let device = matrix.device();
        let bandwidth = device.limits().map(|limits| limits.memory_bandwidth_gbs);
        let reads: u64 = fit.history.iter().map(|one| 1 + one.inner as u64).sum();
        let on_device = matches!(
            fit.solver,
            Solver::NewtonCg | Solver::Lbfgs | Solver::ConjugateGradient
        );
        let bytes = reads as f64 * matrix.problem().matrix_bytes();
        let gbs = bytes / solve_seconds.max(1e-9) / 1e9;
        let plan = matrix.plan(Product::Fused).ok().flatten();
        Hardware {
            residency: matrix.residency(),
            solve: (on_device && reads > 0 && solve_seconds > 0.0).then_some(Solve {
                reads,
                bytes,
                gbs,
                share_of_limit: bandwidth.map(|limit| gbs / limit),
            }),
            plan_reasons: plan
                .map(|plan| plan.reasons.iter().map(ToString::to_string).collect())
                .unwrap_or_default(),
            bits_repeat: fit.reproducible || device.is_cpu(),
            ..Hardware::of_device(device, T::DTYPE, fit.peak_device_bytes)
        }
    }

    /// Of work that is no fit.
    pub fn of_device(device: &Device, dtype: impl ToString, peak_device_bytes: u64) -> Hardware {
        Hardware {
            name: device.name().to_owned(),
            device: device.to_string(),
            dtype: dtype.to_string(),
            bits_repeat: device.is_cpu(),
            peak_device_bytes,
            memory_bytes: device.memory_info().map(|info| info.total_bytes as u64),
            bandwidth_gbs: device.limits().map(|limits| limits.memory_bandwidth_gbs),
            residency: Residency::default(),
            solve: None,
            plan_reasons: Vec::new(),
        }
    }
}

/// The section on time and bytes.
pub(super) fn section(hardware: &Hardware, phases: &Phases) -> Section {
    let mut facts = vec![
        Fact::text("device", format!("{} ({})", hardware.name, hardware.device)),
        Fact::text("element type", hardware.dtype.clone()),
        Fact::text(
            "the same bits every time",
            if hardware.bits_repeat {
                "yes"
            } else {
                "no: --reproducible"
            },
        ),
        Fact::number(
            "most device memory",
            hardware.peak_device_bytes as f64,
            Unit::Bytes,
        ),
    ];
    if let Some(total) = hardware.memory_bytes {
        facts.push(Fact::number(
            "memory of the device",
            total as f64,
            Unit::Bytes,
        ));
    }
    if hardware.residency.streams {
        facts.push(Fact::number(
            "X, in blocks",
            hardware.residency.block_bytes as f64,
            Unit::Bytes,
        ));
        facts.push(Fact::number(
            "of it on the device",
            hardware.residency.resident_bytes as f64,
            Unit::Bytes,
        ));
    }
    if let Some(limit) = hardware.bandwidth_gbs {
        facts.push(Fact::number(
            "memory bandwidth (data sheet)",
            limit,
            Unit::Rate,
        ));
    }
    if let Some(solve) = hardware.solve {
        facts.push(Fact::count("reads of X in the solve", solve.reads));
        facts.push(Fact::number("rate of those reads", solve.gbs, Unit::Rate));
        if let Some(share) = solve.share_of_limit {
            facts.push(Fact::number("of the bandwidth", share, Unit::Share));
        }
    }
    let section = Section::new("Where the time went").facts(facts);
    let section = section
        .figures(figure(phases).into_iter().collect())
        .table(table(phases, hardware));
    match hardware.plan_reasons.is_empty() {
        true => section,
        false => section
            .note("Why the product of this X runs as it does:")
            .list(hardware.plan_reasons.clone()),
    }
}

fn figure(phases: &Phases) -> Option<Figure> {
    let names: Vec<&str> = phases.iter().map(|(phase, _)| phase.name()).collect();
    let seconds: Vec<f64> = phases.iter().map(|(_, cost)| cost.seconds).collect();
    (!names.is_empty()).then(|| {
        Figure::new("phases", "Time of each phase")
            .summary("Seconds of each phase of the run.")
            .x(Axis::linear("seconds"))
            .y(Axis::categories("", names))
            .bars("", Tone::First, &seconds)
    })
}

fn table(phases: &Phases, hardware: &Hardware) -> Table {
    let heads = [
        "phase",
        "time",
        "from files",
        "to the device",
        "from the device",
        "rate",
        "limit",
    ];
    let mut table = Table::new("Phases", heads);
    let limit = |name: &str| match (name, hardware.bandwidth_gbs) {
        ("solve" | "evaluate", Some(limit)) => format!("memory, {limit:.0} GB/s"),
        ("solve" | "evaluate", None) => "memory and cores of the CPU".to_owned(),
        ("place", Some(_)) => "the link".to_owned(),
        ("read", _) => "the file".to_owned(),
        _ => "–".to_owned(),
    };
    for (phase, cost) in phases.iter() {
        let bytes = |count: u64| Value::Number(count as f64, Unit::Bytes);
        table.rows.push(vec![
            phase.name().into(),
            Value::Number(cost.seconds, Unit::Seconds),
            bytes(cost.read_bytes),
            bytes(cost.sent_bytes),
            bytes(cost.received_bytes),
            rate(phase, &cost, hardware),
            limit(phase.name()).into(),
        ]);
    }
    table
}

/// What crosses the link or comes from files each second; of the solve what is read of X.
fn rate(phase: Phase, cost: &PhaseCost, hardware: &Hardware) -> Value {
    let gbs = match (phase, hardware.solve) {
        (Phase::Solve, Some(solve)) => solve.gbs,
        _ => cost.gbs(),
    };
    match gbs > 0.0 {
        true => Value::Number(gbs, Unit::Rate),
        false => "–".into(),
    }
}

/// Says first whether the device was used well.
pub(super) fn judge(report: &mut Report, hardware: &Hardware, solve_seconds: f64) {
    let Some((solve, limit)) = hardware.solve.zip(hardware.bandwidth_gbs) else {
        return place(report, hardware);
    };
    let share = solve.gbs / limit;
    let text = format!(
        "The solve read X {} times on {}, at {:.0} of {limit:.0} GB/s ({:.0} % of the memory's bandwidth). {}",
        solve.reads,
        hardware.name,
        solve.gbs,
        100.0 * share,
        repeats(hardware)
    );
    if share >= WELL {
        report.verdict(Mood::Good, "The GPU was used well", text);
    } else if solve_seconds < MATTERS {
        report.verdict(
            Mood::Plain,
            "The GPU had little to do",
            format!("{text} The solve took {:.0} ms.", 1e3 * solve_seconds),
        );
    } else {
        let text = format!(
            "{text} `warpfuse plan --measure` compares launches; --dtype f32 halves the bytes."
        );
        report.verdict(Mood::Look, "The GPU waited", text);
    }
}

/// Says first where it ran, of work that has no rate to judge.
pub(super) fn place(report: &mut Report, hardware: &Hardware) {
    let name = &hardware.name;
    let text = match hardware.bandwidth_gbs {
        None => format!("On {name}: no GPU took part. {}", repeats(hardware)),
        Some(_) => format!("On {name} and its host. {}", repeats(hardware)),
    };
    report.verdict(Mood::Plain, "Where it ran", text);
}

/// Whether another run gives the same.
fn repeats(hardware: &Hardware) -> &'static str {
    match hardware.bits_repeat {
        true => "Another run gives the same bits.",
        false => "Another run may differ in the last digits: --reproducible rules that out.",
    }
}
