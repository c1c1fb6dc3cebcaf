//! Today's choices and predictions for the drawn list beside its recorded times: no GPU is needed.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use warpfuse::plan::Summation;
use warpfuse::plan::fused::{ColumnUse, Precision, Trial};

use super::super::drawn::{Drawn, Part, list};
use super::*;

/// How much longer than the fastest a chosen launch may take in nearly all cases.
const NEAR_BEST: f64 = 1.05;
/// How far the time of a chosen launch may be from its prediction in nearly all cases.
const NEAR_PREDICTION: f64 = 0.15;

/// Shares of choices that are near the best, and near their prediction, at least: what is reached. 96 and 90 % are
/// wanted of the part that judges.
struct Reached {
    part: Part,
    near_best: f64,
    near_prediction: f64,
}

const fn reached(part: Part, near_best: f64, near_prediction: f64) -> Reached {
    Reached {
        part,
        near_best,
        near_prediction,
    }
}

/// The folders of recorded lists; the kernels that the first has timed are those of 2026-11-27.
const FOLDERS: [(&str, [Reached; 2]); 2] = [
    (
        "h100",
        [
            reached(Part::Fit, 0.815, 0.76),
            reached(Part::Judge, 0.825, 0.73),
        ],
    ),
    (
        "h200",
        [
            reached(Part::Fit, 0.79, 0.70),
            reached(Part::Judge, 0.76, 0.74),
        ],
    ),
];

/// A line of the record: the device, or a case.
#[derive(Deserialize)]
struct DrawnLine {
    limits: Option<DeviceLimits>,
    case: Option<Value>,
    dtype: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
}

/// A choice of today's planner.
struct Found {
    part: Part,
    judged: Judged,
    /// Predicted over measured; `None` where the launch was not timed.
    predicted: Option<f64>,
}

/// A device and the cases that were timed on it.
struct Record {
    limits: DeviceLimits,
    cases: Vec<(Drawn, Product, String, Vec<Choice>)>,
}

/// The records of drawn lists in a folder.
fn records_in(gpu: &str) -> Vec<Record> {
    let results = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("results");
    let files = std::fs::read_dir(results.join(gpu).join("drawn"));
    let files = files.into_iter().flatten().flatten();
    let mut files: Vec<_> = files.map(|file| file.path()).collect();
    files.sort();
    files
        .iter()
        .flat_map(|file| records_of_file(file))
        .collect()
}

fn records_of_file(file: &Path) -> Vec<Record> {
    std::fs::read_to_string(file).map_or_else(|_| Vec::new(), |text| records_of(&text))
}

/// The record that `WARPFUSE_DRAWN` names, or all of them.
fn records() -> Vec<Record> {
    match std::env::var_os("WARPFUSE_DRAWN") {
        Some(file) => records_of_file(Path::new(&file)),
        None => FOLDERS
            .iter()
            .flat_map(|(gpu, _)| records_in(gpu))
            .collect(),
    }
}

/// The records in a text, each behind its line of limits.
fn records_of(text: &str) -> Vec<Record> {
    let mut records = Vec::new();
    for line in text.lines() {
        let line: DrawnLine = serde_json::from_str(line).expect("a line of results");
        if let Some(limits) = line.limits {
            let cases = Vec::new();
            records.push(Record { limits, cases });
        } else if let (Some(record), false) = (records.last_mut(), line.choices.is_empty()) {
            let case = line.case.expect("a case");
            let dtype = line.dtype.expect("a type");
            let (drawn, product) = known(&case, &dtype).expect("a case of the list");
            let name = format!("{case} {dtype}");
            record.cases.push((drawn, product, name, line.choices));
        }
    }
    records
}

/// The shape of the list that a recorded case is of, and its product.
fn known(case: &Value, dtype: &str) -> Option<(Drawn, Product)> {
    let seed = case.get("seed")?.as_u64()?;
    let all = list(seed).into_iter();
    let mut cases = all.flat_map(|drawn| {
        let cases = drawn.cases(seed).into_iter();
        cases.map(move |(product, case)| (drawn.clone(), product, case))
    });
    let is_it = |(_, _, known): &(Drawn, Product, Case)| {
        let is_shape = serde_json::to_value(known).is_ok_and(|known| known == *case);
        is_shape && known.dtype.to_string() == dtype
    };
    let (drawn, product, _) = cases.find(is_it)?;
    Some((drawn, product))
}

/// Today's choices for the cases of a record, with the kernels of f32 and of f64.
fn found_in(record: &Record, [of_f32, of_f64]: &[Vec<Candidate>; 2]) -> Vec<Found> {
    let mut all = Vec::new();
    for (drawn, product, name, choices) in &record.cases {
        let kernels = match drawn.dtype {
            Precision::F32 => of_f32,
            Precision::F64 => of_f64,
        };
        let planner = Planner::new(&record.limits, kernels).summation(drawn.summation);
        for choice in choices {
            let plan = planner.plan(&choice.problem, *product).expect("a plan");
            let judged = judge(name, choice, plan.launch_line());
            let measured = judged.ratio.map(|ratio| ratio * fastest(choice));
            let predicted = plan.predicted_us().expect("it is predicted");
            all.push(Found {
                part: drawn.part,
                predicted: measured.map(|measured| predicted / measured),
                judged,
            });
        }
    }
    all
}

