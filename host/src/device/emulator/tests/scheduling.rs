//! Orders, exchanges between lanes, memory.

use std::sync::Mutex;

use gpu_kernels::cta::{Cta, Shared};
use gpu_kernels::verbs::{FULL, sum_block};
use gpu_kernels::{Launch, Shuffle};

use super::super::{BlockOrder, Emulator, EmulatorOptions, FaultKind, Kernel, MemoryError};
use super::schedules;
use crate::plan::limits::DeviceLimits;

const KERNEL: Kernel = Kernel {
    family: "tests",
    entry: "scheduled",
};

fn shape(grid: u32, block: u32) -> Launch {
    Launch {
        grid,
        block,
        shared_bytes: 8 * block,
    }
}

/// The order in which the threads of a launch run.
fn order(options: EmulatorOptions) -> Vec<(u32, u32)> {
    let seen = Mutex::new(Vec::new());
    let shape = shape(5, 96);
    Emulator::new(options)
        .run(KERNEL, &shape, &|cta| {
            seen.lock()
                .expect("nobody panics")
                .push((cta.block(), cta.thread()));
        })
        .expect("the body is right");
    seen.into_inner().expect("nobody panics")
}

#[test]
fn the_same_seed_gives_the_same_order_and_another_seed_another() {
    let [once, again, other] = [1, 1, 2].map(|seed| order(EmulatorOptions::schedule(seed)));
    assert_eq!(once, again);
    assert_ne!(once, other);
}

#[test]
fn every_thread_runs_once_under_every_schedule() {
    let all = order(EmulatorOptions::default());
    assert!(all.is_sorted(), "without a seed threads run in order");
    assert_eq!(all.len(), 5 * 96);
    for seed in 1..9 {
        let mut seen = order(EmulatorOptions::schedule(seed));
        seen.sort_unstable();
        assert_eq!(seen, all, "schedule {seed}");
    }
}

#[test]
fn shuffles_and_votes_exchange_what_they_say() {
    for emulator in schedules() {
        let run = emulator.run(KERNEL, &shape(2, 64), &|cta| {
            let lane = cta.thread() % 32;
            let next = cta.shuffle(lane as f64, Shuffle::Down(1), 8, FULL);
            let end = lane % 8 == 7;
            assert_eq!(next, f64::from(if end { lane } else { lane + 1 }));
            assert_eq!(cta.ballot(lane.is_multiple_of(3), FULL), 0x4924_9249);
            let sum = sum_block(cta, 1.0f64, Shared::at(0, 2));
            assert_eq!(sum, 64.0);
        });
        if let Err(fault) = run {
            panic!("schedule {}: {fault}", emulator.options().seed);
        }
    }
}

/// What PTX says of `shfl.sync`: the source lane, or the own one beyond the group's bounds.
fn source(lane: u32, from: Shuffle, width: u32) -> u32 {
    let (first, last) = (lane / width * width, lane / width * width + width - 1);
    let (other, inside) = match from {
        Shuffle::Xor(mask) => (lane ^ mask, (lane ^ mask) <= last),
        Shuffle::Down(by) => (lane + by, lane + by <= last),
        Shuffle::Up(by) => (lane.wrapping_sub(by), lane >= first + by),
        Shuffle::Index(index) => (first + index % width, true),
    };
    if inside { other } else { lane }
}

#[test]
fn shuffles_of_all_modes_widths_and_masks() {
    let modes: [fn(u32) -> Shuffle; 4] = [Shuffle::Xor, Shuffle::Down, Shuffle::Up, Shuffle::Index];
    for emulator in schedules() {
        let run = emulator.run(KERNEL, &shape(1, 64), &|cta| {
            let lane = cta.thread() % 32;
            for width in [1, 2, 4, 8, 16, 32] {
                // Every group of 16 lanes on its own, or the whole warp.
                let members = if width < 32 {
                    0xffff << (lane / 16 * 16)
                } else {
                    FULL
                };
                for (mode, by) in modes.iter().flat_map(|mode| [0, 1, 3].map(|by| (mode, by))) {
                    let from = mode(by % width);
                    let value = cta.shuffle(u64::from(lane) << 40, from, width, members);
                    assert_eq!(
                        value >> 40,
                        u64::from(source(lane, from, width)),
                        "{from:?}"
                    );
                }
                let votes = cta.ballot(lane.is_multiple_of(5), members);
                assert_eq!(votes, 0x4210_8421 & members);
            }
        });
        if let Err(fault) = run {
            panic!("schedule {}: {fault}", emulator.options().seed);
        }
    }
}

