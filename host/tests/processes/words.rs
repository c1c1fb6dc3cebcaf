//! What several processes say and write, and what they refuse.

use std::process::Command;

use crate::mpirun::mpirun;
use crate::program::{self, Folder, diabetes, run};

pub fn one_process_prints_and_writes() {
    let folder = Folder::new();
    let model = folder.path("model");
    let data = diabetes();
    let found = mpirun(3, &[], &["train", "ridge", &data, "-o", &model]);
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

pub fn an_error_of_all_is_printed_once_and_ends_all() {
    let found = mpirun(3, &[], &["train", "ridge", "no-such-file.svm"]);
    assert_eq!(found.code, 1, "{}", found.stderr);
    assert_eq!(
        found.stderr.matches("cannot read no-such-file.svm").count(),
        1,
        "{}",
        found.stderr
    );
}

pub fn what_processes_cannot_share_is_refused() {
    let data = diabetes();
    for (arguments, expected) in [
        (
            &["train", "ridge", &data, "--device", "cuda:0"][..],
            "cannot use the device cuda:0",
        ),
        (&["train", "ridge", "-"], "standard input"),
        (&["train", "quantile", &data], "run one process"),
        (&["predict", "model", &data], "WARPFUSE_GROUP=alone"),
    ] {
        let found = mpirun(2, &[], arguments);
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
pub fn a_process_may_stay_alone() {
    let data = diabetes();
    let alone = [("WARPFUSE_GROUP", "alone")];
    let found = mpirun(2, &alone, &["train", "ridge", &data, "--json"]);
    assert_eq!(found.expect_code(0).stdout.lines().count(), 2);
}

/// Other launchers are told of, and what is missing is named.
pub fn processes_that_cannot_talk_are_told_why() {
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
