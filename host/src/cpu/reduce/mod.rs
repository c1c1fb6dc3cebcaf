//! Reductions in the very order in which the GPU's kernels reduce, with their arithmetic: the same bits.
//!
//! What a block of threads holds, one value in each thread, is here an array of slots; threads of a warp are
//! combined by halves, then warps one after the other. Chunks and segments are spread over the processor's
//! cores.

mod parts;
mod whole;

pub use parts::{ColumnShape, columns, segments};
pub use whole::{Chunks, elements, pairs};

use gpu_kernels::reduce::Total;

/// Threads of a warp.
const WARP: usize = 32;
/// Threads of a block.
const BLOCK: usize = 256;

/// Combines the lanes of a warp whose numbers agree modulo `stride`: halves, quarters, …; the results are in
/// the first `stride`.
fn fold_warp<R: Total>(lanes: &mut [R], stride: usize) {
    let mut distance = lanes.len() / 2;
    while distance >= stride {
        // Higher lanes hold what no lane below `distance` asks for again.
        for lane in 0..distance {
            lanes[lane] = lanes[lane].with(lanes[lane + distance]);
        }
        distance /= 2;
    }
}

/// The total of one slot per thread of a block or a warp.
fn total_of_threads<R: Total>(mut slots: Vec<R>) -> R {
    let mut warps = slots.chunks_mut(WARP).map(|warp| {
        fold_warp(warp, 1);
        warp[0]
    });
    let first = warps.next().unwrap_or(R::NONE);
    warps.fold(first, R::with)
}

/// Combines results of parts as the last block does: thread t takes t, t + block, ….
fn total_of_parts<R: Total>(parts: &[R]) -> R {
    let mut slots = vec![R::NONE; BLOCK];
    for (i, part) in parts.iter().enumerate() {
        slots[i % BLOCK] = slots[i % BLOCK].with(*part);
    }
    total_of_threads(slots)
}
