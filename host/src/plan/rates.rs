//! What a device reaches in practice, in the units that the predicted-time model divides by.

mod host;
pub(crate) mod panels;
mod probed;
mod size_table;
mod source;

use serde::{Deserialize, Serialize};

pub use host::{HostRates, SparseWork, Speedup};
pub use probed::ProbedRates;
pub use size_table::SizeTable;
pub use source::RateSource;

/// Rates of a whole device. Operations are counted one per element, in 10⁹ per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Where they come from.
    pub source: RateSource,
    /// Streaming read of device memory, 10⁹ bytes per second.
    pub stream_gbs: f64,
    /// Bytes that one SM must have in flight for half a round trip's worth of full bandwidth; about
    /// twice as many are needed to come within a few per cent of [`Rates::stream_gbs`].
    pub knee_bytes_per_sm: f64,
    /// Round trip to device memory under load, microseconds.
    pub latency_us: f64,
    /// f32 additions to shared memory at random addresses.
    pub shared_add_f32: f64,
    /// f64 additions to shared memory at random addresses.
    pub shared_add_f64: f64,
    /// f32 additions to fixed-point sums in shared memory, two words each.
    pub shared_fixed_f32: f64,
    /// f64 additions to fixed-point sums in shared memory, three words each.
    pub shared_fixed_f64: f64,
    /// Gathers from shared memory.
    pub shared_gather: f64,
    /// Gathers that hit the L1 cache.
    pub gather_l1: f64,
    /// Gathers that miss the L1 cache, by the size of what is gathered from.
    pub gather: SizeTable,
    /// f32 additions to global memory at random addresses, by the size of the target.
    pub scatter_f32: SizeTable,
    /// f64 additions to global memory at random addresses, by the size of the target.
    pub scatter_f64: SizeTable,
    /// Cache lines that the load path looks up.
    pub lines: f64,
    /// Warp instructions issued.
    pub issue: f64,
    /// One more kernel in a stream, microseconds.
    pub launch_us: f64,
    /// What the host beside the device does, where that was measured.
    pub host: Option<HostRates>,
}

impl Rates {
    /// The rates of one NVIDIA H200 (132 SMs), medians measured with kernels written in Rust.
    ///
    /// What is not a direct measurement:
    /// - the knee: 8 KiB in flight per SM (one row in flight, 4 blocks of 128 threads) reached 1.76 to
    ///   2.06 of 4.6 TB/s, and 32 to 48 KiB are needed for all of it;
    /// - scatters to 4 and 16 KB: from the fused kernel with w in global memory, 80 M nonzeros in
    ///   5.2 and 2.3 ms, less the time of its gathers; f64 is taken to be as quick per element;
    /// - fixed-point sums, and gathers from shared memory: what explains 0.223, 0.227 and 0.230 ms for n = 1,000,
    ///   4,000 and 10,000 in f32 and 0.261 and 0.289 ms for the first and the last in f64 (VS = 4, one block of 1,024
    ///   threads per SM); two atomics by themselves would allow 900, gathers 1,700;
    /// - issue: SMs × 4 schedulers × 1.755 GHz; lines: SMs × 4 × 1.755 GHz, which gives the loads of
    ///   the sparse kernel with VS = 8 the 0.02 ms that its gathers and additions do not explain.
    pub fn h200() -> Self {
        Self {
            source: RateSource::Measured,
            stream_gbs: 4_620.0,
            knee_bytes_per_sm: 20_480.0,
            latency_us: 0.65,
            shared_add_f32: 470.0,
            shared_add_f64: 295.0,
            shared_fixed_f32: 820.0,
            shared_fixed_f64: 640.0,
            shared_gather: 1_400.0,
            gather_l1: 765.0,
            gather: SizeTable::new([
                (4e5, 194.0),
                (4e6, 161.0),
                (1.6e7, 160.0),
                (4e7, 114.7),
                (6.4e7, 79.1),
                (8e7, 72.0),
                (3.2e8, 43.6),
            ]),
            scatter_f32: SizeTable::new([
                (4e3, 15.7),
                (1.6e4, 36.0),
                (4e4, 43.0),
                (4e5, 88.0),
                (4e6, 104.0),
                (1.6e7, 105.0),
                (4e7, 94.3),
                (6.4e7, 41.0),
                (8e7, 28.0),
                (3.2e8, 18.1),
            ]),
            scatter_f64: SizeTable::new([
                (8e3, 15.7),
                (3.2e4, 36.0),
                (8e4, 58.0),
                (8e5, 93.0),
                (8e6, 105.0),
                (3.2e7, 98.0),
                (8e7, 28.4),
                (1.28e8, 22.0),
                (1.6e8, 21.0),
                (6.4e8, 16.9),
            ]),
            lines: 927.0,
            issue: 927.0,
            launch_us: 3.0,
            host: None,
        }
    }

