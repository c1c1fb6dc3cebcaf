//! Times as they are typed.

use std::time::Duration;

/// The units of a time, and their seconds; a unit comes before those that it ends with.
const UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3_600.0)];

/// Such as 500ms, 60s, 2.5m or 1h; seconds without a unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected a time such as 500ms, 60s, 5m or 1h, found `{text}`");
    let of_unit = |(name, seconds): (&str, f64)| Some((text.strip_suffix(name)?, seconds));
    let (number, unit) = UNITS.into_iter().find_map(of_unit).unwrap_or((text, 1.0));
    let number: f64 = number.parse().map_err(|_| expected())?;
    let seconds = number * unit;
    match (0.0..1e9).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(expected()),
    }
}

/// [`duration`] that is not 0.
pub(super) fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err(format!("expected a time above 0, found `{text}`")),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("2.5m"), Ok(Duration::from_secs(150)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3_600)));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        assert!(some_time("0").is_err());
        for wrong in ["", "s", "ms", "1mm", "-1s", "inf", "NaN", "1d"] {
            assert!(
                duration(wrong).is_err() && some_time(wrong).is_err(),
                "{wrong}"
            );
        }
    }
}
