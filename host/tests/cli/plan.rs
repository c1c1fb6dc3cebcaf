//! `plan`.

use serde_json::json;

use crate::program::{diabetes, number, run};

const WORKED: [&str; 16] = [
    "plan",
    "--rows",
    "500000",
    "--cols",
    "1024",
    "--nnz",
    "5000000",
    "--gpu",
    "titan",
    "--dtype",
    "f64",
    "--model",
    "published",
    "--registers",
    "43",
    "--json",
];

#[test]
fn the_worked_example_of_the_published_model_comes_out() {
    let plan = run(WORKED).expect_code(0).json();
    let expected = json!({
        "strategy": "shared_w", "vs": 8, "bs": 640, "grid": 28, "c": 224, "shared_bytes": 8832, "warps_per_sm": 40,
    });
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&plan[name], value, "{name} in {plan}");
    }
    assert!(plan["tl"].is_number());
    assert!(
        plan["reasons"]
            .as_array()
            .is_some_and(|reasons| !reasons.is_empty()),
        "{plan}"
    );
}

#[test]
fn a_dense_matrix_has_reproducible_sums_of_one_order_whatever_the_gpu() {
    for (cols, product) in [("33", "fused"), ("2000", "fused"), ("1000", "transposed")] {
        let kernel = |gpu: &str| {
            let plan = run([
                "plan",
                "--rows",
                "100000",
                "--cols",
                cols,
                "--dense",
                "--reproducible",
                "--gpu",
                gpu,
                "--product",
                product,
                "--json",
            ]);
            plan.expect_code(0).json()["kernel"].clone()
        };
        assert_eq!(kernel("h200"), kernel("h100"), "{cols} columns, {product}");
    }
}

#[test]
fn every_gpu_and_product_has_a_plan_for_sparse_and_dense() {
    for gpu in ["titan", "a100", "h100", "h200"] {
        for product in ["fused", "forward", "transposed"] {
            for shape in [&["--nnz", "90000"][..], &["--dense"]] {
                let common = [
                    "plan",
                    "--rows",
                    "5000",
                    "--cols",
                    "60",
                    "--gpu",
                    gpu,
                    "--product",
                    product,
                    "--json",
                ];
                let plan = run(common.iter().chain(shape)).expect_code(0).json();
                assert!(plan["grid"].as_u64().is_some_and(|grid| grid > 0), "{plan}");
            }
        }
    }
}

