//! The same bits on every grid, and nothing written where nothing belongs.

use anyhow::{Context, Result, ensure};
use gpu_kernels::reduce::{ORDER_FIXED, ReduceArgs, ReduceVariant, Statistic};
use gpu_kernels::{Family, In, Launch};
use warpfuse::device::Device;
use warpfuse::plan::reduce::whole_fixed;
use warpfuse_tests::Subset;
use warpfuse_tests::launcher::Guarded;

use super::super::suite::{Suite, Test};
use super::{Number, draw};

const CANARY: u64 = 0x5a5a_5a5a_5a5a_5a5a;
const LEN: usize = 5_001;

/// Adds every entry over whole arrays.
pub fn add<T: Number>(suite: &mut Suite) {
    for entry in T::Reduce::entries() {
        if let ReduceVariant::Whole(statistic) = entry.variant {
            let test = Test::new(format!("entry/{}", entry.name)).of_entries();
            suite.add(test, move |device| run::<T>(device, statistic));
        }
    }
}

fn run<T: Number>(device: &Device, statistic: Statistic) -> Result<()> {
    let grids: &[u32] = match Subset::of(device) {
        Subset::Full => &[1, 2, 3, 7, 100, 2_000],
        Subset::Small => &[1, 3],
    };
    let first = launch::<T>(device, statistic, grids[0])?;
    for &grid in &grids[1..] {
        let found = launch::<T>(device, statistic, grid).with_context(|| format!("grid {grid}"))?;
        ensure!(
            found == first,
            "grid {grid} gives {found:x?}, one block {first:x?}"
        );
    }
    Ok(())
}

fn launch<T: Number>(device: &Device, statistic: Statistic, grid: u32) -> Result<Vec<u64>> {
    let variant = ReduceVariant::Whole(statistic);
    let entry = T::Reduce::entries()
        .iter()
        .find(|entry| entry.variant == variant);
    let entry = entry.context("the table has the entry")?;
    let plan = whole_fixed(LEN as u64, T::SIZE);
    let guard = T::from_bits(u64::MAX);
    let x = Guarded::new(device, &draw::<T>(LEN, 1), guard)?;
    let y = Guarded::new(device, &draw::<T>(LEN, 2), guard)?;
    let words = (plan.chunks * variant.words()) as usize;
    let mut partials = Guarded::new(device, &vec![CANARY; words], CANARY)?;
    let mut out = Guarded::new(device, &vec![CANARY; variant.words() as usize], CANARY)?;
    let mut tickets = Guarded::new(device, &[0_u32], 7)?;
    let shape = Launch {
        grid,
        block: warpfuse::plan::reduce::BLOCK,
        shared_bytes: variant.shared_bytes(),
    };
    let args = ReduceArgs {
        x: x.input(),
        y: y.input(),
        offsets: In::none(),
        len: LEN as u64,
        parts: 0,
        cols: 0,
        pitch: 0,
        chunks: plan.chunks,
        rows_per_chunk: plan.rows_per_chunk,
        order: ORDER_FIXED,
        choice: 0,
        tile: 1,
        partials: partials.output(),
        tickets: tickets.output(),
        out: out.output(),
    };
    device.prepare(entry, shape)?.launch(args)?;
    ensure!(
        tickets.values()? == [0],
        "the counter is not ready for the next launch"
    );
    partials.values()?;
    out.values()
}
