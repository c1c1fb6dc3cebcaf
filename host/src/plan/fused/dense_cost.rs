//! What rows of a dense X cost besides their bytes: blocks that share a row, and requests that crowd each other.

use gpu_kernels::fused::{DenseOrder, Held};

use super::candidate::{Candidate, Team};
use super::launch::{Launch, Surplus};
use super::sparse_cost::LINE;

/// Bytes in flight of the rings of several blocks of an SM beyond which more of them cost more than they bring, and what
/// twice as many cost. On an H200 with 6,016 columns: 0.238 ms for 1 GB with 47 KB in flight (one block), 0.248 with 94
/// (two), 0.236 with 94 of one.
const RING_ENOUGH_BYTES: f64 = 49_152.0;
const RING_TWICE: f64 = 0.05;

/// What a block takes for a row on its way through a ring, microseconds: the sum over the block, and for each pack that
/// a thread may hold, whether it has one or not (n = 10,000: K = 16 and 20 in 1.4 and 1.7 µs a row, n = 12,000: K = 24, 28
/// and 32 in 2.1, 2.4 and 3.0).
const RING_ROW_US: f64 = 0.05;
const RING_PACK_US: f64 = 0.082;

/// What the barrier of a cluster takes for a row besides, microseconds. On an H200 a row of 32,768 columns takes a cluster
/// with K = 16, 20, 24, 28 and 32 packs 2.4, 2.5, 2.7, 2.8 and 3.0 µs, of which reading is 1.9, and one of 65,536 columns
/// 4.1; a block that holds it alone is faster (32,768 columns with K = 32 in 0.936 ms for 4 GB, over clusters 1.126).
const CLUSTER_ROW_US: f64 = 0.9;

/// What a block that shares rows in registers takes for a step besides the rows' own time, microseconds: it asks for the
/// next rows when it has done with these (61,035 × 4,096 on an H200, one block of an SM: 0.27 ms, of which 0.22 are the
/// reading).
const BLOCK_STEP_US: f64 = 0.45;

/// How much longer a stream takes that has more requests under way than memory serves well.
pub(super) fn crowding(kernel: &Candidate, blocks_per_sm: u32, in_flight: f64) -> f64 {
    match (kernel.held, blocks_per_sm) {
        (Held::Ring, 2..) => 1.0 + RING_TWICE * (in_flight / RING_ENOUGH_BYTES - 1.0).max(0.0),
        _ => 1.0,
    }
}

/// Rows that a vector has on their way: a ring has this many elements per thread, tiles come two ahead.
pub(super) fn rows_in_flight(kernel: &Candidate) -> f64 {
    let rows = f64::from(kernel.rows_in_flight.max(1));
    match kernel.held {
        Held::Ring => f64::from(kernel.ahead) / f64::from(kernel.tl.max(1)),
        Held::Tiles => 2.0 * rows,
        Held::Registers => rows,
    }
}

/// Seconds that a block takes for a row, or for a step of rows, by itself; 0 where warps work by themselves.
pub(super) fn row_of_block(kernel: &Candidate) -> f64 {
    let packs = f64::from(kernel.tl / kernel.width.max(1));
    let barrier = match kernel.cluster {
        ..=1 => 0.0,
        _ => CLUSTER_ROW_US,
    };
    match (kernel.held, kernel.team) {
        (Held::Ring, _) => (barrier + RING_ROW_US + RING_PACK_US * packs) * 1e-6,
        (Held::Registers, Team::Block) if kernel.keeps_row() => BLOCK_STEP_US * 1e-6,
        _ => 0.0,
    }
}

/// Bytes of a cache line, as a whole number.
const LINE_BYTES: u64 = LINE as u64;

/// Cache lines that the loads of a row touch on average, rows `row` bytes apart: each takes `load` bytes of one, or `rows` whole ones
/// that follow each other.
pub(super) fn lines_of_row(row: u64, load: u64, rows: u64) -> f64 {
    // A line for each 128 bytes, and one more wherever a load begins within one.
    let touched = |bytes: u64, apart: u64| {
        let begins = 1 << apart.trailing_zeros().min(LINE_BYTES.trailing_zeros());
        1.0 + bytes.saturating_sub(begins) as f64 / LINE
    };
    if load >= row {
        let all = rows.saturating_mul(row);
        return touched(all, all) / rows.max(1) as f64;
    }
    let apart = row | load;
    let rest = match row % load {
        0 => 0.0,
        rest => touched(rest, apart),
    };
    (row / load) as f64 * touched(load, apart) + rest
}

/// Which blocks a launch may have, where sums have an order.
pub(super) fn surplus(order: Option<DenseOrder>) -> Surplus {
    match order.map_or(0, |order| order.chunks) {
        0 => Surplus::Drop,
        chunks => Surplus::Chunks(chunks),
    }
}

/// How much longer blocks take of which some have a chunk of rows more than others.
pub(super) fn unevenness(order: Option<DenseOrder>, launch: &Launch) -> f64 {
    let chunks = order.map_or(0, |order| order.chunks);
    let units = u64::from(chunks) * u64::from(launch.column_tiles);
    let grid = u64::from(launch.grid);
    match units {
        0 => 1.0,
        _ => (units.div_ceil(grid) * grid) as f64 / units.max(grid) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_once_for_each_load() {
        // 128 columns of f32, 32 lanes of 16 bytes; 32 columns, eight lanes on each of four rows.
        assert_eq!(lines_of_row(512, 512, 1), 4.0);
        assert_eq!(lines_of_row(128, 128, 4), 1.0);
        // 100 columns begin at multiples of 16 bytes: a load of 400, or three of 128 and one of 16.
        assert_eq!(lines_of_row(400, 512, 1), 4.0);
        assert_eq!(lines_of_row(400, 128, 4), 3.0 * 1.875 + 1.0);
        // 28 columns of f64, two rows at a time, and in two loads of four rows each.
        assert_eq!(lines_of_row(224, 256, 2), 2.0);
        assert_eq!(lines_of_row(224, 128, 4), 1.75 + 1.5);
    }
}
