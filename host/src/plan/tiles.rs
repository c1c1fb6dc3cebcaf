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
/// Rows of a tile that needs no room of its own: each tile begins with a wait for its first entries, and rows that become
/// neighbours by their length lie this far apart at most.
const ROWS_OF_WALK: u64 = 16_384;
/// Rows that lanes of a warp share a slice for.
const ROWS_OF_SLICE: u64 = 32;
/// Groups of sides that a launch takes, at most.
pub const MOST_GROUPS: u32 = 8;
/// Bytes that a lane reads at once.
const PACK_BYTES: u32 = 16;

/// How many launches compute the fused product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TilePasses {
    /// One: X·Y of a tile stays in shared memory beside Y.
    One,
    /// Two, with X·Y in memory between them: either has shared memory for itself.
    Two,
}

/// How X is cut in one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileCut {
    /// Right-hand sides of a block, at most.
    pub sides: u32,
    /// Rows of a tile.
    pub rows: u32,
}

impl TileCut {
    /// Packs of 16 bytes that the sides of a row fill.
    pub fn packs(&self, dtype: Precision) -> u32 {
        self.sides * dtype.bytes() / PACK_BYTES
    }
}

/// How X is cut, and for how many sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileShape {
    /// How the fused product goes.
    pub passes: TilePasses,
    /// Rows as outputs.
    pub by_row: TileCut,
    /// Columns as outputs; the same where one launch reads both.
    pub by_column: TileCut,
}

impl TileShape {
    /// The shape for a sparse X that is expected to be quicker; `None` where Y leaves no room for a tile.
    ///
    /// ```
    /// use warpfuse::plan::fused::{Precision, Problem};
    /// use warpfuse::plan::limits::DeviceLimits;
    /// use warpfuse::plan::tiles::{TilePasses, TileShape};
    ///
    /// let h200 = DeviceLimits::known("h200").unwrap();
    /// let of = |cols| TileShape::new(&Problem::sparse(4_000_000, cols, 80_000_000, Precision::F32), &h200);
    /// assert_eq!(of(10_000).unwrap().passes, TilePasses::Two);
    /// assert!(of(20_000).is_none());
    /// ```
    pub fn new(problem: &Problem, limits: &DeviceLimits) -> Option<Self> {
        let all = [TilePasses::One, TilePasses::Two];
        let shapes = all
            .into_iter()
            .filter_map(|passes| Self::of(problem, passes, limits));
        shapes.last()
    }

    /// The shape for so many launches; `None` where there is no room.
    pub fn of(problem: &Problem, passes: TilePasses, limits: &DeviceLimits) -> Option<Self> {
        let all: &[u32] = match problem.dtype {
            Precision::F32 => &[8, 4],
            Precision::F64 => &[4],
        };
        let room = |sides: u32| {
            let row = sides * problem.dtype.bytes();
            u64::from(limits.shared_per_block / row)
        };
        let spare = u64::from(SPARE);
        let (by_row, by_column) = match passes {
            TilePasses::One => {
                let left = |sides: &u32| room(*sides).checked_sub(problem.cols + 2 * spare);
                let mut fitting = all.iter().filter_map(|sides| Some((*sides, left(sides)?)));
                let both = fitting.find(|(_, rows)| *rows >= LEAST_ROWS)?;
                (both, both)
            }
            TilePasses::Two => {
                let holds_y = |sides: &&u32| room(**sides) >= problem.cols + spare;
                let (of_y, most) = (all.iter().find(holds_y)?, *all.first()?);
                (
                    (*of_y, ROWS_OF_WALK),
                    (most, room(most).checked_sub(spare)?),
                )
            }
        };
        let cut = |(sides, most)| TileCut {
            sides,
            rows: even_rows(problem.rows, most, limits),
        };
        Some(TileShape {
            passes,
            by_row: cut(by_row),
            by_column: cut(by_column),
        })
    }

    /// What a product's kernel takes.
    pub fn cut(&self, product: KernelProduct) -> TileCut {
        match product {
            KernelProduct::Forward => self.by_row,
            KernelProduct::Fused | KernelProduct::Transposed => self.by_column,
        }
    }

    /// Blocks of a product's launch for so many groups of sides: one for each group at every tile that is worked on.
    pub fn grid(
        &self,
        rows: u64,
        (product, groups): (KernelProduct, u32),
        limits: &DeviceLimits,
    ) -> u32 {
        let tiles = rows.div_ceil(u64::from(self.cut(product).rows)).max(1);
        let at_once = u64::from((limits.sms / groups.max(1)).max(1));
        at_once.min(tiles) as u32 * groups
    }

    /// Dynamic shared memory of a block.
    pub fn shared_bytes(&self, problem: &Problem, product: KernelProduct) -> u64 {
        let cols = u32::try_from(problem.cols).unwrap_or(u32::MAX);
        let cut = self.cut(product);
        let variant = TilesManyVariant {
            product,
            sides: cut.sides,
        };
        variant.shared_bytes(cols, cut.rows, problem.dtype.bytes())
    }
}

/// Rows of a tile, at most so many, of which there are as many for every SM.
fn even_rows(rows: u64, most: u64, limits: &DeviceLimits) -> u32 {
    let most = most.min((1 << 16) - u64::from(SPARE));
    let sms = u64::from(limits.sms.max(1));
    let rounds = rows.div_ceil(most.max(1)).div_ceil(sms).max(1);
    let even = rows.div_ceil(rounds * sms).max(FEW_ROWS);
    let whole = most / ROWS_OF_SLICE * ROWS_OF_SLICE;
    even.next_multiple_of(ROWS_OF_SLICE).min(whole) as u32
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
            let of = |passes| TileShape::of(&problem, passes, &limits).expect("room for a tile");
            for (shape, product) in [
                (of(TilePasses::One), KernelProduct::Fused),
                (of(TilePasses::Two), KernelProduct::Forward),
                (of(TilePasses::Two), KernelProduct::Transposed),
            ] {
                let bytes = shape.shared_bytes(&problem, product);
                assert!(bytes <= u64::from(limits.shared_per_block), "{shape:?}");
                let tiles = rows.div_ceil(u64::from(shape.cut(product).rows));
                let of_last_round = (tiles - 1) % u64::from(limits.sms) + 1;
                assert!(rows == 100 || of_last_round > 120, "{tiles} of {shape:?}");
            }
        }
    }
}
