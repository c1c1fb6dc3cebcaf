//! Pages that were looked at. `WARPFUSE_BLESS=1 cargo test -p warpfuse --lib report::tests` takes new ones; look at them in a
//! browser, at 400 and 1,600 pixels, in both colour schemes.

mod devices;

use std::path::Path;

use ndarray::Array2;

use super::figures::{DARK, LIGHT};
use super::number::Unit;
use super::page::{Block, Value};
use super::*;
use crate::device::{Device, Phase, PhaseCost, Phases};
use crate::learning::{
    Diagnostics, Evaluation, Family, Glm, InferenceError, Labels, LogisticRegression, Model,
    Penalty, RowMoments, SpectralReport, Targets,
};
use crate::matrix::{Features, MatrixStats, Schema};
use crate::ops::Matrix;

/// Six digits, and what is nearly nothing as nothing: processors add in different orders.
fn rounded(value: f64) -> f64 {
    match value.abs() < 1e-9 {
        true => 0.0,
        false => format!("{value:.5e}").parse().expect("a number"),
    }
}

fn round(value: &mut Value) {
    if let Value::Number(number, unit) = value {
        *number = if *unit == Unit::Seconds {
            0.5
        } else {
            rounded(*number)
        };
    }
}

/// The page without what differs from machine to machine.
fn steady(mut report: Report) -> Report {
    for block in report
        .sections
        .iter_mut()
        .flat_map(|section| &mut section.blocks)
    {
        match block {
            Block::Facts(facts) => facts.iter_mut().for_each(|fact| round(&mut fact.value)),
            Block::Table(table) => table.rows.iter_mut().flatten().for_each(round),
            _ => {}
        }
    }
    report
}

