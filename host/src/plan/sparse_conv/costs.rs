//! What strategies are expected to take, in microseconds.
//!
//! The constants of `direct`, `staged`, `tensor` and `lowered` are fitted, by least squares of relative errors with no
//! negative constant, to what 40 drawn layers took in four types on an H200 (`drawn` in
//! `benches/results/h200/sparse_conv.jsonl`). None of the layers of known networks that the choice is judged by is among
//! them. `skip` has one fitted constant, what a round of its list costs: from the source's layer with one image
//! (`zeros_…`); the rest of it is counted from its instructions. The test `replay` holds the choice to the record.

use gpu_kernels::sparse_conv::{Pieces, STAGED_WARPS};

use super::choice::ConvWork;
use super::shape::ConvShape;
use super::staged::{SkipBands, StagedTiles, bank_passes};
use super::tensor::TensorTiles;
use crate::plan::limits::DeviceLimits;

/// Of one more launch in a stream.
const LAUNCH_US: f64 = 2.0;
/// Clock under load, 10⁶ per second: between what an H200 keeps up and its highest.
const CLOCK_MHZ: f64 = 1_755.0;
/// Bytes of memory that are read or written in a microsecond.
const MEMORY_BYTES_PER_US: f64 = 4e6;
/// Bytes in a megabyte.
const MEGA: f64 = 1e6;

/// Costs of `direct`.
struct Direct {
    start: f64,
    /// Of each of a filter's nonzeros, which a warp takes one after the other.
    nonzero: f64,
    /// Of a nonzero and warp of 128 outputs, on one SM.
    pass: f64,
    /// Of 10⁶ bytes of results.
    results: f64,
}

/// By bytes of an integer and of a number.
fn direct(work: &ConvWork) -> Direct {
    let [start, nonzero, pass, results] = match (work.integers, work.bytes) {
        (true, 1) => [6.94, 0.192, 10.87e-3, 1.11],
        (true, _) => [7.09, 0.189, 11.85e-3, 1.28],
        (_, 2) => [7.46, 0.203, 16.07e-3, 1.20],
        (_, 4) => [8.18, 0.235, 8.88e-3, 1.48],
        // 64-bit floats: twice the bytes, half the multiply-adds per clock; not measured.
        _ => [8.18, 0.235, 17.76e-3, 1.48],
    };
    Direct {
        start,
        nonzero,
        pass,
        results,
    }
}

/// A warp takes 128 outputs of a filter, or 32 windows, of which four outputs at once; windows that overlap are computed
/// again.
pub(super) fn direct_us(shape: &ConvShape, work: &ConvWork, limits: &DeviceLimits) -> f64 {
    let costs = direct(work);
    let [rows, cols] = shape.result();
    let (run, passes) = match shape.pool {
        None => (128, 1),
        Some(pool) => (32, (pool.window[0] * pool.window[1]).div_ceil(4)),
    };
    let items = (shape.batch * shape.filters * (rows * cols).div_ceil(run) * passes) as f64;
    let of_filter = work.nnz as f64 / shape.filters as f64;
    let latency = costs.nonzero * of_filter * passes as f64;
    let results = costs.results * (shape.results() * work.sum_bytes) as f64 / MEGA;
    costs.start + latency + costs.pass * of_filter * items / f64::from(limits.sms) + results
}

/// Costs of `tensor`.
struct Tensor {
    start: f64,
    /// Of a clock of a block's `mma.sp`, at 8 of them each, on four tensor cores.
    clock: f64,
    wave: f64,
    /// Of a byte of a block's inputs.
    input: f64,
    /// Of 10⁶ bytes that the planes' launch reads and writes.
    planes: f64,
    /// Of 10⁶ bytes of steps that all blocks read.
    steps: f64,
}

