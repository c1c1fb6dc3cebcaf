//! Tiles of a sparse X for several right-hand sides: how many sides at once, and how many rows a tile has.
//!
//! Y and a tile's P lie in shared memory together. Every column that a tile has entries of costs an addition to global
//! memory for four sides, so tiles have as many rows as fit, but for what evens them out over the SMs. Where Y leaves room
//! for four sides only (of f32 from 5,000 columns on), eight are shared out between neighbouring blocks that take the same
//! tiles: on an H200 80 million entries of 10,000 columns and 8 sides took 0.69 ms in two launches of 4, which read X from
//! memory twice, and 0.58 ms in one.

use gpu_kernels::fused::many::tiles::SPARE;
use gpu_kernels::fused::{Product as KernelProduct, TilesManyVariant};

use super::fused::{Precision, Problem};
use super::limits::DeviceLimits;

/// Rows of a tile that has enough entries in a column, at least.
const LEAST_ROWS: u64 = 2_048;
/// Rows of a tile that has work for all warps of a block.
const FEW_ROWS: u64 = 256;
/// Rows that lanes of a warp share a slice for.
const ROWS_OF_SLICE: u64 = 32;
/// Groups of sides that a launch takes, at most.
pub const MOST_GROUPS: u32 = 8;
/// Bytes that a lane reads at once.
const PACK_BYTES: u32 = 16;

/// How X is cut, and for how many sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileShape {
    /// Right-hand sides of a block, at most.
    pub sides: u32,
    /// Rows of a tile.
    pub rows: u32,
}

impl TileShape {
    /// The shape for a sparse X; `None` where Y leaves no room for a tile.
    ///
    /// ```
    /// use warpfuse::plan::fused::{Precision, Problem};
    /// use warpfuse::plan::limits::DeviceLimits;
    /// use warpfuse::plan::tiles::TileShape;
    ///
    /// let h200 = DeviceLimits::known("h200").unwrap();
    /// let of = |cols| TileShape::new(&Problem::sparse(4_000_000, cols, 80_000_000, Precision::F32), &h200);
    /// assert_eq!(of(1_000).unwrap().sides, 8);
    /// assert_eq!(of(10_000).unwrap().sides, 4);
    /// assert!(of(20_000).is_none());
    /// ```
    pub fn new(problem: &Problem, limits: &DeviceLimits) -> Option<Self> {
        let all: &[u32] = match problem.dtype {
            Precision::F32 => &[8, 4],
            Precision::F64 => &[4],
        };
        let room = |sides: &u32| {
            let row = sides * problem.dtype.bytes();
            let rows = u64::from(limits.shared_per_block / row);
            rows.checked_sub(problem.cols + 2 * u64::from(SPARE))
        };
        let (sides, most) = all
            .iter()
            .filter_map(|sides| Some((*sides, room(sides)?)))
            .find(|(_, rows)| *rows >= LEAST_ROWS)?;
        let most = most.min((1 << 16) - u64::from(SPARE));
        let sms = u64::from(limits.sms.max(1));
        let rounds = problem.rows.div_ceil(most).div_ceil(sms).max(1);
        let even = problem.rows.div_ceil(rounds * sms).max(FEW_ROWS);
        let rows = even.next_multiple_of(ROWS_OF_SLICE);
        let whole = most / ROWS_OF_SLICE * ROWS_OF_SLICE;
        Some(TileShape {
            sides,
            rows: rows.min(whole) as u32,
        })
    }

    /// Blocks of a launch for so many groups of sides: one for each group at every tile that is worked on.
    pub fn grid(&self, rows: u64, groups: u32, limits: &DeviceLimits) -> u32 {
        let tiles = rows.div_ceil(u64::from(self.rows)).max(1);
        let at_once = u64::from((limits.sms / groups.max(1)).max(1));
        at_once.min(tiles) as u32 * groups
    }

    /// Packs of 16 bytes that the sides of a row fill.
    pub fn packs(&self, dtype: Precision) -> u32 {
        self.sides * dtype.bytes() / PACK_BYTES
    }

    /// Dynamic shared memory of a block.
    pub fn shared_bytes(&self, problem: &Problem, product: KernelProduct) -> u64 {
        let cols = u32::try_from(problem.cols).unwrap_or(u32::MAX);
        let variant = TilesManyVariant {
            product,
            sides: self.sides,
        };
        variant.shared_bytes(cols, self.rows, problem.dtype.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_and_come_in_whole_rounds() {
        let limits = DeviceLimits::known("h200").expect("a listed device");
        for (rows, cols, dtype) in [
            (4_000_000, 1_000, Precision::F32),
            (4_000_000, 5_000, Precision::F32),
            (4_000_000, 12_000, Precision::F32),
            (4_000_000, 4_000, Precision::F64),
            (100, 1, Precision::F32),
        ] {
            let problem = Problem::sparse(rows, cols, 20 * rows, dtype);
            let shape = TileShape::new(&problem, &limits).expect("room for a tile");
            let bytes = shape.shared_bytes(&problem, KernelProduct::Fused);
            assert!(bytes <= u64::from(limits.shared_per_block), "{shape:?}");
            let tiles = rows.div_ceil(u64::from(shape.rows));
            let of_last_round = (tiles - 1) % u64::from(limits.sms) + 1;
            assert!(rows == 100 || of_last_round > 120, "{tiles} of {shape:?}");
        }
    }
}
