//! What the CPU does with X, and what the link to a GPU carries.

use serde::{Deserialize, Serialize};

use super::SizeTable;
use crate::plan::streaming::{Footprint, LinkRates};

/// Threads of the host whose rates are recorded.
const RECORDED_THREADS: f64 = 16.0;

/// Rates of a host with all its threads, and of its link to a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostRates {
    /// Of the link.
    pub link: LinkRates,
    /// Bytes of a dense X that a pass reads, 10⁹ a second.
    pub dense_gbs: f64,
    /// Entries of a sparse X that a pass reads, 10⁹ a second, by the bytes of a vector with an element per column.
    pub sparse: SizeTable,
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
        }
    }

    /// Seconds of a pass of the CPU over an X of this footprint, with `entries` where it is sparse.
    pub fn pass_seconds(&self, x: &Footprint, entries: Option<u64>) -> f64 {
        match entries {
            None => x.bytes as f64 / (self.dense_gbs * 1e9),
            Some(entries) => {
                let rate = self.sparse.at((x.cols * x.element) as f64);
                entries as f64 / (rate * 1e9).max(1.0)
            }
        }
    }

    /// The first figure that no host can have, if any: its name and value.
    pub fn implausible(&self) -> Option<(&'static str, f64)> {
        let figures = [
            ("pinned_gbs", self.link.pinned_gbs),
            ("staged_gbs", self.link.staged_gbs),
            ("pinning_gbs", self.link.pinning_gbs),
            ("dense_gbs", self.dense_gbs),
            ("sparse", self.sparse.at(4e3)),
        ];
        let plausible = |value: f64| (1e-4..1e5).contains(&value);
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
        assert!((host.pass_seconds(&X, Some(94_000_000)) * 1e2 - 1.0).abs() < 1e-12);
        let wide = Footprint {
            cols: 1_000_000,
            ..X
        };
        assert!(host.pass_seconds(&wide, Some(1)) > 3.0 * host.pass_seconds(&X, Some(1)));
        assert_eq!(host.pass_seconds(&X, Some(0)), 0.0);
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
