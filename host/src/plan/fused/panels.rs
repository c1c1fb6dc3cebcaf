//! Predicted time of products over panels: see [`gpu_kernels::fused::panels`].
//!
//! A pass over the panels of rows gives `X·y`, one over those of columns `Xᵀ·p`; the fused product is both. In each of
//! them a panel touches the sectors of its inputs once and in order, however many entries want them, and adds every
//! entry to shared memory.

use gpu_kernels::fused::panels::widest_panel;

use super::launch::Blocks;
use super::prediction::soft_max;
use super::sparse_cost::gathers_in_order;
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::{Precision, Problem, Product};

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
/// over 80 million entries takes 0.18 ms in blocks of 1,024 threads.
pub(super) const ROUND_TRIPS: f64 = 3.0;
/// How much faster additions are than those to random places: fewer lanes meet in a bank, as chunks are laid out. 80
/// million entries of 40,000 columns take 369 instead of 472 µs on an H200.
const FEWER_MEET: f64 = 1.5;
/// What the gathers take that a panel touches, in those at random: fitted.
const TOUCHED: f64 = 1.15;
/// A warp adds neighbouring sums to global memory at once.
const FLUSH_COALESCING: f64 = 5.34;

/// How long two additions of one block to one sum take one after the other, seconds, in f32 and in f64: by Zipf's law
/// with exponents of 0.8, 1.1 and 1.4 over 1,000,000 columns 0.22, 0.65 and 0.56 ms more than uniform columns on an H200,
/// with 0.9, 3.8 and 4 million entries in the first; with 0.8 and 1.1 in f64 0.34 and 0.92 ms more.
const QUEUE: [f64; 2] = [21.2e-9, 31.0e-9];
/// The same where they are those of one row, whose entries follow one another: rows of 20,000 among those of 20 take
/// `X·y` from 0.23 to 0.74 ms, and the pattern in f64 from 0.69 to 2.2.
const ROW_QUEUE: [f64; 2] = [30.7e-9, 78.9e-9];

/// One pass: from as many inputs to as many outputs.
pub(super) struct Pass {
    pub inputs: f64,
    pub outputs: f64,
    pub entries: f64,
    /// The inputs that most entries want, and how many do, where that is known.
    pub frequent: Option<(f64, f64)>,
    /// Entries of the output that has most, as if all blocks had as many of them as those of its panel.
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
    passes(problem, product).fold(PanelCost::default(), |sum, pass| {
        let one = pass.cost(limits, problem);
        PanelCost {
            stream: sum.stream + one.stream,
            access: sum.access + one.access,
            queue: sum.queue + one.queue,
            issue: sum.issue + one.issue,
            flush: sum.flush + one.flush,
            launch: sum.launch + one.launch,
        }
    })
}

/// What two passes take beyond one with the sums of their parts, with blocks that reach such a share of the memory's rate
/// and leave so much of a queue: one may be bound by its stream, the other by additions.
pub(super) fn apart(
    limits: &DeviceLimits,
    problem: &Problem,
    product: Product,
    share: f64,
    queue_left: f64,
) -> f64 {
    let time = |cost: PanelCost| {
        let access = cost.access + queue_left * cost.queue;
        soft_max([cost.stream / share, access, cost.issue, 0.0, 0.0])
    };
    let each = passes(problem, product).map(|pass| time(pass.cost(limits, problem)));
    let each: f64 = each.sum();
    (each - time(cost(limits, problem, product))).max(0.0)
}

/// One after the other.
fn passes(problem: &Problem, product: Product) -> impl Iterator<Item = Pass> {
    let (rows, cols) = (problem.rows as f64, problem.cols as f64);
    let entries = problem.nnz.unwrap_or(0) as f64;
    let of_rows = Pass {
        inputs: cols,
        outputs: rows,
        entries,
        frequent: problem.frequent_columns(),
        // Neighbouring entries are of different rows.
        busiest: 0.0,
        longest: problem.longest(),
    };
    let of_columns = Pass {
        inputs: rows,
        outputs: cols,
        entries,
        frequent: None,
        busiest: problem.busiest_column() / share_of_first_panel(problem),
        longest: 0.0,
    };
    let of_rows = (product != Product::Transposed).then_some(of_rows);
    let of_columns = (product != Product::Forward).then_some(of_columns);
    of_rows.into_iter().chain(of_columns)
}

/// The share of entries in the panel of the most frequent columns, of which the most frequent third or so is known: blocks
/// have as many entries each, and those of this panel share its queue.
fn share_of_first_panel(problem: &Problem) -> f64 {
    const WIDER: f64 = 0.65;
    let nnz = problem.nnz.unwrap_or(0).max(1) as f64;
    let Some((_, entries)) = problem.frequent_columns() else {
        return 1.0;
    };
    let panels = problem.cols as f64 / f64::from(widest_panel(problem.dtype.bytes()));
    (entries / nnz).powf(WIDER).max(1.0 / panels.max(1.0))
}

