//! What is kept, for whom, and that nobody reads what was there before: on the CPU and the emulator.

use proptest::prelude::*;

use super::*;
use crate::device::{Buffer, Device, DeviceError, EmulatorOptions, MemoryOptions};

fn devices() -> [Device; 2] {
    [Device::cpu(), Device::emulator(EmulatorOptions::default())]
}

fn kept(bytes: usize) -> MemoryOptions {
    MemoryOptions {
        kept_bytes: Some(bytes),
        ..MemoryOptions::default()
    }
}

#[test]
fn the_next_buffer_of_a_size_gets_what_was_freed() {
    for device in devices() {
        for round in 0..10_u32 {
            let buffers = [100, 3_000].map(|len| device.upload(&vec![round; len]).unwrap());
            assert_eq!(buffers[1].to_vec().unwrap(), [round; 3_000]);
        }
        let usage = device.usage();
        assert_eq!((usage.allocations, usage.reused), (20, 18));
        assert_eq!((usage.live_bytes, usage.kept_bytes), (0, 12_400));
        assert_eq!((usage.peak_bytes, usage.reuse_rate()), (12_400, 0.9));
    }
}

#[test]
fn nobody_reads_what_was_there_before() {
    for device in devices() {
        drop(device.upload(&[7_u64; 1_000]).unwrap());
        let zeros = device.zeros::<u64>(1_000).unwrap();
        assert_eq!(zeros.to_vec().unwrap(), [0; 1_000]);
        drop(zeros);
        drop(device.upload(&[7_u64; 1_000]).unwrap());
        let layout = crate::device::buffer::RowLayout {
            rows: 250,
            cols: 3,
            pitch: 4,
        };
        let rows = device.upload_rows(&[1_u64; 750], layout).unwrap();
        let expected: Vec<u64> = (0..1_000).map(|i| u64::from(i % 4 != 3)).collect();
        assert_eq!(rows.to_vec().unwrap(), expected);
        assert_eq!(device.usage().reused, 3);
    }
}

#[test]
fn memory_that_was_never_written_shows_on_an_emulator_though_it_was_kept() {
    let device = Device::emulator(EmulatorOptions::default());
    drop(device.upload(&[7_u32; 10]).unwrap());
    let Device::Emulator(emulator) = &device else {
        panic!("{device} is an emulator");
    };
    let unwritten = emulator.storage(40).unwrap();
    assert_eq!(device.usage().reused, 1);
    assert!(unwritten.read_bytes(0, &mut [0; 4]).is_err());
}

#[test]
fn a_longer_block_serves_where_no_limit_says_what_fits() {
    let device = Device::cpu();
    drop(device.upload(&[1_u8; 9_000]).unwrap());
    let near = device.upload(&[2_u8; 8_000]).unwrap();
    let usage = device.usage();
    assert_eq!(
        (usage.reused, usage.live_bytes, usage.kept_bytes),
        (1, 8_000, 1_000)
    );
    assert_eq!(near.to_vec().unwrap(), [2; 8_000]);
    drop(near);
    assert_eq!(device.usage().kept_bytes, 9_000);
    // Not for much less, not for more, and not for less than all of it below a limit.
    let (small, large) = (device.zeros::<u8>(7_999), device.zeros::<u8>(9_001));
    device.limit_memory(MemoryOptions::limited(30_000));
    let limited = device.zeros::<u8>(8_999).unwrap();
    assert_eq!(device.usage().reused, 1);
    drop((small, large, limited));
}

