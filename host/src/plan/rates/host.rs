//! What the CPU does with X, and what the link to a GPU carries.

use serde::{Deserialize, Serialize};

use super::SizeTable;
use crate::parallel::chunks;
use crate::plan::streaming::{Footprint, LinkRates};

/// Threads of the host whose rates are recorded.
const RECORDED_THREADS: f64 = 16.0;

/// Bytes of an element of the CPU's sums.
const COPY_ELEMENT: u64 = 8;
/// A number of elements or bytes as the CPU counts them.
fn counted(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Rates of a host with all its threads, and of its link to a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostRates {
    /// Of the link.
    pub link: LinkRates,
    /// Bytes of a dense X that a pass reads, 10⁹ a second.
    pub dense_gbs: f64,
    /// Entries of a sparse X that a pass reads, 10⁹ a second, by the bytes of a vector with an element per column.
    pub sparse: SizeTable,
    /// How many times as fast as one thread all of them read dense rows, and sparse ones: X of few entries is one's.
    #[serde(default = "usual_speedup")]
    pub speedup: Speedup,
    /// Seconds until a GPU has an X that takes no time to cross: its form is planned, memory is had and kernels are loaded.
    #[serde(default = "usual_placing")]
    pub placing_seconds: f64,
}

/// How many times as fast as one thread all threads are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Speedup {
    /// On dense rows.
    pub dense: f64,
    /// On sparse rows.
    pub sparse: f64,
}

impl Speedup {
    /// In proportion to threads.
    pub fn of_threads(threads: usize) -> Speedup {
        let [dense, sparse] = [threads.max(1) as f64; 2];
        Speedup { dense, sparse }
    }
}

fn usual_speedup() -> Speedup {
    Speedup::of_threads(RECORDED_THREADS as usize)
}

/// A guess where nobody has measured.
fn usual_placing() -> f64 {
    5e-4
}

/// A pass of the CPU over sparse rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SparseWork {
    /// Stored entries.
    pub entries: u64,
    /// m.
    pub rows: u64,
    /// Bytes of X.
    pub bytes: u64,
    /// n.
    pub cols: u64,
}

impl SparseWork {
    /// Sums for every column that are made side by side, and so the threads that work.
    pub fn copies(&self) -> u64 {
        let work = counted(self.entries.saturating_add(self.rows));
        chunks::copies(work, counted(self.bytes), counted(self.cols)) as u64
    }

    /// Seconds in which these sums are cleared and added up, at `gbs` 10⁹ bytes a second.
    pub fn copying_seconds(&self, gbs: f64) -> f64 {
        (2 * self.copies() * self.cols * COPY_ELEMENT) as f64 / (gbs * 1e9)
    }
}

impl HostRates {
    /// Those of a host with this many threads, beside a GPU on PCIe 5 x16, in proportion to one with 16
    /// (`benches/results/h200/cpu.jsonl`, medians of fused products in f32): 185·10⁹ bytes a second of dense rows, which is
    /// what its memory delivers, 9.4·10⁹ entries over 1,000 columns and 5.9·10⁹ over 100,000. Beyond that nothing is
    /// recorded: vectors that leave the L2 caches are taken to halve the rate, and those that leave the L3 cache again.
    ///
    /// ```
    /// use warpfuse::plan::rates::HostRates;
    /// assert_eq!(HostRates::of_threads(16).dense_gbs, 185.0);
    /// assert!(HostRates::of_threads(1).dense_gbs < 12.0);
    /// ```
    pub fn of_threads(threads: usize) -> HostRates {
        let threads = threads.max(1) as f64;
        let sparse = |(bytes, rate): (f64, f64)| (bytes, rate * threads / RECORDED_THREADS);
        let points = [(4e3, 9.4), (4e5, 5.9), (4e6, 3.0), (8e7, 1.5)];
        HostRates {
            link: LinkRates::of_threads(threads as usize),
            dense_gbs: (11.6 * threads).min(185.0),
            sparse: SizeTable::new(points.map(sparse)),
            speedup: Speedup::of_threads(threads as usize),
            placing_seconds: usual_placing(),
        }
    }

