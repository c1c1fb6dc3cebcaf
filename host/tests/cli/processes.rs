//! Several processes that share the rows: `mpirun -n 4 warpfuse train …`, against one process.
//!
//! Needs Open MPI's or MPICH's `mpirun`. Without it nothing is tested here; the build machine installs it.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{self, Folder, Run, diabetes, run};

/// Runs the program in this many processes; `None` where there is no `mpirun`.
fn mpirun(processes: usize, environment: &[(&str, &str)], arguments: &[&str]) -> Option<Run> {
    let mut command = Command::new("mpirun");
    command
        // Build machines work as root, have fewer processors than processes, and no network.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .env("WARPFUSE_GROUP_LIMIT", "120")
        .env_remove("WARPFUSE_LOG")
        .envs(environment.iter().copied())
        .args(["-n", &processes.to_string()])
        .arg(program::path())
        .args(arguments)
        .args(["--threads", "1"])
        .stdin(Stdio::null());
    let output = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("no mpirun: several processes are not tested");
            return None;
        }
        output => output.expect("mpirun runs"),
    };
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Some(Run {
        code: output.status.code().expect("no signal"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    })
}

/// A fit as JSON, in one process and in one to four that share the rows.
fn compare(arguments: &[&str], judge: impl Fn(&Value, &Value, usize)) {
    let fixed = ["train", "--device", "cpu", "--json"];
    let all: Vec<&str> = fixed[..1]
        .iter()
        .chain(arguments)
        .chain(&fixed[1..])
        .copied()
        .collect();
    let expected = run(all.iter().chain(&["--threads", "1"]))
        .expect_code(0)
        .json();
    for processes in 1..=4 {
        let Some(found) = mpirun(processes, &[], &all) else {
            return;
        };
        judge(&expected, &found.expect_code(0).json(), processes);
    }
}

/// All of a fit that does not depend on time.
const FITTED: [&str; 9] = [
    "coef",
    "intercept",
    "n_iter",
    "objective",
    "gradient_ratio",
    "rows",
    "cols",
    "nnz",
    "convergence",
];

fn same_bits(expected: &Value, found: &Value, processes: usize) {
    for name in FITTED {
        assert_eq!(found[name], expected[name], "{name}, {processes} processes");
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(all) => all.iter().flat_map(numbers).collect(),
        one => one.as_f64().into_iter().collect(),
    }
}

fn near(expected: &Value, found: &Value, processes: usize) {
    for name in ["coef", "intercept"] {
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

#[test]
fn reproducible_fits_have_the_bits_of_one_process() {
    let folder = Folder::new();
    let table = folder.file("table.csv", table(101));
    let data = diabetes();
    for arguments in [
        &["ridge", &data, "--reproducible"][..],
        &[
            "ridge",
            &data,
            "--reproducible",
            "--dtype",
            "f32",
            "--standardize",
        ],
        &["glm", &data, "--family", "poisson", "--reproducible"],
        &[
            "logreg",
            &table,
            "--target-column",
            "y",
            "--missing",
            "mean",
            "--reproducible",
        ],
        &["lasso", &data, "--alpha", "0.5", "--reproducible"],
    ] {
        compare(arguments, same_bits);
    }
}

#[test]
fn fits_agree_with_one_process() {
    let folder = Folder::new();
    let table = folder.file("table.csv", table(101));
    let data = diabetes();
    for arguments in [
        &["ridge", &data, "--tol", "1e-11"][..],
        &[
            "logreg",
            &table,
            "--target-column",
            "y",
            "--missing",
            "mean",
            "--tol",
            "1e-11",
        ],
    ] {
        compare(arguments, near);
    }
}

#[test]
fn fewer_rows_than_processes_are_enough() {
    let folder = Folder::new();
    let data = folder.file("two.svm", "1 1:1 2:0.5\n2 1:2 2:0.25\n");
    compare(&["ridge", &data, "--reproducible"], same_bits);
}

#[test]
fn one_process_prints_and_writes() {
    let folder = Folder::new();
    let model = folder.path("model");
    let data = diabetes();
    let Some(found) = mpirun(3, &[], &["train", "ridge", &data, "-o", &model]) else {
        return;
    };
    let found = found.expect_code(0);
    assert_eq!(
        found.stdout.matches("converged").count(),
        1,
        "{}",
        found.stdout
    );
    assert_eq!(
        found.stderr.matches("3 processes share the rows").count(),
        1,
        "{}",
        found.stderr
    );
    assert!(
        run(["inspect", &model])
            .expect_code(0)
            .stdout
            .contains("ridge")
    );
}

#[test]
fn an_error_of_all_is_printed_once_and_ends_all() {
    let Some(found) = mpirun(3, &[], &["train", "ridge", "no-such-file.svm"]) else {
        return;
    };
    assert_eq!(found.code, 1, "{}", found.stderr);
    assert_eq!(
        found.stderr.matches("cannot read no-such-file.svm").count(),
        1,
        "{}",
        found.stderr
    );
}

#[test]
fn what_processes_cannot_share_is_refused() {
    let data = diabetes();
    for (arguments, expected) in [
        (
            &["train", "ridge", &data, "--device", "cuda:0"][..],
            "--device cuda:0",
        ),
        (&["train", "ridge", "-"], "standard input"),
        (&["train", "quantile", &data], "run one process"),
    ] {
        let Some(found) = mpirun(2, &[], arguments) else {
            return;
        };
        assert_eq!(found.code, 1, "{}", found.stderr);
        assert_eq!(
            found.stderr.matches(expected).count(),
            1,
            "{}",
            found.stderr
        );
    }
}

/// Each of several processes may start one of its own.
#[test]
fn a_process_may_stay_alone() {
    let data = diabetes();
    let alone = [("WARPFUSE_GROUP", "alone")];
    let Some(found) = mpirun(2, &alone, &["train", "ridge", &data, "--json"]) else {
        return;
    };
    assert_eq!(found.expect_code(0).stdout.lines().count(), 2);
}

/// Other launchers are told of, and what is missing is named.
#[test]
fn processes_that_cannot_talk_are_told_why() {
    let environment = [
        ("RANK", "0"),
        ("WORLD_SIZE", "4"),
        ("MASTER_ADDR", "localhost"),
    ];
    let with = |variables: &[(&str, &str)]| {
        let data = diabetes();
        let mut command = Command::new(program::path());
        command
            .args(["train", "ridge", &data])
            .envs(variables.iter().copied());
        let output = command.output().expect("the program runs");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    let torchrun = with(&environment);
    assert!(
        torchrun.contains("torchrun started 4 processes"),
        "{torchrun}"
    );
    let missing = with(&[
        ("PMI_RANK", "0"),
        ("PMI_SIZE", "2"),
        ("WARPFUSE_MPI", "libno-such-mpi.so"),
    ]);
    assert!(
        missing.contains("cannot open an MPI library (libno-such-mpi.so"),
        "{missing}"
    );
}
