//! What each step of the ladder costs on an emulator, as its page says.

use anyhow::{Context, Result, ensure};
use warpfuse::device::emulator::{Action, Counting, Space};
use warpfuse::device::{Device, EmulatorOptions};
use warpfuse::matrix::filters::{Nonzero, SparseFilters};
use warpfuse::ops::sparse_conv::{ConvShape, ConvStrategy, I16, Layer, Maps, Pool, SparseConv};
use warpfuse_tests::generate::Random;

use super::draw;
use crate::suite::{Suite, Test};

/// The layer of the page: the source's, with fewer channels, filters and rows.
fn shape() -> ConvShape {
    ConvShape {
        padding: [1; 2],
        pool: Some(Pool::max(2)),
        ..ConvShape::new(64, [8, 32], 32, [3; 2])
    }
}

/// What the page says of a strategy, all launches together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Costs {
    /// Requests of warps to global memory.
    requests: u64,
    /// Sectors of 32 bytes that they read.
    sectors: u64,
    /// Passes over the banks of shared memory.
    passes: u64,
}

const fn costs([requests, sectors, passes]: [u64; 3]) -> Costs {
    Costs {
        requests,
        sectors,
        passes,
    }
}

/// The table of [`gpu_kernels::sparse_conv`].
const PAGE: [(ConvStrategy, Costs); 6] = [
    (ConvStrategy::Coo, costs([97_181, 159_856, 0])),
    (ConvStrategy::Packed, costs([64_413, 127_088, 0])),
    (ConvStrategy::Direct, costs([24_704, 141_143, 0])),
    (ConvStrategy::Staged, costs([6_144, 43_520, 25_600])),
    (ConvStrategy::Skip, costs([34_770, 164_772, 33_082])),
    (ConvStrategy::Tensor, costs([1_328, 14_328, 6_668])),
];

/// Adds a test for each step.
pub fn add(suite: &mut Suite) {
    for (strategy, said) in PAGE {
        let name = format!("sparse_conv/ladder/{strategy}");
        suite.add(Test::new(name).of_entries(), move |_| {
            let found = count(strategy)?;
            ensure!(found == said, "the page says {said:?}, found {found:?}");
            Ok(())
        });
    }
}

/// One nonzero in each slice, at places that are drawn.
fn filters(shape: &ConvShape) -> Result<SparseFilters<i16>> {
    let of = shape.filter_shape();
    let random = &mut Random::new(3);
    let mut nonzero = || Nonzero {
        row: (random.signed().abs() * 3.0) as u8 % 3,
        col: (random.signed().abs() * 3.0) as u8 % 3,
        value: 1 + (random.signed().abs() * 500.0) as i16,
    };
    let nonzeros = (0..of.slices()).map(|_| nonzero()).collect();
    Ok(SparseFilters::from_slices(
        of,
        &vec![1; of.slices()],
        nonzeros,
    )?)
}

/// What an emulator counts of the layer, whose results have to be the CPU's.
fn count(strategy: ConvStrategy) -> Result<Costs> {
    let device = Device::emulator(EmulatorOptions {
        counting: Counting::Sites,
        ..EmulatorOptions::default()
    });
    let shape = shape();
    let (filters, x) = (filters(&shape)?, draw::<i16>(shape.inputs(), 4, 32_768.0));
    let run = |device: &Device, strategy| -> Result<Vec<i32>> {
        let layer = Layer {
            strategy,
            ..Layer::default()
        };
        let conv = SparseConv::<I16>::new(device, &shape, &filters, layer)?;
        let mut out = device.zeros(shape.results())?;
        conv.run(&Maps::upload(device, &x)?, &mut out)?;
        Ok(out.to_vec()?)
    };
    let found = run(&device, Some(strategy)).context("on the emulator")?;
    ensure!(found == run(&Device::cpu(), None)?, "another result");
    let Device::Emulator(emulator) = &device else {
        unreachable!("an emulator was made");
    };
    let mut costs = costs([0; 3]);
    for profile in emulator.profiles().into_values() {
        let global = profile.total(Space::Global, Action::Load);
        costs.requests += global.requests;
        costs.sectors += global.sectors;
        for action in [Action::Read, Action::Write] {
            costs.passes += profile.total(Space::Shared, action).bank_passes;
        }
    }
    Ok(costs)
}
