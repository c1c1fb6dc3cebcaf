//! What stands in a field: a number, a text, nothing, or a date.

/// What stands for a missing value, besides an empty field: what pandas and R write, and `?` of the UCI repository.
const MISSING: [&[u8]; 15] = [
    b"NA", b"N/A", b"n/a", b"#N/A", b"NaN", b"nan", b"NAN", b"-NaN", b"-nan", b"null", b"NULL",
    b"None", b"<NA>", b"?", b"nil",
];

/// Whether a field, without the blanks around it, stands for a missing value.
pub(super) fn is_missing(text: &[u8]) -> bool {
    text.is_empty() || (text.len() <= 4 && MISSING.contains(&text))
}

/// A finite number that is all of a field, as f64.
pub(super) fn number(text: &[u8]) -> Option<f64> {
    let (value, length) = <f64 as crate::matrix::Element>::parse_decimal(text)?;
    (length == text.len() && value.is_finite()).then_some(value)
}

/// Whether a text looks like a date: three numbers apart by `-`, `/` or `.`, perhaps with a time after them.
pub(super) fn is_date(text: &[u8]) -> bool {
    let day = text
        .iter()
        .position(|byte| matches!(byte, b' ' | b'T'))
        .map_or(text, |end| &text[..end]);
    let Some(&separator) = day.iter().find(|byte| !byte.is_ascii_digit()) else {
        return false;
    };
    if !matches!(separator, b'-' | b'/' | b'.') {
        return false;
    }
    let parts: Vec<&[u8]> = day.split(|byte| *byte == separator).collect();
    let digits =
        |part: &&[u8]| !part.is_empty() && part.len() <= 4 && part.iter().all(u8::is_ascii_digit);
    parts.len() == 3 && parts.iter().all(digits)
}

/// FNV-1a over a column's name, a zero byte and a text, mixed once more for its low bits: the same everywhere and always,
/// as models keep it.
///
/// Source: Fowler, Noll and Vo, "The FNV Non-Cryptographic Hash Algorithm"; the mix is MurmurHash3's finaliser.
pub(super) fn hash(name: &[u8], text: &[u8]) -> u64 {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let bytes = name.iter().chain(&[0]).chain(text);
    let mut hash = bytes.fold(START, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    });
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_told_from_numbers_and_texts() {
        for date in [
            "2024-01-31",
            "31/12/2023",
            "1.2.24",
            "2024-01-31T10:00:00",
            "2024-01-31 10:00",
        ] {
            assert!(is_date(date.as_bytes()), "{date}");
        }
        for other in [
            "",
            "2024",
            "1.5",
            "-3",
            "a-b-c",
            "1-2",
            "10-20-30-40",
            "north-west-1",
            "T",
            "12345-1-1",
        ] {
            assert!(!is_date(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn hashes_never_change() {
        assert_eq!(hash(b"city", b"Ulm"), hash(b"city", b"Ulm"));
        assert_ne!(hash(b"city", b"Ulm"), hash(b"cit", b"yUlm"));
        assert_eq!(hash(b"", b""), HASH_OF_NOTHING);
    }

    const HASH_OF_NOTHING: u64 = {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64.wrapping_mul(0x0100_0000_01b3);
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^ (hash >> 33)
    };

    #[test]
    fn missing_values_have_many_spellings() {
        for text in ["", "NA", "nan", "?", "<NA>", "NULL", "None"] {
            assert!(is_missing(text.as_bytes()), "{text}");
        }
        for text in ["0", "na?", "Nancy", "none at all"] {
            assert!(!is_missing(text.as_bytes()), "{text}");
        }
        assert_eq!(
            (number(b"1e3"), number(b"1e999"), number(b"4x")),
            (Some(1e3), None, None)
        );
    }
}
