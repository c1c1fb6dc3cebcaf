use super::*;
use crate::EmulatorOptions;

#[test]
fn every_broken_kernel_is_caught_and_no_twin_accused() {
    let report = run(16);
    assert!(report.is_right(), "{:#?}", report.failures);
    assert!(report.broken.of >= 20, "{:?}", report.broken);
}

#[test]
fn every_case_that_runs_marks_its_lines() {
    for (source, case) in cases() {
        let mark = format!("//~ {}", case.name);
        let marked = source
            .text
            .lines()
            .any(|line| line.trim_end().ends_with(&mark));
        assert_eq!(marked, !case.expects.is_of_launch(), "{}", case.name);
    }
}

#[test]
fn a_report_is_written_as_the_command_line_promises() {
    let report = Report {
        broken: Broken { caught: 1, of: 2 },
        twins: Twins { accused: 0, of: 2 },
        lane_steps_per_second: 3.5,
        failures: vec!["not shown".to_owned()],
    };
    assert_eq!(
        serde_json::to_string(&report).expect("plain data"),
        r#"{"broken":{"caught":1,"of":2},"twins":{"accused":0,"of":2},"lane_steps_per_second":3.5}"#
    );
    assert!(!report.is_right());
}

#[test]
fn a_fault_names_kernel_lane_line_both_parties_and_address() {
    let (_, case) = cases().next().expect("there are cases");
    let fault = case
        .broken
        .run(case.name, EmulatorOptions::default())
        .expect_err("it is broken");
    let text = fault.to_string();
    for part in [
        "missing barrier (family self_check)",
        "block 0, warp 0, lane 0 at ",
        "shared_races.rs:",
        "data race",
        "shared+0[1] (f32)",
        "the read by block 0, warp 0, lane 0",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}
