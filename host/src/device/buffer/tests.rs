use proptest::prelude::*;

use super::*;
use crate::device::Usage;

fn cpu() -> Device {
    Device::cpu()
}

#[test]
fn values_come_back() {
    let values: Vec<f64> = (0..1000).map(f64::from).collect();
    let mut buffer = cpu().upload(&values).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), values);
    assert_eq!(buffer.read_scalar(999).unwrap(), 999.0);
    buffer.write(10, &[-1.0, -2.0]).unwrap();
    let mut part = [0.0; 4];
    buffer.read(9, &mut part).unwrap();
    assert_eq!(part, [9.0, -1.0, -2.0, 12.0]);
    buffer.fill_zero().unwrap();
    assert!(buffer.as_host_slice().unwrap().iter().all(|&x| x == 0.0));
}

#[test]
fn empty_buffers_work() {
    let mut buffer = cpu().upload::<u32>(&[]).unwrap();
    assert!(buffer.is_empty() && buffer.to_vec().unwrap().is_empty());
    buffer.copy_from_slice(&[]).unwrap();
    buffer.fill_zero().unwrap();
    assert_eq!(buffer.try_clone().unwrap().len(), 0);
    assert!(matches!(
        buffer.read_scalar(0),
        Err(DeviceError::OutOfBounds { .. })
    ));
}

#[test]
fn host_storage_is_aligned_and_mutable() {
    let mut buffer = cpu().zeros::<u8>(3).unwrap();
    assert_eq!(buffer.as_host_slice().unwrap().as_ptr() as usize % 64, 0);
    buffer.as_host_slice_mut().unwrap()[2] = 7;
    assert_eq!(buffer.to_vec().unwrap(), [0, 0, 7]);
}

#[test]
fn wrong_lengths_are_errors() {
    let mut buffer = cpu().zeros::<f32>(3).unwrap();
    let error = buffer.copy_from_slice(&[1.0]).unwrap_err();
    assert!(matches!(
        error,
        DeviceError::LengthMismatch {
            expected: 3,
            found: 1,
            ..
        }
    ));
    assert!(buffer.copy_to_slice(&mut [0.0; 4]).is_err());
    assert!(buffer.copy_from(&cpu().zeros(2).unwrap()).is_err());
    let error = buffer.write(2, &[0.0; 2]).unwrap_err();
    assert!(matches!(
        error,
        DeviceError::OutOfBounds {
            start: 2,
            end: 4,
            len: 3,
            ..
        }
    ));
    assert!(buffer.read(usize::MAX, &mut [0.0; 2]).is_err());
}

#[test]
fn sizes_beyond_the_address_space_are_errors() {
    let error = cpu().zeros::<f64>(usize::MAX / 4).unwrap_err();
    assert!(
        matches!(
            error,
            DeviceError::SizeOverflow {
                element_bytes: 8,
                ..
            }
        ),
        "{error}"
    );
    assert!(cpu().zeros::<f64>(usize::MAX / 16).is_err());
}

#[test]
fn too_much_memory_is_an_error() {
    let error = cpu().zeros::<u8>(isize::MAX as usize - 4096).unwrap_err();
    assert!(matches!(error, DeviceError::OutOfMemory { .. }), "{error}");
}

#[test]
fn usage_falls_back_to_zero() {
    let device = cpu();
    let first = device.zeros::<f32>(1000).unwrap();
    let second = first.try_clone().unwrap();
    let held = || (device.usage().live_bytes, device.usage().peak_bytes);
    assert_eq!(held(), (8000, 8000));
    drop((first, second));
    assert_eq!(held(), (0, 8000));
}

#[test]
fn copies_between_buffers() {
    let from = cpu().upload(&[1_u64, 2, 3]).unwrap();
    let mut to = cpu().zeros(3).unwrap();
    to.copy_from(&from).unwrap();
    assert_eq!(to.to_vec().unwrap(), [1, 2, 3]);
}

#[test]
fn rows_keep_their_gaps_zero() {
    let values: Vec<u32> = (1..=6).collect();
    let layout = RowLayout {
        rows: 2,
        cols: 3,
        pitch: 4,
    };
    let buffer = cpu().upload_rows(&values, layout).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [1, 2, 3, 0, 4, 5, 6, 0]);
    let packed = cpu()
        .upload_rows(&values, RowLayout { pitch: 3, ..layout })
        .unwrap();
    assert_eq!(packed.to_vec().unwrap(), values);
}

