//! Which kernel is expected to be fastest.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::shape::ConvShape;
use super::staged::{SkipBands, StagedTiles, skip_bands, staged_tiles};
use gpu_kernels::sparse_conv::STAGED_WARPS;

use super::tensor::{TensorTiles, tiles};
use crate::plan::limits::DeviceLimits;

/// A way to compute a layer on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConvStrategy {
    /// The source's first kernel, and one that pools.
    Coo,
    /// The source's second kernel, and one that pools.
    Packed,
    /// Nonzeros by filter, sums in registers, pooling fused: any shape and type.
    Direct,
    /// Padded inputs in shared memory, sums of several filters in registers; not for 64-bit floats.
    Staged,
    /// Only inputs that are not zero: for activations of which most are. Not for strides and 64-bit floats.
    Skip,
    /// Integers as bytes on sparse tensor cores; dense filters take up to twice the steps of sparse ones.
    Tensor,
    /// A dense matrix product, for floats whose filters are not sparse enough. Its sums are in another order, and zero
    /// weights are multiplied.
    Lowered,
}

impl ConvStrategy {
    /// All of them.
    pub const ALL: [ConvStrategy; 7] = [
        ConvStrategy::Coo,
        ConvStrategy::Packed,
        ConvStrategy::Direct,
        ConvStrategy::Staged,
        ConvStrategy::Skip,
        ConvStrategy::Tensor,
        ConvStrategy::Lowered,
    ];

    /// Whether it is there for comparison alone.
    pub fn is_of_the_source(self) -> bool {
        matches!(self, ConvStrategy::Coo | ConvStrategy::Packed)
    }
}

impl fmt::Display for ConvStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConvStrategy::Coo => "coo",
            ConvStrategy::Packed => "packed",
            ConvStrategy::Direct => "direct",
            ConvStrategy::Staged => "staged",
            ConvStrategy::Skip => "skip",
            ConvStrategy::Tensor => "tensor",
            ConvStrategy::Lowered => "lowered",
        })
    }
}

/// What a layer's filters and numbers ask for, beside its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvWork {
    /// Nonzeros of all filters.
    pub nnz: usize,
    /// The most nonzeros of a filter.
    pub longest: usize,
    /// Bytes of an integer, 0 of other numbers.
    pub pieces: usize,
    /// Bytes of a number.
    pub bytes: usize,
    /// Bytes of a sum.
    pub sum_bytes: usize,
    /// Whether all weights are finite: what multiplies zeros would make NaN of others.
    pub finite: bool,
    /// Inputs of a thousand that are expected to be zero; 0 where nobody knows.
    pub zeros: u16,
    /// Steps of all filter tiles on tensor cores, where they are possible.
    pub steps: Option<u64>,
}

/// How a strategy cuts a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tiles {
    /// Not at all.
    None,
    /// For tensor cores.
    Tensor(TensorTiles),
    /// For shared memory.
    Staged(StagedTiles),
    /// In bands of rows.
    Skip(SkipBands),
}

/// A choice with what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvPlan {
    /// The kernel.
    pub strategy: ConvStrategy,
    /// Whether a second launch pools.
    pub pools_apart: bool,
    /// Tiles, where the strategy has them.
    pub tiles: Tiles,
    /// Predicted microseconds of those that suit, the fastest first; without the source's.
    pub predicted_us: Vec<(ConvStrategy, f64)>,
}

impl fmt::Display for ConvPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.strategy)?;
        if self.pools_apart {
            f.write_str(", then pooling")?;
        }
        for (i, (strategy, us)) in self.predicted_us.iter().enumerate() {
            write!(
                f,
                "{} {strategy} {us:.1} µs",
                if i == 0 { "; predicted:" } else { "," }
            )?;
        }
        Ok(())
    }
}

/// Microseconds of one more launch in a stream.
const LAUNCH_US: f64 = 2.0;
/// Clock under load, 10⁶ per second: between what an H200 keeps up and its highest.
const CLOCK_MHZ: f64 = 1_755.0;
/// Multiply-adds of an SM and clock by `direct`: a load from L1 each, of which an SM makes 32 at most.
const DIRECT_PER_CLOCK: f64 = 16.0;
/// Multiply-adds of an SM and clock by `staged`: a load of 32 words from shared memory each, at most one per clock.
const STAGED_PER_CLOCK: f64 = 24.0;
/// Words that an SM copies to shared memory per clock, beside multiply-adds.
const STAGED_WORDS_PER_CLOCK: f64 = 16.0;
/// Clocks until a block's first inputs are there, and for its results.
const STAGED_ENDS_CLOCKS: f64 = 3_000.0;
/// Clocks of an SM for a nonzero and a band by `skip`.
const SKIP_PASS_CLOCKS: f64 = 5.0;
/// Clocks of an SM for 32 inputs of a list.
const SKIP_ROUND_CLOCKS: f64 = 4.0;
/// Clocks of one `mma.sp` of 16 × 8 × 64 bytes on one of an SM's four tensor cores.
const SPARSE_MMA_CLOCKS: f64 = 8.0;
/// Microseconds until a block's first inputs are there, and for its results.
const TENSOR_ENDS_US: f64 = 3.0;
/// Operations of a dense product of f32 in a microsecond, of sizes like those of layers: an H200, 13 to 45 TFLOP/s.
const DENSE_FLOPS_PER_US: f64 = 35e6;
/// Bytes of memory that are read or written in a microsecond.
const MEMORY_BYTES_PER_US: f64 = 4e6;
/// Bytes that all SMs read from the L2 cache in a microsecond.
const L2_BYTES_PER_US: f64 = 5.5e6;

