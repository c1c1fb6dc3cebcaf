//! CPU or GPU: from how much there is to do, before X is read and before a driver is started.
//!
//! A GPU has to be opened, and X has to get there; then each read of X takes it a small part of what the CPU needs.

use std::fmt;

/// Seconds from a program's start to its end that an H200 costs, with nothing to do: 0.22 to 0.26, of which the CPU of the
/// same machine needs 0.007; opening alone takes 0.17 to 0.22 of them (`benches/results/h200/placement.jsonl`).
const OPENING: f64 = 0.25;
/// Bytes a second from a mapped file to a GPU, forms made on the way included: 10 to 20·10⁹ were measured.
const PLACING: f64 = 10e9;
/// Bytes a second that a GPU reads; small ones have a tenth of the 4.8·10¹² of an H200.
const GPU_READS: f64 = 4e11;
/// Seconds of a read of X that are not X's: launches, and what is between them.
const PER_READ: f64 = 5e-5;
/// Bytes a second that a thread of the CPU reads in a fit, with whatever it does to them: 0.24·10⁹ where entries are
/// scattered over a million columns, 1.2·10⁹ in dense rows.
const THREAD_READS: f64 = 3e8;

/// What is to be done with X.
///
/// ```
/// use warpfuse::plan::work::Work;
/// let small = Work { bytes: 100_000, reads: 100 };
/// assert!(small.seconds(16).is_faster_on_cpu());
/// let large = Work { bytes: 1_000_000_000, ..small };
/// assert!(!large.seconds(16).is_faster_on_cpu());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Bytes of X, about: those of its file will do.
    pub bytes: u64,
    /// How often X is going to be read: 1 for predictions, some 90 for a fit by iterations.
    pub reads: u64,
}

/// Predicted seconds on either device, the start of a GPU's driver included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkSeconds {
    /// On the CPU.
    pub cpu: f64,
    /// On a GPU.
    pub gpu: f64,
}

impl Work {
    /// Predicted seconds, with this many threads of the CPU.
    pub fn seconds(&self, threads: usize) -> WorkSeconds {
        let (bytes, reads) = (self.bytes as f64, self.reads as f64);
        WorkSeconds {
            cpu: reads * bytes / (THREAD_READS * threads.max(1) as f64),
            gpu: OPENING + bytes / PLACING + reads * (PER_READ + bytes / GPU_READS),
        }
    }
}

impl WorkSeconds {
    /// Whether a GPU is not worth its start.
    pub fn is_faster_on_cpu(&self) -> bool {
        self.cpu <= self.gpu
    }
}

/// Both, and which is less.
impl fmt::Display for WorkSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faster = match self.is_faster_on_cpu() {
            true => "CPU",
            false => "GPU",
        };
        let WorkSeconds { cpu, gpu } = self;
        write!(
            f,
            "{faster}: about {cpu:.2} s on the CPU, {gpu:.2} s on a GPU"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_data_stay_and_large_data_go() {
        let fit = |bytes| Work { bytes, reads: 90 }.seconds(16);
        // 442 rows; the text of 325 MB and the cache of 18.9 GB whose fits were measured on both.
        assert!(fit(100_000).is_faster_on_cpu());
        assert!(!fit(325_000_000).is_faster_on_cpu());
        assert!(!fit(18_900_000_000).is_faster_on_cpu());
    }

    #[test]
    fn one_read_pays_for_a_start_where_there_are_few_threads() {
        let predictions = Work {
            bytes: 500_000_000,
            reads: 1,
        };
        assert!(predictions.seconds(16).is_faster_on_cpu());
        assert!(!predictions.seconds(1).is_faster_on_cpu());
    }

    #[test]
    fn nothing_takes_no_time_on_the_cpu() {
        let nothing = Work { bytes: 0, reads: 0 }.seconds(0);
        assert_eq!(nothing.cpu, 0.0);
        assert!(nothing.to_string().starts_with("CPU: about 0.00 s"));
        let endless = Work {
            bytes: u64::MAX,
            reads: u64::MAX,
        };
        assert!(!endless.seconds(1).is_faster_on_cpu());
    }
}
