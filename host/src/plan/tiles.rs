//! Tiles of a sparse X for several right-hand sides: how many sides at once, and how many rows a tile has.
//!
//! Every column that a tile has entries of costs an addition to global memory for each pack of sides, so tiles have as many
//! rows as fit, but for what evens them out over the SMs. Where both products are computed at once, Y and a tile's P lie in
//! shared memory together; many columns leave few rows for a tile then, and it is faster to compute one product after the
//! other ([`TilePasses::Two`]). Where Y leaves room for four sides only, eight are shared out between neighbouring blocks
//! that take the same tiles: on an H200 80 million entries of 10,000 columns and 8 sides took 0.69 ms in two launches of 4,
//! which read X from memory twice, and 0.58 ms in one.
//!
//! In a pass of its own, `Xᵀ·P` is bound by what crosses between the halves of the L2 cache (88 % of its cycles, by ncu).
//! With four sides a block has tiles of twice as many rows, and half as much is added to W; that every other block finds X
//! in the L2 cache costs less: 442 instead of 466 µs with 10,000 columns, 453 instead of 485 with 12,000.

use std::cmp::Ordering;
use std::fmt;

use gpu_kernels::fused::many::tiles::SPARE;
use gpu_kernels::fused::{Product as KernelProduct, TilesManyVariant};

use serde::Serialize;

use super::limits::DeviceLimits;
use super::problem::{Precision, Problem};

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
/// Bytes of an entry besides its value: its place.
const PLACE_BYTES: u32 = 2;
/// Bytes to which additions are as fast as they get.
const L2_BYTES: f64 = 4e6;

/// How many launches compute the fused product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TilePasses {
    /// One: X·Y of a tile stays in shared memory beside Y.
    One,
    /// Two, with X·Y in memory between them: either has shared memory for itself.
    Two,
}

impl fmt::Display for TilePasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TilePasses::One => "one pass",
            TilePasses::Two => "two passes",
        })
    }
}

impl TilePasses {
    fn launches(self) -> f64 {
        match self {
            TilePasses::One => 1.0,
            TilePasses::Two => 2.0,
        }
    }

    /// Share of the memory's rate at which tiles are read.
    fn reading_share(self) -> f64 {
        match self {
            TilePasses::One => 0.725,
            TilePasses::Two => 0.7,
        }
    }

    /// Share of the rate of additions to single elements at which this many bytes of a row of W are added.
    fn adding_share(self, bytes: u64) -> f64 {
        match self {
            TilePasses::One => 14.4 / bytes as f64,
            // A sector's halves arrive together.
            TilePasses::Two if bytes > PACK_BYTES.into() => 0.67,
            TilePasses::Two => 1.0,
        }
    }
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
    /// The shape for a sparse X that is expected to be faster; `None` where Y leaves no room for a tile.
    ///
    /// ```
    /// use warpfuse::plan::{Precision, Problem};
    /// use warpfuse::plan::limits::DeviceLimits;
    /// use warpfuse::plan::tiles::{TilePasses, TileShape};
    ///
    /// let h200 = DeviceLimits::known("h200").unwrap();
    /// let of = |cols| TileShape::new(&Problem::sparse(4_000_000, cols, 80_000_000, Precision::F32), &h200);
    /// assert_eq!(of(1_000).unwrap().passes, TilePasses::One);
    /// assert_eq!(of(10_000).unwrap().passes, TilePasses::Two);
    /// assert!(of(20_000).is_none());
    /// ```
    pub fn new(problem: &Problem, limits: &DeviceLimits) -> Option<Self> {
        let all = [TilePasses::One, TilePasses::Two];
        let shapes = all
            .into_iter()
            .filter_map(|passes| Self::of(problem, passes, limits));
        shapes.min_by(|a, b| a.compare(b, problem, limits))
    }

    fn compare(&self, other: &Self, problem: &Problem, limits: &DeviceLimits) -> Ordering {
        let us = |shape: &Self| shape.predicted_us(problem, limits);
        us(self).total_cmp(&us(other))
    }

    /// The shape for this many launches; `None` where there is no room.
    pub fn of(problem: &Problem, passes: TilePasses, limits: &DeviceLimits) -> Option<Self> {
        let room = Room { problem, limits };
        match passes {
            TilePasses::One => {
                let fits = |cut: &(u32, u64)| cut.1 >= LEAST_ROWS;
                let mut cuts = room.rows_beside(problem.cols + 2 * u64::from(SPARE));
                let both = room.cut(cuts.find(fits)?);
                Some(TileShape {
                    passes,
                    by_row: both,
                    by_column: both,
                })
            }
            TilePasses::Two => {
                let mut holding_y = room.rows_beside(problem.cols + u64::from(SPARE));
                let by_row = room.cut((holding_y.next()?.0, ROWS_OF_WALK));
                let shapes = room.rows_beside(SPARE.into()).map(|cut| TileShape {
                    passes,
                    by_row,
                    by_column: room.cut(cut),
                });
                shapes.min_by(|a, b| a.compare(b, problem, limits))
            }
        }
    }

