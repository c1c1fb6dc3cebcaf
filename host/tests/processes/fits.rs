//! Fits by several processes, against one.

use std::path::Path;

use serde_json::Value;

use crate::mpirun::mpirun;
use crate::program::{Folder, diabetes, run};

/// A fit as JSON, in one process and in one to four that share the rows.
fn compare(arguments: &[&str], judge: impl Fn(&Value, &Value, usize)) {
    let fixed = ["--device", "cpu", "--json"];
    let all: Vec<&str> = arguments.iter().chain(&fixed).copied().collect();
    let expected = run(all.iter().chain(&["--threads", "1"]))
        .expect_code(0)
        .json();
    for processes in 1..=4 {
        let found = mpirun(processes, &[], &all).expect_code(0);
        judge(&expected, &found.json(), processes);
    }
}

/// All of a fit that does not depend on time.
const FITTED: [&str; 9] = [
    "coef",
    "intercept",
    "n_iter",
    "objective",
    "gradient_norm_ratio",
    "rows",
    "cols",
    "nnz",
    "convergence",
];

fn same_bits(expected: &Value, found: &Value, processes: usize) {
    for name in FITTED {
        assert!(!expected[name].is_null(), "{name}");
        assert_eq!(found[name], expected[name], "{name}, {processes} processes");
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(all) => all.iter().flat_map(numbers).collect(),
        one => one.as_f64().into_iter().collect(),
    }
}

fn near(names: &[&str], (expected, found): (&Value, &Value), processes: usize) {
    for name in names {
        let name = *name;
        let (expected, found) = (numbers(&expected[name]), numbers(&found[name]));
        assert_eq!(expected.len(), found.len());
        let largest = expected.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
        for (e, f) in expected.iter().zip(&found) {
            let error = (e - f).abs();
            assert!(
                error <= 1e-6 * largest,
                "{name}: {e} {f}, {processes} processes"
            );
        }
    }
}

/// Labels of text, a category and a missing value.
fn table(rows: usize) -> String {
    let mut text = "size,colour,weight,y\n".to_owned();
    for row in 0..rows {
        let size = if row == 5 {
            String::new()
        } else {
            (row * 7 % 11).to_string()
        };
        let colour = ["red", "green", "blue"][row * 5 % 3];
        let label = ["no", "yes", "maybe"][row * row % 7 % 3];
        text += &format!("{size},{colour},{},{label}\n", (row * 13 % 17) as f64 / 4.0);
    }
    text
}

/// Arguments of a fit to the table, whose numbers are told apart from its labels.
const OF_TABLE: [&str; 4] = ["--target-column", "y", "--missing", "mean"];

/// Numbers alone, with a header, blank lines and comments.
fn figures(rows: usize) -> String {
    let mut text = "a,b,y\n".to_owned();
    for row in 0..rows {
        let end = ["\n", "\r\n", "\n\n", "\n# said\n"][row % 4];
        let (a, b) = ((row * 7 % 11) as f64 / 2.0, row * 5 % 13);
        text += &format!("{a},{b},{}{end}", (row * 3 % 7) as f64 - a);
    }
    text
}

/// Whoever shares the rows, and however they came: the same bits.
pub fn reproducible_fits_have_the_bits_of_one_process() {
    let folder = Folder::new();
    let (table, data) = (folder.file("table.csv", table(101)), diabetes());
    let figures = folder.file("figures.csv", figures(57));
    for arguments in [
        &["ridge", &data][..],
        &["ridge", &figures, "--target-column", "y"],
        &["ridge", &data, "--dtype", "f32", "--standardize"],
        &["ridge", &data, "--solver", "lbfgs"],
        &["linreg", &data, "--standard-errors"],
        &["lasso", &data, "--alpha", "0.5"],
        &["elasticnet", &data, "--alpha", "0.5"],
        &["glm", &data, "--family", "poisson"],
        &["svr", &data, "--standardize"],
        &["huber", &data, "--standardize"],
        &[&["logreg", &table][..], &OF_TABLE].concat(),
        &[&["logreg", &table, "--penalty", "l1"][..], &OF_TABLE].concat(),
        &[&["svc", &table][..], &OF_TABLE].concat(),
    ] {
        compare(
            &[&["train"], arguments, &["--reproducible"]].concat(),
            same_bits,
        );
    }
}

