//! `warpfuse tune` on the emulator: times mean nothing there, all else is as on a GPU.

use crate::program::{Folder, number, run};

/// A small problem of each family.
const FAMILIES: [&str; 4] = [
    "reduce --len 60000",
    "conv1d --len 500 --taps 5",
    "qr --count 2 --rows 16",
    "matmul --rows 20 --cols 9 --inner 17",
];

fn arguments<'a>(family: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["--device", "emulator", "--trials", "4", "--json"];
    let family = family.split(' ');
    ["tune"]
        .into_iter()
        .chain(family)
        .chain(fixed)
        .chain(more.iter().copied())
        .collect()
}

#[test]
fn every_family_is_tuned_and_goes_on_from_its_log() {
    let folder = Folder::new();
    let log = folder.path("tuning.jsonl");
    for family in FAMILIES {
        let mut steps = 0;
        for search in ["evolutionary", "random"] {
            let more = ["--log", log.as_str(), "--search", search];
            let found = run(arguments(family, &more)).expect_code(0).json();
            assert!(number(&found, "gain") >= 1.0, "{found}");
            let all = found["steps"].as_array().expect("a list");
            assert!(all.len() > steps, "{family}: {} after {steps}", all.len());
            assert!(all.iter().all(|step| step["outcome"] == "timed"), "{found}");
            steps = all.len();
        }
    }
    let replayed = run(["tune", "replay", &log, "--json"]).expect_code(0);
    let replayed: serde_json::Value = serde_json::from_str(&replayed.stdout).expect("JSON");
    let searches = replayed.as_array().expect("a list").len();
    assert_eq!(searches, 4 * FAMILIES.len());
}

#[test]
fn launches_run_in_a_process_of_their_own() {
    let more = ["--launch-limit", "10m", "--search", "exhaustive"];
    let watched = run(arguments(FAMILIES[0], &more)).expect_code(0).json();
    let alone = run(arguments(FAMILIES[0], &["--search", "exhaustive"]))
        .expect_code(0)
        .json();
    let points = |found: &serde_json::Value| -> Vec<String> {
        let steps = found["steps"].as_array().expect("a list").iter();
        let mut points: Vec<String> = steps.map(|step| step["point"].to_string()).collect();
        points.sort();
        points
    };
    assert_eq!(points(&watched), points(&alone));
    assert_eq!(watched["steps"][0]["remembered"], true);
}

#[test]
fn a_process_that_cannot_tune_is_not_started_forever() {
    let arguments = [
        "tune",
        "reduce",
        "--len",
        "10",
        "--device",
        "cpu",
        "--launch-limit",
        "1m",
    ];
    let text = run(arguments).expect_code(1).stderr;
    assert!(text.contains("before it had tried a launch"), "{text}");
    run([
        "tune",
        "reduce",
        "--len",
        "10",
        "--processes",
        "2",
        "--device",
        "cuda",
    ])
    .expect_code(2);
}