    /// Seconds of a pass of the CPU over an X of this footprint, with `entries` where it is sparse.
    pub fn pass_seconds(&self, x: &Footprint, entries: Option<u64>) -> f64 {
        self.share_seconds(x, entries, 1.0)
    }

    /// The same over a share of the rows.
    pub fn share_seconds(&self, x: &Footprint, entries: Option<u64>, share: f64) -> f64 {
        let of_share = |number: u64| (share * number as f64) as u64;
        let Some(entries) = entries else {
            let bytes = of_share(x.bytes);
            let chunks = chunks::count(counted(bytes / x.element.max(1))) as f64;
            return bytes as f64 / (self.dense_gbs * 1e9) * (self.speedup.dense / chunks).max(1.0);
        };
        let own = SparseWork {
            entries: of_share(entries),
            rows: of_share(x.rows),
            bytes: of_share(x.bytes),
            cols: x.cols,
        };
        let rate = self.sparse.at((x.cols * x.element) as f64);
        let reading = own.entries as f64 / (rate * 1e9).max(1.0);
        let alone = (self.speedup.sparse / own.copies() as f64).max(1.0);
        reading * alone + own.copying_seconds(self.dense_gbs)
    }

    /// The first figure that no host can have, if any: its name and value.
    pub fn implausible(&self) -> Option<(&'static str, f64)> {
        let figures = [
            ("pinned_gbs", self.link.pinned_gbs),
            ("staged_gbs", self.link.staged_gbs),
            ("pinning_gbs", self.link.pinning_gbs),
            ("dense_gbs", self.dense_gbs),
            ("sparse", self.sparse.at(4e3)),
            ("speedup of dense rows", self.speedup.dense),
            ("speedup of sparse rows", self.speedup.sparse),
            ("placing_seconds", self.placing_seconds),
        ];
        let plausible = |value: f64| (1e-6..1e5).contains(&value);
        figures.into_iter().find(|&(_, value)| !plausible(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: Footprint = Footprint {
        bytes: 1_000_000_000,
        rows: 1_000_000,
        cols: 1_000,
        element: 4,
    };

    #[test]
    fn passes_take_what_their_rates_say() {
        let host = HostRates::of_threads(16);
        assert!((host.pass_seconds(&X, None) * 185.0 - 1.0).abs() < 1e-12);
        let pass = host.pass_seconds(&X, Some(94_000_000));
        assert!((pass * 1e2 - 1.0).abs() < 1e-2, "{pass}");
        let wide = Footprint {
            cols: 1_000_000,
            ..X
        };
        assert!(host.pass_seconds(&wide, Some(1)) > 3.0 * host.pass_seconds(&X, Some(1)));
        assert!(host.pass_seconds(&X, Some(0)) < 1e-4);
    }

    #[test]
    fn few_entries_are_one_threads() {
        let host = HostRates::of_threads(16);
        let small = |rows| Footprint {
            bytes: 400 * rows,
            rows,
            ..X
        };
        let seconds = |rows| host.pass_seconds(&small(rows), Some(30 * rows));
        // One part of work, and sixteen.
        let (one, all) = (seconds(1_000), seconds(160_000));
        assert!(all < 12.0 * one, "{one} s, {all} s");
    }

    #[test]
    fn what_no_host_does_is_named() {
        let host = HostRates::of_threads(2);
        assert_eq!(host.implausible(), None);
        let nan = HostRates {
            dense_gbs: f64::NAN,
            ..host.clone()
        };
        assert_eq!(nan.implausible().expect("not a number").0, "dense_gbs");
        let empty = HostRates {
            sparse: SizeTable::new([]),
            ..host
        };
        assert_eq!(empty.implausible(), Some(("sparse", 0.0)));
    }
}
