//! The stream-read entry: it reads every element of every whole pack exactly once.

use anyhow::{Result, ensure};
use gpu_kernels::stream::{Stream, StreamArgs};
use gpu_kernels::{Entry, Launch};
use warpfuse::device::Device;
use warpfuse_tests::launcher::{Guarded, launch};

/// Elements of a 16-byte load.
const PACK: usize = 4;

/// The kernel writes only when a thread's sum is the largest number there is: that number alone among
/// zeros is summed to itself if it is read once, to infinity if it is read twice.
pub fn check(device: &Device, entry: &'static Entry<Stream<f32>>) -> Result<()> {
    for len in [0, 3, 4, 127, 1_000, 40_003] {
        let whole = len / PACK * PACK;
        for place in [0, 5, whole / 2, whole.saturating_sub(1)] {
            for (grid, block) in [(1, 32), (3, 96), (40, 1024)] {
                let shape = Launch {
                    grid,
                    block,
                    shared_bytes: 0,
                };
                let written = reads(device, entry, shape, (len, place))?;
                let expected = place < whole;
                ensure!(
                    written == expected,
                    "element {place} of {len}, {shape:?}: read {written}"
                );
            }
        }
    }
    Ok(())
}

/// Whether element `place` of `len` is read exactly once.
fn reads(
    device: &Device,
    entry: &'static Entry<Stream<f32>>,
    shape: Launch,
    (len, place): (usize, usize),
) -> Result<bool> {
    let mut x = vec![0.0; len];
    x[len / PACK * PACK..].fill(f32::NAN);
    if let Some(element) = x.get_mut(place) {
        *element = f32::MAX;
    }
    let x = device.upload(&x)?;
    let mut total = Guarded::new(device, &[0.0_f32], f32::NAN)?;
    let args = StreamArgs {
        x: x.input(),
        total: total.output(),
    };
    launch(device, entry, shape, args)?;
    Ok(total.values()?[0] == 1.0)
}
