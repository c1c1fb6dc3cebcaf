//! The emulator checked: broken kernels that it must catch, each with a twin that is right.
//!
//! A broken kernel marks the lines that are to be named with a comment, `//~ name of the case`. It is
//! caught when the emulator reports the expected [`Diagnosis`] and names a marked line; a launch that
//! never starts has no line. A twin is accused when the emulator reports anything at all.

mod bounds;
mod case;
mod cluster_sums;
mod clusters;
// Its subject is the same barrier in two branches.
#[allow(clippy::if_same_then_else)]
mod collectives;
mod global_races;
mod launches;
mod poison;
mod shared_races;
mod speed;

use serde::{Deserialize, Serialize};

use super::{Diagnosis, EmulatorOptions, Fault};
use case::{Case, Source};

pub use speed::{LaneSpeed, lane_speed};

/// How many of the broken kernels were caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// Kernels caught with the right diagnosis under every seed.
    pub caught: u32,
    /// Kernels.
    pub of: u32,
}

/// How many of the right kernels were accused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Twins {
    /// Kernels accused under any seed.
    pub accused: u32,
    /// Kernels.
    pub of: u32,
}

/// What [`run`] found. As JSON it is
/// `{"broken": {"caught": n, "of": m}, "twins": {"accused": n, "of": m}, "lane_steps_per_second": x}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The broken kernels.
    pub broken: Broken,
    /// Their twins.
    pub twins: Twins,
    /// Accessor calls per second on one core, all checks on.
    pub lane_steps_per_second: f64,
    /// What was missed and what was wrongly said, one line each; not serialised.
    #[serde(skip)]
    pub failures: Vec<String>,
}

impl Report {
    /// Whether all are caught and none is accused.
    pub fn is_right(&self) -> bool {
        self.broken.caught == self.broken.of && self.twins.accused == 0
    }
}

/// Runs every broken kernel and every twin under `seeds` schedules, and measures the speed.
///
/// ```
/// let report = gpu_kernels_emulator::self_check::run(2);
/// assert!(report.is_right(), "{:?}", report.failures);
/// ```
pub fn run(seeds: u32) -> Report {
    let mut report = Report {
        broken: Broken { caught: 0, of: 0 },
        twins: Twins { accused: 0, of: 0 },
        lane_steps_per_second: lane_speed().steps_per_second,
        failures: Vec::new(),
    };
    for (source, case) in cases() {
        report.broken.of += 1;
        report.twins.of += 1;
        match first_failure(seeds, |seed| check_broken(source, case, seed)) {
            None => report.broken.caught += 1,
            Some(failure) => report.failures.push(failure),
        }
        if let Some(failure) = first_failure(seeds, |seed| check_twin(case, seed)) {
            report.twins.accused += 1;
            report.failures.push(failure);
        }
    }
    report
}

fn cases() -> impl Iterator<Item = (&'static Source, &'static Case)> {
    let groups: [(&Source, &[Case]); 8] = [
        (&shared_races::SOURCE, shared_races::CASES),
        (&global_races::SOURCE, global_races::CASES),
        (&bounds::SOURCE, bounds::CASES),
        (&poison::SOURCE, poison::CASES),
        (&collectives::SOURCE, collectives::CASES),
        (&clusters::SOURCE, clusters::CASES),
        (&cluster_sums::SOURCE, cluster_sums::CASES),
        (&launches::SOURCE, launches::CASES),
    ];
    let in_group = |(source, cases): (&'static Source, &'static [Case])| {
        cases.iter().map(move |case| (source, case))
    };
    groups.into_iter().flat_map(in_group)
}

fn first_failure(seeds: u32, check: impl Fn(u64) -> Result<(), String>) -> Option<String> {
    (0..u64::from(seeds)).find_map(|seed| check(seed).err())
}

fn check_broken(source: &Source, case: &Case, seed: u64) -> Result<(), String> {
    let head = format!(
        "{} broken, seed {seed}: expected {:?}",
        case.name, case.expects
    );
    match case.broken.run(case.name, EmulatorOptions::schedule(seed)) {
        Ok(_) => Err(format!("{head}, found nothing")),
        Err(fault) if is_as_expected(source, case, &fault) => Ok(()),
        Err(fault) => Err(format!("{head} on a marked line, found: {fault}")),
    }
}

fn is_as_expected(source: &Source, case: &Case, fault: &Fault) -> bool {
    let names_a_marked_line = || fault.sites().any(|site| source.marks(case.name, site));
    fault.kind.diagnosis() == case.expects
        && (fault.position.is_none() == (case.expects.is_of_launch()))
        && (case.expects.is_of_launch() || names_a_marked_line())
}

fn check_twin(case: &Case, seed: u64) -> Result<(), String> {
    match case.twin.run(case.name, EmulatorOptions::schedule(seed)) {
        Ok(_) => Ok(()),
        Err(fault) => Err(format!("{} twin, seed {seed}: {fault}", case.name)),
    }
}

impl Diagnosis {
    /// Whether it concerns a launch that never starts.
    fn is_of_launch(self) -> bool {
        matches!(self, Diagnosis::Contract | Diagnosis::Limit)
    }
}

#[cfg(test)]
mod tests;