/// By pieces of an input and of a weight, and by bytes of a piece. Two pieces of both are of an earlier record, whose launches did
/// not overlap.
fn tensor(of: Pieces) -> Tensor {
    let [start, clock, wave, input, planes, steps] = match (of.inputs, of.weights, of.bytes) {
        (1, _, 1) => [4.55, 4.521, 2.125, 1.954e-5, 0.260, 0.0750],
        (1, _, _) => [5.06, 3.636, 1.727, 2.074e-5, 0.985, 0.236],
        (_, 1, _) => [2.66, 4.177, 4.327, 1.288e-5, 0.568, 0.0177],
        _ => [4.67, 3.402, 8.045, 1.390e-5, 0.661, 0.0377],
    };
    Tensor {
        start,
        clock: clock / CLOCK_MHZ,
        wave,
        input,
        planes,
        steps,
    }
}

/// The planes, then waves of blocks: their inputs, steps of a filter tile on average.
pub(super) fn tensor_us(
    tiles: &TensorTiles,
    steps: u64,
    shape: &ConvShape,
    limits: &DeviceLimits,
) -> f64 {
    let (t, of) = (&tiles.geometry, tiles.pieces);
    let (costs, pieces) = (tensor(of), f64::from(of.inputs));
    let products = f64::from(of.inputs * of.weights);
    let waves = (tiles.blocks as f64 / f64::from(limits.sms)).ceil();
    let all_tiles = f64::from(t.filter_tiles).max(1.0) * shape.groups as f64;
    let of_block = steps as f64 / all_tiles;
    let clocks = waves * of_block * products * 32.0;
    let inputs = f64::from(t.cells() * t.bytes()) * pieces;
    let cells = (shape.batch * shape.size[0] * shape.size[1] * shape.groups) as f64;
    let planes = 2.0 * cells * f64::from(t.bytes()) * pieces / MEGA;
    let read = tiles.blocks as f64 * of_block * 4.0 * of.step_words() as f64 / MEGA;
    costs.start
        + costs.clock * clocks
        + waves * (costs.wave + costs.input * inputs)
        + costs.planes * planes
        + costs.steps * read
}

/// Pooling in a launch of its own: sums are written and read.
pub(super) fn pooling_us(shape: &ConvShape, work: &ConvWork) -> f64 {
    LAUNCH_US + (2 * shape.sums() * work.sum_bytes) as f64 / MEMORY_BYTES_PER_US
}

/// Costs of `staged`.
const STAGED: Staged = Staged {
    start: 6.45,
    planes: 1.174,
    pass: 0.4836e-3,
    nonzero: 25.88e-3,
    range: 0.703,
    copied: 0.030e-3,
};
/// Blocks of an SM that `staged` has registers for, by filters of a warp.
const STAGED_RESIDENT: [(u32, u64); 2] = [(4, 2), (2, 4)];

struct Staged {
    start: f64,
    /// Of 10⁶ bytes of inputs and padded planes.
    planes: f64,
    /// Of a pass over shared banks by a warp: 32 inputs of a nonzero, if they lie in different banks.
    pass: f64,
    /// Of each of a warp's nonzeros, one after the other.
    nonzero: f64,
    /// Of the beginning of a filter's range of a chunk: its ends, then its first nonzeros come from memory.
    range: f64,
    /// Of a word that a block copies.
    copied: f64,
}

/// The padded planes, then waves of blocks that load an input for every multiply-add. Blocks of an SM share its shared
/// memory's passes and take turns in what each waits for.
pub(super) fn staged_us(
    tiles: &StagedTiles,
    shape: &ConvShape,
    work: &ConvWork,
    limits: &DeviceLimits,
) -> f64 {
    let costs = STAGED;
    let planes = (tiles.words * 4 + shape.inputs() * work.bytes) as f64 / MEGA;
    let of_warp = f64::from(tiles.filters) * work.nnz as f64 / shape.filters as f64;
    let passes = f64::from(STAGED_WARPS * tiles.outputs) * of_warp * bank_passes(shape);
    let channels = f64::from(tiles.geometry.chunk * tiles.geometry.chunks);
    let copied = f64::from(tiles.geometry.pitch) * channels;
    let (sms, resident) = (u64::from(limits.sms), resident(tiles, limits));
    let turns = tiles.blocks.div_ceil(sms) as f64;
    let rounds = tiles.blocks.div_ceil(sms * resident) as f64;
    let ranges = f64::from(tiles.filters * tiles.geometry.chunks);
    costs.start
        + costs.planes * planes
        + turns * (costs.pass * passes + costs.copied * copied)
        + rounds * (costs.nonzero * of_warp + costs.range * ranges)
}

