//! Tiles of the staged strategy, bands of the skip strategy.

use gpu_kernels::sparse_conv::{SKIP_BLOCK, STAGED_WARPS, SkipGeometry, StagedGeometry};

use super::shape::ConvShape;
use crate::plan::limits::DeviceLimits;

/// Filters of a warp and outputs of a lane that kernels exist for, the most first.
const SIZES: [[u32; 2]; 2] = [[4, 8], [2, 4]];
/// Channels of a chunk at most.
const MOST_CHANNELS: usize = 32;
/// Bytes of shared memory that a block takes at most if it can: as much as leaves room for a second one.
const BLOCK_BYTES: u64 = 100 << 10;
/// Warps that hide each other's latencies, of an SM.
const SKIP_WARPS: u64 = 16;

/// How the staged strategy cuts a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StagedTiles {
    /// What kernels get.
    pub geometry: StagedGeometry,
    /// Filters of a warp.
    pub filters: u32,
    /// Outputs of a lane.
    pub outputs: u32,
    /// Blocks.
    pub blocks: u64,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u64,
    /// Words of all planes.
    pub words: usize,
}

/// The largest tiles of which every SM has one, or else the smallest; `None` where one channel's range does not fit in shared
/// memory, or numbers have not 32 bits.
pub fn staged_tiles(shape: &ConvShape, bytes: usize, limits: &DeviceLimits) -> Option<StagedTiles> {
    if bytes > 4 || shape.sums() == 0 {
        return None;
    }
    let sizes = SIZES
        .into_iter()
        .filter_map(|size| staged(shape, size, limits));
    let mut tiles: Vec<StagedTiles> = sizes.collect();
    let enough = tiles
        .iter()
        .position(|tiles| tiles.blocks >= limits.sms.into());
    match enough {
        Some(at) => Some(tiles.swap_remove(at)),
        None => tiles.pop(),
    }
}

fn staged(
    shape: &ConvShape,
    [filters, outputs]: [u32; 2],
    limits: &DeviceLimits,
) -> Option<StagedTiles> {
    let padded = [0, 1].map(|axis| shape.size[axis] + 2 * shape.padding[axis]);
    let image = padded[0].checked_mul(padded[1])?;
    let plane = shape.batch.checked_mul(image)?.next_multiple_of(4);
    let pitch = range(shape, padded, 32 * outputs as usize)?;
    let words = shape.channels.checked_mul(plane)?.checked_add(pitch)?;
    let channels = shape.channels / shape.groups;
    let of_channel = 8 * pitch as u64;
    let held = (BLOCK_BYTES / of_channel)
        .max(1)
        .min(channels.min(MOST_CHANNELS) as u64);
    let all = (shape.sums() / shape.filters) as u64;
    let filter_tiles = (shape.filters / shape.groups).div_ceil((filters * STAGED_WARPS) as usize);
    let blocks = all.div_ceil(32 * u64::from(outputs)) * (shape.groups * filter_tiles) as u64;
    let fits = of_channel <= limits.shared_per_block.into() && words < 1 << 31 && blocks < 1 << 31;
    fits.then(|| StagedTiles {
        geometry: StagedGeometry {
            row: padded[1] as u32,
            image: image as u32,
            plane: plane as u32,
            pitch: pitch as u32,
            chunk: held as u32,
            chunks: channels.div_ceil(held as usize) as u32,
            filter_tiles: filter_tiles as u32,
        },
        filters,
        outputs,
        blocks,
        shared_bytes: held * of_channel,
        words,
    })
}

