//! Predicted time of products over panels: see [`gpu_kernels::fused::panels`].
//!
//! A pass over the panels of rows gives `X·y`, one over those of columns `Xᵀ·p`; the fused product is both. In each of
//! them a panel touches the sectors of its inputs once and in order, however many entries want them, and adds every
//! entry to shared memory.

use gpu_kernels::fused::panels::{PANEL_BYTES, widest_panel};

use super::geometry::Blocks;
use super::problem::{Precision, Problem, Product};
use crate::plan::limits::DeviceLimits;

/// Bytes that L2 gives out at a time.
const SECTOR: f64 = 32.0;
/// Sectors of neighbouring lanes come at the rate of random gathers from a vector of this size, as blocks walk the same
/// part of it.
const WINDOW_BYTES: f64 = 4e6;
/// Instructions of a lane for an entry, read off the compiled kernel.
const PER_ENTRY: f64 = 14.0;
/// Chunks that a warp has on the way.
const CHUNKS_IN_FLIGHT: f64 = 2.0;
/// Entries of a lane in a chunk.
const PER_LANE: f64 = 4.0;
/// Round trips to memory that what is on the way has to last for: gathers wait for entries, and additions for both. A pass
/// over 80 million entries takes 0.21 ms in blocks of 1,024 threads and 0.33 in blocks of 512.
pub(super) const ROUND_TRIPS: f64 = 3.5;
/// A warp adds neighbouring sums to global memory at once.
const FLUSH_COALESCING: f64 = 4.0;

/// How long two additions of one block to one sum take one after the other, seconds: by Zipf's law with exponents of
/// 0.8, 1.1 and 1.4 over 1,000,000 columns 0.19, 0.60 and 0.53 ms more than uniform columns on an H200, with 1.1, 3.7
/// and 4 million entries in the first.
const QUEUE: f64 = 20e-9;

/// One pass: from as many inputs to as many outputs.
pub(super) struct Pass {
    pub inputs: f64,
    pub outputs: f64,
    pub entries: f64,
    /// Entries of the output that has most, where its panel's blocks share them evenly.
    pub busiest: f64,
    /// The same where one block adds them: of a row, which is in one panel of many.
    pub longest: f64,
}

/// What a product over panels costs, seconds.
#[derive(Default)]
pub(super) struct PanelCost {
    pub stream: f64,
    pub access: f64,
    /// Additions to the busiest output one after the other, in blocks of 1,024 threads.
    pub queue: f64,
    pub issue: f64,
    pub flush: f64,
    pub launch: f64,
}

/// The cost of a product, whatever its launch.
pub(super) fn cost(limits: &DeviceLimits, problem: &Problem, product: Product) -> PanelCost {
    let (rows, cols) = (problem.rows as f64, problem.cols as f64);
    let entries = problem.nnz.unwrap_or(0) as f64;
    let of_rows = Pass {
        inputs: cols,
        outputs: rows,
        entries,
        // Neighbouring entries are of different rows.
        busiest: 0.0,
        longest: problem.longest(),
    };
    let of_columns = Pass {
        inputs: rows,
        outputs: cols,
        entries,
        busiest: problem.busiest_column(),
        longest: 0.0,
    };
    let both = [of_rows, of_columns];
    let passes = match product {
        Product::Fused => &both[..],
        Product::Forward => &both[..1],
        Product::Transposed => &both[1..],
    };
    let mut sum = PanelCost::default();
    for pass in passes {
        let one = pass.cost(limits, problem);
        sum.stream += one.stream;
        sum.access += one.access;
        sum.queue += one.queue;
        sum.issue += one.issue;
        sum.flush += one.flush;
        sum.launch += one.launch;
    }
    sum
}

/// How much of a queue is left with blocks of `bs` threads, of which fewer want the same sum at a time: 0.77 ms in place
/// of 0.83 with 1,024 for `Xᵀ·p` with 4,000,000 × 100,000 by Zipf's law with an exponent of 1.1 and blocks of 512 threads, though what
/// is not a queue takes half as long again.
pub(super) fn queue_left(bs: u32) -> f64 {
    0.85 + 0.15 * f64::from(bs) / 1_024.0
}

/// Bytes of X that the resident blocks of an SM have asked for at once, of so many for an entry.
pub(super) fn bytes_in_flight(blocks: &Blocks, entry: f64) -> f64 {
    let threads = f64::from(blocks.bs) * f64::from(blocks.occupancy.blocks_per_sm);
    threads * PER_LANE * CHUNKS_IN_FLIGHT * entry
}

impl Pass {
    pub fn cost(&self, limits: &DeviceLimits, problem: &Problem) -> PanelCost {
        let element = f64::from(problem.dtype.bytes());
        let nnz = self.entries;
        let rates = &limits.rates;
        let width = f64::from(widest_panel(problem.dtype.bytes()));
        let panels = (self.outputs / width).ceil().max(1.0);
        let sectors = (self.inputs * element / SECTOR).max(1.0);
        // Of so many sectors, those that so many entries at random hit.
        let touched = sectors * (1.0 - (-nnz / (panels * sectors)).exp());
        let (add, scatter) = match problem.dtype {
            Precision::F32 => (rates.shared_add_f32, &rates.scatter_f32),
            Precision::F64 => (rates.shared_add_f64, &rates.scatter_f64),
        };
        let bytes = nnz * (element + 4.0) + 3.0 * element * self.outputs;
        // A panel that several blocks share is added by each of them.
        let flushed = self.outputs + f64::from(limits.sms) * width.min(self.outputs);
        let flush_rate = FLUSH_COALESCING * scatter.at(WINDOW_BYTES);
        // A block has as many entries of the longest row as its share of the panel has.
        let longest = self.longest * (panels / f64::from(limits.sms.max(1))).min(1.0);
        // They overlap in part: 8,000,000 x 20,000,000 with 224 million entries take 1.0 ms a pass on an H200, where gathers
        // alone are reckoned to take 1.0 and additions 0.5 ms.
        let gathers = panels * touched / (rates.gather.at(WINDOW_BYTES) * 1e9);
        PanelCost {
            stream: bytes / (rates.stream_gbs * 1e9),
            access: gathers.hypot(nnz / (add * 1e9)).max(QUEUE * longest),
            queue: QUEUE * self.busiest / f64::from(limits.sms.max(1)),
            issue: nnz * PER_ENTRY / f64::from(limits.warp_size.max(1)) / (rates.issue * 1e9),
            flush: flushed / (flush_rate * 1e9),
            // A pass begins with setting its outputs.
            launch: 2.0 * rates.launch_us * 1e-6,
        }
    }
}

/// Shared memory of a block, whatever the matrix.
pub(crate) const SHARED_BYTES: u32 = PANEL_BYTES;
