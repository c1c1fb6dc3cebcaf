//! What probes of a device found, and the rates that follow.

use serde::{Deserialize, Serialize};

use super::{HostRates, RateSource, Rates, SizeTable};

/// What the probes of [`gpu_kernels::stream`] reach on a device, in the units of [`Rates`].
///
/// A probe does one thing, a kernel many: what a kernel reaches is below it. How far is known for the H200, where both
/// were measured; another device's rates are the H200's times what the probes reach there over what they reach on the
/// H200.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbedRates {
    /// Streaming read of device memory, 10⁹ bytes per second.
    pub stream_gbs: f64,
    /// f32 additions to shared memory.
    pub shared_add_f32: f64,
    /// f64 additions to shared memory.
    pub shared_add_f64: f64,
    /// Additions of integers to shared memory with the old value returned.
    pub shared_count: f64,
    /// Gathers from shared memory.
    pub shared_gather: f64,
    /// Gathers of 4 bytes from global memory, by the size of what is gathered from; the first that L1 holds.
    pub gather: SizeTable,
    /// f32 additions to global memory, by the size of the target.
    pub scatter_f32: SizeTable,
    /// f64 additions to global memory, by the size of the target.
    pub scatter_f64: SizeTable,
    /// One more kernel in a stream, microseconds.
    pub launch_us: f64,
    /// What the host does; not in files of versions that did not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostRates>,
}

impl ProbedRates {
    /// Bytes that every L1 cache holds: gathers from this many do not leave the SM.
    pub const L1_BYTES: f64 = 4e4;

    /// What the probes reach on the H200 of [`Rates::h200`]: three runs within 3 % of one another. The read is that of 4 GB in
    /// `benches/results/h200/fused.jsonl`, by the same kernel: 4,570 to 4,610.
    pub fn h200() -> Self {
        Self {
            stream_gbs: 4_590.0,
            shared_add_f32: 477.0,
            shared_add_f64: 305.0,
            shared_count: 1_615.0,
            shared_gather: 1_805.0,
            gather: SizeTable::new([
                (4e4, 771.0),
                (4e5, 180.0),
                (4e6, 161.0),
                (1.6e7, 159.0),
                (4e7, 114.7),
                (6.4e7, 79.1),
                (8e7, 66.8),
                (3.2e8, 43.6),
            ]),
            scatter_f32: SizeTable::new([
                (4e3, 11.6),
                (1.6e4, 34.8),
                (4e4, 50.4),
                (4e5, 87.7),
                (4e6, 104.3),
                (1.6e7, 105.5),
                (4e7, 94.3),
                (6.4e7, 41.0),
                (8e7, 28.4),
                (3.2e8, 18.1),
            ]),
            scatter_f64: SizeTable::new([
                (8e3, 21.7),
                (3.2e4, 37.3),
                (8e4, 57.7),
                (8e5, 92.6),
                (8e6, 104.8),
                (3.2e7, 98.5),
                (8e7, 28.4),
                (1.28e8, 22.0),
                (1.6e8, 20.6),
                (6.4e8, 16.9),
            ]),
            launch_us: 3.8,
            host: None,
        }
    }

    /// What the probes reach on an H100 SXM of 80 GB: three runs of 2026-11-27 within 3 % of one another, but for a
    /// launch. What lies in the L2 cache is reached at 0.86 of the H200's rate, where memory has 0.67 of its bandwidth.
    pub fn h100() -> Self {
        Self {
            stream_gbs: 3_096.0,
            shared_add_f32: 478.0,
            shared_add_f64: 305.0,
            shared_count: 1_615.0,
            shared_gather: 1_790.0,
            gather: SizeTable::new([
                (4e4, 766.0),
                (4e5, 164.0),
                (4e6, 138.0),
                (1.6e7, 136.0),
                (2.4e7, 135.7),
                (3.2e7, 104.0),
                (4e7, 88.0),
                (6.4e7, 55.0),
                (8e7, 48.5),
                (3.2e8, 35.0),
            ]),
            scatter_f32: SizeTable::new([
                (4e3, 12.0),
                (1.6e4, 36.0),
                (4e4, 43.0),
                (4e5, 80.0),
                (4e6, 89.5),
                (1.6e7, 90.0),
                (4e7, 79.5),
                (6.4e7, 25.0),
                (8e7, 21.0),
                (3.2e8, 15.0),
            ]),
            scatter_f64: SizeTable::new([
                (8e3, 19.0),
                (3.2e4, 67.5),
                (8e4, 58.0),
                (8e5, 84.0),
                (8e6, 90.0),
                (3.2e7, 80.5),
                (8e7, 21.0),
                (1.28e8, 17.0),
                (1.6e8, 17.0),
                (6.4e8, 14.0),
            ]),
            launch_us: 3.9,
            host: None,
        }
    }

