use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::cache::directory_of;
use super::*;
use crate::device::EmulatorOptions;

fn calibration() -> Calibration {
    Calibration {
        subject: Subject {
            device: "NVIDIA H200".to_owned(),
            sms: 132,
            driver_version: 13_000,
        },
        at: 1_795_262_400,
        probed: ProbedRates {
            shared_add_f32: 1.0 / 3.0 * 1e3,
            ..ProbedRates::h200()
        },
    }
}

/// Loads what `text` is as the file of [`calibration`].
fn load(text: &str) -> Result<Option<Calibration>, CalibrationError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = calibration().store_in(folder.path()).expect("stored");
    std::fs::write(path, text).expect("written");
    Calibration::load_from(folder.path(), &calibration().subject)
}

fn stored() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = calibration().store_in(folder.path()).expect("stored");
    std::fs::read_to_string(path).expect("read")
}

#[test]
fn what_was_stored_is_loaded_bit_by_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let below = folder.path().join("not/there/yet");
    let path = calibration().store_in(&below).expect("stored");
    let name = path.file_name().and_then(|name| name.to_str());
    assert_eq!(name, Some("calibration-nvidia-h200-132sm-cuda13000.json"));
    let loaded = Calibration::load_from(&below, &calibration().subject);
    assert_eq!(loaded, Ok(Some(calibration())));
    let newer = Calibration {
        at: 2_000_000_000,
        ..calibration()
    };
    newer.store_in(&below).expect("stored in its place");
    let loaded = Calibration::load_from(&below, &calibration().subject);
    assert_eq!(loaded, Ok(Some(newer)));
}

#[test]
fn without_a_file_there_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let load = |folder: &Path| Calibration::load_from(folder, &calibration().subject);
    assert_eq!(load(folder.path()), Ok(None));
    assert_eq!(load(&folder.path().join("absent")), Ok(None));
}

#[test]
fn another_driver_or_device_has_a_calibration_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    calibration().store_in(folder.path()).expect("stored");
    let newer = Subject {
        driver_version: 13_010,
        ..calibration().subject
    };
    assert_eq!(Calibration::load_from(folder.path(), &newer), Ok(None));
    let smaller = Subject {
        sms: 16,
        ..calibration().subject
    };
    assert_eq!(Calibration::load_from(folder.path(), &smaller), Ok(None));
}

#[test]
fn a_file_under_another_subjects_name_is_refused() {
    let text = stored().replace("13000", "12080");
    let error = load(&text).expect_err("another driver's");
    assert!(
        matches!(error, CalibrationError::OtherSubject { .. }),
        "{error}"
    );
    let message = error.to_string();
    assert!(
        message.contains("13000") && message.contains("12080"),
        "{message}"
    );
}

#[test]
fn a_spoilt_file_is_an_error_that_says_what_to_do() {
    let whole = stored();
    let other_version = whole.replace("\"version\": 1", "\"version\": 2");
    let no_rate = whole.replace("\"shared_count\"", "\"shared_cuont\"");
    let truncated = &whole[..whole.len() / 2];
    for text in [
        "",
        "{}",
        "[1, 2]",
        "\u{0}\u{1}",
        truncated,
        &other_version,
        &no_rate,
    ] {
        let error = load(text).expect_err(text);
        assert!(matches!(error, CalibrationError::Format { .. }), "{error}");
        assert!(error.to_string().contains("calibrate --force"), "{error}");
    }
}

#[test]
fn rates_that_no_device_has_are_refused() {
    for (good, bad) in [("1615.0", "0.0"), ("1615.0", "-5.0"), ("1615.0", "1e300")] {
        let error = load(&stored().replace(good, bad)).expect_err(bad);
        assert!(
            matches!(error, CalibrationError::Implausible { .. }),
            "{error}"
        );
    }
}

#[test]
fn files_lie_where_the_user_keeps_caches() {
    let text = |path: &str| Some(OsString::from(path));
    let found = directory_of(text("/c"), text("/home/a"));
    assert_eq!(found, Some(PathBuf::from("/c/warpfuse")));
    for relative in [None, text(""), text("cache")] {
        let found = directory_of(relative, text("/home/a"));
        assert_eq!(found, Some(PathBuf::from("/home/a/.cache/warpfuse")));
    }
    assert_eq!(directory_of(None, text("")), None);
    assert_eq!(directory_of(None, None), None);
}

#[test]
fn only_gpus_are_calibrated() {
    for device in [Device::cpu(), Device::emulator(EmulatorOptions::default())] {
        let error = Calibration::of(&device).expect_err("no GPU");
        assert!(error.to_string().contains("cuda:0"), "{error}");
    }
}

#[test]
fn all_probes_run_and_their_results_are_plausible_where_there_is_a_gpu() {
    let Ok(device) = Device::cuda(0) else {
        return;
    };
    let calibration = Calibration::of(&device).expect("a GPU with kernels");
    assert_eq!(calibration.probed.implausible(), None, "{calibration:?}");
}
