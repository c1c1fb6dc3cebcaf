use super::*;

fn driver_is_absent() -> bool {
    matches!(Device::cuda(0), Err(DeviceError::NoDriver { .. }))
}

#[test]
fn auto_always_gives_a_device_and_a_reason_for_the_cpu() {
    let choice = Device::auto_with_reason();
    assert_eq!(choice.device.is_cpu(), choice.no_cuda.is_some());
    assert!(!Device::auto().name().is_empty());
}

#[test]
fn no_driver_comes_with_a_remedy() {
    match Device::cuda(0) {
        Err(DeviceError::NoDriver { cause, remedy }) => {
            assert!(
                !cause.is_empty() && remedy.contains("cpu"),
                "{cause}; {remedy}"
            );
            assert!(Device::auto().is_cpu());
        }
        Ok(device) => assert_eq!(device.to_string(), "cuda:0"),
        Err(other) => assert!(matches!(other, DeviceError::NoDevice { .. }), "{other}"),
    }
}

#[test]
fn texts_name_devices() {
    assert_eq!("cpu".parse::<Device>().unwrap().to_string(), "cpu");
    assert!("auto".parse::<Device>().is_ok());
    if driver_is_absent() {
        for text in ["cuda", "cuda:0", "cuda:1"] {
            let error = text.parse::<Device>().unwrap_err();
            assert!(
                matches!(error, DeviceError::NoDriver { .. }),
                "{text}: {error}"
            );
        }
    }
}

#[test]
#[cfg(feature = "emulator")]
fn texts_name_emulators() {
    let sms = |text: &str| text.parse::<Device>().unwrap().limits().unwrap().sms;
    assert_eq!(
        ["emulator", "emulator:3", "emulator:3:4"].map(sms),
        [132, 132, 4]
    );
}

#[test]
fn other_texts_are_errors_that_list_the_choices() {
    for text in [
        "",
        "gpu",
        "CPU",
        "cuda:",
        "cuda:x",
        "cuda:-1",
        "cpu:0",
        "cuda:1:2",
        "cuda:99999999999",
        "emulator:x",
        "emulator:1:",
        "emulator:1:0",
        "emulator:1:2:3",
    ] {
        let error = text.parse::<Device>().unwrap_err();
        assert_eq!(
            error,
            DeviceError::UnknownDevice {
                text: text.to_owned()
            }
        );
        assert!(error.to_string().contains("cuda:N"));
    }
}

#[test]
fn the_cpu_has_a_name_and_no_limits() {
    let device = Device::cpu();
    assert!(!device.name().is_empty());
    assert!(device.limits().is_none() && device.driver_version().is_none());
    assert!(device.shares_memory_with(&Device::cpu()));
    device.synchronize().unwrap();
}