/// How much of a queue is left with blocks of `bs` threads, of which fewer want the same sum at a time: 0.77 ms in place
/// of 0.83 with 1,024 for `Xᵀ·p` with 4,000,000 × 100,000 by Zipf's law with an exponent of 1.1 and blocks of 512 threads, though what
/// is not a queue takes half as long again; the pattern with 1,000,000 columns in f64 1.49 instead of 1.71.
pub(super) fn queue_left(problem: &Problem, bs: u32) -> f64 {
    let gained = match problem.dtype {
        Precision::F32 => 0.15,
        Precision::F64 => 0.45,
    };
    1.0 - gained * (1.0 - f64::from(bs.max(512)) / 1_024.0)
}

/// Bytes of X that the resident blocks of an SM have requested at once, of this many for an entry.
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
        let (add, scatter, queue, row_queue) = match problem.dtype {
            Precision::F32 => (
                rates.shared_add_f32,
                &rates.scatter_f32,
                QUEUE[0],
                ROW_QUEUE[0],
            ),
            Precision::F64 => (
                rates.shared_add_f64,
                &rates.scatter_f64,
                QUEUE[1],
                ROW_QUEUE[1],
            ),
        };
        let outputs = element * self.outputs;
        let bytes = nnz * (element + 4.0) + times_moved(limits, outputs) * outputs;
        // A panel that several blocks share is added by each of them; many panels are made as many for each block.
        let shared = match are_made_as_many(panels as usize, limits.sms as usize) {
            true => 0.0,
            false => f64::from(limits.sms) * width.min(self.outputs),
        };
        let flushed = self.outputs + shared;
        let flush_rate = FLUSH_COALESCING * scatter.at(WINDOW_BYTES);
        // A block has as many entries of the longest row as its share of the panel has.
        let share = (panels / f64::from(limits.sms.max(1))).min(1.0);
        let longest = (self.longest * share).max(self.longest_of_rare(share));
        // They overlap in part: 8,000,000 x 20,000,000 with 224 million entries take 1.0 ms a pass on an H200, where gathers
        // alone are computed to take 0.95 and additions 0.5 ms.
        let gathers =
            TOUCHED * self.touched(panels, element) / (rates.gather.at(WINDOW_BYTES) * 1e9);
        PanelCost {
            stream: bytes / (rates.stream_gbs * 1e9),
            access: gathers
                .hypot(nnz / (FEWER_MEET * add * 1e9))
                .max(row_queue * longest),
            queue: queue * self.busiest / f64::from(limits.sms.max(1)),
            issue: nnz * PER_ENTRY / f64::from(limits.warp_size.max(1)) / (rates.issue * 1e9),
            flush: flushed / (flush_rate * 1e9),
            // A pass begins with setting its outputs.
            launch: 2.0 * rates.launch_us * 1e-6,
        }
    }

    /// Entries of the longest row that a block adds which has rare inputs, of blocks that have this share of a panel's entries: as many
    /// as there are no frequent inputs for.
    fn longest_of_rare(&self, share: f64) -> f64 {
        let Some((inputs, entries)) = self.frequent else {
            return 0.0;
        };
        let blocks = (1.0 - entries / self.entries.max(1.0)) / share;
        (self.longest - inputs).max(0.0) / blocks.max(1.0)
    }

    /// Gathers at random that what this many panels touch of the inputs is worth.
    fn touched(&self, panels: f64, element: f64) -> f64 {
        let of = |inputs: f64, entries: f64| {
            panels * gathers_in_order(inputs * element, entries / panels)
        };
        match self.frequent {
            None => of(self.inputs, self.entries),
            Some((inputs, entries)) => {
                of(inputs, entries) + of(self.inputs - inputs, self.entries - entries)
            }
        }
    }
}

/// How often outputs of this many bytes cross to or from memory, which are set, read and added to: once less where L2 has room for them.
fn times_moved(limits: &DeviceLimits, bytes: f64) -> f64 {
    const STAYS: f64 = 0.5;
    let share = bytes / (limits.l2_bytes as f64).max(1.0);
    2.0 + ((share - STAYS) / (1.0 - STAYS)).clamp(0.0, 1.0)
}

/// Whether this many panels are made as many for each of the ranges, so that none is cut.
pub(crate) fn are_made_as_many(panels: usize, ranges: usize) -> bool {
    2 * panels > ranges
}
