//! Launches of kernels over vectors, element by element. Sums have grids of their own: see [`cpu::grid`](crate::cpu::grid).

use serde::{Deserialize, Serialize};

use super::limits::DeviceLimits;

/// Threads of a block: eight warps hide latency and leave the SM free to mix blocks.
const BLOCK: u32 = 256;

/// Threads of a warp.
const WARP: u32 = 32;

/// Elements that each thread should have before a block more is worth launching.
const PER_THREAD: u64 = 4;

/// A launch over the elements of a vector; threads stride by the size of the grid.
///
/// `grid · bs · per_thread` is at least the number of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VectorPlan {
    /// Blocks, at least one.
    pub grid: u32,
    /// Threads per block.
    pub bs: u32,
    /// Elements per thread at most.
    pub per_thread: u64,
}

/// The launch of an elementwise kernel (axpy, scale, fill, …) over `n` elements.
///
/// ```
/// use warpfuse::plan::{limits::DeviceLimits, vector};
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// assert_eq!(vector::elementwise(0, &h200).grid, 1);
/// assert_eq!(vector::elementwise(1_000, &h200).grid, 1);
/// assert_eq!(vector::elementwise(u64::MAX, &h200).grid, 132 * 8);
/// ```
pub fn elementwise(n: u64, limits: &DeviceLimits) -> VectorPlan {
    let blocks_per_sm = (limits.max_threads_per_sm / BLOCK).max(1);
    launch(n, limits, blocks_per_sm)
}

fn launch(n: u64, limits: &DeviceLimits, blocks_per_sm: u32) -> VectorPlan {
    let bs = one_block(n, BLOCK.min(limits.max_threads_per_block));
    let most = u64::from(blocks_per_sm) * u64::from(limits.sms.max(1));
    let wanted = n.div_ceil(u64::from(bs) * PER_THREAD);
    let most = most.min(u64::from(super::limits::MAX_GRID));
    let grid = wanted.clamp(1, most);
    let per_thread = n.div_ceil(grid * u64::from(bs)).max(1);
    // No larger than the greatest grid by the line above.
    VectorPlan {
        grid: u32::try_from(grid).unwrap_or(1),
        bs,
        per_thread,
    }
}

/// Threads of a block that walks `n` elements by itself: whole warps, no more than have an element, and no more than
/// `most`.
fn one_block(n: u64, most: u32) -> u32 {
    let warps = n.div_ceil(u64::from(WARP)).max(1);
    let most = u64::from(most / WARP).max(1);
    // No larger than `most` by this line.
    u32::try_from(warps.min(most)).unwrap_or(1) * WARP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_has_whole_warps_and_no_idle_one() {
        let cases = [
            (0, 32),
            (1, 32),
            (32, 32),
            (33, 64),
            (1_000, 1_024),
            (u64::MAX, 1_024),
        ];
        for (n, threads) in cases {
            assert_eq!(one_block(n, 1_024), threads, "n = {n}");
        }
        assert_eq!(one_block(1_000, 256), 256);
        assert_eq!(one_block(1_000, 0), 32);
    }
}
