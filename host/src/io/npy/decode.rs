//! Numbers from bytes, in parallel.

use rayon::prelude::*;

use crate::matrix::Element;

/// Elements that one task decodes.
const PER_TASK: usize = 64 * 1024;

/// What one element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    number: Number,
    big_endian: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    F4,
    F8,
    I1,
    I2,
    I4,
    I8,
    U1,
    U2,
    U4,
    U8,
}

impl Kind {
    /// From NumPy's name of a type, such as `<f8`.
    pub(super) fn from_descriptor(name: &str) -> Option<Self> {
        let mut letters = name.chars();
        let big_endian = match letters.next()? {
            '<' | '|' => false,
            '>' => true,
            '=' => cfg!(target_endian = "big"),
            _ => return None,
        };
        let number = match letters.as_str() {
            "f4" => Number::F4,
            "f8" => Number::F8,
            "i1" => Number::I1,
            "i2" => Number::I2,
            "i4" => Number::I4,
            "i8" => Number::I8,
            "u1" | "b1" => Number::U1,
            "u2" => Number::U2,
            "u4" => Number::U4,
            "u8" => Number::U8,
            _ => return None,
        };
        Some(Self { number, big_endian })
    }

    /// Bytes of one element.
    pub(super) fn size(self) -> usize {
        match self.number {
            Number::I1 | Number::U1 => 1,
            Number::I2 | Number::U2 => 2,
            Number::F4 | Number::I4 | Number::U4 => 4,
            Number::F8 | Number::I8 | Number::U8 => 8,
        }
    }
}

/// Decodes all of `bytes`; an element that is not finite in `T` is returned with its number.
pub(super) fn decode<T: Element>(bytes: &[u8], kind: Kind) -> Result<Vec<T>, (usize, f64)> {
    match kind.number {
        Number::F4 => decode_with(bytes, kind, f32::from_le_bytes, f64::from),
        Number::F8 => decode_with(bytes, kind, f64::from_le_bytes, |v| v),
        Number::I1 => decode_with(bytes, kind, i8::from_le_bytes, f64::from),
        Number::I2 => decode_with(bytes, kind, i16::from_le_bytes, f64::from),
        Number::I4 => decode_with(bytes, kind, i32::from_le_bytes, f64::from),
        Number::I8 => decode_with(bytes, kind, i64::from_le_bytes, |v| v as f64),
        Number::U1 => decode_with(bytes, kind, u8::from_le_bytes, f64::from),
        Number::U2 => decode_with(bytes, kind, u16::from_le_bytes, f64::from),
        Number::U4 => decode_with(bytes, kind, u32::from_le_bytes, f64::from),
        Number::U8 => decode_with(bytes, kind, u64::from_le_bytes, |v| v as f64),
    }
}

fn decode_with<T: Element, V, const N: usize>(
    bytes: &[u8],
    kind: Kind,
    from_le: impl Fn([u8; N]) -> V + Sync,
    to_f64: impl Fn(V) -> f64 + Sync,
) -> Result<Vec<T>, (usize, f64)> {
    let read = |element: &[u8; N]| {
        let mut element = *element;
        if kind.big_endian {
            element.reverse();
        }
        to_f64(from_le(element))
    };
    let (elements, _) = bytes.as_chunks::<N>();
    let values: Vec<T> = elements
        .par_iter()
        .with_min_len(PER_TASK)
        .map(|element| T::from_f64(read(element)))
        .collect();
    match values.par_iter().position_first(|value| !value.is_finite()) {
        Some(entry) => Err((entry, read(&elements[entry]))),
        None => Ok(values),
    }
}
