//! How reductions are cut up: chunks of arrays, teams of segments, tiles of columns.
//!
//! What decides the order of additions (chunks, teams, tiles) follows from shapes alone, never from a device: so
//! results can be promised to be the same everywhere. What a device decides is the number of blocks.

mod rows;

use serde::{Deserialize, Serialize};

pub use rows::{Reading, RowPlan, RowShape};

use super::limits::DeviceLimits;
use super::space::Space;

/// Threads of a block, as the kernels have it.
pub const BLOCK: u32 = 256;
/// Bytes that a block loads at a time: 16 per thread.
const ROW_BYTES: u64 = 16 * BLOCK as u64;
/// A chunk has this many rows at least: fewer loads are not worth a block.
const FEWEST_ROWS: u64 = 4;
/// Chunks that an H200 runs at once; arrays have fewer where chunks would become shorter than [`FEWEST_ROWS`]. With
/// 1,024 of them 2²² elements took 6.9 µs and 2²⁴ 21.2; 528 interleaved ones took 6.2 and 19.9.
const BUSY_CHUNKS: u64 = 512;
/// Rows from which on the end of a chunk costs nothing beside its loads; then chunks become more.
const LONG_ROWS: u64 = 32;
/// With 8,192, which the last block loads in eight rounds, 2²⁸ elements came to 98.1 % of a plain read, 2³⁰, where
/// chunks are four times as long, to 100.1 %.
const MOST_CHUNKS: u64 = 4_096;
/// Loads that a thread has in flight: rows of long chunks come in multiples.
const IN_FLIGHT: u64 = 4;
/// Blocks of an SM where the grid is free. On an H200 four are resident (64 registers).
const BLOCKS_PER_SM: u64 = 4;
/// Mean length from which on a segment gets a block.
const LONG_SEGMENT: u64 = 1_024;
/// Elements of a segment that a lane takes at most, about: two rounds of loads that are on their way together.
const OF_LANE: u64 = 16;
/// The same of a lane that has a segment to itself: its neighbours' elements are in other lines.
const OF_ONE: u64 = 8;
/// Blocks over segments that have less than a warp: more would begin and end as often as they load.
const NARROW_BLOCKS: u64 = 8_192;
/// Chunks of rows times tiles of columns, about.
const COLUMN_ITEMS: u64 = 2_048;
/// Rows that a thread takes at least.
const ROWS_PER_THREAD: u64 = 8;
/// Blocks of one launch at most.
const MOST_BLOCKS: u64 = 1 << 20;

/// What is promised of the bits of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reproducibility {
    /// Nothing beyond the error bound. Today's kernels give what [`Reproducibility::Run`] promises.
    Fast,
    /// The same on every run on the same device.
    Run,
    /// The same on every device, with any grid, and on the CPU.
    #[default]
    Device,
}

/// Which rows a chunk has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Rows c·R to (c + 1)·R − 1.
    Fixed,
    /// Rows c, c + chunks, ….
    Interleaved,
}

/// The reduction of a whole array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WholePlan {
    /// Chunks, each with one result of its own.
    pub chunks: u64,
    /// Rows of a chunk in fixed order.
    pub rows_per_chunk: u64,
    /// Which rows a chunk has.
    pub order: Order,
    /// Blocks.
    pub grid: u32,
}

impl WholePlan {
    /// Whether every element of an array of `len` elements of `bytes` bytes is in a chunk, and every chunk has a row.
    ///
    /// ```
    /// use warpfuse::plan::reduce::{WholePlan, whole_fixed};
    /// let plan = whole_fixed(1_000_000, 4);
    /// assert!(plan.covers(1_000_000, 4) && !plan.covers(2_000_000, 4));
    /// ```
    pub fn covers(&self, len: u64, bytes: u32) -> bool {
        let rows = rows(len, bytes).max(1);
        let has_blocks = self.grid > 0 && u64::from(self.grid) <= self.chunks;
        let before_last = self.chunks.saturating_sub(1);
        has_blocks
            && match self.order {
                Order::Fixed => {
                    let starts = before_last.checked_mul(self.rows_per_chunk);
                    starts.is_some_and(|last| last < rows && rows - last <= self.rows_per_chunk)
                }
                Order::Interleaved => self.chunks <= rows,
            }
    }
}

/// Rows of 256 packs of 16 bytes in `len` elements of `bytes` bytes.
fn rows(len: u64, bytes: u32) -> u64 {
    len.div_ceil(ROW_BYTES / u64::from(bytes.max(1)))
}

/// Rows of a chunk in fixed order: a function of the length.
fn rows_per_chunk(rows: u64) -> u64 {
    if rows <= BUSY_CHUNKS * LONG_ROWS {
        rows.div_ceil(BUSY_CHUNKS)
            .next_multiple_of(FEWEST_ROWS)
            .max(FEWEST_ROWS)
    } else {
        rows.div_ceil(MOST_CHUNKS)
            .next_multiple_of(IN_FLIGHT)
            .max(LONG_ROWS)
    }
}

