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
    /// Rows that blocks work on one after the other.
    RowsInTurn,
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
            Self::RowsInTurn => "rows one after the other",
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
    /// The longest row, and what all rows longer than the mean add.
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

/// The least share of the bandwidth that is computed with.
const LEAST_SHARE: f64 = 1e-3;

/// The parts of a predicted time, seconds.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    /// What the stream takes at full bandwidth.
    pub full: f64,
    /// Bytes in flight over those that half a round trip's worth of bandwidth takes.
    pub fill: f64,
    pub access: f64,
    pub issue: f64,
    pub longest_row: f64,
    /// What rows longer than the mean add, whatever else a launch waits for.
    pub uneven_rows: f64,
    pub rows_in_turn: f64,
    /// What passes one after the other take beyond one pass with the sums of their parts.
    pub apart: f64,
    pub flush: f64,
    pub launch: f64,
    /// Bytes that an SM has in flight.
    pub in_flight: f64,
}

/// The share of the bandwidth that so much of the bytes for half a round trip reaches: proportional below the knee,
/// saturated above it.
pub(super) fn share(fill: f64) -> f64 {
    (fill / (1.0 + fill * fill * fill).cbrt()).clamp(LEAST_SHARE, 1.0)
}

impl Parts {
    /// A lower bound of the whole that is quick to compute, nanoseconds: no cube root.
    pub fn least_ns(&self) -> u64 {
        let stream = self.full / self.fill.clamp(LEAST_SHARE, 1.0);
        nanoseconds(soft_max(self.beside(stream)) + self.after())
    }

    /// The whole, nanoseconds.
    pub fn total_ns(&self) -> u64 {
        nanoseconds(soft_max(self.beside(self.stream())) + self.after())
    }

    fn after(&self) -> f64 {
        self.uneven_rows + self.apart + self.flush + self.launch
    }

    fn stream(&self) -> f64 {
        self.full / share(self.fill)
    }

    fn beside(&self, stream: f64) -> [f64; 5] {
        [
            stream,
            self.access,
            self.issue,
            self.longest_row,
            self.rows_in_turn,
        ]
    }

    /// The whole with its parts.
    pub fn prediction(&self) -> Prediction {
        let stream = self.stream();
        Prediction {
            total_ns: self.total_ns(),
            stream_ns: nanoseconds(stream),
            access_ns: nanoseconds(self.access),
            issue_ns: nanoseconds(self.issue),
            longest_row_ns: nanoseconds(self.longest_row + self.uneven_rows),
            flush_ns: nanoseconds(self.flush),
            launch_ns: nanoseconds(self.launch),
            in_flight_bytes: self.in_flight as u64,
            bound: self.bound(stream),
        }
    }

    fn bound(&self, stream: f64) -> Bound {
        // A quarter of the bandwidth left unused is what more bytes in flight would help.
        let memory = if stream > 1.25 * self.full {
            Bound::BytesInFlight
        } else {
            Bound::Bandwidth
        };
        let parts = [
            (memory, stream),
            (Bound::RandomAccess, self.access + self.flush),
            (Bound::Issue, self.issue),
            (Bound::LongestRow, self.longest_row + self.uneven_rows),
            (Bound::RowsInTurn, self.rows_in_turn),
            (Bound::Launch, self.launch),
        ];
        let greatest = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        greatest.map_or(memory, |part| part.0)
    }
}

fn greatest(parts: [f64; 5]) -> f64 {
    parts.into_iter().fold(0.0, f64::max)
}

/// The fourth root of the sum of fourth powers.
pub(super) fn soft_max(parts: [f64; 5]) -> f64 {
    let greatest = greatest(parts);
    if greatest <= 0.0 {
        return 0.0;
    }
    let scale = 1.0 / greatest;
    let fourth = |part: f64| {
        let square = (part * scale) * (part * scale);
        square * square
    };
    let sum: f64 = parts.into_iter().map(fourth).sum();
    greatest * sum.sqrt().sqrt()
}

/// Seconds as whole nanoseconds. A float cast saturates, which is what an absurd time should do.
pub(super) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9 + 0.5) as u64
}
