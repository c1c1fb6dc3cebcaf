//! The last block that draws a ticket sees what the others did, and nothing else does.

use gpu_kernels::{Cta, Launch, Out};

use super::super::{Diagnosis, Emulator, EmulatorOptions, Fault, Kernel};

const KERNEL: Kernel = Kernel {
    family: "test",
    entry: "tickets",
};
const BLOCKS: u32 = 5;

/// Where the kernel goes wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// No barrier between the block's writes and its ticket.
    NoBarrierBefore,
    /// No barrier between the ticket and the other threads' reads.
    NoBarrierAfter,
    /// Another block than the last goes on.
    NotTheLast,
}

/// Every thread writes its number; the last block adds all up.
fn body<C: Cta>(
    cta: &C,
    numbers: Out<'_, u32>,
    counter: Out<'_, u32>,
    sum: Out<'_, u32>,
    flaw: Flaw,
) {
    let shared = gpu_kernels::cta::Shared::<u32>::at(0, 1);
    let own = cta.block() * cta.threads() + cta.thread();
    cta.write(numbers, own as usize, own);
    if flaw != Flaw::NoBarrierBefore {
        cta.sync();
    }
    if cta.thread() == 0 {
        let drawn = cta.ticket(counter, 0, BLOCKS - 1);
        cta.shared_write(shared, 0, drawn);
    }
    let goes_on = if flaw == Flaw::NotTheLast {
        0
    } else {
        BLOCKS - 1
    };
    if flaw != Flaw::NoBarrierAfter {
        cta.sync();
    }
    let reader = if flaw == Flaw::NoBarrierAfter { 33 } else { 0 };
    let drawn = if flaw == Flaw::NoBarrierAfter {
        BLOCKS - 1
    } else {
        cta.shared_read(shared, 0)
    };
    if drawn == goes_on && cta.thread() == reader {
        let total = (0..BLOCKS * cta.threads())
            .map(|i| cta.read(numbers, i as usize))
            .sum();
        cta.write(sum, 0, total);
    }
}

fn run(seed: u64, flaw: Flaw) -> Result<u32, Box<Fault>> {
    let emulator = Emulator::new(EmulatorOptions::schedule(seed));
    let shape = Launch {
        grid: BLOCKS,
        block: 64,
        shared_bytes: 4,
    };
    let numbers = emulator
        .upload("numbers", &[0_u32; 64 * BLOCKS as usize])
        .expect("room");
    let counter = emulator.upload("counter", &[0_u32]).expect("room");
    let sum = emulator.upload("sum", &[0_u32]).expect("room");
    for _ in 0..2 {
        emulator.run(KERNEL, &shape, &|cta| {
            body(cta, numbers.output(), counter.output(), sum.output(), flaw);
        })?;
        assert_eq!(
            counter.download::<u32>().expect("written"),
            [0],
            "ready for the next launch"
        );
    }
    Ok(sum.download::<u32>().expect("written")[0])
}

#[test]
fn the_last_block_sees_all_others() {
    for seed in 0..16 {
        assert_eq!(
            run(seed, Flaw::None).expect("no fault"),
            (0..320).sum::<u32>()
        );
    }
}

#[test]
fn without_its_barriers_or_in_an_early_block_it_is_a_race() {
    for seed in 0..16 {
        for flaw in [
            Flaw::NoBarrierBefore,
            Flaw::NoBarrierAfter,
            Flaw::NotTheLast,
        ] {
            let fault = run(seed, flaw).expect_err("a race");
            assert_eq!(fault.kind.diagnosis(), Diagnosis::Race, "{fault}");
        }
    }
}