    /// The first figure that no device can have, if any: its name and value.
    pub fn implausible(&self) -> Option<(&'static str, f64)> {
        let figures = [
            ("stream_gbs", self.stream_gbs),
            ("shared_add_f32", self.shared_add_f32),
            ("shared_add_f64", self.shared_add_f64),
            ("shared_count", self.shared_count),
            ("shared_gather", self.shared_gather),
            ("gather", self.gather.at(Self::L1_BYTES)),
            ("scatter_f32", self.scatter_f32.at(Self::L1_BYTES)),
            ("scatter_f64", self.scatter_f64.at(Self::L1_BYTES)),
            ("launch_us", self.launch_us),
        ];
        // A table without points is zero everywhere; NaN is not in the range either.
        let plausible = |value: f64| (1e-3..1e7).contains(&value);
        let of_gpu = figures.into_iter().find(|&(_, value)| !plausible(value));
        of_gpu.or_else(|| self.host.as_ref().and_then(HostRates::implausible))
    }
}

impl Rates {
    /// The rates of a device that was probed at `at`, seconds since 1970-01-01 UTC. What probes do not tell (the
    /// instruction rate, the latency, the bytes in flight that bandwidth needs) is taken from `uncalibrated`.
    ///
    /// ```
    /// use warpfuse::plan::rates::{ProbedRates, Rates};
    /// let half = ProbedRates { shared_add_f32: 238.5, ..ProbedRates::h200() };
    /// let rates = Rates::calibrated(&Rates::h200(), &half, 0);
    /// assert!((rates.shared_add_f32 / Rates::h200().shared_add_f32 - 0.5).abs() < 1e-12);
    /// assert_eq!(rates.gather.at(4e6), Rates::h200().gather.at(4e6));
    /// ```
    pub fn calibrated(uncalibrated: &Self, probed: &ProbedRates, at: u64) -> Self {
        let (model, there) = (Self::h200(), ProbedRates::h200());
        let count = probed.shared_count / there.shared_count;
        let l1 = probed.gather.at(ProbedRates::L1_BYTES) / there.gather.at(ProbedRates::L1_BYTES);
        let ratio = |model: f64, here: f64, there: f64| model * (here / there);
        Self {
            source: RateSource::Calibrated { at },
            stream_gbs: ratio(model.stream_gbs, probed.stream_gbs, there.stream_gbs),
            shared_add_f32: ratio(
                model.shared_add_f32,
                probed.shared_add_f32,
                there.shared_add_f32,
            ),
            shared_add_f64: ratio(
                model.shared_add_f64,
                probed.shared_add_f64,
                there.shared_add_f64,
            ),
            shared_fixed_f32: model.shared_fixed_f32 * count,
            shared_fixed_f64: model.shared_fixed_f64 * count,
            shared_gather: ratio(
                model.shared_gather,
                probed.shared_gather,
                there.shared_gather,
            ),
            gather_l1: model.gather_l1 * l1,
            gather: model.gather.times_ratio(&probed.gather, &there.gather),
            scatter_f32: model
                .scatter_f32
                .times_ratio(&probed.scatter_f32, &there.scatter_f32),
            scatter_f64: model
                .scatter_f64
                .times_ratio(&probed.scatter_f64, &there.scatter_f64),
            launch_us: ratio(model.launch_us, probed.launch_us, there.launch_us),
            host: probed.host.clone(),
            ..uncalibrated.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_with_the_probes_of_an_h200_has_its_rates() {
        let rates = Rates::calibrated(&Rates::h200(), &ProbedRates::h200(), 7);
        let known = Rates::h200();
        let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-12;
        assert_eq!(rates.source, RateSource::Calibrated { at: 7 });
        assert!(close(rates.shared_fixed_f64, known.shared_fixed_f64));
        for bytes in [1e3, 4e4, 3e5, 8e7, 1e9] {
            assert!(close(rates.gather.at(bytes), known.gather.at(bytes)));
            assert!(close(
                rates.scatter_f32.at(bytes),
                known.scatter_f32.at(bytes)
            ));
        }
    }

    #[test]
    fn tables_of_other_sizes_scale_where_they_differ() {
        let gather = ProbedRates::h200().gather;
        let slow_beyond = SizeTable::new([(4e4, 771.0), (4e6, 161.0), (1.6e7, 15.9)]);
        let probed = ProbedRates {
            gather: slow_beyond,
            ..ProbedRates::h200()
        };
        let rates = Rates::calibrated(&Rates::h200(), &probed, 0);
        let (known, close) = (Rates::h200().gather, |a: f64, b: f64| {
            (a / b - 1.0).abs() < 1e-9
        });
        assert!(close(rates.gather.at(4e6), known.at(4e6)), "{gather:?}");
        assert!(close(rates.gather.at(1.6e7), known.at(1.6e7) / 10.0));
    }

    #[test]
    fn what_no_device_reaches_is_named() {
        let good = ProbedRates::h200();
        assert_eq!(good.implausible(), None);
        let nan = ProbedRates {
            shared_count: f64::NAN,
            ..good.clone()
        };
        assert_eq!(
            nan.implausible().map(|(name, _)| name),
            Some("shared_count")
        );
        let empty = ProbedRates {
            scatter_f64: SizeTable::new([]),
            ..good
        };
        assert_eq!(empty.implausible(), Some(("scatter_f64", 0.0)));
    }
}
