//! Launches of many small fits: how many warps make one, and how many of its rows stay in shared memory.

use gpu_kernels::cta::WARP;
use gpu_kernels::fits::{Layout, MOST_COLUMNS, MOST_WARPS};

use super::limits::DeviceLimits;

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
}