/// Words of a plane that this many neighbouring outputs meet at most, with up to 3 before the first, a multiple of 4.
fn range(shape: &ConvShape, padded: [usize; 2], outputs: usize) -> Option<usize> {
    let [rows, cols] = shape.out();
    let (down, right) = (shape.stride[0].checked_mul(padded[1])?, shape.stride[1]);
    // The step from a row's last output to the next row's first, and from an image's to the next one's, beyond those
    // that every output makes.
    let of_row = down.saturating_sub(right * cols);
    let of_image = (padded[0] * padded[1]).saturating_sub(down * rows);
    let steps = (outputs - 1).min(shape.batch * rows * cols - 1);
    let (ends, images) = (steps.div_ceil(cols), steps.div_ceil(rows * cols));
    let reach = [0, 1].map(|axis| (shape.kernel[axis] - 1) * shape.dilation[axis]);
    let span = (steps.checked_mul(right)?)
        .checked_add(ends.checked_mul(of_row)?)?
        .checked_add(images.checked_mul(of_image)?)?;
    let taps = reach[0].checked_mul(padded[1])?.checked_add(reach[1])?;
    Some((span.checked_add(taps)? + 4).next_multiple_of(4))
}

/// Outputs whose inputs a warp reads at once.
const LANES: usize = 32;
/// Runs of outputs that are looked at: sizes of maps repeat them.
const MOST_RUNS: usize = 64;

/// Passes over shared banks that a warp takes to read its lanes' inputs, on average: 1 where neighbouring outputs meet
/// neighbouring inputs. Padding between rows, or a stride, puts two of them into one bank.
pub(super) fn bank_passes(shape: &ConvShape) -> f64 {
    let [rows, cols] = shape.out();
    let padded = [0, 1].map(|axis| shape.size[axis] + 2 * shape.padding[axis]);
    let place = |output: usize| {
        let (image, row, col) = (output / (rows * cols), output / cols % rows, output % cols);
        image * padded[0] * padded[1] + row * shape.stride[0] * padded[1] + col * shape.stride[1]
    };
    let outputs = shape.batch * rows * cols;
    let runs = outputs.div_ceil(LANES).clamp(1, MOST_RUNS);
    let passes = |run: usize| {
        let mut banks = [0_u32; LANES];
        let own = run * LANES..(run * LANES + LANES).min(outputs);
        own.for_each(|output| banks[place(output) % LANES] += 1);
        banks.into_iter().max().unwrap_or(0)
    };
    let all: u32 = (0..runs).map(passes).sum();
    f64::from(all) / runs as f64
}

/// How the skip strategy cuts a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkipBands {
    /// What kernels get.
    pub geometry: SkipGeometry,
    /// Blocks.
    pub blocks: u64,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u64,
    /// Words of all lists.
    pub words: usize,
}

/// Bands as high as leave every SM enough warps; `None` where a stride is not 1, one row does not fit in shared memory,
/// or numbers have not 32 bits. `sum_bytes` is a sum's size.
pub fn skip_bands(
    shape: &ConvShape,
    [bytes, sum_bytes]: [usize; 2],
    limits: &DeviceLimits,
) -> Option<SkipBands> {
    if bytes > 4 || shape.stride != [1; 2] || shape.sums() == 0 {
        return None;
    }
    let width = shape.size[1] + (shape.kernel[1] - 1) * shape.dilation[1];
    let warps = (SKIP_BLOCK / 32) as usize;
    let maps = shape.batch * shape.channels;
    let cells = shape.size[0] * shape.size[1];
    let words = maps.checked_mul(shape.size[0] + 1 + 2 * cells)?;
    let out = shape.out()[0];
    let of_row = warps.checked_mul(width)?.checked_mul(sum_bytes)?;
    // Four blocks of an SM.
    let room = (limits.shared_per_block as usize / 4 / of_row.max(1)).max(1);
    let wanted = u64::from(limits.sms) * SKIP_WARPS;
    let bands = wanted.div_ceil((shape.batch * shape.filters) as u64) as usize;
    let rows = out.div_ceil(bands).clamp(1, room.min(out));
    let items = (shape.batch * shape.filters).checked_mul(out.div_ceil(rows))?;
    let shared = of_row.checked_mul(rows)? as u64;
    let fits = shared <= limits.shared_per_block.into() && words < 1 << 31 && items < 1 << 31;
    fits.then(|| SkipBands {
        geometry: SkipGeometry {
            rows: rows as u32,
            width: width as u32,
        },
        blocks: items.div_ceil(warps) as u64,
        shared_bytes: shared,
        words,
    })
}
