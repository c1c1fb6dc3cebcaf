//! Which kernel is expected to be fastest.

use std::fmt;

use gpu_kernels::sparse_conv::{Pieces, sum_bytes};
use serde::{Deserialize, Serialize};

use super::costs::{direct_us, lowered_us, pooling_us, skip_us, staged_us, tensor_us};
use super::shape::ConvShape;
use super::staged::{SkipBands, StagedTiles, skip_bands, staged_tiles};
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
    /// Integers as bytes, or halves, on sparse tensor cores; dense filters take up to twice the steps of sparse ones. Sums of
    /// halves are in another order, and some zero weights are multiplied.
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
    /// Whether numbers are integers.
    pub integers: bool,
    /// How tensor cores take the numbers, where they do: an integer by its bytes, of weights fewer where all are small.
    pub pieces: Option<Pieces>,
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
    let suits = match work.integers {
        true => work.longest <= gpu_kernels::sparse_conv::MOST_NONZEROS as usize,
        false => work.finite,
    };
    work.steps.filter(|_| suits)?;
    let pieces = work.pieces?;
    let tiles = tiles(shape, pieces, limits).filter(|tiles| tiles.blocks < 1 << 31)?;
    // 64-bit sums of 16-bit numbers leave too few registers for four teams.
    let registers = work.sum_bytes == 4 || pieces.inputs == 1;
    let sums = |teams: u32| u64::from(teams * sum_bytes(work.sum_bytes as u32));
    let teams = match sums(tiles.teams) <= limits.shared_per_block.into() && registers {
        true => tiles.teams,
        false => 2,
    };
    (sums(teams) <= limits.shared_per_block.into()).then_some(TensorTiles { teams, ..tiles })
}

fn predictions(
    shape: &ConvShape,
    work: &ConvWork,
    limits: &DeviceLimits,
) -> Vec<(ConvStrategy, f64)> {
    let mut predicted = vec![(ConvStrategy::Direct, direct_us(shape, work, limits))];
    if let (Some(tiles), Some(steps)) = (tensor(shape, work, limits), work.steps) {
        let pooling = match tiles.pools {
            true => 0.0,
            false => pooling_us(shape, work),
        };
        let us = tensor_us(&tiles, steps, shape, limits);
        predicted.push((ConvStrategy::Tensor, us + pooling));
    }
    let apart = shape.pool.map_or(0.0, |_| pooling_us(shape, work));
    if let Some(tiles) = staged(shape, work, limits) {
        let us = staged_us(&tiles, shape, work, limits);
        predicted.push((ConvStrategy::Staged, us + apart));
    }
    // Where nobody says that inputs are zero, lists of them are longer than the inputs.
    if let Some(bands) = skip(shape, work, limits).filter(|_| work.zeros > 0) {
        let us = skip_us(&bands, shape, work, limits);
        predicted.push((ConvStrategy::Skip, us + apart));
    }
    if lowers(shape, work) {
        predicted.push((ConvStrategy::Lowered, lowered_us(shape, work)));
    }
    predicted.sort_by(|a, b| a.1.total_cmp(&b.1));
    predicted
}

/// Whether a dense product suits: there is none of integers, and one product has one group.
fn lowers(shape: &ConvShape, work: &ConvWork) -> bool {
    !work.integers && shape.groups == 1 && shape.sums() > 0
}