/// The strategy that is expected to be fastest.
pub fn plan(shape: &ConvShape, work: &ConvWork, limits: &DeviceLimits) -> ConvPlan {
    let predicted = predictions(shape, work, limits);
    let best = predicted
        .first()
        .map_or(ConvStrategy::Direct, |(strategy, _)| *strategy);
    with(best, shape, work, limits, predicted)
}

/// One strategy, or `None` where it does not suit.
pub fn plan_with(
    strategy: ConvStrategy,
    shape: &ConvShape,
    work: &ConvWork,
    limits: &DeviceLimits,
) -> Option<ConvPlan> {
    let suits = match strategy {
        ConvStrategy::Tensor => tensor(shape, work, limits).is_some(),
        ConvStrategy::Staged => staged(shape, work, limits).is_some(),
        ConvStrategy::Skip => skip(shape, work, limits).is_some(),
        ConvStrategy::Lowered => lowers(shape, work),
        _ => true,
    };
    let predicted = predictions(shape, work, limits);
    suits.then(|| with(strategy, shape, work, limits, predicted))
}

fn with(
    strategy: ConvStrategy,
    shape: &ConvShape,
    work: &ConvWork,
    limits: &DeviceLimits,
    predicted_us: Vec<(ConvStrategy, f64)>,
) -> ConvPlan {
    let tiles = match strategy {
        ConvStrategy::Tensor => tensor(shape, work, limits).map(Tiles::Tensor),
        ConvStrategy::Staged => staged(shape, work, limits).map(Tiles::Staged),
        ConvStrategy::Skip => skip(shape, work, limits).map(Tiles::Skip),
        _ => None,
    };
    let tiles = tiles.unwrap_or(Tiles::None);
    let fused = match (strategy, &tiles) {
        (ConvStrategy::Direct | ConvStrategy::Lowered, _) => true,
        (_, Tiles::Tensor(tiles)) => tiles.pools,
        _ => false,
    };
    ConvPlan {
        strategy,
        pools_apart: shape.pool.is_some() && !fused,
        tiles,
        predicted_us,
    }
}

/// Tiles, if padded inputs suit the layer.
fn staged(shape: &ConvShape, work: &ConvWork, limits: &DeviceLimits) -> Option<StagedTiles> {
    staged_tiles(shape, work.bytes, limits).filter(|_| work.finite)
}

/// Bands, if lists of inputs suit the layer.
fn skip(shape: &ConvShape, work: &ConvWork, limits: &DeviceLimits) -> Option<SkipBands> {
    skip_bands(shape, [work.bytes, work.sum_bytes], limits).filter(|_| work.finite)
}

/// Tiles, if tensor cores suit the layer.
fn tensor(shape: &ConvShape, work: &ConvWork, limits: &DeviceLimits) -> Option<TensorTiles> {
    let exact = work.longest <= gpu_kernels::sparse_conv::MOST_NONZEROS as usize;
    work.steps?;
    tiles(shape, work.pieces, limits).filter(|tiles| exact && tiles.blocks < 1 << 31)
}

fn predictions(
    shape: &ConvShape,
    work: &ConvWork,
    limits: &DeviceLimits,
) -> Vec<(ConvStrategy, f64)> {
    let mut predicted = vec![(ConvStrategy::Direct, direct_us(shape, work, limits))];
    if let (Some(tiles), Some(steps)) = (tensor(shape, work, limits), work.steps) {
        let pooling = if tiles.pools { 0.0 } else { LAUNCH_US };
        let us = tensor_us(&tiles, steps, work.pieces, limits) + pooling;
        predicted.push((ConvStrategy::Tensor, us));
    }
    let apart = shape.pool.map_or(0.0, |_| pooling_us(shape, work));
    if let Some(tiles) = staged(shape, work, limits) {
        let us = staged_us(&tiles, shape, work, limits);
        predicted.push((ConvStrategy::Staged, us + apart));
    }
    if let Some(bands) = skip(shape, work, limits) {
        let us = skip_us(&bands, shape, work, limits);
        predicted.push((ConvStrategy::Skip, us + apart));
    }
    if lowers(shape, work) {
        predicted.push((ConvStrategy::Lowered, lowered_us(shape, work)));
    }
    predicted.sort_by(|a, b| a.1.total_cmp(&b.1));
    predicted
}

