//! One launch of one entry, timed.

use std::borrow::Cow;

use anyhow::Result;
use gpu_kernels::{Entry, Family, Launch};
use serde::Serialize;
use warpfuse::device::Device;
use warpfuse_benches::sampling::Sampler;

/// A launch and its time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// The entry.
    pub kernel: Cow<'static, str>,
    /// Threads of a block.
    pub block: u32,
    /// Blocks.
    pub grid: u32,
    /// Dynamic shared memory of a block, bytes.
    pub shared_bytes: u32,
    /// The median.
    pub median_us: f64,
}

/// Which launches of an entry are tried.
pub struct Grid<'a> {
    /// Threads of a block.
    pub block_sizes: &'a [u32],
    /// Blocks for each SM, as far as an SM holds them.
    pub blocks_per_sm: &'a [u32],
    /// SMs.
    pub sms: u32,
}

/// Times one launch; `None` where the device or the kernel's contract forbids it.
pub fn trial<F: Family>(
    device: &Device,
    entry: &'static Entry<F>,
    launch: Launch,
    args: F::Args<'_>,
) -> Option<Trial> {
    let kernel = device.prepare::<F>(entry, launch).ok()?;
    let times = Sampler::brief().time(device, || kernel.launch(args)).ok()?;
    let Launch {
        grid,
        block,
        shared_bytes,
    } = launch;
    Some(Trial {
        kernel: entry.name.into(),
        block,
        grid,
        shared_bytes,
        median_us: times.median_us,
    })
}

/// Times all launches of the entries that are given with the shared memory they need in blocks of a size.
pub fn trials<F: Family>(
    device: &Device,
    grid: &Grid<'_>,
    shared_bytes: impl Fn(&Entry<F>, u32) -> Option<u32>,
    args: F::Args<'_>,
) -> Result<Vec<Trial>> {
    let mut found = Vec::new();
    for entry in F::entries() {
        for &block in grid.block_sizes {
            let Some(shared_bytes) = shared_bytes(entry, block) else {
                continue;
            };
            for per_sm in resident(
                device,
                entry,
                Launch {
                    grid: 1,
                    block,
                    shared_bytes,
                },
                grid,
            ) {
                let launch = Launch {
                    grid: grid.sms * per_sm,
                    block,
                    shared_bytes,
                };
                found.extend(trial(device, entry, launch, args));
            }
        }
    }
    // A launch that failed must not be taken for one that was not allowed.
    device.synchronize()?;
    Ok(found)
}

/// The numbers of blocks per SM of which an SM holds all at once.
fn resident<F: Family>(
    device: &Device,
    entry: &'static Entry<F>,
    launch: Launch,
    grid: &Grid<'_>,
) -> Vec<u32> {
    let held = device
        .prepare::<F>(entry, launch)
        .and_then(|kernel| kernel.blocks_per_sm())
        .unwrap_or(0);
    grid.blocks_per_sm
        .iter()
        .copied()
        .filter(|&per_sm| per_sm <= held)
        .collect()
}
