//! A predicted time, its parts, and which of them decides.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What the predicted time of a launch is bound by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The bandwidth of device memory.
    Bandwidth,
    /// Too few bytes in flight to use that bandwidth.
    BytesInFlight,
    /// Gathers and additions at random addresses.
    RandomAccess,
    /// Instructions.
    Issue,
    /// One row that is much longer than the others.
    LongestRow,
    /// The cost of launching.
    Launch,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bandwidth => "memory bandwidth",
            Self::BytesInFlight => "bytes in flight",
            Self::RandomAccess => "gathers and additions",
            Self::Issue => "instruction issue",
            Self::LongestRow => "the longest row",
            Self::Launch => "launch cost",
        })
    }
}

/// The predicted time of a launch and its parts, in whole nanoseconds so that a stored plan compares
/// equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prediction {
    /// All of it.
    pub total_ns: u64,
    /// Reading X and the vectors.
    pub stream_ns: u64,
    /// Gathers and additions.
    pub access_ns: u64,
    /// Instructions.
    pub issue_ns: u64,
    /// The longest row.
    pub longest_row_ns: u64,
    /// Adding the blocks' results to w.
    pub flush_ns: u64,
    /// Launching.
    pub launch_ns: u64,
    /// Bytes of X that an SM has in flight.
    pub in_flight_bytes: u64,
    /// The part that decides.
    pub bound: Bound,
}

/// The parts of a predicted time, seconds.
pub(super) struct Parts {
    pub stream: f64,
    pub access: f64,
    pub issue: f64,
    pub longest_row: f64,
    pub flush: f64,
    pub launch: f64,
}

impl Parts {
    /// The whole; `full` is what the stream takes at full bandwidth.
    pub fn prediction(&self, full: f64, in_flight: f64) -> Prediction {
        let work = soft_max([self.stream, self.access, self.issue, self.longest_row]);
        Prediction {
            total_ns: nanoseconds(work + self.flush + self.launch),
            stream_ns: nanoseconds(self.stream),
            access_ns: nanoseconds(self.access),
            issue_ns: nanoseconds(self.issue),
            longest_row_ns: nanoseconds(self.longest_row),
            flush_ns: nanoseconds(self.flush),
            launch_ns: nanoseconds(self.launch),
            in_flight_bytes: in_flight as u64,
            bound: self.bound(full),
        }
    }

    fn bound(&self, full: f64) -> Bound {
        // A quarter of the bandwidth left unused is what more bytes in flight would help.
        let memory = if self.stream > 1.25 * full {
            Bound::BytesInFlight
        } else {
            Bound::Bandwidth
        };
        let parts = [
            (memory, self.stream),
            (Bound::RandomAccess, self.access + self.flush),
            (Bound::Issue, self.issue),
            (Bound::LongestRow, self.longest_row),
            (Bound::Launch, self.launch),
        ];
        let greatest = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        greatest.map_or(memory, |part| part.0)
    }
}

fn soft_max(parts: [f64; 4]) -> f64 {
    let greatest = parts.into_iter().fold(0.0, f64::max);
    if greatest <= 0.0 {
        return 0.0;
    }
    let sum: f64 = parts
        .into_iter()
        .map(|part| (part / greatest).powi(4))
        .sum();
    greatest * sum.sqrt().sqrt()
}

// A float cast saturates, which is what an absurd time should do.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