/// Sums in another order: tolerances of 1e-11 leave differences far below 1e-6.
pub fn fits_agree_with_one_process() {
    let folder = Folder::new();
    let (table, data) = (folder.file("table.csv", table(101)), diabetes());
    let logreg = ["train", "logreg", &table, "--tol", "1e-11"];
    for arguments in [
        &["train", "ridge", &data, "--tol", "1e-11"][..],
        &[&logreg[..], &OF_TABLE].concat(),
    ] {
        compare(arguments, |expected, found, what| {
            near(&["coef", "intercept"], (expected, found), what)
        });
    }
}

/// The first run writes a cache, by all processes at the same time; the next ones read it.
pub fn caches_are_read_and_written_by_all() {
    let folder = Folder::new();
    let text = std::fs::read(diabetes()).expect("sample data");
    let data = folder.file("data.svm", &text);
    let fit = [
        "train",
        "ridge",
        &data,
        "--reproducible",
        "--json",
        "--cache",
    ];
    let expected = run(fit).expect_code(0).json();
    for processes in 2..=4 {
        std::fs::remove_file(folder.path("data.svm.wfc")).expect("a cache was written");
        for _ in 0..2 {
            let found = mpirun(processes, &[], &fit).expect_code(0).json();
            same_bits(&expected, &found, processes);
        }
        let cache = folder.path("data.svm.wfc");
        let direct = ["train", "ridge", &cache, "--reproducible", "--json"];
        same_bits(
            &expected,
            &mpirun(processes, &[], &direct).expect_code(0).json(),
            processes,
        );
    }
}

pub fn weights_and_validation_are_of_all_rows() {
    use warpfuse::io::write_vector;
    let (folder, data) = (Folder::new(), diabetes());
    let (weights, test) = (
        folder.path("weights.npy"),
        folder.file("test.svm", short(40)),
    );
    let of: Vec<f64> = (0..442).map(|row| f64::from(row % 3)).collect();
    write_vector(Path::new(&weights), &of).expect("written");
    let samples = ["--sample-weight", &weights, "--validation", &test];
    let fit = ["train", "glm", &data, "--family", "gamma", "--reproducible"];
    compare(
        &[&fit[..], &samples].concat(),
        |expected, found, processes| {
            same_bits(expected, found, processes);
            for name in ["explained_deviance", "validation"] {
                assert_eq!(found[name], expected[name], "{name}, {processes} processes");
            }
        },
    );
}

/// The first lines of the sample data.
fn short(lines: usize) -> String {
    let text = std::fs::read_to_string(diabetes()).expect("sample data");
    text.split_inclusive('\n').take(lines).collect()
}

pub fn penalties_are_compared_by_all() {
    let (folder, data) = (Folder::new(), diabetes());
    let cv = [
        "cv",
        "ridge",
        &data,
        "--path",
        "0.1,10",
        "--standardize",
        "--reproducible",
    ];
    compare(&cv, |expected, found, processes| {
        assert_eq!(found, expected, "{processes} processes");
    });
    let model = folder.path("best");
    let saved = mpirun(3, &[], &[&cv[..], &["-o", &model]].concat()).expect_code(0);
    assert_eq!(saved.stdout.matches("best:").count(), 1, "{}", saved.stdout);
    assert!(
        run(["inspect", &model])
            .expect_code(0)
            .stdout
            .contains("ridge")
    );
}