/// The order in which `len` elements of `bytes` bytes are reduced on every device.
///
/// ```
/// use warpfuse::plan::reduce::whole_fixed;
/// let plan = whole_fixed(1 << 28, 4);
/// assert_eq!((plan.chunks, plan.rows_per_chunk), (4_096, 64));
/// assert_eq!(whole_fixed(1, 4).chunks, 1);
/// ```
pub fn whole_fixed(len: u64, bytes: u32) -> WholePlan {
    let rows = rows(len, bytes).max(1);
    let rows_per_chunk = rows_per_chunk(rows);
    let chunks = rows.div_ceil(rows_per_chunk);
    WholePlan {
        chunks,
        rows_per_chunk,
        order: Order::Fixed,
        // One block per chunk: the hardware balances them.
        grid: u32::try_from(chunks.min(MOST_BLOCKS)).unwrap_or(1),
    }
}

/// The reduction of `len` elements of `bytes` bytes with `level` on a GPU.
pub fn whole(len: u64, bytes: u32, level: Reproducibility, limits: &DeviceLimits) -> WholePlan {
    if level == Reproducibility::Device {
        return whole_fixed(len, bytes);
    }
    let rows = rows(len, bytes).max(1);
    let most = u64::from(limits.sms.max(1)) * BLOCKS_PER_SM;
    let chunks = rows.div_ceil(FEWEST_ROWS).min(most);
    WholePlan {
        chunks,
        rows_per_chunk: rows.div_ceil(chunks),
        order: Order::Interleaved,
        grid: u32::try_from(chunks).unwrap_or(1),
    }
}

/// The ways to cut the reduction of `len` elements of `bytes` bytes, by parameters: `order` (0 fixed, 1 interleaved), `chunks`,
/// and `share`, the chunks of a block.
pub fn space(len: u64, bytes: u32, limits: &DeviceLimits) -> Space {
    let sms = i64::from(limits.sms.max(1));
    let rows = rows(len, bytes).clamp(1, 1 << 40) as i64;
    let mut counts: Vec<i64> = (0..=13).map(|power| 1 << power).collect();
    counts.extend([1, 2, 3, 4, 6, 8, 16].map(|each| each * sms));
    counts.sort_unstable();
    counts.dedup();
    let mut space = Space::new();
    space.parameter("order", [0, 1]);
    let chunks = space.parameter("chunks", counts);
    let share = space.parameter("share", [1, 2, 4, 8]);
    space.requires("every chunk has a row", &[chunks], move |v| v[0] <= rows);
    space.requires("every SM has a block", &[chunks, share], move |v| {
        v[1] == 1 || v[0] >= v[1] * sms
    });
    space
}

/// The [space] as plans, of which none is there twice.
///
/// ```
/// use warpfuse::plan::limits::DeviceLimits;
/// use warpfuse::plan::reduce::points;
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// let points = points(1 << 24, 4, &h200);
/// assert!(points.len() > 40 && points.iter().all(|plan| u64::from(plan.grid) <= plan.chunks));
/// ```
pub fn points(len: u64, bytes: u32, limits: &DeviceLimits) -> Vec<WholePlan> {
    let rows = rows(len, bytes).max(1);
    let mut plans: Vec<WholePlan> = Vec::new();
    for values in space(len, bytes, limits).points() {
        let [order, chunks, share] = values[..] else {
            continue;
        };
        let (chunks, share) = (chunks as u64, share as u64);
        let plan = match order {
            0 => {
                let rows_per_chunk = rows.div_ceil(chunks).next_multiple_of(FEWEST_ROWS);
                let chunks = rows.div_ceil(rows_per_chunk);
                (Order::Fixed, chunks, rows_per_chunk)
            }
            _ => (Order::Interleaved, chunks, rows.div_ceil(chunks)),
        };
        let (order, chunks, rows_per_chunk) = plan;
        let plan = WholePlan {
            chunks,
            rows_per_chunk,
            order,
            grid: u32::try_from(chunks.div_ceil(share)).unwrap_or(1),
        };
        if !plans.contains(&plan) {
            plans.push(plan);
        }
    }
    plans
}

/// Who reduces a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Team {
    /// Lanes of a warp: a power of two up to 32.
    Lanes(u32),
    /// A block.
    Block,
}

impl Team {
    /// Threads.
    pub const fn threads(self) -> u32 {
        match self {
            Team::Lanes(lanes) => lanes,
            Team::Block => BLOCK,
        }
    }
}

/// The reduction of segments, rows among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SegmentPlan {
    /// Who reduces a segment.
    pub team: Team,
    /// Blocks.
    pub grid: u32,
}