/// Says how many of a part's choices are near the best, and predicted, and how far the others are.
fn report(all: &[Found], reached: &Reached) {
    let part = reached.part;
    let of_part = || all.iter().filter(|found| found.part == part);
    let timed: Vec<&Found> = of_part()
        .filter(|found| found.judged.ratio.is_some())
        .collect();
    let ratios = || timed.iter().filter_map(|found| found.judged.ratio);
    let predictions = || timed.iter().filter_map(|found| found.predicted);
    let near = ratios().filter(|&ratio| ratio <= NEAR_BEST).count();
    let is_predicted = |ratio: &f64| (ratio - 1.0).abs() <= NEAR_PREDICTION;
    let predicted = predictions().filter(is_predicted).count();
    let share = |count: usize| 100.0 * count as f64 / timed.len().max(1) as f64;
    eprintln!(
        "{part:?}: {} choices, {} not timed; {:.1} % within {NEAR_BEST} of the best, the worst {:.2}; {:.1} % predicted within {:.0} %",
        of_part().count(),
        of_part().count() - timed.len(),
        share(near),
        ratios().fold(0.0, f64::max),
        share(predicted),
        100.0 * NEAR_PREDICTION,
    );
    for found in of_part() {
        let is_near = found.judged.ratio.is_some_and(|ratio| ratio <= NEAR_BEST);
        if !is_near || !found.predicted.as_ref().is_some_and(is_predicted) {
            let predicted = found.predicted.unwrap_or(f64::NAN);
            eprintln!("  {part:?} predicted {predicted:.2} {}", found.judged);
        }
    }
    assert!(share(near) >= 100.0 * reached.near_best, "{part:?}");
    assert!(
        share(predicted) >= 100.0 * reached.near_prediction,
        "{part:?}"
    );
}

#[test]
fn choices_for_drawn_shapes_are_reported() {
    let Some(kernels) = kernels() else {
        eprintln!("nothing is judged: this build has not all kernels for sm_90");
        return;
    };
    if std::env::var_os("WARPFUSE_DRAWN").is_some() {
        let any = [Part::Fit, Part::Judge].map(|part| reached(part, 0.0, 0.0));
        return report_records(&records(), &kernels, &any);
    }
    for (gpu, parts) in &FOLDERS {
        let records = records_in(gpu);
        assert!(!records.is_empty(), "no list of a {gpu} is recorded");
        eprintln!("{gpu}, {} lists", records.len());
        report_records(&records, &kernels, parts);
    }
}

fn report_records(records: &[Record], kernels: &[Vec<Candidate>; 2], parts: &[Reached; 2]) {
    let of = |record| found_in(record, kernels);
    let all: Vec<Found> = records.iter().flat_map(of).collect();
    parts.iter().for_each(|reached| report(&all, reached));
}

/// What today's model says of every launch that was timed, as lines for a table.
#[test]
#[ignore = "prints a table for whoever fits the model"]
fn predictions_of_all_launches() {
    let Some([of_f32, of_f64]) = kernels() else {
        return;
    };
    println!(
        "part\tproduct\tsums\tstored\tdtype\trows\tcols\tnnz\tlongest\tbusiest\thot\thot_nnz\tbytes\tmeasured\tpredicted\tbound\tvariant"
    );
    for record in records() {
        print_launches(&record, [&of_f32, &of_f64]);
    }
}

fn print_launches(record: &Record, [of_f32, of_f64]: [&Vec<Candidate>; 2]) {
    for (drawn, product, _, choices) in &record.cases {
        let kernels = match drawn.dtype {
            Precision::F32 => of_f32,
            Precision::F64 => of_f64,
        };
        let planner = Planner::new(&record.limits, kernels).summation(drawn.summation);
        for choice in choices {
            let trials = planner
                .launches(&choice.problem, *product)
                .expect("launches");
            let named: HashMap<String, &Trial> = trials.iter().map(|t| (name_of(t), t)).collect();
            for launch in &choice.launches {
                if let Some(trial) = named.get(&launch.variant) {
                    println!("{}", row(drawn, *product, choice, launch, trial));
                }
            }
        }
    }
}

fn name_of(trial: &Trial) -> String {
    format!("{} bs{} grid{}", trial.kernel, trial.bs, trial.grid)
}

fn row(
    drawn: &Drawn,
    product: Product,
    choice: &Choice,
    launch: &TimedLaunch,
    trial: &Trial,
) -> String {
    let problem = &choice.problem;
    let columns = problem.columns;
    let sums = match drawn.summation {
        Summation::Free => "free",
        Summation::Reproducible => "fixed",
    };
    let of_columns = |of: fn(&ColumnUse) -> u64| columns.as_ref().map_or(0, of);
    [
        format!("{:?}", drawn.part),
        format!("{product:?}"),
        sums.to_owned(),
        problem.stored.to_string(),
        problem.dtype.to_string(),
        problem.rows.to_string(),
        problem.cols.to_string(),
        problem.nnz.unwrap_or(0).to_string(),
        problem.longest().to_string(),
        of_columns(|columns| columns.busiest).to_string(),
        of_columns(|columns| u64::from(columns.hot_columns)).to_string(),
        of_columns(|columns| columns.hot_entries).to_string(),
        problem.matrix_bytes().to_string(),
        format!("{:.1}", launch.measured_us),
        format!("{:.1}", trial.prediction.total_ns as f64 / 1e3),
        trial.prediction.bound.to_string(),
        launch.variant.clone(),
    ]
    .join("\t")
}
