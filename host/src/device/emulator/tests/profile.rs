//! Counters: what is known by hand comes out.

use gpu_kernels::cta::Shared;
use gpu_kernels::{Cache, Cta, In, Launch, Out};

use super::super::{
    Action, Counting, Emulator, EmulatorOptions, Kernel, LaneOrder, Preemption, Profile, Space,
    Thread,
};

const KERNEL: Kernel = Kernel {
    family: "tests",
    entry: "counted",
};

/// Runs a body of one warp with 64 elements of f32 behind `x` and `out`.
fn counted(body: fn(&Thread<'_>, In<'_, f32>, Out<'_, f32>)) -> Profile {
    let options = EmulatorOptions {
        counting: Counting::Sites,
        ..EmulatorOptions::default()
    };
    run(options, body)
}

fn run(options: EmulatorOptions, body: fn(&Thread<'_>, In<'_, f32>, Out<'_, f32>)) -> Profile {
    let emulator = Emulator::new(options);
    let x = emulator.upload("x", &[1.0f32; 1024]).expect("small");
    let out = emulator.upload("out", &[0.0f32; 64]).expect("small");
    let shape = Launch {
        grid: 1,
        block: 32,
        shared_bytes: 32 * 32 * 4,
    };
    emulator
        .run(KERNEL, &shape, &|thread| {
            body(thread, x.input(), out.output())
        })
        .expect("the body is right")
}

#[test]
fn neighbouring_words_are_coalesced_and_strided_ones_are_not() {
    let near = counted(|cta, x, _| {
        cta.load::<f32>(x, cta.thread() as usize, Cache::Once);
    });
    let far = counted(|cta, x, _| {
        cta.load::<f32>(x, 8 * cta.thread() as usize, Cache::Once);
    });
    let [near, far] = [near, far].map(|profile| profile.total(Space::Global, Action::Load));
    assert_eq!((near.requests, near.accesses, near.sectors), (1, 32, 4));
    assert_eq!((far.requests, far.accesses, far.sectors), (1, 32, 32));
    assert_eq!((near.coalescing(), far.coalescing()), (1.0, 0.125));
}

#[test]
fn bank_conflicts_are_counted_by_distinct_words_of_a_bank() {
    let passes = |body: fn(&Thread<'_>, Shared<f32>)| {
        let emulator = Emulator::new(EmulatorOptions {
            counting: Counting::Sites,
            ..EmulatorOptions::default()
        });
        let shape = Launch {
            grid: 1,
            block: 32,
            shared_bytes: 32 * 33 * 4,
        };
        let profile = emulator
            .run(KERNEL, &shape, &|thread| {
                body(thread, Shared::at(0, 32 * 33))
            })
            .expect("the body is right");
        profile.total(Space::Shared, Action::Write).worst_conflict
    };
    let column = passes(|cta, tile| cta.shared_write(tile, 32 * cta.thread() as usize, 1.0));
    let padded = passes(|cta, tile| cta.shared_write(tile, 33 * cta.thread() as usize, 1.0));
    let pairs = passes(|cta, tile| cta.shared_write(tile, 2 * cta.thread() as usize, 1.0));
    assert_eq!((column, padded, pairs), (32, 1, 2));
}

#[test]
fn atomics_are_counted_by_address() {
    let profile = counted(|cta, _, out| cta.add(out, cta.thread() as usize % 2, 1.0));
    let atomics = &profile.atomics;
    assert_eq!((atomics.additions(), atomics.addresses()), (32, 2));
    let hottest = &atomics.hottest(1)[0];
    assert_eq!(
        (hottest.buffer.as_str(), hottest.index, hottest.count),
        ("out", 0, 16)
    );
    assert!(
        profile
            .to_string()
            .contains("32 global atomics to 2 addresses, most to out[0]: 16, out[1]: 16"),
        "{profile}"
    );
    let json = serde_json::to_value(&profile).expect("plain data");
    assert_eq!(json["atomics"]["hottest"][1]["index"], 1);
    assert_eq!(profile.total(Space::Global, Action::Add).contended, 30);
}

#[test]
fn loops_of_different_length_are_matched_by_iteration() {
    let profile = counted(|cta, x, _| {
        for i in 0..1 + cta.thread() as usize % 2 {
            cta.load::<f32>(x, 32 * i + cta.thread() as usize, Cache::Once);
        }
    });
    let loads = profile.total(Space::Global, Action::Load);
    assert_eq!(
        (loads.requests, loads.accesses, loads.divergent),
        (2, 48, 1)
    );
}

#[test]
fn counters_do_not_depend_on_the_schedule() {
    let body = |cta: &Thread<'_>, x: In<'_, f32>, out: Out<'_, f32>| {
        let value: f32 = cta.load(x, 3 * cta.thread() as usize, Cache::Once);
        cta.add(out, cta.thread() as usize / 3, value);
        cta.sync();
        cta.read(out, 40);
    };
    let in_order = counted(body);
    let permuted = run(
        EmulatorOptions {
            seed: 5,
            counting: Counting::Sites,
            lanes: LaneOrder::Permuted,
            preemption: Preemption::Accesses(2),
            ..EmulatorOptions::default()
        },
        body,
    );
    assert_eq!(in_order, permuted);
    assert_eq!((in_order.lane_steps, in_order.barriers), (4 * 32, 1));
    assert!(
        in_order
            .to_string()
            .contains("1 blocks, 128 lane steps, 1 barriers"),
        "{in_order}"
    );
}