#[test]
fn blocks_in_parallel_share_atomics() {
    let emulator = Emulator::new(EmulatorOptions {
        blocks: BlockOrder::Parallel,
        ..EmulatorOptions::default()
    });
    let sum = emulator.upload("sum", &[0.0f32]).expect("small");
    let run = emulator.run(KERNEL, &shape(64, 64), &|cta| {
        cta.add(sum.output(), 0, 1.0f32)
    });
    assert_eq!(
        run.map(|profile| (profile.blocks, profile.lane_steps)),
        Ok((64, 4096))
    );
    assert_eq!(sum.download::<f32>(), Ok(vec![4096.0]));
}

#[test]
fn the_chosen_device_limits_a_launch() {
    for (name, kilobytes) in [("titan", 48), ("a100", 163), ("h200", 227)] {
        let limits = DeviceLimits::known(name).expect("it is known");
        let emulator = Emulator::of(limits, EmulatorOptions::default());
        let run = |shape: Launch| emulator.run(KERNEL, &shape, &|_| {}).map_err(|f| f.kind);
        let with = |shared_bytes| Launch {
            shared_bytes,
            ..shape(1, 32)
        };
        let most = kilobytes * 1024;
        assert!(run(with(most)).is_ok(), "{name}");
        let excess = run(with(most + 4)).expect_err("it has no more");
        assert!(
            matches!(&excess, FaultKind::Limit { limit, .. } if *limit == u64::from(most)),
            "{name}: {excess}"
        );
        assert!(
            run(Launch {
                block: 1025,
                ..with(0)
            })
            .is_err(),
            "{name}"
        );
        assert!(run(Launch { grid: 0, ..with(0) }).is_err(), "{name}");
    }
}

#[test]
fn a_fault_leaves_the_device_usable() {
    let emulator = Emulator::new(EmulatorOptions::default());
    let x = emulator.upload("x", &[0.0f32]).expect("small");
    let out_of_bounds = emulator.run(KERNEL, &shape(1, 32), &|cta| {
        cta.write(x.output(), cta.thread() as usize, 1.0f32);
        cta.sync();
    });
    assert!(out_of_bounds.is_err());
    let right = emulator.run(KERNEL, &shape(1, 32), &|cta| {
        cta.add(x.output(), 0, 1.0f32);
        cta.sync();
    });
    assert_eq!(right.map(|profile| profile.lane_steps), Ok(64));
}

#[test]
fn accesses_of_different_launches_are_ordered() {
    let emulator = Emulator::new(EmulatorOptions::default());
    let x = emulator.upload("x", &[0.0f32; 2]).expect("small");
    for turn in 0..2 {
        let run = emulator.run(KERNEL, &shape(1, 32), &|cta| {
            if cta.thread() == turn {
                cta.write(x.output(), 0, turn as f32);
                cta.read::<f32>(x.output(), 1);
            }
        });
        assert!(run.is_ok());
    }
}

#[test]
fn copies_keep_to_the_buffer_and_to_what_was_written() {
    let emulator = Emulator::new(EmulatorOptions::default());
    let x = emulator.allocate("x", 12).expect("small");
    x.write_bytes(3, &[1, 2, 3]).expect("it fits");
    let mut bytes = [0; 4];
    x.read_bytes(2, &mut bytes)
        .expect("the first two words are written");
    assert_eq!(bytes, [0, 1, 2, 3]);
    let poison = MemoryError::Uninitialised {
        buffer: "x".to_owned(),
        byte: 8,
    };
    assert_eq!(x.read_bytes(8, &mut bytes), Err(poison));
    assert!(matches!(
        x.write_bytes(9, &bytes),
        Err(MemoryError::OutOfBounds { end: 13, .. })
    ));
    x.write_zeros();
    assert_eq!(x.download::<u32>(), Ok(vec![0; 3]));
}
