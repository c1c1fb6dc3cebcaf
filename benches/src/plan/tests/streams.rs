//! What today's model says of X at several limits beside the recorded times of `system stream`: no GPU is needed.

use std::collections::BTreeMap;

use serde::Deserialize;
use warpfuse::plan::alternatives::{Fit, Passes};
use warpfuse::plan::fused::{Candidate, Planner, Problem};
use warpfuse::plan::limits::DeviceLimits;
use warpfuse::plan::rates::HostRates;
use warpfuse::plan::{Precision, StoredValues, Summation};

use super::kernels;

/// How far times may be from what is predicted.
const WITHIN: f64 = 0.10;
/// Lines: two sparse X with equal values, one without and a dense one, two kinds of sums, four limits.
const LINES: usize = 32;
/// Percent of X that may lie on the device.
const LIMITS: [u64; 4] = [25, 50, 75, 110];
/// Passes that are announced where X streams.
const ANNOUNCED: u64 = 1_000_000;
/// Entries of a sparse row.
const PER_ROW: u64 = 20;

/// A line of the record.
#[derive(Deserialize)]
struct Line {
    case: Case,
    rows: u64,
    nnz: u64,
    median: f64,
    pinned_gbs: f64,
    residency: Residency,
}

#[derive(Deserialize)]
struct Case {
    what: String,
    limit_percent: u64,
    sums: Summation,
}

#[derive(Deserialize)]
struct Residency {
    streams: bool,
}

impl Case {
    fn name(&self) -> String {
        let Case {
            what,
            limit_percent,
            sums,
        } = self;
        format!("{what}, {sums:?}, {limit_percent} %")
    }
}

impl Line {
    fn problem(&self) -> Problem {
        let mut words = self.case.what.split_whitespace();
        let cols = words.find_map(|word| word.replace(',', "").parse().ok());
        let cols: u64 = cols.expect("the number of columns");
        match self.case.what.starts_with("dense") {
            true => Problem::dense(self.rows, cols, Precision::F32).as_stored(),
            false => {
                Problem::sparse(self.rows, cols, self.nnz, Precision::F32).with_longest_row(PER_ROW)
            }
        }
    }

    /// Seconds of a fused product, as `predicted_places` has them.
    fn predicted(&self, limits: &DeviceLimits, kernels: &[Candidate]) -> f64 {
        let problem = self.problem();
        let bytes = match problem.nnz {
            Some(nnz) => 8 * nnz + 4 * (self.rows + 1),
            None => 4 * self.nnz,
        };
        let mut host = HostRates::of_threads(16);
        host.link.pinned_gbs = self.pinned_gbs;
        let streams = self.residency.streams;
        let passes = Passes {
            reads: if streams { ANNOUNCED } else { 1 },
            room: bytes * self.case.limit_percent / 100,
            values: match self.case.what.ends_with("equal values") {
                true => StoredValues::Equal,
                false => StoredValues::Whole,
            },
            is_open: true,
            host,
        };
        let planner = Planner::new(limits, kernels).summation(self.case.sums);
        let fit = Fit::of(&planner, &problem, passes).expect("a plan");
        match streams {
            true => fit.streaming().pass_seconds,
            false => fit.resident().pass_seconds,
        }
    }
}

/// The last record of each case on a device, of `system stream`: others are of other commands.
fn lines(device: &str) -> Vec<Line> {
    let root = env!("CARGO_MANIFEST_DIR");
    let text = std::fs::read_to_string(format!("{root}/results/{device}/system.jsonl"));
    let text = text.expect("records of a GPU");
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok());
    let named = lines.map(|line| (line.case.name(), line));
    let last: BTreeMap<String, Line> = named.collect();
    let is_of_stream = |line: &Line| {
        LIMITS.contains(&line.case.limit_percent) && !line.case.what.contains("30,000")
    };
    last.into_values().filter(is_of_stream).collect()
}

#[test]
fn passes_at_limits_take_what_is_predicted() {
    let Some([kernels, _]) = kernels() else {
        eprintln!("nothing is judged: this build has not all kernels for sm_90");
        return;
    };
    for device in ["h100", "h200"] {
        let limits = DeviceLimits::known(device).expect("a listed device");
        let lines = lines(device);
        assert_eq!(lines.len(), LINES, "{device}");
        for line in &lines {
            let predicted = line.predicted(&limits, &kernels);
            let found = format!(
                "{device}: {}: {:.3} times what is predicted",
                line.case.name(),
                line.median / predicted
            );
            eprintln!("{found}");
            assert!((predicted / line.median - 1.0).abs() <= WITHIN, "{found}");
        }
    }
}