    /// Predicted microseconds of the fused product with as many sides as a block takes at most: what is read and written
    /// over the memory's rate, and then the additions to W over theirs. That one does not hide the other is measured.
    pub fn predicted_us(&self, problem: &Problem, limits: &DeviceLimits) -> f64 {
        let rates = &limits.rates;
        let size = u64::from(problem.dtype.bytes());
        let row_bytes = u64::from(most_sides(problem.dtype)) * size;
        let entry_bytes = u64::from(PLACE_BYTES) + size;
        let of_p = match self.passes {
            TilePasses::One => 0,
            TilePasses::Two => 2 * problem.rows * row_bytes,
        };
        let bytes = 2 * problem.nnz.unwrap_or(0) * entry_bytes + of_p;
        let tiles = problem.rows.div_ceil(u64::from(self.by_column.rows).max(1));
        let of_block = u64::from(self.by_column.sides) * size;
        let added = (tiles * problem.cols).min(problem.nnz.unwrap_or(0)) * row_bytes / of_block;
        let share = self.passes.adding_share(of_block);
        let reading = bytes as f64 / (self.passes.reading_share() * rates.stream_gbs);
        let adding = added as f64 / (share * rates.scatter_f32.at(L2_BYTES));
        (reading + adding) / 1e3 + self.passes.launches() * rates.launch_us
    }

    /// What a product's kernel takes.
    pub fn cut(&self, product: KernelProduct) -> TileCut {
        match product {
            KernelProduct::Forward => self.by_row,
            KernelProduct::Fused | KernelProduct::Transposed => self.by_column,
        }
    }

    /// Blocks of a product's launch for this many groups of sides: one for each group at every tile that is worked on.
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

/// What a block's shared memory has room for.
#[derive(Clone, Copy)]
struct Room<'a> {
    problem: &'a Problem,
    limits: &'a DeviceLimits,
}

impl<'a> Room<'a> {
    /// For each number of sides that a block can take, the most first, the rows that fit beside this many others; none where
    /// those do not fit.
    fn rows_beside(self, others: u64) -> impl Iterator<Item = (u32, u64)> + 'a {
        let rows = move |sides: &u32| {
            let row = sides * self.problem.dtype.bytes();
            let all = u64::from(self.limits.shared_per_block / row);
            Some((*sides, all.checked_sub(others)?))
        };
        sides_of_blocks(self.problem.dtype).iter().filter_map(rows)
    }

    /// Tiles for this many sides, of this many rows at most.
    fn cut(self, (sides, most): (u32, u64)) -> TileCut {
        let teams = teams(self.problem.dtype, sides, self.limits);
        TileCut {
            sides,
            rows: even_rows(self.problem.rows, most, teams),
        }
    }
}

/// Right-hand sides that a block can take, the most first.
fn sides_of_blocks(dtype: Precision) -> &'static [u32] {
    match dtype {
        Precision::F32 => &[8, 4],
        Precision::F64 => &[4],
    }
}

/// Right-hand sides that a block can take at most.
pub(crate) fn most_sides(dtype: Precision) -> u32 {
    sides_of_blocks(dtype)[0]
}

/// Blocks that take different tiles, when there are as many sides as a block takes at most and some take fewer.
fn teams(dtype: Precision, sides: u32, limits: &DeviceLimits) -> u64 {
    let groups = most_sides(dtype).div_ceil(sides.max(1));
    u64::from((limits.sms / groups).max(1))
}

/// Rows of a tile, at most this many, of which there are as many for each of the teams.
fn even_rows(rows: u64, most: u64, teams: u64) -> u32 {
    let most = most.min((1 << 16) - u64::from(SPARE));
    let rounds = rows.div_ceil(most.max(1)).div_ceil(teams).max(1);
    let even = rows.div_ceil(rounds * teams).max(FEW_ROWS);
    let whole = most / ROWS_OF_SLICE * ROWS_OF_SLICE;
    even.next_multiple_of(ROWS_OF_SLICE).min(whole) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns, and µs in one pass and in two: 80 million f32 in 4,000,000 rows, 8 sides, on an H200.
    const MEASURED: [(u64, f64, f64); 4] = [
        (1_000, 300.0, 384.0),
        (4_000, 399.0, 408.0),
        (10_000, 523.0, 442.0),
        (12_000, 763.0, 453.0),
    ];

    #[test]
    fn few_columns_take_one_pass_and_many_two() {
        let limits = DeviceLimits::known("h200").expect("a listed device");
        for (cols, passes) in [
            (1_000, TilePasses::One),
            (4_000, TilePasses::One),
            (10_000, TilePasses::Two),
            (12_000, TilePasses::Two),
        ] {
            let problem = Problem::sparse(4_000_000, cols, 80_000_000, Precision::F32);
            let shape = TileShape::new(&problem, &limits).expect("room for a tile");
            assert_eq!(shape.passes, passes, "{cols} columns");
        }
    }

    #[test]
    fn predictions_are_near_what_was_measured() {
        let limits = DeviceLimits::known("h200").expect("a listed device");
        for (cols, one, two) in MEASURED {
            let problem = Problem::sparse(4_000_000, cols, 80_000_000, Precision::F32);
            for (passes, measured) in [(TilePasses::One, one), (TilePasses::Two, two)] {
                let shape = TileShape::of(&problem, passes, &limits).expect("room for a tile");
                let predicted = shape.predicted_us(&problem, &limits);
                let off = (predicted / measured - 1.0).abs();
                assert!(
                    off < 0.1,
                    "{predicted:.0} instead of {measured} µs: {shape:?}"
                );
            }
        }
    }

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
                let cut = shape.cut(product);
                let tiles = rows.div_ceil(u64::from(cut.rows));
                let teams = teams(dtype, cut.sides, &limits);
                let of_last_round = (tiles - 1) % teams + 1;
                assert!(
                    rows == 100 || of_last_round > teams - teams / 11,
                    "{tiles} of {shape:?}"
                );
            }
        }
    }
}
