//! The emulator as a device like any other.

use gpu_kernels::vector::{VectorArgs, VectorVariant, Vectors};
use gpu_kernels::{Family, In, Launch, Out};

use super::super::{Counting, Diagnosis, EmulatorOptions, Limits, Space};
use crate::device::buffer::RowLayout;
use crate::device::{Device, DeviceError};
use crate::plan::limits::DeviceLimits;

const SHAPE: Launch = Launch {
    grid: 2,
    block: 64,
    shared_bytes: 16,
};

fn fill(device: &Device, shape: Launch, len: u64) -> Result<Vec<f32>, DeviceError> {
    let mut out = device.zeros::<f32>(3)?;
    let entry = &Vectors::<f32>::entries()[0];
    assert_eq!(entry.variant, VectorVariant::Fill);
    device.prepare(entry, shape)?.launch(VectorArgs {
        len,
        alpha: 4.0,
        beta: 0.0,
        a: In::none(),
        b: In::none(),
        out: out.output(),
        partials: Out::none(),
        strides: [1; 2],
        figures: Out::none(),
        slots: [0; 3],
        counter: Out::none(),
    })?;
    out.to_vec()
}

/// The engine knows no devices: it repeats the numbers of the one that it stands for by default.
#[test]
fn the_engine_begins_with_the_limits_of_an_h200() {
    let h200 = DeviceLimits::known("h200").expect("a listed device");
    let own = Limits::default();
    assert_eq!(own.device, h200.name);
    assert_eq!(own.max_threads_per_block, h200.max_threads_per_block);
    assert_eq!(own.shared_per_block, h200.shared_per_block);
}

#[test]
fn a_prepared_kernel_runs_on_it() {
    let device: Device = "emulator".parse().expect("it is a name of the emulator");
    assert_eq!(fill(&device, SHAPE, 3), Ok(vec![4.0; 3]));
    assert_eq!(fill(&device, SHAPE, 2), Ok(vec![4.0, 4.0, 0.0]));
    assert!(matches!(
        fill(&device, SHAPE, 4),
        Err(DeviceError::Contract { .. })
    ));
}

#[test]
fn a_shape_beyond_its_limits_is_refused_when_prepared() {
    let device = Device::emulator(EmulatorOptions::default());
    let shape = Launch {
        block: 2048,
        ..SHAPE
    };
    match fill(&device, shape, 3) {
        Err(DeviceError::Fault(fault)) => assert_eq!(fault.kind.diagnosis(), Diagnosis::Limit),
        other => panic!("expected a fault, found {other:?}"),
    }
}

#[test]
fn buffers_are_copied_in_all_ways() -> Result<(), DeviceError> {
    let device: Device = "emulator:3".parse()?;
    let mut bytes = device.upload(&[1u8, 2, 3, 4, 5])?;
    bytes.write(1, &[9])?;
    assert_eq!(bytes.to_vec()?, [1, 9, 3, 4, 5]);
    assert_eq!(bytes.try_clone()?.to_vec()?, [1, 9, 3, 4, 5]);
    let mut on_cpu = Device::cpu().zeros::<u8>(5)?;
    on_cpu.copy_from(&bytes)?;
    bytes.fill_zero()?;
    assert_eq!(bytes.read_scalar(4)?, 0);
    bytes.copy_from(&on_cpu)?;
    assert_eq!(bytes.to_vec()?, [1, 9, 3, 4, 5]);
    assert!(bytes.as_host_slice().is_none() && bytes.device_address().is_none());
    Ok(())
}

#[test]
fn rows_are_pitched_with_zeros_between() -> Result<(), DeviceError> {
    let layout = RowLayout {
        rows: 2,
        cols: 2,
        pitch: 4,
    };
    let device = Device::emulator(EmulatorOptions::default());
    let rows = device.upload_rows(&[1.0f32, 2.0, 3.0, 4.0], layout)?;
    assert_eq!(rows.to_vec()?, [1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0]);
    Ok(())
}

#[test]
fn its_memory_is_counted_and_not_shared() -> Result<(), DeviceError> {
    let (device, other) = ("emulator".parse::<Device>()?, "emulator".parse::<Device>()?);
    let buffer = device.zeros::<f64>(10)?;
    assert_eq!(device.usage().live_bytes, 80);
    assert!(device.shares_memory_with(&device.clone()) && !device.shares_memory_with(&other));
    assert!(buffer.expect_on(&other, "test").is_err());
    drop(buffer);
    assert_eq!(
        (device.usage().live_bytes, device.usage().peak_bytes),
        (0, 80)
    );
    Ok(())
}

#[test]
fn copies_over_the_link_are_counted() -> Result<(), DeviceError> {
    let device = Device::emulator(EmulatorOptions::default());
    let buffer = device.upload(&[1.0_f64; 10])?;
    let zeros = device.zeros::<f32>(100)?;
    zeros.to_vec()?;
    buffer.read_scalar(3)?;
    let usage = device.usage();
    assert_eq!((usage.sent_bytes, usage.received_bytes), (80, 408));
    Ok(())
}

#[test]
fn what_does_not_fit_is_an_error() {
    let device = Device::emulator(EmulatorOptions::default());
    for bytes in [1usize << 39, 1 << 50] {
        let buffer = device.zeros::<u8>(bytes);
        assert!(
            matches!(buffer, Err(DeviceError::EmulatedMemory(_))),
            "{buffer:?}"
        );
    }
}

#[test]
fn it_is_found_under_the_name_that_it_prints() -> Result<(), DeviceError> {
    for name in ["emulator:0", "emulator:7"] {
        let device: Device = name.parse()?;
        assert_eq!(device.to_string(), name);
        assert!(device.limits().is_some() && !device.is_cpu());
    }
    assert!("emulator:x".parse::<Device>().is_err());
    Ok(())
}

#[test]
fn profiles_add_up_by_entry() -> Result<(), DeviceError> {
    let device = Device::emulator(EmulatorOptions {
        counting: Counting::Sites,
        ..EmulatorOptions::default()
    });
    fill(&device, SHAPE, 3)?;
    fill(&device, SHAPE, 2)?;
    let Device::Emulator(emulator) = &device else {
        panic!("{device} is an emulator");
    };
    let profiles = emulator.profiles();
    let fills = &profiles["vector_fill_f32"];
    assert_eq!((fills.blocks, fills.lane_steps), (4, 5));
    assert_eq!(fills.sites[0].0.space, Space::Global);
    Ok(())
}