fn check(name: &str, report: Report) {
    let report = steady(report);
    let found = report.to_html();
    assert_eq!(found, report.to_html(), "the same bytes for the same value");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/report/golden/{name}.html"));
    if std::env::var_os("WARPFUSE_BLESS").is_some() {
        std::fs::write(&path, &found).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(&path).expect("the golden file");
    let differs = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
    assert!(found == expected, "{name} looks different: {differs:?}");
    let mut names: Vec<&str> = report
        .figures()
        .map(|figure| figure.name.as_str())
        .collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

fn phases() -> Phases {
    let mut phases = Phases::default();
    let cost = |seconds, sent_bytes| PhaseCost {
        seconds,
        sent_bytes,
        ..PhaseCost::default()
    };
    phases.add(Phase::Read, cost(0.25, 0));
    phases.add(Phase::Place, cost(0.125, 4096));
    phases.add(Phase::Solve, cost(0.5, 64));
    phases
}

fn hardware() -> Hardware {
    let mut hardware = Hardware::of_device(&Device::cpu(), "f64", 4096);
    hardware.name = "a CPU".into();
    hardware.memory_bytes = Some(8 << 30);
    hardware
}

/// A GPU that read X ten times.
fn gpu() -> Hardware {
    Hardware {
        name: "NVIDIA H200".into(),
        device: "cuda:0".into(),
        bandwidth_gbs: Some(4800.0),
        bits_repeat: false,
        solve: Some(Solve {
            reads: 10,
            bytes: 1.2e12,
            gbs: 2400.0,
            share_of_limit: Some(0.5),
        }),
        plan_reasons: vec!["w of 4 columns fits in shared memory".into()],
        ..hardware()
    }
}

fn features(rows: usize) -> Features<f64> {
    Features::Dense(Array2::from_shape_fn((rows, 3), |(i, j)| match j {
        2 => 1.0,
        j => ((i * (37 + 16 * j)) % 101) as f64 / 10.0,
    }))
}

/// A fit with everything: evaluated, diagnosed, inferred.
fn fitted<'a>(
    model: &'a Model,
    targets: Targets<'a, f64>,
    rows: usize,
) -> (Evaluation, FitDetails) {
    let x = features(rows);
    let matrix = Matrix::new(&Device::cpu(), x.clone()).expect("a matrix");
    let evaluation = model.evaluate_on(&matrix, targets, None).expect("figures");
    let inference = model.infer(&matrix, targets, None);
    let moments = RowMoments::of_all(&x).columns;
    let names = Schema::named(["length", "width & <height>", "one"]);
    let no_inference = match &inference {
        Err(InferenceError::Undefined(reason)) => Some((*reason).to_owned()),
        _ => None,
    };
    let inference = inference.ok();
    let details = FitDetails {
        tolerance: 1e-6,
        data: DataFacts::of(&x, &MatrixStats::of(&x), &moments).with_target(targets),
        coefficients: Coefficients::of(model, (&moments, rows), &names, inference.as_ref()),
        no_inference,
        inference,
        diagnostics: Some(model.diagnose(&matrix, targets, None).expect("curves")),
        validation_diagnostics: None,
        not_validated: None,
        hardware: gpu(),
    };
    (evaluation, details)
}

fn page(model: &Model, (evaluation, details): &(Evaluation, FitDetails), title: &str) -> Report {
    let names = Schema::named(["length", "width & <height>", "one"]);
    FitPage {
        title,
        source: "data.svm",
        command: "warpfuse train data.svm",
        model,
        standardized: false,
        names: &names,
        training: evaluation,
        validation: None,
        phases: &phases(),
        details,
    }
    .report()
}

#[test]
fn the_page_of_a_classifier() {
    let class = |i: usize| {
        let x = ((i * 37) % 101 + (i * 53) % 101 + (i * 29) % 83) as f64;
        if x > 140.0 { "yes" } else { "no" }.to_owned()
    };
    let labels = Labels::Text((0..120).map(class).collect());
    let model = LogisticRegression::params()
        .penalty(Penalty::None)
        .tolerance(1e-12);
    let model = model
        .fit(&Device::cpu(), features(120), &labels)
        .expect("a fit");
    let model = Model::Classifier(model);
    let found = fitted(&model, Targets::Labels(&labels), 120);
    let report = page(&model, &found, "Logistic regression");
    let titles: Vec<&str> = report
        .verdicts
        .iter()
        .map(|verdict| verdict.title.as_str())
        .collect();
    assert!(titles.contains(&"The GPU was used well"), "{titles:?}");
    assert!(
        titles.contains(&"Columns without information"),
        "{titles:?}"
    );
    check("classifier", report);
}

#[test]
fn the_page_of_a_regression() {
    let y: Vec<f64> = (0..90)
        .map(|i| ((i * 37) % 101 / 10 + (i * 13) % 7) as f64)
        .collect();
    let model = Glm::params()
        .family(Family::Poisson)
        .alpha(0.0)
        .tolerance(1e-12);
    let model = Model::Regressor(model.fit(&Device::cpu(), features(90), &y).expect("a fit"));
    let found = fitted(&model, Targets::Numbers(&y), 90);
    assert!(matches!(
        found.1.diagnostics,
        Some(Diagnostics::Regression(_))
    ));
    check(
        "regression",
        page(&model, &found, "Generalised linear model"),
    );
}

fn cv_details() -> CvDetails {
    let x = features(60);
    let y: Vec<f64> = (0..60).map(|i| (i * 7 % 13) as f64).collect();
    let facts = DataFacts::of(&x, &MatrixStats::of(&x), &RowMoments::of_all(&x).columns);
    CvDetails {
        data: facts.with_target(Targets::Numbers(&y)),
        hardware: hardware(),
        phases: phases(),
    }
}

fn point(strength: f64, scores: [f64; 3], nonzero: usize) -> CvPoint {
    CvPoint {
        strength,
        second: None,
        scores: scores.into(),
        nonzero: vec![nonzero; 3],
        n_iter: vec![4, 5, 6],
        converged: true,
    }
}

#[test]
fn the_page_of_a_comparison() {
    let points = [
        point(10.0, [0.1, 0.2, 0.15], 1),
        point(1.0, [0.55, 0.62, 0.5], 3),
        point(0.1, [0.6, 0.7, 0.5], 8),
        point(0.01, [0.5, 0.7, 0.4], 10),
    ];
    let (best, one_error) = CvPoint::choose(&points, |a, b| a > b);
    assert_eq!((best, one_error), (2, 1));
    let paths = [
        ("length".to_owned(), vec![0.0, 1.0, 2.0, 2.5]),
        ("width".to_owned(), vec![0.0, 0.0, -1.0, -3.0]),
    ];
    let report = CvPage {
        title: "Lasso",
        source: "data.svm",
        command: "warpfuse cv lasso data.svm",
        strength: "alpha",
        scoring: "score",
        points: &points,
        best,
        one_error,
        paths: &paths,
        names: &Schema::default(),
        advice: "raise --tol",
        details: &cv_details(),
    }
    .report();
    check("comparison", report);
}

#[test]
fn scores_that_are_not_numbers_choose_nothing() {
    let points = [point(1.0, [f64::NAN; 3], 0), point(0.1, [0.5, 0.6, 0.7], 2)];
    assert_eq!(CvPoint::choose(&points, |a, b| a > b), (1, 1));
    let points = [
        point(1.0, [f64::NAN; 3], 0),
        point(0.1, [f64::NAN, 0.6, 0.7], 2),
    ];
    let (best, one_error) = CvPoint::choose(&points, |a, b| a > b);
    let report = CvPage {
        title: "Lasso",
        source: "data.svm",
        command: "warpfuse cv lasso data.svm",
        strength: "alpha",
        scoring: "roc-auc",
        points: &points,
        best,
        one_error,
        paths: &[],
        names: &Schema::default(),
        advice: "raise --tol",
        details: &cv_details(),
    }
    .report();
    let html = report.to_html();
    assert!(html.contains("No penalty can be chosen") && !html.contains("NaN"));
    assert_eq!(CvPoint::choose(&[], |a, b| a > b), (0, 0));
}

#[test]
fn the_page_of_a_ranking() {
    let spectral = SpectralReport {
        rows: 4,
        cols: 4,
        nnz: 6,
        n_iter: 40,
        converged: false,
        change: 1e-3,
        device: "a CPU".into(),
        transfer_seconds: 0.0,
        seconds: 0.5,
        peak_device_bytes: 64,
    };
    let x = features(4);
    let facts = DataFacts::of(&x, &MatrixStats::of(&x), &RowMoments::of_all(&x).columns);
    let named = |i: usize| (format!("node {i}"), 1.0 / (i + 1) as f64);
    let listed = [Listed {
        title: "Largest scores: node".into(),
        stem: "top-node".into(),
        value: "score".into(),
        all: (0..30).map(named).collect(),
        shares: Vec::new(),
    }];
    let report = SpectralPage {
        title: "PageRank",
        source: "graph.mtx",
        command: "warpfuse train pagerank graph.mtx",
        report: &spectral,
        tolerance: 1e-6,
        listed: &listed,
        data: &facts,
        hardware: &hardware(),
        phases: &phases(),
    }
    .report();
    check("ranking", report);
}

#[test]
fn a_page_without_scores_says_why() {
    let x = features(1);
    let facts = DataFacts::of(&x, &MatrixStats::of(&x), &RowMoments::of_all(&x).columns);
    let report = AppliedPage {
        title: "Evaluation",
        model: "model.safetensors",
        source: "empty.svm",
        command: "warpfuse evaluate model.safetensors empty.svm",
        classes: &[],
        names: &Schema::default(),
        data: &facts,
        evaluation: None,
        not_scored: Some("expected at least one sample to score, found none"),
        diagnostics: None,
        outcome: None,
        hardware: &hardware(),
        phases: &phases(),
    }
    .report();
    let html = report.to_html();
    assert!(html.contains("Not scored") && html.contains("found none"));
}

/// The colours of the page's own style sheet are those of the figures, which have been checked, and a few more.
#[test]
fn colours_of_the_page_are_those_of_the_figures() {
    let html = Report::new("", "").to_html();
    for palette in [LIGHT, DARK] {
        for colour in [
            palette.ground,
            palette.text,
            palette.quiet,
            palette.series[0],
        ] {
            assert!(html.contains(colour), "{colour}");
        }
    }
}
