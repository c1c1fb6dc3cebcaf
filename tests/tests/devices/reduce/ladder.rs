//! The lecture's steps: right on every length, and each with the cost that it is there to show.

use anyhow::{Result, ensure};
use warpfuse::device::emulator::{Action, Counting, Profile, Space};
use warpfuse::device::{Device, EmulatorOptions};
use warpfuse::ops::reduce::ladder::{Climber, STEPS, Step};
use warpfuse::reference::reduce::sum;
use warpfuse::reference::rounding::UNIT_F32;
use warpfuse_tests::Subset;
use warpfuse_tests::tolerance::growth;

use super::super::suite::{Suite, Test};
use super::{close, doubles, draw};

const LENGTHS: [usize; 8] = [1, 255, 256, 257, 512, 513, 4_099, 300_001];

/// Adds all steps.
pub fn add(suite: &mut Suite) {
    for step in STEPS {
        for len in LENGTHS {
            let subset = if len > 10_000 {
                Subset::Full
            } else {
                Subset::Small
            };
            let name = format!("reduce/ladder/{step:?}/{len}");
            let test = Test::new(name).of_entries().within(subset);
            suite.add(test, move |device| run(device, step, len));
        }
    }
    suite.add(Test::new("reduce/ladder/costs").of_entries(), costs);
}

fn run(device: &Device, step: Step, len: usize) -> Result<()> {
    let x = draw::<f32>(len, len as u64);
    let mut climber = Climber::new(device, step, len)?;
    climber.submit(&device.upload(&x)?)?;
    let truth = sum(doubles(&x));
    let bound = growth(len + 1, UNIT_F32) * truth.magnitude;
    close("sum", climber.fetch()?.into(), truth.value, bound)
}

/// What the emulator counts of one block's reduction.
fn profile(step: Step) -> Result<Profile> {
    let options = EmulatorOptions {
        counting: Counting::Sites,
        ..EmulatorOptions::default()
    };
    let device = Device::emulator(options);
    let len = 256 * step.per_thread() as usize;
    Climber::new(&device, step, len)?.submit(&device.upload(&vec![1.0_f32; len])?)?;
    let Device::Emulator(emulator) = &device else {
        unreachable!("an emulator was made");
    };
    let profiles = emulator.profiles();
    Ok(profiles.into_values().next().unwrap_or_default())
}

/// Each step cures what it is said to cure.
fn costs(_: &Device) -> Result<()> {
    let of = |step| -> Result<(u64, u64, u64, u64)> {
        let profile = profile(step)?;
        let reads = profile.total(Space::Shared, Action::Read);
        let writes = profile.total(Space::Shared, Action::Write);
        let requests = reads.requests + writes.requests;
        let conflicts = reads.bank_passes + writes.bank_passes - requests;
        let divergent = reads.divergent + writes.divergent;
        Ok((requests, conflicts, divergent, profile.barriers))
    };
    let [v0, v1, v2, v3, v4, v5] = [
        of(STEPS[0])?,
        of(STEPS[1])?,
        of(STEPS[2])?,
        of(STEPS[3])?,
        of(STEPS[4])?,
        of(STEPS[5])?,
    ];
    ensure!(
        v1.2 < v0.2 && v1.0 < v0.0,
        "v1 has fewer half-empty warps: {v0:?} {v1:?}"
    );
    ensure!(
        v1.1 > 0 && v2.1 == 0,
        "v2 has no bank conflicts: {v1:?} {v2:?}"
    );
    ensure!(
        v3.0 == v2.0,
        "v3 does the same for twice the elements: {v2:?} {v3:?}"
    );
    ensure!(
        v4.3 < v3.3 && v4.0 < v3.0,
        "v4 has fewer barriers: {v3:?} {v4:?}"
    );
    ensure!(
        v5.0 < v4.0 && v5.3 < v4.3,
        "v5 hardly uses shared memory: {v4:?} {v5:?}"
    );
    Ok(())
}