#[test]
fn no_more_is_kept_than_asked_for() {
    for device in devices() {
        device.limit_memory(kept(10_000));
        let sizes = [4_000, 3_000, 2_000, 1_000, 10_001, 5_000];
        let buffers = sizes.map(|len| device.zeros::<u8>(len).unwrap());
        drop(buffers);
        // 5,000 is the last; for it went those that were freed first, and 10,001 was never kept.
        assert_eq!(device.usage().kept_bytes, 8_000);
        let reused = |len| {
            let before = device.usage().reused;
            drop(device.zeros::<u8>(len));
            device.usage().reused > before
        };
        assert_eq!([5_000, 1_000, 2_000].map(reused), [true; 3]);
        assert!(!reused(4_000) && !reused(10_001));
        device.limit_memory(kept(0));
        assert_eq!(device.usage().kept_bytes, 0);
        assert!(!reused(5_000) && device.usage().kept_bytes == 0);
    }
}

#[test]
fn kept_blocks_make_room_below_the_limit() {
    for device in devices() {
        device.limit_memory(MemoryOptions::limited(1_000));
        drop([300, 300, 400].map(|len| device.zeros::<u8>(len)));
        assert_eq!(
            (device.usage().kept_bytes, device.room().unwrap_or(1_000)),
            (1_000, 1_000)
        );
        let most = device.upload(&[1_u8; 700]).expect("kept blocks go");
        assert_eq!(
            (device.usage().live_bytes, device.usage().kept_bytes),
            (700, 0)
        );
        let error = device.zeros::<u8>(301).unwrap_err();
        assert!(
            matches!(error, DeviceError::OutOfMemory { free: 300, .. }),
            "{error}"
        );
        assert_eq!(most.to_vec().unwrap(), [1; 700]);
        drop(most);
        assert!(device.zeros::<u8>(1_001).is_err());
        // What cannot be had at all frees nothing.
        assert_eq!(device.usage().kept_bytes, 700);
        device.limit_memory(MemoryOptions::limited(699));
        assert_eq!(device.usage().kept_bytes, 0);
        assert!(device.zeros::<u8>(699).is_ok());
    }
}

#[test]
fn a_driver_without_memory_gets_back_what_is_kept() {
    let ledger = Ledger::default();
    let (held, block) = ledger.claim::<u8>(100, Fit::Near).unwrap();
    assert!(block.is_none());
    held.keep(7_u8);
    assert_eq!((ledger.free_for(10), ledger.free_for(10)), (100, 0));
    assert_eq!(ledger.usage().kept_bytes, 0);
    let (_, block) = ledger.claim::<u8>(100, Fit::Near).unwrap();
    assert!(block.is_none());
}

#[test]
fn blocks_of_a_size_are_taken_last_first_and_trimmed_first_first() {
    let ledger = Ledger::default();
    let held: Vec<_> = (0..3)
        .filter_map(|_| ledger.claim::<usize>(10, Fit::Exact))
        .collect();
    for (number, (held, _)) in held.into_iter().enumerate() {
        held.keep(number);
    }
    assert_eq!(ledger.trim(1), 10);
    let taken = [0; 3].map(|_| ledger.claim::<usize>(10, Fit::Exact).unwrap());
    assert_eq!(
        taken.each_ref().map(|(_, block)| *block),
        [Some(2), Some(1), None]
    );
    assert_eq!(
        (ledger.usage().live_bytes, ledger.usage().kept_bytes),
        (30, 0)
    );
    drop(taken);
    assert_eq!(ledger.reserved(), 0);
}

#[test]
fn an_allocation_fails_when_it_is_told_to_also_where_a_block_is_kept() {
    for device in devices() {
        drop(device.zeros::<u8>(100));
        device.fail_after(Some(1));
        assert!(device.zeros::<u8>(100).is_err());
        assert_eq!(device.usage().kept_bytes, 100);
        assert!(device.zeros::<u8>(100).is_ok());
        assert_eq!(device.usage().reused, 1);
    }
}

#[test]
fn threads_that_share_blocks_find_their_own_values_below_the_limit() {
    use rayon::prelude::*;
    let device = Device::cpu();
    device.limit_memory(MemoryOptions::limited(4_000));
    (0..4_000_u32).into_par_iter().for_each(|at| {
        let values = vec![at; 10 + at as usize % 7];
        if let Ok(buffer) = device.upload(&values) {
            assert_eq!(buffer.to_vec().unwrap(), values);
        }
        let usage = device.usage();
        assert!(usage.live_bytes <= 4_000, "{usage:?}");
    });
    let usage = device.usage();
    assert_eq!(usage.live_bytes, 0);
    assert!(usage.kept_bytes <= 4_000 && usage.reused > 0, "{usage:?}");
}