/// The launch over `segments` segments of `elements` elements in all.
///
/// Microseconds of the sums of rows on an H100 (2026-11-26), by the lanes of a row; a plain read takes 415 to 534:
///
/// | rows | type | a warp, as before | 1 | 2 | 4 | 8 | 16 | 32 |
/// |---|---|--:|--:|--:|--:|--:|--:|--:|
/// | 40,000,000 of 8 | f32 | 4,129 | 557 | 649 | 1,165 | 2,326 | | |
/// | 20,000,000 of 16 | f32 | 2,255 | 719 | 514 | 652 | 1,196 | 2,400 | |
/// | 11,000,000 of 28 | f32 | 1,441 | 570 | 524 | 540 | 768 | 1,394 | |
/// | 5,000,000 of 64 | f32 | 909 | 1,292 | 680 | 531 | 526 | 737 | 1,609 |
/// | 3,000,000 of 100 | f32 | 885 | 735 | 566 | 506 | 474 | 528 | 1,026 |
/// | 1,000,000 of 256 | f32 | 354 | 1,055 | 528 | 402 | 372 | 370 | 435 |
/// | 400,000 of 1,000 | f32 | 584 | 997 | 874 | 691 | 596 | 573 | 563 |
/// | 5,500,000 of 28 | f64 | 754 | 602 | 534 | 486 | 553 | 837 | |
///
/// ```
/// use warpfuse::plan::reduce::{Team, segments};
/// assert_eq!(segments(1_000, 1_000_000).team, Team::Lanes(32));
/// assert_eq!(segments(1_000, 28_000).team, Team::Lanes(2));
/// assert_eq!(segments(10, 100_000).team, Team::Block);
/// ```
pub fn segments(segments: u64, elements: u64) -> SegmentPlan {
    let mean = elements / segments.max(1);
    let team = if mean >= LONG_SEGMENT {
        Team::Block
    } else {
        Team::Lanes(match mean {
            0..=OF_ONE => 1,
            _ => (mean.div_ceil(OF_LANE).next_power_of_two()).clamp(2, 32) as u32,
        })
    };
    SegmentPlan {
        team,
        grid: u32::try_from(blocks(team, segments)).unwrap_or(1),
    }
}

/// Blocks of teams that read their segments themselves.
fn blocks(team: Team, segments: u64) -> u64 {
    let per_block = u64::from(BLOCK / team.threads());
    let most = match team {
        Team::Lanes(..32) => NARROW_BLOCKS,
        _ => MOST_BLOCKS,
    };
    segments.div_ceil(per_block).clamp(1, most)
}

/// The reduction of the columns of a row-major matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ColumnPlan {
    /// Columns of a tile: a power of two up to 32.
    pub tile: u32,
    /// Tiles.
    pub tiles: u64,
    /// Chunks of rows.
    pub chunks: u64,
    /// Rows of a chunk.
    pub rows_per_chunk: u64,
    /// Blocks.
    pub grid: u32,
}

/// The launch over the columns of `rows` × `cols`.
///
/// ```
/// use warpfuse::plan::reduce::columns;
/// let plan = columns(1_000_000, 28);
/// assert_eq!((plan.tile, plan.tiles, plan.chunks), (32, 1, 2_017));
/// ```
pub fn columns(rows: u64, cols: u64) -> ColumnPlan {
    let tile = cols.clamp(1, 32).next_power_of_two();
    let tiles = cols.div_ceil(tile).max(1);
    let threads_per_column = u64::from(BLOCK) / tile;
    let wanted = rows.div_ceil((COLUMN_ITEMS / tiles).max(1));
    let fewest = threads_per_column * ROWS_PER_THREAD;
    let rows_per_chunk = wanted
        .max(fewest)
        .next_multiple_of(threads_per_column)
        .max(1);
    let chunks = rows.div_ceil(rows_per_chunk).max(1);
    let blocks = chunks.saturating_mul(tiles).min(MOST_BLOCKS);
    ColumnPlan {
        tile: u32::try_from(tile).unwrap_or(32),
        tiles,
        chunks,
        rows_per_chunk,
        grid: u32::try_from(blocks).unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_all_rows_and_none_is_empty() {
        for len in [
            1,
            1_023,
            1_024,
            1_025,
            5_000,
            1 << 20,
            (1 << 24) + 1,
            1 << 28,
            1 << 33,
        ] {
            for bytes in [4, 8] {
                let plan = whole_fixed(len, bytes);
                let rows = rows(len, bytes);
                assert!(plan.chunks * plan.rows_per_chunk >= rows);
                assert!((plan.chunks - 1) * plan.rows_per_chunk < rows);
                assert!(plan.chunks <= MOST_CHUNKS);
            }
        }
    }

    #[test]
    fn a_free_order_fills_the_device_once() {
        let h200 = DeviceLimits::known("h200").expect("a listed device");
        let plan = whole(1 << 28, 4, Reproducibility::Fast, &h200);
        assert_eq!((plan.grid, plan.order), (132 * 4, Order::Interleaved));
        assert_eq!(whole(1, 4, Reproducibility::Run, &h200).chunks, 1);
    }

    #[test]
    fn columns_are_covered_by_tiles_and_rows_by_chunks() {
        for (rows, cols) in [(1, 1), (7, 3), (1_000, 33), (65, 100_000), (1 << 24, 1)] {
            let plan = columns(rows, cols);
            assert!(plan.tiles * u64::from(plan.tile) >= cols && plan.tile <= 32);
            assert!(plan.chunks * plan.rows_per_chunk >= rows);
            assert!((plan.chunks - 1) * plan.rows_per_chunk < rows);
        }
    }
}
