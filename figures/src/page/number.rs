//! Numbers as people read them.

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nothing: six digits.
    Plain,
    /// Things: all digits, in groups of three.
    Count,
    /// Bytes, in the unit that suits them.
    Bytes,
    /// Seconds, in the unit that suits them.
    Seconds,
    /// A share of 1, shown as per cent.
    Share,
    /// A chance: small ones as a bound.
    Chance,
    /// 10⁹ bytes per second.
    Rate,
    /// Microseconds.
    Microseconds,
}

/// The digits that are shown of a number; `not defined` of one that is NaN.
pub fn shown(value: f64, unit: Unit) -> String {
    if value.is_nan() {
        return "not defined".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "−∞" }.to_owned();
    }
    match unit {
        Unit::Plain => digits(value, 6),
        Unit::Count => grouped(value),
        Unit::Bytes => bytes(value),
        Unit::Seconds => seconds(value),
        Unit::Share => format!("{} %", digits(100.0 * value, 4)),
        Unit::Chance if value < 1e-4 => format!(
            "< {}",
            if value < 1e-16 {
                "10⁻¹⁶"
            } else {
                "0.0001"
            }
        ),
        Unit::Chance => digits(value, 3),
        Unit::Rate => format!("{} GB/s", digits(value, 4)),
        Unit::Microseconds => format!("{} µs", digits(value, 4)),
    }
}

/// All digits: the shortest decimals that read back as the same number.
pub(crate) fn exact(value: f64) -> String {
    let text = serde_json::to_string(&value).unwrap_or_default();
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// This many significant digits, without zeros at the end.
fn digits(value: f64, count: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let power = value.abs().log10().floor() as i32;
    if !(-4..9).contains(&power) {
        let text = format!("{value:.*e}", count as usize - 1);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}·10{}", minus(trimmed(mantissa)), superscript(exponent));
    }
    let text = format!("{value:.*}", (count - 1 - power).max(0) as usize);
    minus(trimmed(&text))
}

fn trimmed(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

fn minus(text: &str) -> String {
    text.replace('-', "−")
}

fn superscript(text: &str) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let sign = |c: char| match c.to_digit(10) {
        Some(digit) => DIGITS[digit as usize],
        None => '⁻',
    };
    text.chars().map(sign).collect()
}

/// Thin spaces between thousands.
fn grouped(value: f64) -> String {
    if value.fract() != 0.0 || value.abs() >= 1e15 {
        return digits(value, 6);
    }
    let text = format!("{:.0}", value.abs());
    let mut out = String::new();
    for (place, digit) in text.chars().enumerate() {
        if place > 0 && (text.len() - place) % 3 == 0 {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if value < 0.0 {
        format!("−{out}")
    } else {
        out
    }
}

fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (value, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", digits(value, 4), UNITS[unit])
}

fn seconds(value: f64) -> String {
    match value.abs() {
        s if s < 1e-3 => format!("{} µs", digits(1e6 * value, 3)),
        s if s < 1.0 => format!("{} ms", digits(1e3 * value, 3)),
        s if s < 120.0 => format!("{} s", digits(value, 4)),
        s if s < 7200.0 => format!("{} min", digits(value / 60.0, 3)),
        _ => format!("{} h", digits(value / 3600.0, 3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_say_something() {
        let plain = |value| shown(value, Unit::Plain);
        assert_eq!(
            [plain(0.1 + 0.2), plain(-1234.56789), plain(1e-7)],
            ["0.3", "−1234.57", "1·10⁻⁷"]
        );
        assert_eq!(
            [plain(f64::NAN), plain(f64::NEG_INFINITY), plain(-0.0)],
            ["not defined", "−∞", "0"]
        );
        assert_eq!(shown(1234567.0, Unit::Count), "1\u{202f}234\u{202f}567");
        assert_eq!(shown(0.12345, Unit::Share), "12.35 %");
        assert_eq!(shown(1e-30, Unit::Chance), "< 10⁻¹⁶");
        assert_eq!(shown(3.0 * 1024.0 * 1024.0, Unit::Bytes), "3 MiB");
        assert_eq!(
            [shown(2.5e-5, Unit::Seconds), shown(3600.0, Unit::Seconds)],
            ["25 µs", "60 min"]
        );
        assert_eq!(
            [exact(0.1), exact(442.0), exact(1e300)],
            ["0.1", "442", "1e+300"]
        );
    }
}
