//! Numbers from bytes, in parallel.

use std::io;

use half::f16;

use super::super::finite::{first_not_finite, first_of};
use crate::matrix::{Dtype, Element};
use crate::parallel;

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
    F2,
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
            "f2" => Number::F2,
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

    /// Whether elements lie in the file as they do in memory.
    pub(super) fn is(self, dtype: Dtype) -> bool {
        let number = match dtype {
            Dtype::F32 => Number::F4,
            Dtype::F64 => Number::F8,
        };
        self.number == number && self.big_endian == cfg!(target_endian = "big")
    }

    /// Bytes of one element.
    pub(super) fn size(self) -> usize {
        match self.number {
            Number::I1 | Number::U1 => 1,
            Number::F2 | Number::I2 | Number::U2 => 2,
            Number::F4 | Number::I4 | Number::U4 => 4,
            Number::F8 | Number::I8 | Number::U8 => 8,
        }
    }
}

/// Why there are no values.
#[derive(Debug)]
pub(super) enum Wrong {
    /// An element is not finite in the type requested.
    Value {
        /// Its number.
        entry: usize,
        /// What it is in the file.
        value: f64,
    },
    /// The file cannot be read.
    File(io::Error),
}

/// `count` elements that lie in the file as in memory: `read` copies bytes from a place on. Each task looks at its
/// elements while they are in its cache.
pub(super) fn copy<T: Element>(
    count: usize,
    read: impl Fn(usize, &mut [u8]) -> io::Result<()> + Sync,
) -> Result<Vec<T>, Wrong> {
    let mut values = vec![T::default(); count];
    let wrong = parallel::map_items(values.chunks_mut(PER_TASK), |part, values| {
        let first = part * PER_TASK;
        if let Err(error) = read(first * size_of::<T>(), bytemuck::cast_slice_mut(values)) {
            return Some(Wrong::File(error));
        }
        let at = first_of(values)?;
        let (entry, value) = (first + at, values[at].to_f64());
        Some(Wrong::Value { entry, value })
    });
    let wrong = wrong.into_iter().flatten().next();
    wrong.map_or(Ok(values), Err)
}

/// How the elements of an array lie in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// As they are to lie in memory.
    Rows,
    /// Column by column, `rows` × `cols`.
    Columns { rows: usize, cols: usize },
}

/// Decodes all of `bytes`, row by row.
pub(super) fn decode<T: Element>(bytes: &[u8], kind: Kind, order: Order) -> Result<Vec<T>, Wrong> {
    let given = (bytes, kind, order);
    match kind.number {
        Number::F2 => decode_with(given, f16::from_le_bytes, f64::from),
        Number::F4 => decode_with(given, f32::from_le_bytes, f64::from),
        Number::F8 => decode_with(given, f64::from_le_bytes, |v| v),
        Number::I1 => decode_with(given, i8::from_le_bytes, f64::from),
        Number::I2 => decode_with(given, i16::from_le_bytes, f64::from),
        Number::I4 => decode_with(given, i32::from_le_bytes, f64::from),
        Number::I8 => decode_with(given, i64::from_le_bytes, |v| v as f64),
        Number::U1 => decode_with(given, u8::from_le_bytes, f64::from),
        Number::U2 => decode_with(given, u16::from_le_bytes, f64::from),
        Number::U4 => decode_with(given, u32::from_le_bytes, f64::from),
        Number::U8 => decode_with(given, u64::from_le_bytes, |v| v as f64),
    }
}

fn decode_with<T: Element, V, const N: usize>(
    (bytes, kind, order): (&[u8], Kind, Order),
    from_le: impl Fn([u8; N]) -> V + Sync,
    to_f64: impl Fn(V) -> f64 + Sync,
) -> Result<Vec<T>, Wrong> {
    let read = |element: &[u8; N]| {
        let mut element = *element;
        if kind.big_endian {
            element.reverse();
        }
        to_f64(from_le(element))
    };
    let (elements, _) = bytes.as_chunks::<N>();
    let values = match order {
        Order::Rows => parallel::convert(elements, |element| T::from_f64(read(element))),
        Order::Columns { rows, cols } => turned(elements, (rows, cols), |e| T::from_f64(read(e))),
    };
    if first_not_finite(&values).is_none() {
        return Ok(values);
    }
    let is_wrong = |element: &[u8; N]| !T::from_f64(read(element)).is_finite();
    let entry = elements.iter().position(is_wrong);
    let entry = entry.expect("one of the values is not finite");
    Err(Wrong::Value {
        entry,
        value: read(&elements[entry]),
    })
}

/// Rows that are turned at a time: what they take of each column is some lines of the cache.
const TURNED: usize = 64;

/// Elements that lie column by column, row by row. Nothing else takes memory: rows are written where they stay.
fn turned<E: Sync, T: Element>(
    elements: &[E],
    (rows, cols): (usize, usize),
    read: impl Fn(&E) -> T + Sync,
) -> Vec<T> {
    let mut values = vec![T::default(); elements.len()];
    let per_task = (PER_TASK / cols.max(1))
        .next_multiple_of(TURNED)
        .max(TURNED);
    let tasks = values.chunks_mut((per_task * cols).max(1));
    parallel::for_each_item(tasks, |task, values| {
        for (block, out) in values.chunks_mut(TURNED * cols).enumerate() {
            let first = task * per_task + block * TURNED;
            for j in 0..cols {
                let column = &elements[j * rows + first..][..out.len() / cols];
                let places = out.iter_mut().skip(j).step_by(cols);
                places.zip(column).for_each(|(out, e)| *out = read(e));
            }
        }
    });
    values
}
