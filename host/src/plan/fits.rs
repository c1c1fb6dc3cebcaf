//! Launches of many small fits: how many warps make one, how many of its rows stay in shared memory, and how many fits cross the
//! link together.

use gpu_kernels::cta::WARP;
use gpu_kernels::fits::{Layout, MOST_COLUMNS, MOST_WARPS};

use super::limits::DeviceLimits;
use super::streaming::SLOTS;

/// The launch for fits of at most these rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FitPlan {
    /// Threads of a block, which makes one fit.
    pub block: u32,
    /// Shared memory of a block.
    pub shared_bytes: u32,
    /// Bytes of it for rows.
    pub area: u32,
    /// Whether the largest fit's rows stay there, so that X is read once.
    pub is_resident: bool,
}

/// Fits of a few columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FitShape {
    /// Rows of the largest.
    pub rows: u64,
    /// Columns.
    pub cols: u64,
    /// Elements from row to row.
    pub pitch: u64,
    /// Bytes of an element.
    pub bytes: u32,
}

/// Where rows do not stay, blocks that share an SM.
const AT_ONCE: u32 = 2;

/// The launch for fits of this shape; none for more columns than a block has room for.
///
/// A warp takes 32 rows at a time, so small fits have few. Rows stay if a block of the device has room for those of the largest
/// fit. Where not, blocks get half of an SM's memory: smaller fits among them stay, larger ones are read once per step, from
/// the L2 cache if they are small enough.
///
/// ```
/// use warpfuse::plan::fits::{FitShape, plan};
/// use warpfuse::plan::limits::DeviceLimits;
/// let h100 = DeviceLimits::known("h100").expect("a listed device");
/// let shape = FitShape { rows: 1_000, cols: 20, pitch: 20, bytes: 4 };
/// let found = plan(&shape, &h100).expect("20 columns");
/// assert!(found.is_resident && found.block == 128);
/// assert!(2 * found.shared_bytes < h100.shared_per_sm, "two fits at a time");
/// assert_eq!(plan(&FitShape { cols: 65, pitch: 65, ..shape }, &h100), None);
/// ```
pub fn plan(shape: &FitShape, limits: &DeviceLimits) -> Option<FitPlan> {
    let cols = u32::try_from(shape.cols).ok()?;
    if cols == 0 || cols > MOST_COLUMNS || shape.pitch > 1 << 16 {
        return None;
    }
    let wanted = shape
        .rows
        .div_ceil(u64::from(WARP))
        .clamp(1, u64::from(MOST_WARPS)) as u32;
    (1..=wanted)
        .rev()
        .find_map(|warps| of_warps(shape, limits, (cols, warps)))
}

fn of_warps(shape: &FitShape, limits: &DeviceLimits, (cols, warps): (u32, u32)) -> Option<FitPlan> {
    let layout = Layout::of(cols, warps);
    let fixed = layout.fixed_bytes();
    let most = limits.shared_per_block;
    let least = layout.least_area(shape.pitch, shape.bytes);
    let room = u64::from(most.checked_sub(fixed)?);
    if least > room {
        return None;
    }
    let need = Layout::area_of(shape.rows, shape.pitch, shape.bytes).max(least);
    let share = limits.shared_per_sm / AT_ONCE;
    let half = share.saturating_sub(limits.shared_reserved_per_block + fixed);
    let area = match need <= room {
        true => need,
        false => (u64::from(half) / 16 * 16).clamp(least, room),
    };
    Some(FitPlan {
        block: warps * WARP,
        shared_bytes: fixed + area as u32,
        area: area as u32,
        is_resident: need <= room,
    })
}

impl FitPlan {
    /// Fits that a device makes at the same time, by its registers and shared memory.
    ///
    /// ```
    /// use warpfuse::plan::fits::{FitShape, plan};
    /// use warpfuse::plan::limits::DeviceLimits;
    /// let h100 = DeviceLimits::known("h100").expect("a listed device");
    /// let shape = FitShape { rows: 1_000, cols: 20, pitch: 20, bytes: 4 };
    /// assert_eq!(plan(&shape, &h100).expect("20 columns").at_once(&h100), 2 * 132);
    /// ```
    pub fn at_once(&self, limits: &DeviceLimits) -> u64 {
        let each = self.shared_bytes + limits.shared_reserved_per_block;
        let by_shared = limits.shared_per_sm / each;
        let by_registers = AT_ONCE * MOST_WARPS * WARP / self.block;
        u64::from(limits.sms) * u64::from(by_shared.min(by_registers).max(1))
    }
}

/// Fits whose rows follow each other on the host, and cross to a device in blocks: those of one are made while the next crosses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crossing {
    /// Bytes of all rows.
    pub bytes: u64,
    /// Fits.
    pub fits: u64,
    /// Fits that the device makes at the same time.
    pub at_once: u64,
    /// Bytes that are free on the device; none where nobody asked.
    pub room: Option<u64>,
}

/// Blocks that rows are cut into where that leaves them long enough. 840 MB cross in 20 ms and are fitted in 14 (H100): the fits
/// of the last block are what is seen of them, and each block that all threads make takes up to 0.3 ms longer than its bytes.
const BLOCKS: u64 = 8;
/// Bytes of a block at least: shorter ones are made as fast as they cross by few threads alone.
const LEAST_BLOCK: u64 = 8 << 20;
/// Bytes of a block at most, unless a device makes more at the same time.
const MOST_BLOCK: u64 = 128 << 20;

