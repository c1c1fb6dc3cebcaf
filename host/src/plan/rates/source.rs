//! Where rates come from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a set of rates comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateSource {
    /// The table of known devices: measured on this kind of device.
    Measured,
    /// Measured on this very device.
    Calibrated {
        /// When, in seconds since 1970-01-01 UTC.
        at: u64,
    },
    /// Scaled from the H200's by the number of SMs and the memory bandwidth; the order of the
    /// candidates is more to be trusted than their times.
    Estimated,
}

impl fmt::Display for RateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Measured => f.write_str("from the table of known devices"),
            Self::Calibrated { at } => {
                let (year, month, day) = date(at);
                write!(f, "calibrated on {year:04}-{month:02}-{day:02}")
            }
            Self::Estimated => f.write_str("estimated from SMs and memory bandwidth"),
        }
    }
}

/// Year, month and day of a moment, UTC.
///
/// Source: H. Hinnant, chrono-compatible low-level date algorithms (`civil_from_days`).
fn date(seconds: u64) -> (u64, u64, u64) {
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Years begin in March here, so that the leap day is their last.
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_calendars() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(951_782_400), (2000, 2, 29));
        assert_eq!(date(1_795_262_400), (2026, 11, 21));
        assert_eq!(date(1_798_761_599), (2026, 12, 31));
    }

    #[test]
    fn a_source_says_when() {
        let source = RateSource::Calibrated { at: 1_795_262_400 };
        assert_eq!(source.to_string(), "calibrated on 2026-11-21");
    }
}
