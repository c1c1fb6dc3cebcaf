//! Today's choices beside the times that are recorded.

mod drawn;
mod streams;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use warpfuse::device::embedded::resources;
use warpfuse::plan::fused::{Candidate, ColumnUse, Precision, Stored};
use warpfuse::plan::objective::{Constant, OverForm};

use super::*;

/// How much longer than the fastest a chosen launch takes in nearly all cases, and in every one.
const USUALLY: f64 = 1.05;
const ALWAYS: f64 = 1.20;
/// The share of choices that may be beyond [`USUALLY`]. Of 197 in an H200's record that were timed nine are, by how many times as long they
/// take: 1.07 to 1.08, X·y with panels at hand that are a little faster (n = 10,000), and lanes of a row next to the best ones (the shape
/// of kddb); 1.05 to 1.06, X·y with n = 40,000 in f64 and of the shape of rcv1.
const MISSES: f64 = 0.05;
/// Evaluations that any preparation pays for.
const MANY: u64 = 1 << 30;
/// Grids that differ by less than one part in this many are those of one launch.
const NEAR: u32 = 10;
/// Microseconds that choosing takes at most.
const CHOOSING_US: f64 = 40.0;

/// What a line of the records says here.
#[derive(Deserialize)]
struct Line {
    case: Value,
    dtype: String,
    median_us: Option<f64>,
    #[serde(default)]
    choices: Vec<Choice>,
}

/// A planner's choice beside the fastest launch.
struct Judged {
    case: String,
    /// How many times as long it takes; `None` where it was not timed.
    ratio: Option<f64>,
    /// What was chosen, and what is fastest.
    variants: [String; 2],
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [chosen, best] = &self.variants;
        match self.ratio {
            Some(ratio) => write!(f, "{ratio:.3} ")?,
            None => write!(f, "not timed ")?,
        }
        write!(f, "{}: {chosen} instead of {best}", self.case)
    }
}

/// Those of the file that `WARPFUSE_PLAN_LIST` names, or an H200's.
fn records() -> Vec<Line> {
    let path = match std::env::var_os("WARPFUSE_PLAN_LIST") {
        Some(file) => PathBuf::from(file),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("results/h200/plan.jsonl"),
    };
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

/// A line of the record, its name and its product, judged by a planner.
type Judge = fn(&Planner<'_>, &str, &Line, Product) -> Vec<Judged>;

/// What today's planner does with every line, the worst first; nothing where this build has no kernels to choose from.
fn judged(judge: Judge) -> Vec<Judged> {
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
        all.extend(judge(
            &Planner::new(&limits, kernels),
            &name,
            &line,
            product,
        ));
    }
    all.sort_by(|a, b| b.ratio.partial_cmp(&a.ratio).expect("times are numbers"));
    all
}

/// The launch that is chosen in each form, beside the fastest of the form.
fn of_launches(planner: &Planner<'_>, name: &str, line: &Line, product: Product) -> Vec<Judged> {
    let choices = line.choices.iter().map(|choice| {
        let plan = planner.plan(&choice.problem, product).expect("a plan");
        judge(name, choice, plan.launch_line())
    });
    choices.collect()
}

/// The launch in the form that many evaluations pay for, beside the fastest in all forms.
fn of_forms(planner: &Planner<'_>, name: &str, line: &Line, product: Product) -> Vec<Judged> {
    let [rows, _, ..] = &line.choices[..] else {
        return Vec::new();
    };
    let best = planner.best_form(&rows.problem, product, MANY);
    let best = best
        .expect("plans")
        .map_or(Stored::Rows, |best| best.stored);
    let is_best = |choice: &&Choice| choice.problem.stored == best;
    let chosen = line.choices.iter().find(is_best);
    let chosen = chosen.expect("every form was timed");
    let plan = planner.plan(&chosen.problem, product).expect("a plan");
    let all = Choice {
        problem: chosen.problem,
        launches: line
            .choices
            .iter()
            .flat_map(|choice| choice.launches.clone())
            .collect(),
    };
    let in_form = judge(name, chosen, plan.launch_line());
    let of_all = judge(name, &all, plan.launch_line());
    // A launch may have been timed in several forms, a little apart.
    let ratio = in_form
        .ratio
        .map(|ratio| ratio * fastest(chosen) / fastest(&all));
    vec![Judged { ratio, ..of_all }]
}

fn fastest(choice: &Choice) -> f64 {
    let times = choice.launches.iter().map(|launch| launch.measured_us);
    times
        .min_by(f64::total_cmp)
        .expect("the chosen launch was timed")
}

fn judge(name: &str, choice: &Choice, chosen: String) -> Judged {
    let times = choice.launches.iter();
    let best = times
        .clone()
        .min_by(|a, b| a.measured_us.total_cmp(&b.measured_us));
    let best = best.expect("the chosen launch was timed");
    let own = times
        .clone()
        .find(|launch| is_same(&launch.variant, &chosen));
    Judged {
        case: format!("{name}, {}", choice.problem.stored),
        ratio: own.map(|own| own.measured_us / best.measured_us),
        variants: [chosen, best.variant.clone()],
    }
}

/// Whether two launches are of the same kernels in the same blocks, and nearly as many of them: a block of 132 more or less
/// makes no difference.
fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (parts(a), parts(b));
    let is_near = |a: u32, b: u32| a.abs_diff(b) <= a.max(b) / NEAR;
    let same = |((of_a, grid_a), (of_b, grid_b)): (&(String, u32), &(String, u32))| {
        of_a == of_b && is_near(*grid_a, *grid_b)
    };
    a.len() == b.len() && a.iter().zip(&b).all(same)
}

