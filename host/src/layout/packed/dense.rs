//! The image of a block of dense rows.

use std::ops::Range;

use ndarray::{ArrayView2, s};

use super::{ALIGNED_WORDS, Image, are_bf16, bf16_pair};
use crate::matrix::{Element, Features, Storage, Values, copy_rows};

/// The image of rows `first_row .. first_row + rows`, `ld` elements apart; gaps are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenseImage {
    /// Its first row.
    pub first_row: usize,
    /// Its number of rows.
    pub rows: usize,
    /// n.
    pub cols: usize,
    /// Elements from one row to the next.
    pub ld: usize,
    /// Whether elements are bfloat16, two in a word.
    pub is_bf16: bool,
    /// Words of an element that is stored as it is.
    words_each: usize,
}

impl DenseImage {
    /// The image of some of the rows of `x`, `ld` elements apart, in the fewest bytes that `rounding` allows, or as they
    /// are.
    pub fn of<T: Element>(
        x: ArrayView2<'_, T>,
        ld: usize,
        rows: Range<usize>,
        rounding: Option<Values>,
    ) -> Self {
        let own = x.slice(s![rows.clone(), ..]);
        DenseImage {
            first_row: rows.start,
            rows: rows.len(),
            cols: x.ncols(),
            ld,
            is_bf16: rounding.is_some_and(|rounding| are_bf16(own, rounding)),
            words_each: size_of::<T>() / 4,
        }
    }

    /// Elements, gaps included.
    pub fn elements(&self) -> usize {
        self.rows * self.ld
    }

    /// The element at a place of the image; zero in a gap and behind the end.
    fn element<T: Element>(&self, x: ArrayView2<'_, T>, at: usize) -> T {
        let (row, col) = (at / self.ld, at % self.ld);
        match row < self.rows && col < self.cols {
            true => x[(self.first_row + row, col)],
            false => T::default(),
        }
    }

    /// Writes words of elements that lie by columns.
    fn gather<T: Element>(&self, x: ArrayView2<'_, T>, words: Range<usize>, to: &mut [u32]) {
        let each = self.words_each;
        let own = x.slice(s![self.first_row..self.first_row + self.rows, ..]);
        let first = (words.start / each).min(self.elements());
        let end = words.end.div_ceil(each).min(self.elements());
        let mut elements = vec![T::default(); end - first];
        copy_rows(own, self.ld, first..end, &mut elements);
        let found: &[u32] = bytemuck::cast_slice(&elements);
        let known = &found[(words.start - first * each).min(found.len())..];
        let known = &known[..known.len().min(to.len())];
        to[..known.len()].copy_from_slice(known);
        to[known.len()..].fill(0);
    }

    /// Writes words of elements as they are, from word `start` on.
    fn copy(&self, values: &[u32], start: usize, to: &mut [u32]) {
        let (cols, ld) = (self.cols * self.words_each, self.ld * self.words_each);
        let (mut at, mut rest) = (start, to);
        while !rest.is_empty() {
            let (row, col) = (at / ld, at % ld);
            let here = rest.len().min(ld - col);
            let (part, tail) = rest.split_at_mut(here);
            let known = match row < self.rows {
                true => cols.saturating_sub(col).min(here),
                false => 0,
            };
            let (part, gap) = part.split_at_mut(known);
            if known > 0 {
                let from = (self.first_row + row) * cols + col;
                part.copy_from_slice(&values[from..from + known]);
            }
            gap.fill(0);
            (at, rest) = (at + here, tail);
        }
    }
}

impl<T: Element> Image<T> for DenseImage {
    fn words(&self) -> usize {
        let words = match self.is_bf16 {
            true => self.elements().div_ceil(2),
            false => self.elements() * self.words_each,
        };
        words.next_multiple_of(ALIGNED_WORDS)
    }

    fn first_row(&self) -> usize {
        self.first_row
    }

    fn fill(&self, features: &Features<T>, range: Range<usize>, to: &mut [u32]) {
        let Storage::Dense(x) = features.storage() else {
            unreachable!("an image of dense rows");
        };
        if self.ld == 0 {
            return to.fill(0);
        }
        if self.is_bf16 {
            for (word, to) in range.zip(to) {
                let pair = [2 * word, 2 * word + 1].map(|at| self.element(x, at));
                *to = bf16_pair(pair[0], Some(pair[1]));
            }
            return;
        }
        match x.as_slice() {
            Some(values) => self.copy(bytemuck::cast_slice(values), range.start, to),
            None => self.gather(x, range, to),
        }
    }
}
