//! What unequal row lengths make of a warp's work.

use crate::parallel;
use serde::{Deserialize, Serialize};

/// Lanes of a warp.
const WARP: usize = 32;
/// Rows that one task looks at: whole warps, whatever the size of a vector.
const CHUNK: usize = 1 << 14;
/// Vectors of 1, 2, 4, 8, 16 and 32 lanes.
const SIZES: usize = 6;

/// Steps that warps take over the rows of a sparse matrix, for vectors of 1, 2, 4, … 32 lanes.
///
/// A vector of VS lanes has a row, and in a step each of its lanes takes an entry; a warp's 32 / VS neighbouring rows go
/// on together until the longest of them has ended: `Σ over warps of max(⌈entries / VS⌉)`. A warp without entries
/// takes no step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct RowSteps([u64; SIZES]);

impl RowSteps {
    /// Of rows between these offsets, one more than there are rows.
    ///
    /// ```
    /// use warpfuse::matrix::RowSteps;
    /// // Rows of 1 and of 40 entries: one warp for both, or one for each.
    /// let steps = RowSteps::of_offsets(&[0_u64, 1, 41]);
    /// assert_eq!((steps.of(8), steps.of(16), steps.of(32)), (5, 3, 1 + 2));
    /// ```
    pub fn of_offsets<O: Copy + Into<u64> + Sync>(offsets: &[O]) -> Self {
        let rows = offsets.len().saturating_sub(1);
        let sums = parallel::map(rows.div_ceil(CHUNK), |chunk| {
            let from = chunk * CHUNK;
            of_rows(&offsets[from..=(from + CHUNK).min(rows)])
        });
        let add = |mut a: [u64; SIZES], b: [u64; SIZES]| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            a
        };
        Self(sums.into_iter().fold([0; SIZES], add))
    }

    /// Of `rows` rows with as many entries as this each.
    pub fn of_equal_rows(rows: u64, entries: u64) -> Self {
        let steps = |size: usize| {
            let warps = rows.div_ceil((WARP >> size) as u64);
            warps.saturating_mul(entries.div_ceil(1 << size))
        };
        Self(std::array::from_fn(steps))
    }

    /// With vectors of `lanes` lanes: a power of two, 32 at most; what lies between and beyond is rounded down.
    pub fn of(&self, lanes: u32) -> u64 {
        let size = lanes.max(1).ilog2() as usize;
        self.0[size.min(SIZES - 1)]
    }
}

fn of_rows<O: Copy + Into<u64>>(offsets: &[O]) -> [u64; SIZES] {
    let lengths: Vec<u64> = offsets
        .windows(2)
        .map(|ends| ends[1].into().saturating_sub(ends[0].into()))
        .collect();
    let steps = |size: usize| {
        let warps = lengths.chunks(WARP >> size);
        let longest = warps.filter_map(|lengths| lengths.iter().max());
        longest.map(|length| length.div_ceil(1 << size)).sum()
    };
    std::array::from_fn(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_take_as_many_steps_as_counted() {
        for (rows, entries) in [(0, 3), (1, 0), (31, 7), (32, 32), (20_001, 33)] {
            let offsets: Vec<u64> = (0..=rows).map(|row| row * entries).collect();
            let counted = RowSteps::of_offsets(&offsets);
            assert_eq!(counted, RowSteps::of_equal_rows(rows, entries));
        }
    }

    #[test]
    fn a_long_row_holds_up_the_rows_of_its_warp_alone() {
        let mut lengths = vec![4_u64; 50_000];
        lengths[40_000] = 100;
        let ends = lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        let offsets: Vec<u64> = std::iter::once(0).chain(ends).collect();
        let steps = RowSteps::of_offsets(&offsets);
        let more = [100 - 4, 50 - 2, 25 - 1, 13 - 1, 7 - 1, 4 - 1];
        for (size, more) in more.into_iter().enumerate() {
            let equal = RowSteps::of_equal_rows(50_000, 4).0[size];
            assert_eq!(steps.0[size], equal + more, "{} lanes", 1 << size);
        }
    }

    #[test]
    fn no_rows_take_no_steps() {
        assert_eq!(RowSteps::of_offsets::<u64>(&[]), RowSteps::default());
        assert_eq!(RowSteps::of_offsets(&[0_u64]), RowSteps::default());
    }
}
