//! Blocks of rows in as few bytes as cross a link: columns of 16 bits where that is enough, values in as few bits as hold
//! them, or none where those of a row are equal.
//!
//! A block is one image of 32-bit words, made range by range wherever it is wanted (in the page-locked blocks that cross
//! the link), so that no second copy of X is needed on the host. On a device kernels of
//! [`gpu_kernels::fused::unpack`] make arrays of it again; nothing is lost unless [`Values`] allows it.
//!
//! | file | what |
//! |---|---|
//! | `sparse` | offsets, columns and values of sparse rows |
//! | `dense` | dense rows with the gaps between them |
//! | `cut` | where X is cut into blocks |

mod cut;
mod dense;
mod sparse;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use cut::cut_rows;
pub use dense::DenseImage;
pub use sparse::{ImageValues, SparseImage};

use crate::matrix::{Element, Features, Values};

/// Words to a multiple of which sections of an image are aligned: 256 bytes.
const ALIGNED_WORDS: usize = 64;

/// The image of a block of rows.
pub trait Image<T>: Send + Sync {
    /// Words of the image.
    fn words(&self) -> usize;

    /// The first row that it is of.
    fn first_row(&self) -> usize;

    /// Writes words `range` of it, from the features that it is an image of.
    fn fill(&self, features: &Features<T>, range: Range<usize>, to: &mut [u32]);
}

/// Whether values may be stored in 16 bits: all of them are bfloat16, or are to be rounded.
fn are_bf16<'a, T: Element>(values: impl IntoIterator<Item = &'a T>, rounding: Values) -> bool {
    use super::hot::{of_bf16, same, to_bf16};
    let is_same = |value: &T| {
        let value = value.to_f64();
        same(of_bf16(to_bf16(value)), value)
    };
    rounding == Values::Bf16 || values.into_iter().all(is_same)
}

/// Whether those of an f64 matrix may be stored in 32 bits.
fn are_single<T: Element>(values: &[T], rounding: Values) -> bool {
    use super::hot::same;
    let is_same = |value: &T| {
        let value = value.to_f64();
        same(f64::from(value as f32), value)
    };
    size_of::<T>() == 8 && (rounding == Values::F32 || values.iter().all(is_same))
}

/// Two bfloat16 in a word, the first in the lower half.
fn bf16_pair<T: Element>(first: T, second: Option<T>) -> u32 {
    let bits = |value: T| u32::from(super::hot::to_bf16(value.to_f64()));
    bits(first) | second.map_or(0, bits) << 16
}

/// The part of `range` that lies in a section, counted from its beginning, and where it begins in `range`.
fn within(section: &Range<usize>, range: &Range<usize>) -> Option<(Range<usize>, usize)> {
    let (start, end) = (section.start.max(range.start), section.end.min(range.end));
    (start < end).then(|| {
        (
            start - section.start..end - section.start,
            start - range.start,
        )
    })
}