pub fn graphs_and_vectors_agree_with_one_process() {
    let (folder, data) = (Folder::new(), diabetes());
    let graph: String = (0..60)
        .map(|i| format!("0 {}:1 {}:{}\n", i % 7 + 1, i % 30 + 9, i % 3 + 1))
        .collect();
    let graph = folder.file("graph.svm", graph);
    for (name, data, more, values) in [
        ("hits", &graph, &[][..], &["hubs", "authorities"][..]),
        ("pagerank", &graph, &[], &["scores"]),
        (
            "svd",
            &data,
            &["-k", "2", "--centre"],
            &["singular_values", "components"],
        ),
    ] {
        let fit = [&["train", name, data][..], more].concat();
        compare(&fit, |expected, found, what| {
            near(values, (expected, found), what)
        });
    }
    let rows = folder.path("rows.npy");
    let fit = ["train", "svd", &data, "-k", "2", "--transformed", &rows];
    mpirun(3, &[], &fit).expect_code(0);
    assert_eq!(folder.read("rows.npy").len(), 128 + 442 * 2 * 8);
}

/// By a factor that one process has, by sums that all share, and on a page that each computes for itself.
pub fn kernel_ridge_has_the_bits_of_one_process() {
    let folder = Folder::new();
    let data = diabetes();
    let (test, page) = (folder.file("test.svm", short(40)), folder.path("page.html"));
    let iterations = ["--solver", "conjugate-gradient", "--alpha", "0.1"];
    for more in [
        &["--validation", &test][..],
        &iterations,
        &[&iterations[..], &["--dtype", "f32"]].concat(),
        &["--report", &page],
    ] {
        let fit = [&["train", "kernel-ridge", &data][..], more].concat();
        compare(&fit, |expected, found, processes| {
            for name in [
                "dual_coef",
                "n_iter",
                "residual_ratio",
                "r2",
                "validation",
                "rows",
            ] {
                assert_eq!(found[name], expected[name], "{name}, {processes} processes");
            }
            assert!(!expected["dual_coef"].is_null() && !expected["r2"].is_null());
        });
    }
}

/// Lines are dealt out, of a table with texts too.
pub fn processes_read_lines_of_their_own() {
    let folder = Folder::new();
    let figures = folder.file("figures.csv", figures(300));
    let table = folder.file("table.csv", table(101));
    let of_figures = ["train", "ridge", &figures, "--target-column", "y"];
    let of_table = [&["train", "logreg", &table][..], &OF_TABLE].concat();
    for (fit, file, shares) in [
        (&["train", "ridge", &diabetes()][..], &diabetes(), 3.0),
        (&of_figures, &figures, 3.0),
        (&of_table, &table, 3.0),
    ] {
        let fit = [fit, &["--json", "--device", "cpu"]].concat();
        let found = mpirun(3, &[], &fit).expect_code(0).json();
        let read = found["phases"]["read"]["read_bytes"]
            .as_f64()
            .expect("bytes");
        let all = std::fs::metadata(file).expect("the file").len() as f64;
        // Shares end with lines.
        assert!(
            (read - all / shares).abs() <= 500.0,
            "{read} of {all}: {fit:?}"
        );
    }
}

/// A line that is no sample is found by the process that reads it, and ends all: rank 0 says whose it is.
pub fn a_bad_line_of_one_process_ends_all() {
    let folder = Folder::new();
    let mut text = short(30);
    text += "1 1:2 2:x\n";
    let data = folder.file("bad.svm", text);
    let bad = mpirun(3, &[], &["train", "ridge", &data, "--device", "cpu"]);
    assert_eq!(bad.code, 1);
    let place = folder.path("bad.svm");
    let said = format!("rank 2 failed: {place}:31:9: expected a number after the colon, found `x`");
    assert!(bad.stderr.contains(&said), "{}", bad.stderr);
}

pub fn fewer_rows_than_processes_are_enough() {
    let folder = Folder::new();
    let data = folder.file("two.svm", "1 1:1 2:0.5\n2 1:2 2:0.25\n");
    compare(&["train", "ridge", &data, "--reproducible"], same_bits);
}
