//! `warpfuse emulate`.

use crate::program::{diabetes, run};

#[test]
fn the_self_check_tells_all_kernels_apart() {
    let report = run(["emulate", "--self-check", "--seeds", "2", "--json"])
        .expect_code(0)
        .json();
    let number = |pointer: &str| report.pointer(pointer).and_then(|value| value.as_f64());
    assert!(number("/broken/of") >= Some(20.0), "{report}");
    assert_eq!(number("/broken/caught"), number("/broken/of"), "{report}");
    assert_eq!(number("/twins/accused"), Some(0.0), "{report}");
    assert!(number("/lane_steps_per_second") > Some(0.0), "{report}");
}

#[test]
fn the_speed_of_lanes_is_measured() {
    let speed = run(["emulate", "--speed", "--json"]).expect_code(0).json();
    for name in ["lane_steps_per_second", "nanoseconds_per_switch"] {
        assert!(speed[name].as_f64() > Some(0.0), "{speed}");
    }
    run(["emulate", "--speed", "--self-check"]).expect_code(2);
}

#[test]
fn a_product_is_checked_and_counted() {
    let data = diabetes();
    for product in ["fused", "forward", "transposed"] {
        let arguments = ["emulate", &data, "--product", product];
        let text = run(arguments).expect_code(0).stdout;
        assert!(
            text.starts_with("NVIDIA H200, emulated: no fault"),
            "{text}"
        );
        assert!(text.contains("global read-only load"), "{text}");
        let json = run(arguments.into_iter().chain(["--json"]))
            .expect_code(0)
            .json();
        let kernels = json["kernels"].as_object().expect("an object by entry");
        assert!(
            kernels
                .values()
                .any(|profile| profile["lane_steps"].as_u64() > Some(1000))
        );
    }
}

#[test]
fn a_model_is_fitted_on_the_emulator_as_on_the_cpu() {
    let data = diabetes();
    let fit = |device: &str| {
        let arguments = ["train", "linreg", &data, "--json", "--device", device];
        run(arguments).expect_code(0).json()["r2"]
            .as_f64()
            .expect("a number")
    };
    let (cpu, emulator) = (fit("cpu"), fit("emulator:2"));
    assert!(
        (cpu - emulator).abs() < 1e-9,
        "{cpu} on the CPU, {emulator} emulated"
    );
}

#[test]
fn x_that_does_not_fit_streams_says_so_and_gives_the_same_model() {
    let data = diabetes();
    let fit = |limit: &str| {
        let mut arguments = vec!["--gpu-memory", limit, "train", "linreg", &data, "--json"];
        arguments.extend(["--solver", "newton-cg", "--device", "emulator"]);
        let run = run(arguments).expect_code(0);
        let says = run.stderr.contains("X does not fit the device");
        (run.json()["r2"].as_f64().expect("a number"), says)
    };
    let ((all, says_nothing), (part, says)) = (fit("1GiB"), fit("48KiB"));
    assert!(
        (all - part).abs() < 1e-9,
        "{all} from X, {part} from blocks"
    );
    assert!(!says_nothing && says, "a remark where X streams alone");
}
