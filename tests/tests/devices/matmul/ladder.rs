//! The rungs of the ladder: what each costs on an emulator, as its page says, and whole tiles on devices that are too
//! slow for the other cases of such.

use anyhow::{Result, ensure};
use gpu_kernels::Family;
use gpu_kernels::matmul::{Matmul, MatmulVariant};
use ndarray::Array2;
use warpfuse::device::emulator::{Action, Counting, Profile, Space};
use warpfuse::device::{Device, EmulatorOptions};
use warpfuse::ops::matmul::{Choice, Factor, Layout, matmul};
use warpfuse_tests::generate::Random;

use super::super::suite::{Suite, Test};

/// Rows and columns of the product on the page, and its k.
const SIZE: (usize, usize) = (128, 32);

/// What the page says of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Costs {
    /// Sectors of A and B that are read.
    sectors: u64,
    /// Requests to shared memory.
    requests: u64,
    /// Passes over the banks beyond one for each request.
    conflicts: u64,
    /// Requests with idle lanes, to either memory.
    divergent: u64,
    barriers: u64,
}

const fn costs([sectors, requests, conflicts, divergent, barriers]: [u64; 5]) -> Costs {
    Costs {
        sectors,
        requests,
        conflicts,
        divergent,
        barriers,
    }
}

/// The table of [`gpu_kernels::matmul`].
const PAGE: [(MatmulVariant, Costs); 8] = [
    (MatmulVariant::Naive, costs([65_536, 0, 0, 0, 0])),
    (MatmulVariant::Registers, costs([16_384, 0, 0, 0, 0])),
    (MatmulVariant::Shared, costs([8_192, 34_816, 0, 0, 256])),
    (
        MatmulVariant::Blocked { each: 8 },
        costs([1_536, 4_352, 384, 0, 4]),
    ),
    (pipelined(64, 128), costs([9_216, 4_864, 1_536, 0, 4])),
    (pipelined(128, 64), costs([6_144, 4_864, 768, 0, 4])),
    (
        MatmulVariant::SplitTf32,
        costs([15_360, 1_728, 5_184, 0, 4]),
    ),
    (MatmulVariant::SplitF16, costs([12_608, 1_536, 4_608, 0, 1])),
];

const fn pipelined(rows: u32, columns: u32) -> MatmulVariant {
    MatmulVariant::Pipelined { rows, columns }
}

/// Adds a test for each rung.
pub fn add(suite: &mut Suite) {
    for (variant, said) in PAGE {
        let name = format!("matmul/ladder/{variant:?}");
        suite.add(Test::new(name).of_entries(), move |_| {
            let found = count(variant)?;
            ensure!(found == said, "the page says {said:?}, found {found:?}");
            Ok(())
        });
    }
}

/// What an emulator counts of a product by `variant`, which has to be right.
fn count(variant: MatmulVariant) -> Result<Costs> {
    let device = Device::emulator(EmulatorOptions {
        counting: Counting::Sites,
        ..EmulatorOptions::default()
    });
    let (size, k) = SIZE;
    let random = &mut Random::new(5);
    let mut draw = |shape| Array2::from_shape_simple_fn(shape, || random.integer(4) as f32);
    let (a, b) = (draw((size, k)), draw((k, size)));
    let of = |x: &Array2<f32>| device.upload(x.as_slice().expect("rows lie one after the other"));
    let (on_a, on_b) = (of(&a)?, of(&b)?);
    let (left, right) = (Factor::new(&on_a, size, k), Factor::new(&on_b, k, size));
    let mut c = device.zeros::<f32>(size * size)?;
    let of_c = (&mut c, Layout::dense(size, size));
    matmul(1.0, &left, &right, 0.0, of_c, Choice::Variant(variant))?;
    let expected: Vec<f32> = a.dot(&b).into_iter().collect();
    ensure!(c.to_vec()? == expected, "another product");
    let Device::Emulator(emulator) = &device else {
        unreachable!("an emulator was made");
    };
    let mut profiles = emulator.profiles();
    // What is packed before counts by itself.
    let entries = Matmul::<f32>::entries().iter();
    let own = entries.filter(|entry| entry.variant == variant);
    let names: Vec<&str> = own.map(|entry| entry.name).collect();
    profiles.retain(|entry, _| names.contains(entry));
    Ok(summary(&profiles.into_values().next().unwrap_or_default()))
}

fn summary(profile: &Profile) -> Costs {
    let total = |space, action| profile.total(space, action);
    let global = total(Space::Global, Action::Load);
    let reads = total(Space::Shared, Action::Read);
    let writes = total(Space::Shared, Action::Write);
    let requests = reads.requests + writes.requests;
    Costs {
        sectors: global.sectors,
        requests,
        conflicts: reads.bank_passes + writes.bank_passes - requests,
        divergent: global.divergent + reads.divergent + writes.divergent,
        barriers: profile.barriers,
    }
}
