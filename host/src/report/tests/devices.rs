//! Pages of `plan --measure` and `calibrate`, which need a GPU, from values as a GPU gives them.

use super::{check, rounded};
use crate::device::{Calibration, Subject};
use crate::ops::measure::{Comparison, Measured};
use crate::plan::fused::{Candidate, Planner, Precision, Problem, Product};
use crate::plan::limits::DeviceLimits;
use crate::plan::rates::ProbedRates;
use crate::report::{LaunchGroup, LaunchPage, RatesPage};

/// The planner's choice, as it is and in blocks of other sizes.
fn comparison(measured_us: [f64; 3]) -> Comparison {
    let limits = DeviceLimits::known("h200").expect("a listed device");
    let kernels = Candidate::of_the_source(Precision::F32);
    let problem = Problem::sparse(4_000_000, 1_000, 80_000_000, Precision::F32);
    let planner = Planner::new(&limits, &kernels);
    let plan = planner
        .plan(&problem, Product::Fused)
        .expect("a plan for a listed device");
    let predicted_us = rounded(plan.predicted_us().expect("a predicted plan"));
    let mut candidates: Vec<Measured> = [128, 256, 512]
        .into_iter()
        .zip(measured_us)
        .map(|(bs, measured_us)| {
            let mut plan = plan.clone();
            plan.bs = bs;
            Measured {
                plan,
                predicted_us,
                measured_us,
            }
        })
        .collect();
    let chosen = candidates[1].clone();
    candidates.sort_by(|a, b| a.measured_us.total_cmp(&b.measured_us));
    Comparison { chosen, candidates }
}

fn page(groups: &[LaunchGroup<'_>]) -> super::Report {
    LaunchPage {
        gpu: "NVIDIA H200",
        problem: "4,000,000 × 1,000, 80,000,000 entries, f32",
        product: "fused",
        command: "warpfuse plan data.svm --measure",
        limit: Some((6.4e8, 4800.0)),
        groups,
    }
    .report()
}

#[test]
fn the_page_of_launches() {
    let (first, second) = (
        comparison([210.0, 200.0, 240.0]),
        comparison([90.0, 100.0, 95.0]),
    );
    let groups = [("rows", &first), ("rows and hot columns", &second)];
    let groups = groups.map(|(form, comparison)| LaunchGroup { form, comparison });
    let report = page(&groups);
    assert_eq!(report.verdicts[0].title, "The planner chose well");
    let html = report.to_html();
    // Reasons, and alternatives beside what was chosen.
    assert!(html.contains("was chosen:") && html.matches("<tbody>").count() == 2);
    check("launches", report);
}

#[test]
fn a_faster_launch_is_named_as_such() {
    let slow = comparison([700.0, 900.0, 950.0]);
    let group = LaunchGroup {
        form: "rows",
        comparison: &slow,
    };
    let report = page(&[group]);
    assert_eq!(report.verdicts[0].title, "A faster launch was found");
}

#[test]
fn the_page_of_rates() {
    let subject = Subject {
        device: "NVIDIA H200".into(),
        sms: 132,
        driver_version: 13_000,
    };
    let calibration = |probed| Calibration {
        subject: subject.clone(),
        at: 1_790_000_000,
        probed,
    };
    let command = "warpfuse calibrate --device cuda:0";
    let good = calibration(ProbedRates::h200());
    let page = RatesPage {
        calibration: &good,
        command,
    };
    check("rates", page.report());
    let slow = ProbedRates {
        shared_add_f32: 1e-4,
        ..ProbedRates::h200()
    };
    let page = RatesPage {
        calibration: &calibration(slow),
        command,
    };
    assert_eq!(page.report().verdicts[0].title, "A rate is implausible");
}
