//! Where a fit could be computed, with what each place would take: the CPU, a GPU that has X, a GPU through which X streams.
//!
//! Pure arithmetic: what opening, placing and reading cost, from rates ([`super::work`], [`super::streaming`]) and from what a
//! plan predicts for one read. A read that streams takes as long as what crosses the link, or as its kernels where these take
//! longer, because both run at once.

use std::fmt;

use serde::Serialize;

use super::streaming::{Footprint, LinkRates};
use super::work::Work;

/// A place for a fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FitPlace {
    /// The CPU.
    Cpu,
    /// A GPU that has all of X.
    Resident,
    /// A GPU that has a part of X; the rest crosses the link in every read.
    Streaming,
}

/// What is known of a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// X as it came.
    pub footprint: Footprint,
    /// Bytes of X as it crosses the link.
    pub packed_bytes: u64,
    /// How often X is going to be read.
    pub reads: u64,
    /// Seconds of the kernels of one read.
    pub kernel_seconds: f64,
    /// Bytes of the GPU that X may take.
    pub room: u64,
    /// Threads of the CPU.
    pub threads: usize,
}

/// A place and what a fit there would take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Alternative {
    /// Where.
    pub place: FitPlace,
    /// Predicted seconds, the start of a GPU included.
    pub seconds: f64,
    /// Bytes that cross the link in all.
    pub sent_bytes: u64,
    /// Whether X fits.
    pub fits: bool,
}

/// Bytes of memory that a known device has, by its name; those of a usual card, where it is none.
pub fn usual_memory(name: &str) -> u64 {
    let gigabytes = match name {
        name if name.contains("H200") => 141,
        name if name.contains("H100") || name.contains("A100") => 80,
        name if name.to_lowercase().contains("titan") => 6,
        _ => 24,
    };
    gigabytes * 1_000_000_000
}

impl Fit {
    /// All places, the fastest first; one where X does not fit comes last.
    ///
    /// ```
    /// use warpfuse::plan::alternatives::{Fit, FitPlace};
    /// use warpfuse::plan::streaming::Footprint;
    /// let footprint = Footprint { bytes: 8 << 30, rows: 50_000_000, cols: 50_000, element: 4 };
    /// let fit = Fit {
    ///     footprint, packed_bytes: 2 << 30, reads: 90, kernel_seconds: 0.003, room: 80 << 30, threads: 16,
    /// };
    /// assert_eq!(fit.alternatives()[0].place, FitPlace::Resident);
    /// let small_card = Fit { room: 1 << 30, ..fit };
    /// assert_eq!(small_card.alternatives()[0].place, FitPlace::Streaming);
    /// assert!(!small_card.alternatives()[2].fits);
    /// ```
    pub fn alternatives(&self) -> [Alternative; 3] {
        let mut all = [self.on_cpu(), self.resident(), self.streaming()];
        all.sort_by(|a, b| {
            let by_time = a.seconds.total_cmp(&b.seconds);
            b.fits.cmp(&a.fits).then(by_time)
        });
        all
    }

    fn on_cpu(&self) -> Alternative {
        Alternative {
            place: FitPlace::Cpu,
            seconds: self.work(self.reads).seconds(self.threads).cpu,
            sent_bytes: 0,
            fits: true,
        }
    }

    fn resident(&self) -> Alternative {
        Alternative {
            place: FitPlace::Resident,
            seconds: self.placing() + self.reads as f64 * self.kernel_seconds,
            sent_bytes: self.footprint.bytes,
            fits: self.footprint.bytes + self.footprint.least_vectors() <= self.room,
        }
    }

    fn streaming(&self) -> Alternative {
        let room = self.room.saturating_sub(self.footprint.reserve(self.room));
        let resident = self.packed_bytes.min(room);
        let crossing = self.packed_bytes - resident;
        let rates = LinkRates::of_threads(self.threads);
        let gbs = match self.reads >= rates.pins_from() {
            true => rates.pinned_gbs,
            false => rates.staged_gbs,
        };
        let read = (crossing as f64 / (gbs * 1e9)).max(self.kernel_seconds);
        Alternative {
            place: FitPlace::Streaming,
            seconds: self.placing() + self.reads as f64 * read,
            sent_bytes: resident + self.reads * crossing,
            fits: true,
        }
    }

    /// Seconds to open a GPU, and to bring X there once.
    fn placing(&self) -> f64 {
        self.work(0).seconds(self.threads).gpu
    }

    fn work(&self, reads: u64) -> Work {
        Work {
            bytes: self.footprint.bytes,
            reads,
        }
    }
}

impl fmt::Display for FitPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FitPlace::Cpu => "CPU",
            FitPlace::Resident => "GPU with all of X",
            FitPlace::Streaming => "GPU, X streams",
        })
    }
}

impl fmt::Display for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Alternative {
            place,
            seconds,
            sent_bytes,
            fits,
        } = self;
        match fits {
            true => write!(
                f,
                "{place}: {seconds:.2} s, {:.2} GB cross the link",
                *sent_bytes as f64 / 1e9
            ),
            false => write!(f, "{place}: X does not fit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIT: Fit = Fit {
        footprint: Footprint {
            bytes: 100_000,
            rows: 442,
            cols: 10,
            element: 4,
        },
        packed_bytes: 50_000,
        reads: 90,
        kernel_seconds: 1e-5,
        room: 80 << 30,
        threads: 16,
    };

    #[test]
    fn tiny_data_stay_on_the_cpu() {
        assert_eq!(FIT.alternatives()[0].place, FitPlace::Cpu);
    }

    #[test]
    fn what_streams_takes_the_links_time_or_the_kernels() {
        let large = Footprint {
            bytes: 40 << 30,
            rows: 1 << 20,
            ..FIT.footprint
        };
        let fit = Fit {
            footprint: large,
            packed_bytes: 40 << 30,
            reads: 1_000,
            room: 10 << 30,
            ..FIT
        };
        let bytes = |fit: &Fit| fit.streaming().sent_bytes as f64;
        let of_link = bytes(&fit) / 55.4e9;
        let seconds = fit.streaming().seconds - fit.placing();
        assert!(
            (seconds / of_link - 1.0).abs() < 0.01,
            "{seconds} s, {of_link} s"
        );
        let slow = Fit {
            kernel_seconds: 10.0,
            ..fit
        };
        assert!((slow.streaming().seconds - slow.placing() - 10_000.0).abs() < 1e-6);
        // More room, less to cross.
        let roomier = Fit {
            room: 30 << 30,
            ..fit
        };
        assert!(roomier.streaming().seconds < fit.streaming().seconds);
    }
}
