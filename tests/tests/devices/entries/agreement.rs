//! The emulator beside a GPU: the same launches on the same inputs, compared bit by bit.
//!
//! What a kernel computes without atomic additions has to be the same; what is added in the hardware's order
//! has to be right on both, which the check itself sees to. `WARPFUSE_TEST_AGREEMENT` names a file for the
//! outcome, one JSON object per kernel and line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use gpu_kernels::{Entry, Family};
use serde_json::{Value, json};
use warpfuse::device::emulator::{Action, Counting, Emulator, EmulatorOptions, Space};
use warpfuse::device::{Device, emulator::Profile};
use warpfuse_tests::Subset;
use warpfuse_tests::tape::{Agreement, compare, recorded};

use super::super::suite::{Suite, Test};

/// By device and kernel.
static OUTCOMES: Mutex<BTreeMap<(String, &'static str), Value>> = Mutex::new(BTreeMap::new());

/// Kernels with functions that the GPU approximates and the host computes to the last bit.
const APPROXIMATE: &[&str] = &[];

type Check<F> = fn(&Device, &'static Entry<F>, Subset) -> Result<()>;

/// Adds the comparison of one entry. Vectors are compared on the emulators too, to see that it works.
pub fn add<F: Family>(suite: &mut Suite, entry: &'static Entry<F>, check: Check<F>) {
    let test = Test::new(format!("agreement/{}", entry.name));
    let test = match F::NAME {
        "vector" => test.of_entries(),
        _ => test.of_cuda(),
    };
    suite.add(test, move |device| agree(device, entry, check));
}

fn agree<F: Family>(device: &Device, entry: &'static Entry<F>, check: Check<F>) -> Result<()> {
    let limits = device.limits().context("the CPU launches no entries")?;
    let counted = EmulatorOptions {
        counting: Counting::Sites,
        ..EmulatorOptions::default()
    };
    let emulator = Emulator::of(limits.clone(), counted);
    let emulated = Device::Emulator(emulator.clone());
    let expected = recorded(|| check(&emulated, entry, Subset::Small)).context("emulated")?;
    let found = recorded(|| check(device, entry, Subset::Small))?;
    let agreement = compare(&found, &expected)?;
    let adds = emulator.profiles().get(entry.name).is_some_and(adds);
    note(device, entry.name, agreement, adds);
    let may_differ = adds || APPROXIMATE.contains(&F::NAME);
    ensure!(
        may_differ || agreement.identical == agreement.arrays,
        "{agreement:?}: expected the emulator's bits from a kernel without atomic additions"
    );
    Ok(())
}

/// Whether the order of additions is the hardware's.
fn adds(profile: &Profile) -> bool {
    let of = |space| profile.total(space, Action::Add).accesses;
    of(Space::Global) + of(Space::Shared) > 0
}

fn note(device: &Device, kernel: &'static str, agreement: Agreement, adds: bool) {
    let outcome = json!({
        "family": "emulator",
        "kernel": kernel,
        "order_of_additions": if adds { "of the hardware" } else { "fixed" },
        "arrays": agreement.arrays,
        "bit_identical": agreement.identical,
        "worst_relative_difference": agreement.worst_relative,
        "device": device.name(),
        "commit": std::env::var("WARPFUSE_COMMIT").unwrap_or_default(),
    });
    // One call changes the map at a time, so a panic elsewhere leaves it whole.
    let mut outcomes = OUTCOMES.lock().unwrap_or_else(PoisonError::into_inner);
    outcomes.insert((device.to_string(), kernel), outcome);
}

/// Writes the outcomes where the environment says.
///
/// # Errors
/// When the file cannot be written.
pub fn write() -> Result<()> {
    let Some(path) = std::env::var_os("WARPFUSE_TEST_AGREEMENT") else {
        return Ok(());
    };
    let outcomes = OUTCOMES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::new();
    for outcome in outcomes.values() {
        writeln!(text, "{outcome}")?;
    }
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