impl Crossing {
    /// Bytes of a block: an eighth of all, within limits, but as many fits as the device makes at the same time, and no more than
    /// half of what is free for the two blocks that it has.
    ///
    /// ```
    /// use warpfuse::plan::fits::Crossing;
    /// let of = |fits, bytes_of_one| Crossing { bytes: fits * bytes_of_one, fits, at_once: 264, room: None }.block_bytes();
    /// assert_eq!(of(10_000, 84_000), 105_000_000);
    /// assert_eq!(of(100, 84_000), 264 * 84_000, "all at once");
    /// assert_eq!(of(1_000, 2_000_000), 264 * 2_000_000, "a block that the device has enough of");
    /// ```
    pub fn block_bytes(&self) -> u64 {
        let even = (self.bytes / BLOCKS).clamp(LEAST_BLOCK, MOST_BLOCK);
        let full = (self.bytes / self.fits.max(1)).saturating_mul(self.at_once);
        let most = self.room.map_or(u64::MAX, |room| room / (2 * SLOTS as u64));
        even.max(full).min(most)
    }
}

/// The first fit of each block, and how many fits there are. `bounds` are the rows at which fits begin, and at which the last
/// ends; a block has `most` rows at most, or one fit.
///
/// ```
/// use warpfuse::plan::fits::cut;
/// assert_eq!(cut(&[0, 10, 20, 30, 70, 75], 20), [0, 2, 3, 4, 5]);
/// assert_eq!(cut(&[0, 10, 20, 30, 70, 75], 75), [0, 5]);
/// ```
pub fn cut(bounds: &[usize], most: u64) -> Vec<usize> {
    let (mut cuts, mut first) = (vec![0], 0);
    while first + 1 < bounds.len() {
        let fits = |end: &usize| (end - bounds[first]) as u64 <= most;
        first += bounds[first + 1..].partition_point(fits).max(1);
        cuts.push(first);
    }
    cuts
}

/// Rows of a fit by itself that keep a thread of the host busy.
const ROWS_OF_A_THREAD: u64 = 4_096;

/// Whether this many fits of this many rows each are made faster in one launch, each by a block or a core, than one after the other,
/// each by as many threads as its rows keep busy: a block of a GPU takes about as long as a core.
///
/// ```
/// use warpfuse::plan::fits::is_worth_one_launch;
/// assert!(is_worth_one_launch(2, 1_000, 16));
/// assert!(is_worth_one_launch(20, 1_000_000, 16));
/// assert!(!is_worth_one_launch(5, 1_000_000, 16));
/// assert!(!is_worth_one_launch(1, 100, 16), "it is one anyway");
/// ```
pub fn is_worth_one_launch(fits: u64, rows: u64, threads: u64) -> bool {
    fits >= (rows / ROWS_OF_A_THREAD).min(threads).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h100() -> DeviceLimits {
        DeviceLimits::known("h100").expect("a listed device")
    }

    #[test]
    fn every_shape_has_a_launch_that_the_device_allows() {
        for cols in 1..=u64::from(MOST_COLUMNS) {
            for rows in [0, 1, 32, 33, 300, 1_000, 5_000, 1 << 40] {
                for bytes in [4, 8] {
                    let shape = FitShape {
                        rows,
                        cols,
                        pitch: cols,
                        bytes,
                    };
                    let plan = plan(&shape, &h100()).expect("few columns");
                    assert!(plan.shared_bytes <= h100().shared_per_block, "{shape:?}");
                    let layout = Layout::of(cols as u32, plan.block / WARP);
                    assert!(u64::from(plan.area) >= layout.least_area(cols, bytes));
                }
            }
        }
    }

    #[test]
    fn small_fits_have_few_warps_and_large_ones_do_not_stay() {
        let shape = |rows| FitShape {
            rows,
            cols: 10,
            pitch: 10,
            bytes: 4,
        };
        let of = |rows| plan(&shape(rows), &h100()).expect("ten columns");
        assert_eq!([of(5), of(33), of(10_000)].map(|p| p.block), [32, 64, 128]);
        assert_eq!([of(5_000), of(6_000)].map(|p| p.is_resident), [true, false]);
        assert!(2 * (of(6_000).shared_bytes + 1_024) <= h100().shared_per_sm);
    }
    #[test]
    fn every_fit_is_in_one_block_that_is_short_enough() {
        let mut bounds = vec![5];
        for i in 0..200_usize {
            bounds.push(bounds[i] + i * i % 13);
        }
        for most in [0, 1, 7, 12, 40, 10_000] {
            let cuts = cut(&bounds, most);
            assert_eq!((cuts[0], cuts.last()), (0, Some(&200)));
            for pair in cuts.windows(2) {
                let rows = (bounds[pair[1]] - bounds[pair[0]]) as u64;
                assert!(rows <= most || pair[1] - pair[0] == 1, "{most}: {pair:?}");
                let longer = bounds
                    .get(pair[1] + 1)
                    .map(|end| (end - bounds[pair[0]]) as u64);
                assert!(longer.is_none_or(|rows| rows > most), "{most}: {pair:?}");
            }
        }
        assert_eq!(cut(&[0], 1), [0]);
    }

    #[test]
    fn two_blocks_have_room() {
        for room in [1 << 20, 1 << 28, 1 << 40] {
            let crossing = Crossing {
                bytes: 1 << 34,
                fits: 1 << 13,
                at_once: 264,
                room: Some(room),
            };
            assert!(2 * crossing.block_bytes() <= room);
        }
    }
}