#[test]
fn a_data_file_has_a_shape_too() {
    let plan = run(["plan", &diabetes(), "--gpu", "h200", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(plan["problem"]["rows"], 442);
    assert_eq!(plan["problem"]["nnz"], 4420);
    let dense = run(["plan", &diabetes(), "--gpu", "h200", "--dense", "--json"])
        .expect_code(0)
        .json();
    assert!(dense["problem"]["nnz"].is_null(), "{dense}");
}

#[test]
fn further_forms_are_weighed_against_evaluations() {
    let weigh = |evaluations: &str| {
        let plan = run([
            "plan",
            "--rows",
            "4000000",
            "--cols",
            "1000000",
            "--nnz",
            "80000000",
            "--gpu",
            "h200",
            "--dtype",
            "f32",
            "--evaluations",
            evaluations,
            "--json",
        ]);
        plan.expect_code(0).json()["forms"].clone()
    };
    let (one, many) = (weigh("1"), weigh("1000000"));
    assert_eq!(one["chosen"], "rows");
    assert_eq!(many["chosen"], "rows_and_panels");
    let weighed = many["weighed"].as_array().expect("a list");
    assert_eq!(weighed.len(), 3);
    let paying = weighed.iter().filter_map(|form| {
        let from = form["pays_from"].as_u64()?;
        Some((from, &form["stored"]))
    });
    let first = paying.min_by_key(|(from, _)| *from);
    let (from, stored) = first.expect("one pays some time");
    assert_eq!(weigh(&(from - 1).to_string())["chosen"], "rows");
    assert_eq!(&weigh(&from.to_string())["chosen"], stored);
}

#[test]
fn a_dense_matrix_has_no_further_form() {
    let common = ["plan", "--rows", "5000", "--cols", "60", "--gpu", "h200"];
    let plan = run(common.iter().chain(&["--dense", "--evaluations", "9"]));
    let text = plan.expect_code(0).stdout.clone();
    assert!(text.contains("have no further form"), "{text}");
}

#[test]
fn parts_of_a_plan_can_be_forced() {
    let forced = ["--force", "strategy=global_w", "--force", "bs=256"];
    let common = [
        "plan", "--rows", "500000", "--cols", "1024", "--nnz", "5000000", "--gpu", "h200", "--json",
    ];
    let plan = run(common.iter().chain(&forced)).expect_code(0).json();
    assert_eq!(
        (&plan["strategy"], &plan["bs"]),
        (&json!("global_w"), &json!(256))
    );
    run(common.iter().chain(&["--force", "blocks=3"])).expect_code(2);
    let impossible = run(common.iter().chain(&["--force", "vs=7"])).expect_code(1);
    assert!(
        impossible.stderr.contains("vs = 7"),
        "{}",
        impossible.stderr
    );
}

#[test]
fn candidates_are_listed_quickest_first() {
    let common = [
        "plan", "--rows", "4000000", "--cols", "1000", "--nnz", "80000000", "--gpu", "h200",
    ];
    let plan = run(common.iter().chain(&["--candidates=7", "--json"]))
        .expect_code(0)
        .json();
    let candidates = plan["candidates"].as_array().expect("candidates");
    assert_eq!(candidates.len(), 7);
    let times: Vec<u64> = candidates
        .iter()
        .filter_map(|trial| trial["prediction"]["total_ns"].as_u64())
        .collect();
    assert!(times.len() == 7 && times.is_sorted(), "{times:?}");
    let text = run(common.iter().chain(&["--candidates"]))
        .expect_code(0)
        .stdout;
    assert!(
        text.contains("bound by") && text.contains("because"),
        "{text}"
    );
}

#[test]
fn a_shape_that_cannot_be_is_an_error() {
    let common = [
        "plan", "--rows", "10", "--cols", "10", "--nnz", "101", "--gpu", "h200",
    ];
    let refused = run(common).expect_code(1);
    assert!(
        refused
            .stderr
            .contains("at most 10 x 10 nonzeros, found 101"),
        "{}",
        refused.stderr
    );
}

#[test]
fn only_this_machines_gpu_is_measured() {
    let shape = [
        "plan",
        "--rows",
        "50",
        "--cols",
        "6",
        "--dense",
        "--measure",
    ];
    let other = run(shape.iter().chain(&["--gpu", "titan"])).expect_code(1);
    assert!(other.stderr.contains("leave out --gpu"), "{}", other.stderr);
    run(shape.iter().chain(&["--force", "bs=128"])).expect_code(2);
}

#[test]
fn the_cpu_and_the_emulator_are_not_calibrated() {
    for device in ["cpu", "emulator"] {
        let refused = run(["calibrate", "--device", device]).expect_code(1);
        let message = refused.stderr;
        assert!(message.contains("CUDA device"), "{message}");
    }
}

#[test]
fn a_plan_says_where_its_rates_come_from() {
    let shape = ["plan", "--rows", "5000", "--cols", "60", "--dense"];
    for (gpu, source) in [("h200", "measured"), ("a100", "estimated")] {
        let plan = run(shape.iter().chain(&["--gpu", gpu, "--json"]))
            .expect_code(0)
            .json();
        assert_eq!(plan["rates"], source, "{plan}");
    }
}

const DENSE: [&str; 12] = [
    "plan", "--fit", "logreg", "--rows", "20000000", "--cols", "100", "--dense", "--dtype", "f32",
    "--gpu", "h200",
];

#[test]
fn the_places_of_a_fit_are_listed_fastest_first() {
    let places = |limit: &str| {
        let limit = ["--gpu-memory", limit];
        let plan = run(limit.into_iter().chain(DENSE).chain(["--json"]));
        let plan = plan.expect_code(0).json();
        assert_eq!(plan["reads"], 90);
        let all = plan["alternatives"].as_array().expect("a list").clone();
        assert_eq!(all.len(), 4, "{plan}");
        all
    };
    let roomy = places("100GB");
    let resident = roomy.iter().find(|one| one["place"] == "resident");
    assert_eq!(resident.expect("a place")["fits"], true);
    let tight = places("2GB");
    let fitting = tight.iter().filter(|one| one["fits"] == true);
    let seconds: Vec<f64> = fitting.filter_map(|one| one["seconds"].as_f64()).collect();
    assert_eq!(seconds.len(), 3, "{tight:?}");
    assert!(seconds.is_sorted(), "{seconds:?}");
    assert_eq!(tight[3]["place"], "resident");
    // Eight gigabytes cross at most as often as they are read.
    let streaming = tight.iter().find(|one| one["place"] == "streaming");
    let sent = streaming.expect("a place")["sent_bytes"].as_u64();
    assert!(
        sent.is_some_and(|sent| sent < 90 * 8_000_000_000),
        "{tight:?}"
    );
    let text = run(DENSE).expect_code(0).stdout;
    assert!(
        text.contains("GPU with all of X") && text.contains("a pass"),
        "{text}"
    );
}

#[test]
fn places_are_measured_beside_their_predictions() {
    let data = diabetes();
    let arguments = ["plan", "--fit", "ridge", &data, "--measure", "--json"];
    let plan = run(arguments).expect_code(0).json();
    let measured = plan["measured"].as_array().expect("a list");
    assert!(measured.iter().any(|one| one["place"] == "cpu"), "{plan}");
    for one in measured {
        assert!(
            one["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0),
            "{plan}"
        );
    }
    let text = run(&arguments[..5]).expect_code(0).stdout;
    assert!(text.contains("measured") && text.contains("CPU:"), "{text}");
    for (wrong, named) in [("--gpu=h200", "--gpu"), ("--report=x.html", "--fit")] {
        let run = run(arguments.into_iter().chain([wrong])).expect_code(1);
        assert!(run.stderr.contains(named), "{}", run.stderr);
    }
}

/// Times of several GPUs follow from that of one, which the planner or somebody's measurement says.
#[test]
fn a_measured_time_of_one_gpu_scales_those_of_several() {
    let plan = |more: &[&str]| {
        let fixed = "plan --rows 11000000 --cols 28 --dense --dtype f32 --gpu h200 --json --gpus 2";
        run(fixed.split(' ').chain(more.iter().copied()))
    };
    let steps = |more: &[&str]| {
        let shared = plan(more).expect_code(0).json()["shared"].clone();
        let shared = shared.as_array().expect("a list").clone();
        let of = |name: &str| shared.iter().map(|step| number(step, name)).collect();
        let all: [Vec<f64>; 2] = [of("product_us"), of("sum_us")];
        all
    };
    let [planned, sums] = steps(&[]);
    let twice = (2.0 * planned[0]).to_string();
    let [measured, same] = steps(&["--one-gpu-us", &twice]);
    assert_eq!(sums, same);
    for (measured, planned) in measured.iter().zip(&planned) {
        assert!(
            (measured / planned - 2.0).abs() < 1e-9,
            "{measured} {planned}"
        );
    }
    let idle = "plan --rows 1000 --cols 28 --dense --gpu h200 --one-gpu-us 7";
    let idle = run(idle.split(' ')).expect_code(1);
    assert!(
        idle.stderr.contains("does nothing without --gpus"),
        "{}",
        idle.stderr
    );
    plan(&["--one-gpu-us", "0"]).expect_code(2);
}

/// Times of more GPUs than two follow from those of one and two alone.
#[test]
fn measured_times_of_one_and_two_gpus_scale_those_of_more() {
    let plan = |more: &[&str]| {
        let fixed = "plan --rows 11000000 --cols 28 --dense --dtype f32 --gpu h200 --json --gpus 8";
        run(fixed.split(' ').chain(more.iter().copied()))
    };
    let found = plan(&["--one-gpu-us", "1000", "--two-gpus-us", "600"]).expect_code(0);
    let found = found.json()["shared"].clone();
    let found = found.as_array().expect("a list").clone();
    let of = |name: &str| -> Vec<f64> { found.iter().map(|step| number(step, name)).collect() };
    let (products, sums) = (of("product_us"), of("sum_us"));
    assert_eq!(of("gpus"), [1.0, 2.0, 4.0, 8.0]);
    assert!((products[1] + sums[1] - 600.0).abs() < 1e-9, "{products:?}");
    // Each doubling halves what the GPUs divide.
    let saved: Vec<f64> = products.windows(2).map(|two| two[0] - two[1]).collect();
    assert!((saved[0] - 2.0 * saved[1]).abs() < 1e-9, "{saved:?}");
    assert!((saved[1] - 2.0 * saved[2]).abs() < 1e-9, "{saved:?}");
    plan(&["--two-gpus-us", "600"]).expect_code(2);
}

/// Over forms by columns a slice of the sum passes beside the next; over rows nothing does.
#[test]
fn sums_overlap_with_products_over_forms_by_columns() {
    let plan = |more: &[&str]| {
        let kddb =
            "plan --rows 19264097 --cols 29890095 --nnz 558658813 --dtype f32 --gpu h100 --gpus 4";
        run(kddb.split(' ').chain(more.iter().copied())).expect_code(0)
    };
    let rows = plan(&["--json"]).json();
    assert!(rows["shared"][2]["overlap"].is_null(), "{rows}");
    assert!(plan(&[]).stdout.contains("not of rows"));
    let announced = ["--evaluations", "2000"];
    let forms = plan(&["--json", "--evaluations", "2000"]).json();
    let four = &forms["shared"][2];
    let (sum, overlap) = (number(four, "sum_us"), &four["overlap"]);
    let (hidden, cost) = (number(overlap, "hidden_us"), number(overlap, "cost_us"));
    assert!(0.0 < cost && cost < hidden && hidden < sum, "{forms}");
    let text = plan(&announced).stdout;
    assert!(text.contains("pays: with"), "{text}");
}