/// Every multiply-add is a load; windows that overlap are computed again.
fn direct_us(shape: &ConvShape, work: &ConvWork, limits: &DeviceLimits) -> f64 {
    let [rows, cols] = shape.result();
    let window = shape.pool.map_or(1, |pool| pool.window[0] * pool.window[1]);
    let outputs = (shape.batch * rows * cols * window) as f64;
    let per_us = f64::from(limits.sms) * DIRECT_PER_CLOCK * CLOCK_MHZ;
    LAUNCH_US + outputs * work.nnz as f64 / per_us
}

/// Pooling in a launch of its own: sums are written and read.
fn pooling_us(shape: &ConvShape, work: &ConvWork) -> f64 {
    LAUNCH_US + (2 * shape.sums() * work.sum_bytes) as f64 / MEMORY_BYTES_PER_US
}

/// The padded planes, then waves of blocks that load an input for every multiply-add.
fn staged_us(
    tiles: &StagedTiles,
    shape: &ConvShape,
    work: &ConvWork,
    limits: &DeviceLimits,
) -> f64 {
    let planes = (tiles.words * 4 + shape.inputs() * work.bytes) as f64 / MEMORY_BYTES_PER_US;
    let of_block = f64::from(tiles.filters * STAGED_WARPS * tiles.outputs * 32);
    let of_filter = work.nnz as f64 / shape.filters as f64;
    let adds = of_block * of_filter / STAGED_PER_CLOCK;
    let channels = f64::from(tiles.geometry.chunk * tiles.geometry.chunks);
    let copied = f64::from(tiles.geometry.pitch) * channels / STAGED_WORDS_PER_CLOCK;
    let waves = (tiles.blocks as f64 / f64::from(limits.sms)).ceil();
    2.0 * LAUNCH_US + planes + waves * (adds + copied + STAGED_ENDS_CLOCKS) / CLOCK_MHZ
}

/// The lists, then a pass over a list's part for every nonzero and band.
fn skip_us(bands: &SkipBands, shape: &ConvShape, work: &ConvWork, limits: &DeviceLimits) -> f64 {
    let lists = (bands.words * 4 + 2 * shape.inputs() * work.bytes) as f64 / MEMORY_BYTES_PER_US;
    let rows = f64::from(bands.geometry.rows);
    let kept = 1.0 - f64::from(work.zeros.min(1_000)) / 1e3;
    let listed = rows * shape.size[1] as f64 * kept;
    let items = (shape.batch * shape.filters) as f64 * (shape.out()[0] as f64 / rows).ceil();
    let of_filter = work.nnz as f64 / shape.filters as f64;
    let clocks = of_filter * (SKIP_PASS_CLOCKS + SKIP_ROUND_CLOCKS * (listed / 32.0).ceil());
    let at_once = f64::from(limits.sms);
    2.0 * LAUNCH_US + lists + items * clocks / at_once / CLOCK_MHZ
}

/// Tensor cores or the L2 cache, which steps and inputs come from, whichever takes longer.
fn tensor_us(tiles: &TensorTiles, steps: u64, pieces: usize, limits: &DeviceLimits) -> f64 {
    let t = &tiles.geometry;
    let of_filters = f64::from(t.filter_tiles).max(1.0);
    // Blocks of a filter tile, and its steps on average.
    let waves = (tiles.blocks as f64 / f64::from(limits.sms)).ceil();
    let all_tiles = tiles.blocks as f64 / of_filters;
    let steps_of_block = steps as f64 / of_filters;
    let products = (2 * 4 * pieces * pieces) as f64;
    let clocks = waves * steps_of_block * products * SPARSE_MMA_CLOCKS;
    let bytes = gpu_kernels::sparse_conv::step_words(pieces) as f64 * 4.0 * steps as f64;
    let inputs = f64::from(t.cells() * t.channels()) * pieces as f64;
    let read = (all_tiles * bytes + tiles.blocks as f64 * inputs) / L2_BYTES_PER_US;
    2.0 * LAUNCH_US + TENSOR_ENDS_US + (clocks / CLOCK_MHZ).max(read)
}

/// Whether a dense product suits: there is none of integers, and one product has one group.
fn lowers(shape: &ConvShape, work: &ConvWork) -> bool {
    work.pieces == 0 && shape.groups == 1 && shape.sums() > 0
}

/// The product, and the right factor written and read once.
fn lowered_us(shape: &ConvShape, work: &ConvWork) -> f64 {
    let wide = work.bytes == 8;
    let (flops, bytes) = if wide {
        (DENSE_FLOPS_PER_US / 2.0, 8.0)
    } else {
        (DENSE_FLOPS_PER_US, 4.0)
    };
    let taps = (shape.filter_shape().weights() / shape.filters) as f64;
    let outputs = (shape.sums() / shape.filters) as f64;
    let product = 2.0 * taps * shape.sums() as f64 / flops;
    3.0 * LAUNCH_US + product + 2.0 * taps * outputs * bytes / MEMORY_BYTES_PER_US
}