/// Blocks of `staged` that an SM holds.
fn resident(tiles: &StagedTiles, limits: &DeviceLimits) -> u64 {
    let by_registers = STAGED_RESIDENT
        .iter()
        .find(|(filters, _)| *filters == tiles.filters)
        .map_or(1, |(_, blocks)| *blocks);
    // A block takes 1 KiB of shared memory beside its own; what one block may take is 1 KiB less than the SM has.
    let of_sm = u64::from(limits.shared_per_block) + 1_024;
    (of_sm / (tiles.shared_bytes + 1_024)).clamp(1, by_registers)
}

/// Clocks of an SM for a nonzero and a band by `skip`: twenty instructions, of which it begins four per clock.
const SKIP_PASS_CLOCKS: f64 = 5.0;
/// Clocks of an SM for 32 inputs of a list: sums are read, added to and written in banks that collide.
const SKIP_ROUND_CLOCKS: f64 = 15.0;
/// Clocks from one nonzero of a filter to the next, of one warp.
const SKIP_LATENCY_CLOCKS: f64 = 120.0;

/// The lists, then a pass over a list's part for every nonzero and band.
pub(super) fn skip_us(
    bands: &SkipBands,
    shape: &ConvShape,
    work: &ConvWork,
    limits: &DeviceLimits,
) -> f64 {
    let lists = (bands.words * 4 + 2 * shape.inputs() * work.bytes) as f64 / MEMORY_BYTES_PER_US;
    let rows = f64::from(bands.geometry.rows);
    let kept = 1.0 - f64::from(work.zeros.min(1_000)) / 1e3;
    let rounds = (rows * shape.size[1] as f64 * kept / 32.0).ceil();
    let items = (shape.batch * shape.filters) as f64 * (shape.out()[0] as f64 / rows).ceil();
    let of_filter = work.nnz as f64 / shape.filters as f64;
    let pass = SKIP_PASS_CLOCKS + SKIP_ROUND_CLOCKS * rounds;
    let busy = items * of_filter * pass / f64::from(limits.sms);
    let alone = of_filter * SKIP_LATENCY_CLOCKS;
    let start = direct(work).start + LAUNCH_US;
    start + lists + (busy + alone) / CLOCK_MHZ
}

/// Costs of `lowered`: of its launches, of 10⁹ operations, of 10⁶ bytes of the right factor and of sums, each counted as
/// written and read, and of 1,000 terms of a dot product.
const LOWERED: [f64; 5] = [18.0, 19.86, 1.10, 0.87, 0.71];

/// The right factor, the product, bias and pooling.
pub(super) fn lowered_us(shape: &ConvShape, work: &ConvWork) -> f64 {
    let wide = if work.sum_bytes == 8 { 2.0 } else { 1.0 };
    let taps = (shape.filter_shape().weights() / shape.filters) as f64;
    let outputs = (shape.sums() / shape.filters) as f64;
    let sums = shape.sums() as f64;
    let [start, operations, factor, of_sums, terms] = LOWERED;
    start
        + wide * operations * 2.0 * taps * sums / 1e9
        + wide * factor * 8.0 * taps * outputs / MEGA
        + wide * of_sums * 8.0 * sums / MEGA
        + terms * taps / 1e3
}
