//! The image of a block of sparse rows.

use std::ops::Range;

use gpu_kernels::Word;

use super::{ALIGNED_WORDS, Image, are_bf16, are_single, bf16_pair, within};
use crate::matrix::{CsrMatrix, Element, Features, Storage, Values};

/// Columns that 16 bits tell apart.
const NARROW: usize = 1 << 16;

/// How the values of a block are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ImageValues<T> {
    /// As they are.
    Whole,
    /// As f32, those of an f64 matrix.
    Single,
    /// As bfloat16, two in a word.
    Bf16,
    /// One for each row: those of a row are equal.
    OfRows,
    /// None: all are this.
    Equal(T),
}

/// The image of rows `first_row .. first_row + rows`: offsets of their own, columns, values.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseImage<T> {
    /// Its first row.
    pub first_row: usize,
    /// Its number of rows.
    pub rows: usize,
    /// Its entries.
    pub entries: usize,
    /// Whether columns have 16 bits, two of them in a word.
    pub is_narrow: bool,
    /// How values are stored.
    pub values: ImageValues<T>,
    first_entry: usize,
}

/// Where the sections of an image lie, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparseSections {
    /// `rows + 1` offsets.
    pub offsets: Range<usize>,
    /// Columns.
    pub indices: Range<usize>,
    /// Values.
    pub values: Range<usize>,
}

impl<T: Element + Word> SparseImage<T> {
    /// The image of some rows of `x`, in the fewest bytes that `rounding` allows, or with everything as it is.
    pub fn of(x: &CsrMatrix<T>, rows: Range<usize>, rounding: Option<Values>) -> Self {
        let offsets = x.indptr();
        let offsets = offsets.raw_storage();
        let entries = offsets[rows.start] as usize..offsets[rows.end] as usize;
        let values = &x.data()[entries.clone()];
        let own = &offsets[rows.start..=rows.end];
        SparseImage {
            first_row: rows.start,
            rows: rows.len(),
            entries: entries.len(),
            is_narrow: rounding.is_some() && x.cols() <= NARROW,
            values: rounding.map_or(ImageValues::Whole, |rounding| {
                values_of(values, own, rounding)
            }),
            first_entry: entries.start,
        }
    }

    /// Where things lie.
    pub fn sections(&self) -> SparseSections {
        let mut end = 0;
        let mut section = |words: usize| {
            let start = end;
            end = (start + words).next_multiple_of(ALIGNED_WORDS);
            start..start + words
        };
        let element = size_of::<T>() / 4;
        SparseSections {
            offsets: section(self.rows + 1),
            indices: section(match self.is_narrow {
                true => self.entries.div_ceil(2),
                false => self.entries,
            }),
            values: section(match self.values {
                ImageValues::Whole => self.entries * element,
                ImageValues::Single => self.entries,
                ImageValues::Bf16 => self.entries.div_ceil(2),
                ImageValues::OfRows => self.rows * element,
                ImageValues::Equal(_) => 0,
            }),
        }
    }

    /// Whether kernels of rows can read the image as it is.
    pub fn is_plain(&self) -> bool {
        !self.is_narrow && matches!(self.values, ImageValues::Whole)
    }

    fn fill_values(&self, x: &CsrMatrix<T>, words: Range<usize>, to: &mut [u32]) {
        let values = &x.data()[self.first_entry..self.first_entry + self.entries];
        match self.values {
            ImageValues::Whole => {
                to.copy_from_slice(&bytemuck::cast_slice::<T, u32>(values)[words]);
            }
            ImageValues::Single => {
                for (to, value) in to.iter_mut().zip(&values[words]) {
                    *to = (value.to_f64() as f32).to_bits();
                }
            }
            ImageValues::Bf16 => {
                let pairs = values[2 * words.start..].chunks(2);
                for (to, pair) in to.iter_mut().zip(pairs) {
                    *to = bf16_pair(pair[0], pair.get(1).copied());
                }
            }
            ImageValues::OfRows => self.fill_constants(x, words, to),
            ImageValues::Equal(_) => {}
        }
    }

    /// The first value of each row, zero where it has none.
    fn fill_constants(&self, x: &CsrMatrix<T>, words: Range<usize>, to: &mut [u32]) {
        let offsets = x.indptr();
        let offsets = offsets.raw_storage();
        let element = size_of::<T>() / 4;
        for (word, to) in words.zip(to) {
            let row = self.first_row + word / element;
            let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
            let value = match start < end {
                true => x.data()[start],
                false => T::from_f64(0.0),
            };
            *to = bytemuck::cast_slice::<T, u32>(&[value])[word % element];
        }
    }
}

impl<T: Element + Word> Image<T> for SparseImage<T> {
    fn words(&self) -> usize {
        let end = self.sections().values.end;
        end.next_multiple_of(ALIGNED_WORDS)
    }

    fn first_row(&self) -> usize {
        self.first_row
    }

    fn fill(&self, features: &Features<T>, range: Range<usize>, to: &mut [u32]) {
        let Storage::Sparse(x) = features.storage() else {
            unreachable!("an image of sparse rows");
        };
        let SparseSections {
            offsets,
            indices,
            values,
        } = self.sections();
        // What lies between sections.
        to.fill(0);
        if let Some((words, at)) = within(&offsets, &range) {
            let all = x.indptr();
            let from = &all.raw_storage()[self.first_row..][words.clone()];
            for (to, offset) in to[at..].iter_mut().zip(from) {
                *to = (*offset - self.first_entry as u64) as u32;
            }
        }
        if let Some((words, at)) = within(&indices, &range) {
            let all = &x.indices()[self.first_entry..self.first_entry + self.entries];
            let to = &mut to[at..at + words.len()];
            match self.is_narrow {
                true => narrow(&all[2 * words.start..], to),
                false => to.copy_from_slice(&all[words]),
            }
        }
        if let Some((words, at)) = within(&values, &range) {
            let to = &mut to[at..at + words.len()];
            self.fill_values(x, words, to);
        }
    }
}

/// Two columns in each word.
fn narrow(columns: &[u32], to: &mut [u32]) {
    let (pairs, rest) = columns.as_chunks::<2>();
    let whole = to.len().min(pairs.len());
    for (to, [first, second]) in to.iter_mut().zip(pairs) {
        *to = first | second << 16;
    }
    if let (Some(to), Some(last)) = (to.get_mut(whole), rest.first()) {
        *to = *last;
    }
}

/// The shortest form of values, of rows with these offsets.
fn values_of<T: Element + Word>(values: &[T], offsets: &[u64], rounding: Values) -> ImageValues<T> {
    let Some(first) = values.first().copied() else {
        return ImageValues::Equal(T::from_f64(0.0));
    };
    let are_equal = |values: &[T]| {
        values
            .windows(2)
            .all(|pair| pair[0].to_bits() == pair[1].to_bits())
    };
    let row =
        |ends: &[u64]| &values[(ends[0] - offsets[0]) as usize..(ends[1] - offsets[0]) as usize];
    if are_equal(values) {
        return ImageValues::Equal(first);
    }
    if offsets.windows(2).all(|ends| are_equal(row(ends))) {
        return ImageValues::OfRows;
    }
    if are_bf16(values, rounding) {
        ImageValues::Bf16
    } else if are_single(values, rounding) {
        ImageValues::Single
    } else {
        ImageValues::Whole
    }
}
