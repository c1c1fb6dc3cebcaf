//! The same bits on every grid, and nothing written where nothing belongs.

use anyhow::{Context, Result, ensure};
use gpu_kernels::reduce::{
    ORDER_FIXED, PartStatistic, ReduceArgs, ReduceVariant, Split, Statistic,
};
use gpu_kernels::{Family, In, Launch, Out};
use warpfuse::device::Device;
use warpfuse::plan::reduce::whole_fixed;
use warpfuse_tests::Subset;
use warpfuse_tests::launcher::Guarded;

use super::super::suite::{Suite, Test};
use super::{Number, draw};

const CANARY: u64 = 0x5a5a_5a5a_5a5a_5a5a;
const LEN: usize = 5_001;

/// Bytes of the longest rows that are staged for four lanes: eight rows of them fill a stage.
const LONG_ROW: u32 = 496;
/// Rows that a block goes round its stages with more than once: eight warps of eight rows, and not the last ones whole.
const ROWS: usize = 8 * 3 * 8 + 8 * 8 + 13;

/// Adds every entry over whole arrays, and those over staged rows.
pub fn add<T: Number>(suite: &mut Suite) {
    for entry in T::Reduce::entries() {
        let test = Test::new(format!("entry/{}", entry.name)).of_entries();
        match entry.variant {
            ReduceVariant::Whole(statistic) => {
                suite.add(test, move |device| run::<T>(device, statistic));
            }
            ReduceVariant::Parts(statistic, Split::Stages) => {
                suite.add(test, move |device| run_staged::<T>(device, statistic));
            }
            ReduceVariant::Parts(..) => {}
        }
    }
}

/// Rows of whole packs, and rows that are one piece.
fn run_staged<T: Number>(device: &Device, statistic: PartStatistic) -> Result<()> {
    for cols in [LONG_ROW / T::SIZE, LONG_ROW / T::SIZE - 1] {
        // Each warp has one stage at most.
        let expected = launch_staged::<T>(device, statistic, (cols, 5))?;
        for grid in [1, 2] {
            let found = launch_staged::<T>(device, statistic, (cols, grid))?;
            ensure!(
                found == expected,
                "{cols} columns: other results with {grid} blocks than with 5"
            );
        }
    }
    Ok(())
}

fn launch_staged<T: Number>(
    device: &Device,
    statistic: PartStatistic,
    (cols, grid): (u32, u32),
) -> Result<Vec<u64>> {
    let variant = ReduceVariant::Parts(statistic, Split::Stages);
    let entry = T::Reduce::entries()
        .iter()
        .find(|entry| entry.variant == variant);
    let entry = entry.context("the table has the entry")?;
    let x = draw::<T>(ROWS * cols as usize, 3);
    let x = Guarded::new(device, &x, T::from_bits(u64::MAX))?;
    let words = ROWS * variant.words() as usize;
    let mut out = Guarded::new(device, &vec![CANARY; words], CANARY)?;
    let shape = Launch {
        grid,
        block: warpfuse::plan::reduce::BLOCK,
        shared_bytes: variant.shared_bytes(),
    };
    let args = ReduceArgs {
        x: x.input(),
        y: In::none(),
        offsets: In::none(),
        len: 0,
        parts: ROWS as u64,
        cols: cols.into(),
        pitch: cols.into(),
        chunks: 0,
        rows_per_chunk: 1,
        order: ORDER_FIXED,
        choice: 0,
        tile: 4,
        partials: Out::none(),
        tickets: Out::none(),
        out: out.output(),
    };
    device.prepare(entry, shape)?.launch(args)?;
    out.values()
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
