//! Columns of 16 bits made columns of 32, as for each block of X before it is read: by threads that wait for each field, and by
//! those that request several at once.

use anyhow::{Result, ensure};
use gpu_kernels::fused::{UnpackArgs, UnpackVariant};
use gpu_kernels::{Family, In, Kernels, Launch, Out};
use serde_json::json;
use warpfuse::device::{Buffer, Device, Prepared};
use warpfuse_benches::sampling::Sampler;

type Unpack = <f32 as Kernels>::Unpack;

/// Entries of a block where X has 400 million in 5 or more blocks: those of `stream` at 75, 50 and 25 %.
const BLOCKS: [usize; 3] = [38, 57, 113];
const ENTRIES: usize = 400_000_000;
/// Blocks that are unpacked one after the other, so that none is in a cache when its turn comes.
const IN_TURN: usize = 8;
const MILLISECONDS: u32 = 300;
/// The launch that products have.
const THREADS: u32 = 256;
const BLOCKS_PER_SM: u32 = 8;

pub(super) fn run(device: &Device) -> Result<()> {
    for blocks in BLOCKS {
        let len = ENTRIES / blocks;
        for variant in [UnpackVariant::Columns, UnpackVariant::ColumnsAhead] {
            let block = Columns::new(device, len)?;
            block.measure(device, variant)?;
        }
    }
    Ok(())
}

/// Blocks of columns, and where they are unpacked to.
struct Columns {
    len: usize,
    packed: Vec<Buffer<u32>>,
    indices: Buffer<u32>,
}

impl Columns {
    fn new(device: &Device, len: usize) -> Result<Self> {
        let words = |block: usize| -> Vec<u32> {
            let word = |i: usize| (i as u32).wrapping_mul(0x9e37_79b9) ^ block as u32;
            (0..len.div_ceil(2)).map(word).collect()
        };
        let packed = (0..IN_TURN).map(|block| device.upload(&words(block)));
        Ok(Columns {
            len,
            packed: packed.collect::<Result<_, _>>()?,
            indices: device.zeros(len)?,
        })
    }

    fn measure(mut self, device: &Device, variant: UnpackVariant) -> Result<()> {
        let kernel = prepare(device, variant)?;
        let mut block = 0;
        let times = Sampler::new(MILLISECONDS).time(device, || {
            block = (block + 1) % IN_TURN;
            kernel.launch(args(self.len, &self.packed[block], &mut self.indices))
        })?;
        let (first, last) = (self.packed[block].to_vec()?, self.indices.to_vec()?);
        let half = |i: usize| first[i / 2] >> (16 * (i % 2)) & 0xffff;
        let is_right = |(i, column): (usize, &u32)| *column == half(i);
        ensure!(last.iter().enumerate().all(is_right), "wrong columns");
        println!(
            "{}",
            json!({
                "what": "unpack", "kernel": kernel.entry().name, "entries": self.len, "us": times.median_us,
                "packed_gbs": times.gbs(2 * self.len), "moved_gbs": times.gbs(6 * self.len),
            })
        );
        Ok(())
    }
}

fn prepare(device: &Device, variant: UnpackVariant) -> Result<Prepared<Unpack>> {
    let entry = Unpack::entries().iter();
    let mut entry = entry.filter(|entry| entry.variant == variant);
    let sms = device.limits().map_or(1, |limits| limits.sms);
    let launch = Launch {
        grid: sms * BLOCKS_PER_SM,
        block: THREADS,
        shared_bytes: 0,
    };
    Ok(device.prepare(entry.next().expect("it is compiled"), launch)?)
}

fn args<'a>(
    len: usize,
    packed: &'a Buffer<u32>,
    indices: &'a mut Buffer<u32>,
) -> UnpackArgs<'a, f32> {
    UnpackArgs {
        len: len as u64,
        packed: packed.input(),
        offsets: In::none(),
        constants: In::none(),
        members: In::none(),
        places: In::none(),
        indices: indices.output(),
        values: Out::none(),
        sums: Out::none(),
    }
}
