//! How the entries of X are split into panels on a device: what a launch of
//! [`panel_making`](gpu_kernels::forms::panels) takes.

use gpu_kernels::cta::WARP;
use gpu_kernels::forms::panels::PanelMakingVariant;
use gpu_kernels::fused::panels::CHUNK;

use super::limits::DeviceLimits;

/// Threads of a block: warps work by themselves, each with counters of its own.
pub(crate) const THREADS: u32 = 256;
/// Blocks of an SM, at most: as many as have its threads.
const BLOCKS: u32 = 8;
/// Panels of a window, at most: three blocks of an SM of compute capability 9.0 have counters for them.
const PANELS: u32 = 2_048;

/// Entries cut into runs, panels into windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Splitting {
    /// Panels of all windows but the last.
    pub panels_of_window: u32,
    /// Entries of a run.
    pub run: u32,
    /// Number of runs.
    pub runs: u32,
    /// Blocks with a warp for each run.
    pub grid: u32,
}

impl Splitting {
    /// For this many entries and panels.
    ///
    /// There are as many runs as the device has warps at the same time, so that no run waits, and their counts are few.
    pub(crate) fn of(limits: Option<&DeviceLimits>, entries: u32, panels: u32) -> Self {
        let room = limits.map_or(0, |limits| limits.shared_per_block);
        let windows = panels.div_ceil(most_panels(room)).max(1);
        let panels_of_window = panels.div_ceil(windows).max(1);
        let warps = THREADS / WARP;
        let blocks = limits.map_or(1, |limits| {
            limits.sms * blocks_of_sm(limits, panels_of_window)
        });
        let run = entries.div_ceil(blocks * warps).max(1);
        // At least one chunk; the last entries may be fewer.
        let run = u64::from(run).next_multiple_of(CHUNK.into());
        let run = run.min(u64::from(u32::MAX / CHUNK * CHUNK)) as u32;
        let runs = entries.div_ceil(run);
        Splitting {
            panels_of_window,
            run,
            runs,
            grid: runs.div_ceil(warps).max(1),
        }
    }

    /// Dynamic shared memory of a block that counts or splits.
    pub(crate) fn shared_bytes(&self) -> u32 {
        shared_bytes(self.panels_of_window) as u32
    }

    /// The first panel of each window, and how many it has.
    pub(crate) fn windows(&self, panels: u32) -> impl Iterator<Item = (u32, u32)> {
        let firsts = (0..panels).step_by(self.panels_of_window as usize);
        let each = self.panels_of_window;
        firsts.map(move |first| (first, each.min(panels - first)))
    }
}

/// A digit of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digit {
    /// Bits below it.
    pub shift: u32,
    /// Its own.
    pub bits: u32,
}

/// The digits by which entries are put in the order of this many columns, the lowest first: as few as shared memory has counters
/// for. Columns that differ in the lowest bits alone, of which `in_sector` elements lie in a sector, may be left in any order where
/// that saves a digit.
pub(crate) fn digits(
    limits: Option<&DeviceLimits>,
    cols: u32,
    in_sector: u32,
) -> impl Iterator<Item = Digit> + use<> {
    let room = limits.map_or(0, |limits| limits.shared_per_block);
    let most = most_panels(room).ilog2().max(1);
    let bits = (u32::BITS - cols.saturating_sub(1).leading_zeros()).max(1);
    let wanted = bits.saturating_sub(in_sector.ilog2()).max(1);
    let count = wanted.div_ceil(most);
    let shift = bits.saturating_sub(count * most);
    let left = bits - shift;
    let each = left.div_ceil(count);
    (0..left).step_by(each as usize).map(move |first| Digit {
        shift: shift + first,
        bits: each.min(left - first),
    })
}

fn shared_bytes(panels: u32) -> u64 {
    PanelMakingVariant::Split.shared_bytes(panels, THREADS)
}

/// Panels whose counters fit a block with this many bytes of shared memory.
fn most_panels(room: u32) -> u32 {
    let of_panel = shared_bytes(2) - shared_bytes(1);
    let left = u64::from(room).saturating_sub(shared_bytes(0));
    (left / of_panel).clamp(1, PANELS.into()) as u32
}

fn blocks_of_sm(limits: &DeviceLimits, panels: u32) -> u32 {
    let bytes = shared_bytes(panels) as u32 + limits.shared_reserved_per_block;
    let by_shared = limits.shared_per_sm / bytes.max(1);
    let by_threads = limits.max_threads_per_sm / THREADS;
    by_shared.min(by_threads).clamp(1, BLOCKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> DeviceLimits {
        DeviceLimits::known("h200").expect("a listed device")
    }

    #[test]
    fn a_run_is_what_a_warp_takes() {
        let of = |entries, panels| Splitting::of(Some(&h200()), entries, panels);
        let kddb = of(230_000_000, 1_050);
        assert_eq!(kddb.panels_of_window, 1_050);
        // Six blocks of an SM have shared memory for their counters.
        assert!((132 * 6 - 8..=132 * 6).contains(&kddb.grid));
        assert_eq!(kddb.runs, 230_000_000_u32.div_ceil(kddb.run));
        for entries in [0, 1, 127, 128, 129, 1 << 20, u32::MAX] {
            let split = of(entries, 3);
            assert!(split.run.is_multiple_of(CHUNK));
            assert!(u64::from(split.runs) * u64::from(split.run) >= u64::from(entries));
            assert!(split.grid * (THREADS / WARP) >= split.runs);
        }
        assert_eq!(Splitting::of(None, 1_000, 3).panels_of_window, 1);
    }

    #[test]
    fn digits_are_the_bits_of_columns() {
        let of = |cols: u32, in_sector: u32| -> Vec<(u32, u32)> {
            let digits = digits(Some(&h200()), cols, in_sector);
            digits.map(|digit| (digit.shift, digit.bits)).collect()
        };
        assert_eq!(of(0, 8), [(0, 1)]);
        assert_eq!(of(1, 8), [(0, 1)]);
        assert_eq!(of(2_048, 8), [(0, 11)]);
        assert_eq!(of(16_384, 8), [(3, 11)]);
        assert_eq!(of(16_384, 4), [(0, 7), (7, 7)]);
        assert_eq!(of(1_000_000, 8), [(0, 10), (10, 10)]);
        assert_eq!(of(29_890_095, 8), [(3, 11), (14, 11)]);
        assert_eq!(of(29_890_095, 4), [(0, 9), (9, 9), (18, 7)]);
    }

    #[test]
    fn windows_hold_all_panels_and_fit_shared_memory() {
        for panels in [1, 2_048, 2_049, 10_000] {
            let split = Splitting::of(Some(&h200()), 1 << 20, panels);
            assert!(split.shared_bytes() <= h200().shared_per_block);
            let mut next = 0;
            for (first, count) in split.windows(panels) {
                assert_eq!(first, next);
                assert!((1..=split.panels_of_window).contains(&count));
                next += count;
            }
            assert_eq!(next, panels);
        }
    }
}