/// The kernels and blocks of a launch, with their grids.
fn parts(variant: &str) -> Vec<(String, u32)> {
    let split = |part: &str| -> Option<(String, u32)> {
        let (kernel, grid) = part.split_once(" grid")?;
        Some((kernel.to_owned(), grid.parse().ok()?))
    };
    variant.split(" + ").filter_map(split).collect()
}

#[test]
fn choices_are_nearly_as_quick_as_the_quickest() {
    check(&judged(of_launches));
}

#[test]
fn forms_are_nearly_as_quick_as_the_quickest() {
    check(&judged(of_forms));
}

fn check(all: &[Judged]) {
    if all.is_empty() {
        eprintln!("nothing is judged: this build has not all kernels for sm_90");
        return;
    }
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
    let found = format!(
        "{} of {} beyond {USUALLY}:{}",
        usually.len(),
        timed.len(),
        list(&usually)
    );
    eprintln!("{found}");
    assert!(
        beyond(ALWAYS).is_empty(),
        "beyond {ALWAYS}:{}",
        list(&beyond(ALWAYS))
    );
    assert!(
        usually.len() as f64 <= MISSES * timed.len() as f64,
        "{found}"
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

/// Over hot columns of the shape of kddb a fused product takes an H100 4.2 ms, X·y and Xᵀ·p 6.7: the model, which says 7.0 and
/// 7.5, has to keep their order.
#[test]
fn products_of_a_hessian_over_the_shape_of_kddb_are_fused() {
    let Some([kernels, _]) = kernels() else {
        return;
    };
    let limits = DeviceLimits::known("h100").expect("a listed device");
    let planner = Planner::new(&limits, &kernels);
    for cold_columns in [8_000_000, 25_000_000] {
        let columns = ColumnUse {
            busiest: 17_000_000,
            hot_columns: 10_922,
            hot_entries: 370_000_000,
            cold_columns,
            lines: [0; 3],
        };
        let problem = Problem::sparse(19_264_097, 29_890_095, 566_000_000, Precision::F32)
            .with_columns(columns)
            .with_stored(Stored::RowsAndHotColumns);
        let rows = (u64::MAX, Constant::Absent);
        let over_form = OverForm::of(&planner, &limits, &problem, rows).expect("plans");
        let over_form = over_form.expect("times");
        assert!(over_form.takes_one_product(), "{over_form:?}");
    }
}
