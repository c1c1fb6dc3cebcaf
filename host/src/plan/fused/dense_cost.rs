//! What rows of a dense X cost besides their bytes: blocks that share a row, and requests that crowd each other.

use super::candidate::{Candidate, Strategy, Team};

/// Bytes of rings in flight on an SM beyond which more of them cost more than they bring, and what twice as many cost.
/// On an H200 with 6,000 columns: 0.238 ms for 1 GB with 47 KB in flight (one block), 0.255 with 94.
const RING_ENOUGH_BYTES: f64 = 49_152.0;
const RING_TWICE: f64 = 0.05;

/// What a block takes for a row on its way through a ring, microseconds: the sum over the block, and for each pack that
/// a thread may hold, whether it has one or not.
const RING_ROW_US: f64 = 0.20;
const RING_PACK_US: f64 = 0.02;

/// What a block that shares rows in registers takes for a step besides the rows' own time, microseconds: it asks for the
/// next rows when it has done with these (61,035 × 4,096 on an H200, one block of an SM: 0.27 ms, of which 0.22 are the
/// reading).
const BLOCK_STEP_US: f64 = 0.45;

/// How much longer a stream takes that has more requests under way than memory serves well.
pub(super) fn crowding(strategy: Strategy, in_flight: f64) -> f64 {
    match strategy {
        Strategy::DenseRing => 1.0 + RING_TWICE * (in_flight / RING_ENOUGH_BYTES - 1.0).max(0.0),
        _ => 1.0,
    }
}

/// Rows that a vector has on their way: a ring has so many elements per thread, tiles come two ahead.
pub(super) fn rows_in_flight(kernel: &Candidate) -> f64 {
    let rows = f64::from(kernel.rows_in_flight.max(1));
    match kernel.strategy {
        Strategy::DenseRing => f64::from(kernel.ahead) / f64::from(kernel.tl.max(1)),
        Strategy::DenseTiles => 2.0 * rows,
        _ => rows,
    }
}

/// Seconds that a block takes for a row, or for a step of rows, by itself; 0 where warps work by themselves.
pub(super) fn row_of_block(kernel: &Candidate) -> f64 {
    let packs = f64::from(kernel.tl / kernel.width.max(1));
    match (kernel.strategy, kernel.team) {
        (Strategy::DenseRing, _) => (RING_ROW_US + RING_PACK_US * packs) * 1e-6,
        (Strategy::DenseRegisters, Team::Block) => BLOCK_STEP_US * 1e-6,
        _ => 0.0,
    }
}