/// What one operation of the shadow test does.
#[derive(Debug, Clone)]
enum Step {
    Upload(u16),
    Zeros(u16),
    Drop(usize),
    Write(usize),
    Limit(Option<usize>, Option<usize>),
}

fn step() -> impl Strategy<Value = Step> {
    let limit = || proptest::option::of(0_usize..8_000);
    prop_oneof![
        4 => (0_u16..1_500).prop_map(|len| Step::Upload(len / 100 * 100)),
        3 => (0_u16..1_500).prop_map(|len| Step::Zeros(len / 100 * 100)),
        5 => any::<usize>().prop_map(Step::Drop),
        2 => any::<usize>().prop_map(Step::Write),
        1 => (limit(), limit()).prop_map(|(limit, kept)| Step::Limit(limit, kept)),
    ]
}

/// Buffers, and what must be in them.
type Shadowed = Vec<(Buffer<u16>, Vec<u16>)>;

fn perform(device: &Device, held: &mut Shadowed, step: &Step, number: u16) {
    let refused = |found: Result<Buffer<u16>, DeviceError>| match found {
        Ok(buffer) => Some(buffer),
        Err(DeviceError::OutOfMemory { .. }) => None,
        Err(error) => panic!("{error}"),
    };
    match *step {
        Step::Upload(len) => {
            let values: Vec<u16> = (0..len).map(|i| i ^ number).collect();
            held.extend(refused(device.upload(&values)).map(|buffer| (buffer, values)));
        }
        Step::Zeros(len) => {
            let buffer = refused(device.zeros(len.into()));
            held.extend(buffer.map(|buffer| (buffer, vec![0; len.into()])));
        }
        Step::Drop(at) if !held.is_empty() => drop(held.swap_remove(at % held.len())),
        Step::Write(at) if !held.is_empty() => {
            let at = at % held.len();
            let (buffer, values) = &mut held[at];
            values.fill(number);
            buffer.copy_from_slice(values).unwrap();
        }
        Step::Drop(_) | Step::Write(_) => {}
        Step::Limit(limit_bytes, kept_bytes) => device.limit_memory(MemoryOptions {
            limit_bytes,
            kept_bytes,
            ..MemoryOptions::default()
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Beside a copy of every buffer on the host, under limits that change.
    #[test]
    fn every_buffer_holds_its_own_values(steps in prop::collection::vec(step(), 0..80)) {
        for device in devices() {
            let mut held: Shadowed = Vec::new();
            for (number, step) in steps.iter().enumerate() {
                let before = device.usage().live_bytes;
                perform(&device, &mut held, step, number as u16);
                for (buffer, values) in &held {
                    prop_assert_eq!(&buffer.to_vec().unwrap(), values, "after {:?}", step);
                }
                let (usage, options) = (device.usage(), device.memory_options());
                let bytes: usize = held.iter().map(|(_, values)| 2 * values.len()).sum();
                prop_assert_eq!(usage.live_bytes, bytes);
                // Blocks longer than their buffers, from before there was a limit, and buffers beyond a lower one stay.
                if let Some(limit) = options.limit_bytes && usage.live_bytes > before {
                    prop_assert!(usage.live_bytes + usage.kept_bytes <= limit, "{:?}", usage);
                }
                if let Some(most) = options.kept_bytes {
                    prop_assert!(device.ledger().freeable() <= most, "{:?}", usage);
                }
            }
            drop(held);
            prop_assert_eq!(device.usage().live_bytes, 0);
            device.limit_memory(kept(0));
            prop_assert_eq!(device.usage().kept_bytes, 0);
        }
    }
}
