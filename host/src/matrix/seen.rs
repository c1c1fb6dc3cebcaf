//! Columns that have entries, and X without the others.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{CsrArrays, Element, Features, RowOffsets, csr_from_parts};
use crate::parallel;

/// Columns of a word of marks.
const BITS: usize = u64::BITS as usize;
/// Entries that one task marks or numbers anew.
const ENTRIES: usize = 1 << 16;

/// Which columns of a sparse X have entries, and the number of each among these: two bits a column, so that
/// numbers are found in a cache where a list of them would not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenColumns {
    cols: usize,
    words: Vec<u64>,
    /// Columns with entries before each word, and all of them behind the last.
    before: Vec<u32>,
}

impl SeenColumns {
    /// Of a sparse X. Entries count that are stored, whatever their value.
    pub(crate) fn of<T: Sync>(x: &CsrArrays<'_, T>) -> SeenColumns {
        let cols = x.shape.1;
        let words: Vec<AtomicU64> = (0..cols.div_ceil(BITS))
            .map(|_| AtomicU64::new(0))
            .collect();
        let mark = |j: u32| {
            let (word, bit) = (&words[j as usize / BITS], 1 << (j as usize % BITS));
            // Most have been marked before, and a look does not take the line away from other threads.
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        };
        parallel::for_each_item(x.indices.chunks(ENTRIES), |_, indices| {
            indices.iter().copied().for_each(mark);
        });
        let words: Vec<u64> = words.into_iter().map(AtomicU64::into_inner).collect();
        let mut before = Vec::with_capacity(words.len() + 1);
        let mut count = 0;
        for word in &words {
            before.push(count);
            count += word.count_ones();
        }
        before.push(count);
        SeenColumns {
            cols,
            words,
            before,
        }
    }

    /// n.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// Columns with entries.
    pub(crate) fn count(&self) -> usize {
        self.before.last().map_or(0, |count| *count as usize)
    }

    /// The number among those with entries of a column that has some.
    fn number(&self, j: u32) -> u32 {
        let (word, bit) = (j as usize / BITS, j as usize % BITS);
        let below = self.words[word] & ((1 << bit) - 1);
        self.before[word] + below.count_ones()
    }

    /// Columns with entries, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        let each = self.words.iter().enumerate();
        each.flat_map(|(number, word)| {
            let left = std::iter::successors(Some(*word), |word| Some(word & word.wrapping_sub(1)));
            let left = left.take_while(|word| *word != 0);
            left.map(move |word| number * BITS + word.trailing_zeros() as usize)
        })
    }

    /// `x` over the columns with entries alone: the same entries in the same order.
    pub(crate) fn only<T: Element>(&self, x: &CsrArrays<'_, T>) -> Features<T> {
        let mut indices = vec![0; x.indices.len()];
        let parts = indices.chunks_mut(ENTRIES).zip(x.indices.chunks(ENTRIES));
        parallel::for_each_item(parts, |_, (to, from)| {
            let pairs = to.iter_mut().zip(from);
            pairs.for_each(|(to, j)| *to = self.number(*j));
        });
        let offsets = match x.offsets {
            RowOffsets::Narrow(offsets) => parallel::convert(offsets, |offset| u64::from(*offset)),
            RowOffsets::Wide(offsets) => offsets.to_vec(),
        };
        let values = parallel::convert(x.values, |value| *value);
        let shape = (x.shape.0, self.count());
        let kept = csr_from_parts(shape, offsets, indices, values);
        Features::Sparse(kept.expect("numbers ascend as the columns do"))
    }

    /// The elements of the columns with entries, of one for each column.
    pub(crate) fn gather<V: Copy>(&self, all: &[V]) -> Vec<V> {
        let mut own = Vec::with_capacity(self.count());
        own.extend(self.iter().map(|j| all[j]));
        own
    }

    /// The reverse of [`SeenColumns::gather`]: 0 for the columns without entries.
    pub(crate) fn scatter(&self, own: &[f64]) -> Vec<f64> {
        let mut all = vec![0.0; self.cols];
        self.iter().zip(own).for_each(|(j, value)| all[j] = *value);
        all
    }

    /// Whether `all`, one element for each column, is 0 in every column without entries.
    pub(crate) fn has_all_of(&self, all: &[f64]) -> bool {
        let is_zero = |numbers: std::ops::Range<usize>| {
            let mut zeros = numbers.map(|j| self.is_seen(j) || all[j] == 0.0);
            zeros.all(|is_zero| is_zero)
        };
        let blocks = self.cols.div_ceil(ENTRIES);
        let range = |block: usize| block * ENTRIES..self.cols.min((block + 1) * ENTRIES);
        parallel::map(blocks, |block| is_zero(range(block)))
            .into_iter()
            .all(|is_zero| is_zero)
    }

    fn is_seen(&self, j: usize) -> bool {
        self.words[j / BITS] >> (j % BITS) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Storage;

    /// Columns 1, 63, 64 and 199 of 200 have entries.
    fn features() -> Features<f32> {
        let (offsets, indices) = (vec![0, 2, 2, 5], vec![1, 64, 63, 64, 199]);
        let values = vec![1.0, 2.0, 3.0, 0.0, 5.0];
        Features::Sparse(csr_from_parts((3, 200), offsets, indices, values).expect("rows"))
    }

    #[test]
    fn columns_with_entries_keep_their_order_and_entries() {
        let x = features();
        let x = x.csr_arrays().expect("sparse");
        let seen = SeenColumns::of(&x);
        assert_eq!((seen.cols(), seen.count()), (200, 4));
        assert_eq!(seen.iter().collect::<Vec<_>>(), [1, 63, 64, 199]);
        let own = seen.only(&x);
        let Storage::Sparse(own) = own.storage() else {
            unreachable!("it was sparse");
        };
        assert_eq!((own.shape(), own.indices()), ((3, 4), &[0, 2, 1, 2, 3][..]));
        assert_eq!(own.data(), x.values);
    }

    #[test]
    fn what_is_gathered_is_scattered_back() {
        let x = features();
        let seen = SeenColumns::of(&x.csr_arrays().expect("sparse"));
        let all: Vec<f64> = (0..200).map(f64::from).collect();
        let own = seen.gather(&all);
        assert_eq!(own, [1.0, 63.0, 64.0, 199.0]);
        let back = seen.scatter(&own);
        assert_eq!(seen.gather(&back), own);
        assert_eq!(back.iter().sum::<f64>(), 1.0 + 63.0 + 64.0 + 199.0);
        assert!(seen.has_all_of(&back) && !seen.has_all_of(&all));
        let mut other = back;
        other[198] = f64::NAN;
        assert!(!seen.has_all_of(&other));
    }

    #[test]
    fn none_and_all() {
        let none = csr_from_parts::<f64>((1, 65), vec![0, 0], vec![], vec![]);
        let none = Features::Sparse(none.expect("a row"));
        let seen = SeenColumns::of(&none.csr_arrays().expect("sparse"));
        assert_eq!((seen.count(), seen.iter().count()), (0, 0));
        let all = csr_from_parts((1, 64), vec![0, 64], (0..64).collect(), vec![1.0; 64]);
        let all = Features::Sparse(all.expect("a row"));
        let seen = SeenColumns::of(&all.csr_arrays().expect("sparse"));
        assert_eq!(seen.only(&all.csr_arrays().expect("sparse")), all);
    }
}
