//! Today's choices beside the times that are recorded.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use warpfuse::device::embedded::resources;
use warpfuse::plan::fused::Candidate;

use super::*;

/// How much longer than the quickest a chosen launch takes in nearly all cases, and in every one.
const USUALLY: f64 = 1.05;
const ALWAYS: f64 = 1.20;
/// Choices that are beyond [`USUALLY`], of 70 in an H200's first record, where 3 would be one in twenty; not one more may be.
/// By how many times as long they take:
/// - 1.06 to 1.08, five shapes with skewed columns over panels: one block size for both passes, where X·y is quickest with
///   1,024 threads or over rows and Xᵀ·p with 512;
/// - 1.14, columns by Zipf's law with an exponent of 0.8 over rows: many columns queue, of which the model knows one;
/// - 1.13, dense with n = 2: tiles, which are charged too little;
/// - 1.09 and 1.05, 3,728 entries a row with hot columns, and 116 over rows: gathers that are charged too much.
const MISSES: usize = 9;
/// Cases that are known to be beyond [`ALWAYS`], with what was measured and why.
const EXCEPTIONS: [(&str, f64, &str); 0] = [];
/// Microseconds that choosing takes at most.
const CHOOSING_US: f64 = 50.0;

/// What a line of the records says here.
#[derive(Deserialize)]
struct Line {
    case: Value,
    dtype: String,
    median_us: Option<f64>,
    #[serde(default)]
    choices: Vec<Choice>,
}

/// A planner's choice beside the quickest launch.
struct Judged {
    case: String,
    /// How many times as long it takes; `None` where it was not timed.
    ratio: Option<f64>,
    /// What was chosen, and what is quickest.
    variants: [String; 2],
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [chosen, best] = &self.variants;
        match self.ratio {
            Some(ratio) => write!(f, "{ratio:.3} ")?,
            None => write!(f, "not timed ")?,
        }
        write!(f, "{}: {chosen} in place of {best}", self.case)
    }
}

fn records() -> Vec<Line> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("results/h200/plan.jsonl");
    let text = std::fs::read_to_string(&path).expect("records of an H200");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of results"));
    lines.collect()
}

/// The last record of every case that satisfies `wanted`.
fn latest(wanted: impl Fn(&Line) -> bool) -> BTreeMap<String, Line> {
    let named = records().into_iter().filter(wanted).map(|line| {
        let name = format!("{} {}", line.case, line.dtype);
        (name, line)
    });
    named.collect()
}

fn work(line: &Line) -> Option<Product> {
    let name = line.case.get("work").and_then(Value::as_str);
    let product = PRODUCTS.iter().find(|(_, work)| Some(*work) == name);
    product.map(|(product, _)| *product)
}

/// The kernels with the registers that an assembler counted; `None` where this build has not compiled them.
fn kernels() -> Option<[Vec<Candidate>; 2]> {
    let kernels = [
        candidates::<f32>("sm_90").to_vec(),
        candidates::<f64>("sm_90").to_vec(),
    ];
    let is_counted = |kernel: &Candidate| resources("sm_90", &kernel.name).is_some();
    let known = |kernels: &Vec<Candidate>| kernels.iter().all(is_counted);
    kernels.iter().all(known).then_some(kernels)
}

/// All choices of today's planner, the worst first; none where this build has no kernels to choose from.
fn judged() -> Vec<Judged> {
    let limits = DeviceLimits::known("h200").expect("a listed device");
    let Some([of_f32, of_f64]) = kernels() else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (name, line) in latest(|line| !line.choices.is_empty()) {
        let Some(product) = work(&line) else {
            continue;
        };
        let kernels = if line.dtype == "f32" {
            &of_f32
        } else {
            &of_f64
        };
        let planner = Planner::new(&limits, kernels);
        for choice in &line.choices {
            let plan = planner.plan(&choice.problem, product).expect("a plan");
            all.push(judge(&name, choice, variant(&plan)));
        }
    }
    all.sort_by(|a, b| b.ratio.partial_cmp(&a.ratio).expect("times are numbers"));
    all
}

fn judge(name: &str, choice: &Choice, chosen: String) -> Judged {
    let times = choice.launches.iter();
    let best = times
        .clone()
        .min_by(|a, b| a.measured_us.total_cmp(&b.measured_us));
    let best = best.expect("the chosen launch was timed");
    let own = times.clone().find(|launch| launch.variant == chosen);
    Judged {
        case: format!("{name}, {}", choice.problem.stored),
        ratio: own.map(|own| own.measured_us / best.measured_us),
        variants: [chosen, best.variant.clone()],
    }
}

#[test]
fn choices_are_nearly_as_quick_as_the_quickest() {
    let all = judged();
    if all.is_empty() {
        eprintln!("nothing is judged: this build has not all kernels for sm_90");
        return;
    }
    let known = |judged: &&Judged| {
        EXCEPTIONS
            .iter()
            .any(|(case, ..)| judged.case.starts_with(case))
    };
    let (timed, others): (Vec<_>, Vec<_>) = all.iter().partition(|judged| judged.ratio.is_some());
    // A kernel that is new since the last record, or a launch that a new rate made the first of nearly equal ones.
    others
        .iter()
        .for_each(|judged| eprintln!("{judged}: record it anew"));
    assert!(
        timed.len() > others.len(),
        "most choices were not timed: record them anew"
    );
    let beyond = |most: f64| -> Vec<&Judged> {
        let is_beyond = |judged: &&&Judged| judged.ratio.is_some_and(|ratio| ratio > most);
        timed.iter().filter(is_beyond).copied().collect()
    };
    let usually = beyond(USUALLY);
    let list = |judged: &[&Judged]| -> String {
        judged.iter().map(|judged| format!("\n{judged}")).collect()
    };
    eprintln!(
        "{} of {} beyond {USUALLY}:{}",
        usually.len(),
        timed.len(),
        list(&usually)
    );
    let unknown: Vec<&Judged> = beyond(ALWAYS)
        .into_iter()
        .filter(|judged| !known(judged))
        .collect();
    assert!(unknown.is_empty(), "beyond {ALWAYS}:{}", list(&unknown));
    assert!(
        usually.len() <= MISSES,
        "{} choices are beyond {USUALLY}, not {MISSES}:{}",
        usually.len(),
        list(&usually)
    );
}

#[test]
fn choosing_takes_as_little_as_promised() {
    let choosing = latest(|line| line.case.get("work").and_then(Value::as_str) == Some("choose"));
    assert!(!choosing.is_empty(), "no case of choosing is recorded");
    for (name, line) in choosing {
        let us = line.median_us.expect("a time");
        assert!(us <= CHOOSING_US, "{name}: {us:.1} us");
    }
}
