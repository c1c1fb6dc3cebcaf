//! What a plain read of device memory reaches: the ceiling of kernels that are bound by memory.

use anyhow::{Context, Result};
use gpu_kernels::stream::{Stream, StreamArgs};
use gpu_kernels::{Family, In, Launch};
use warpfuse::device::{Buffer, Device};

use crate::data;
use crate::sampling::Sampler;

/// Beyond this size the rate does not change.
const MOST_BYTES: usize = 4 << 30;
/// The share of free memory that is taken at most is one part in this many.
const SHARE: usize = 8;
const BLOCKS_PER_SM: [u32; 4] = [2, 4, 8, 16];
const BLOCK_SIZES: [u32; 2] = [256, 512];
const SEED: u64 = 99;

/// A buffer to read, of random numbers.
pub struct StreamRead {
    device: Device,
    sms: u32,
    words: Buffer<f32>,
    total: Buffer<f32>,
}

impl StreamRead {
    /// Fills the buffer.
    ///
    /// # Errors
    /// When the device is no GPU or has no memory left.
    pub fn new(device: &Device) -> Result<StreamRead> {
        let limits = device.limits().context("the stream read runs on a GPU")?;
        let free = device
            .memory_info()
            .map_or(MOST_BYTES, |memory| memory.free_bytes / SHARE);
        let words = data::values::<f32>(MOST_BYTES.min(free) / size_of::<f32>(), SEED);
        Ok(StreamRead {
            device: device.clone(),
            sms: limits.sms,
            words: device.upload(&words)?,
            total: device.zeros(1)?,
        })
    }

    /// 10⁹ bytes a second over about `bytes` bytes, with the best of several grids.
    ///
    /// # Errors
    /// When the device fails.
    pub fn gbs(&mut self, bytes: usize) -> Result<f64> {
        let words = (bytes / size_of::<f32>()).clamp(4, self.words.len());
        let mut best = 0.0_f64;
        for per_sm in BLOCKS_PER_SM {
            for block in BLOCK_SIZES {
                let launch = Launch {
                    grid: self.sms * per_sm,
                    block,
                    shared_bytes: 0,
                };
                best = best.max(self.rate(words, launch)?);
            }
        }
        Ok(best)
    }

    fn rate(&mut self, words: usize, launch: Launch) -> Result<f64> {
        let StreamRead {
            device,
            words: buffer,
            total,
            ..
        } = self;
        let entry = Stream::<f32>::entries()
            .first()
            .context("the stream family has an entry")?;
        let kernel = device.prepare::<Stream<f32>>(entry, launch)?;
        let times = Sampler::brief().time(device, || {
            let args = StreamArgs {
                x: first(buffer, words),
                total: total.output(),
            };
            kernel.launch(args)
        })?;
        Ok(times.gbs(words * size_of::<f32>()))
    }
}

/// The first `len` words of a buffer.
fn first(buffer: &Buffer<f32>, len: usize) -> In<'_, f32> {
    let all = buffer.input();
    assert!(
        len as u64 <= all.len(),
        "{len} words of a buffer of {}",
        all.len()
    );
    // SAFETY: a shorter piece of an argument that holds, from its aligned beginning and borrowed for as long.
    unsafe { In::new(all.pointer(), len as u64) }
}