#[test]
fn impossible_rows_are_errors() {
    let layout = RowLayout {
        rows: 2,
        cols: 3,
        pitch: 4,
    };
    assert!(cpu().upload_rows(&[0_u32; 5], layout).is_err());
    assert!(
        cpu()
            .upload_rows(&[0_u32; 6], RowLayout { pitch: 2, ..layout })
            .is_err()
    );
    let huge = RowLayout {
        rows: usize::MAX,
        cols: 2,
        pitch: 3,
    };
    let error = cpu().upload_rows(&[0_u32; 6], huge).unwrap_err();
    assert!(matches!(error, DeviceError::SizeOverflow { .. }));
    let empty = RowLayout {
        rows: 0,
        cols: 0,
        pitch: 0,
    };
    assert!(cpu().upload_rows::<u32>(&[], empty).unwrap().is_empty());
}

#[test]
fn a_cpu_buffer_is_no_kernel_argument() {
    let mut buffer = cpu().zeros::<f32>(4).unwrap();
    assert!(!buffer.input().is_some());
    assert!(buffer.output().is_empty() && buffer.device_address().is_none());
}

#[test]
fn buffers_know_their_device() {
    let buffer = cpu().zeros::<f32>(1).unwrap();
    assert!(buffer.device().is_cpu());
    buffer.expect_on(&cpu(), "test").unwrap();
    assert_eq!(format!("{buffer:?}"), "Buffer<f32>(1 on cpu)");
}

proptest! {
    /// A buffer behaves as a vector does, errors included, for every range.
    #[test]
    fn reads_and_writes_are_those_of_a_vector(
        len in 0_usize..40,
        start in 0_usize..45,
        values in prop::collection::vec(any::<u16>(), 0..45),
    ) {
        let mut model: Vec<u16> = (0..len as u16).collect();
        let mut buffer = cpu().upload(&model).unwrap();
        let range = start..start + values.len();
        let written = buffer.write(start, &values);
        match model.get_mut(range.clone()) {
            Some(part) => part.copy_from_slice(&values),
            None => {
                let refused = matches!(written, Err(DeviceError::OutOfBounds { .. }));
                prop_assert!(refused, "{:?}", written);
            }
        }
        prop_assert_eq!(buffer.to_vec().unwrap(), &model[..]);
        let mut read = vec![0; values.len()];
        prop_assert_eq!(buffer.read(start, &mut read).is_ok(), model.get(range.clone()).is_some());
        if let Some(part) = model.get(range) {
            prop_assert_eq!(&read[..], part);
        }
    }
}

#[test]
fn values_are_filled_in_parts_and_counted() {
    let emulator = Device::emulator(crate::device::EmulatorOptions::default());
    for device in [cpu(), emulator] {
        // Enough to be filled by several threads on the CPU.
        let len = (5 << 20) / 12 + 1;
        let value = |i: usize| [i as u32, 2 * i as u32, 7];
        let mut buffer = device
            .upload_with(len, |range, to: &mut [[u32; 3]]| {
                assert_eq!(range.len(), to.len());
                to.iter_mut().zip(range).for_each(|(to, i)| *to = value(i));
            })
            .unwrap();
        let expected: Vec<_> = (0..len).map(value).collect();
        assert!(buffer.to_vec().unwrap() == expected);
        buffer
            .write_with(2, 3, |range, to| to.fill([range.start as u32; 3]))
            .unwrap();
        let mut part = [[0; 3]; 5];
        buffer.read(1, &mut part).unwrap();
        assert_eq!(part, [value(1), [0; 3], [0; 3], [0; 3], value(5)]);
        assert!(buffer.write_with(len, 1, |_, _| {}).is_err());
        let Usage {
            sent_bytes,
            received_bytes,
            ..
        } = device.usage();
        let sizes = [len + 3, len + 5].map(|values| 12 * values as u64);
        assert_eq!([sent_bytes, received_bytes], sizes);
    }
}

#[test]
fn nothing_is_filled_for_an_empty_buffer() {
    let never = |_: Range<usize>, _: &mut [f64]| panic!("there is nothing to fill");
    assert!(cpu().upload_with(0, never).unwrap().is_empty());
}
