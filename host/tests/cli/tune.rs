//! `warpfuse tune` on the emulator: times mean nothing there, all else is as on a GPU.

use crate::program::{Folder, number, run};

/// A small problem of each family.
const FAMILIES: [&str; 7] = [
    "reduce --len 60000",
    "conv1d --len 500 --taps 5",
    "qr --count 2 --rows 16",
    "matmul --rows 20 --cols 9 --inner 17",
    "kernel-sum --sources 300 --targets 70 --kernel cauchy",
    "sparse-conv --channels 3 --size 8 --filters 5",
    "sparse-conv --channels 16 --size 6 --filters 8 --values i8",
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
            let is_all = number(&found, "points") == all.len() as f64;
            let goes_on = all.len() > steps || is_all;
            assert!(goes_on, "{family}: {} after {steps}", all.len());
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

#[test]
fn a_table_has_what_was_faster_and_is_taken() {
    let folder = Folder::new();
    let (log, table) = (folder.path("tuning.jsonl"), folder.path("tuned.json"));
    let more = ["--log", log.as_str(), "--table", table.as_str()];
    let mut gains = 0;
    for family in FAMILIES {
        let found = run(arguments(family, &more)).expect_code(0).json();
        // On the emulator the planner's choice need not be the fastest, nor the table have it.
        gains += usize::from(number(&found, "gain") >= 1.01 && found["launch"].is_object());
    }
    let written: serde_json::Value =
        serde_json::from_slice(&folder.read("tuned.json")).expect("JSON");
    assert_eq!(written["entries"].as_array().map(Vec::len), Some(gains));
    let exported = folder.path("exported.json");
    run(["tune", "export", &log, "--table", &exported]).expect_code(0);
    assert_eq!(folder.read("exported.json"), folder.read("tuned.json"));
    // The incumbent is the planner's own whatever table there is.
    let again = ["--tuned", &exported, "--log", &log];
    let again = run(arguments(FAMILIES[2], &again)).expect_code(0).json();
    assert_eq!(again["steps"][0]["remembered"], true, "{again}");
}

/// An entry for an H200 of this version with a launch of 256 threads, as text; `class` is the problem's.
fn table_of(class: &str) -> String {
    use warpfuse::plan::fused::Forced;
    use warpfuse::plan::tuned::{Entry, Key, Launch, TableFile, code_version};
    let entry = |device: &str| Entry {
        key: Key {
            device: device.to_owned(),
            driver: 13_000,
            code: code_version().to_owned(),
            class: class.to_owned(),
        },
        launch: Launch::Fused(Forced {
            bs: Some(256),
            ..Forced::default()
        }),
        ns: 200_000,
        planned_ns: 230_000,
    };
    let mut file = TableFile::default();
    let h200 = warpfuse::plan::limits::DeviceLimits::known("h200").expect("a listed device");
    file.insert(entry(&h200.name));
    file.insert(entry("another"));
    file.to_json()
}

const PLANNED: [&str; 12] = [
    "plan", "--rows", "4000000", "--cols", "1000", "--nnz", "80000000", "--dtype", "f32", "--gpu",
    "h200", "--json",
];

#[test]
fn plan_says_that_a_launch_is_from_a_table() {
    let folder = Folder::new();
    let class = "fused f32 4000000 x 1000 f32, 80000000 nonzeros";
    let table = folder.file("tuned.json", table_of(class));
    let own = run(PLANNED).expect_code(0).json();
    let with_table = |table: &str| run(PLANNED.into_iter().chain(["--tuned", table]));
    let tuned = with_table(&table).expect_code(0);
    assert!(
        tuned
            .stderr
            .contains("the table of tuned launches has 1 of other GPUs"),
        "{}",
        tuned.stderr
    );
    let tuned = tuned.json();
    assert_eq!(tuned["bs"], 256, "{tuned}");
    let reason = tuned["reasons"][0].as_str().unwrap_or_default();
    assert!(reason.contains("measured 200.0 µs"), "{tuned}");
    let poisoned = folder.file("poisoned.json", table_of(class).replace("200000", "100"));
    let poisoned = with_table(&poisoned).expect_code(0);
    assert!(
        poisoned
            .stderr
            .contains("warning: the table of tuned launches has 2 that were changed"),
        "{}",
        poisoned.stderr
    );
    assert_eq!(poisoned.json(), own);
    let other = folder.file("other.json", table_of("fused f32 4 x 5 f32, dense"));
    assert_eq!(with_table(&other).expect_code(0).json(), own);
}

#[test]
fn what_is_no_table_is_an_error() {
    let folder = Folder::new();
    let nonsense = folder.file("tuned.json", "{}");
    for table in [nonsense, folder.path("missing.json")] {
        let text = run(PLANNED.into_iter().chain(["--tuned", table.as_str()]))
            .expect_code(1)
            .stderr;
        assert!(text.contains("table of tuned launches"), "{text}");
    }
}

/// The emulator runs no PTX: what is to be generated fails there without a compiler's work, and is not tried again.
#[test]
fn what_cannot_be_generated_is_remembered() {
    let folder = Folder::new();
    let log = folder.path("tuning.jsonl");
    let kernels = concat!(env!("CARGO_MANIFEST_DIR"), "/../gpu-kernels");
    let tune = |family: &str, source: &str| {
        let fixed = ["--device", "emulator", "--search", "exhaustive", "--json"];
        let more = ["--log", log.as_str(), "--generate", source];
        let more = more.into_iter().chain(["--budget", "10m"]);
        let family = family.split(' ');
        run(["tune"].into_iter().chain(family).chain(fixed).chain(more))
    };
    let generated = |found: &serde_json::Value, remembered: bool| -> usize {
        let steps = found["steps"].as_array().expect("a list").iter();
        let own = steps.filter(|step| step["point"].to_string().contains("generated"));
        own.inspect(|step| {
            assert_eq!(step["outcome"], "failed", "{step}");
            assert_eq!(step["remembered"], remembered, "{step}");
            let reason = step["reason"].to_string();
            assert!(reason.contains("PTX runs on a CUDA device"), "{reason}");
        })
        .count()
    };
    for family in [
        "qr --count 1 --rows 70",
        "matmul --rows 10 --cols 9 --inner 8",
    ] {
        let first = tune(family, kernels).expect_code(0).json();
        let count = generated(&first, false);
        assert!(count > 3, "{family}: {count}");
        let again = tune(family, kernels).expect_code(0).json();
        assert_eq!(generated(&again, true), count);
    }
    let text = tune("qr --count 1 --rows 9", &folder.path("nowhere"));
    let text = text.expect_code(1).stderr;
    assert!(text.contains("no kernel can be generated"), "{text}");
}