    /// The rates of an H100 SXM of 80 GB: the H200's, as [`ProbedRates::h100`] are to [`ProbedRates::h200`].
    pub fn h100() -> Self {
        let scaled = Self::estimated(132, 3_352.0);
        Self {
            source: RateSource::Measured,
            ..Self::calibrated(&scaled, &ProbedRates::h100(), 0)
        }
    }

    /// The H200's rates scaled to a device with `sms` SMs and `bandwidth_gbs` of memory bandwidth.
    ///
    /// What happens inside an SM scales with the number of SMs, what happens in L2 or memory with the
    /// bandwidth. These are estimates, and [`Rates::source`] says so.
    pub fn estimated(sms: u32, bandwidth_gbs: f64) -> Self {
        let h200 = Self::h200();
        let inside = f64::from(sms) / 132.0;
        let outside = bandwidth_gbs / 4_800.0;
        Self {
            source: RateSource::Estimated,
            stream_gbs: h200.stream_gbs * outside,
            knee_bytes_per_sm: h200.knee_bytes_per_sm * outside / inside.max(f64::MIN_POSITIVE),
            latency_us: h200.latency_us,
            shared_add_f32: h200.shared_add_f32 * inside,
            shared_add_f64: h200.shared_add_f64 * inside,
            shared_fixed_f32: h200.shared_fixed_f32 * inside,
            shared_fixed_f64: h200.shared_fixed_f64 * inside,
            shared_gather: h200.shared_gather * inside,
            gather_l1: h200.gather_l1 * inside,
            gather: h200.gather.scaled(outside),
            scatter_f32: h200.scatter_f32.scaled(outside),
            scatter_f64: h200.scatter_f64.scaled(outside),
            lines: h200.lines * inside,
            issue: h200.issue * inside,
            launch_us: h200.launch_us,
            host: None,
        }
    }

    /// What the host beside the device does with `threads` threads: as measured, or as one with as many does by proportion.
    pub fn host(&self, threads: usize) -> HostRates {
        let measured = self.host.clone();
        measured.unwrap_or_else(|| HostRates::of_threads(threads))
    }

    /// The rates for a device that the driver describes: measured ones if its name is listed, else
    /// estimates.
    ///
    /// ```
    /// use warpfuse::plan::rates::{RateSource, Rates};
    /// assert_eq!(Rates::for_device("NVIDIA H200", 132, 4800.0).source, RateSource::Measured);
    /// assert_eq!(Rates::for_device("NVIDIA H100 80GB HBM3", 132, 3352.0).source, RateSource::Measured);
    /// assert_eq!(Rates::for_device("NVIDIA L4", 58, 300.0).source, RateSource::Estimated);
    /// ```
    pub fn for_device(name: &str, sms: u32, bandwidth_gbs: f64) -> Self {
        match sms {
            132 if name.contains("H200") => Self::h200(),
            // Others of this name have other memory.
            132 if name.contains("H100 80GB HBM3") => Self::h100(),
            _ => Self::estimated(sms, bandwidth_gbs),
        }
    }
}
