//! Rows that stand for all where there are very many: a curve of 65,536 rows is that of all within a pixel, and costs a fit
//! of billions of entries nothing.

use std::borrow::Cow;

/// Rows that are looked at, where there are more than twice as many.
const ROWS: usize = 1 << 16;
/// 2⁶⁴ over the golden ratio: multiples of it, modulo 2⁶⁴, lie evenly and have no period that data could have too (Weyl's
/// sequence).
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The rows that are looked at.
pub(crate) enum RowSample {
    /// All.
    All,
    /// These rows, and the number of all.
    Of(Vec<usize>, usize),
}

impl RowSample {
    /// Of this number of rows: the same rows every time.
    pub(crate) fn of(rows: usize) -> RowSample {
        RowSample::of_about(ROWS, rows)
    }

    /// `wanted` rows, one from each stretch of equal length, where there are more than twice as many.
    pub(crate) fn of_about(wanted: usize, rows: usize) -> RowSample {
        if rows <= 2 * wanted {
            return RowSample::All;
        }
        let stride = rows as f64 / wanted as f64;
        let within = |number: usize| {
            (number as u64).wrapping_mul(STEP) as f64 / 2.0_f64.powi(u64::BITS as i32)
        };
        let row = |number: usize| ((number as f64 + within(number)) * stride) as usize;
        RowSample::Of(
            (0..wanted)
                .map(|number| row(number).min(rows - 1))
                .collect(),
            rows,
        )
    }

    /// The values of the rows that are looked at, `width` for each row.
    pub(crate) fn pick<'v, V: Copy>(&self, values: &'v [V], width: usize) -> Cow<'v, [V]> {
        match self {
            RowSample::All => Cow::Borrowed(values),
            RowSample::Of(rows, _) => {
                let row = |row: &usize| values[row * width..][..width].iter().copied();
                rows.iter().flat_map(row).collect()
            }
        }
    }

    /// All rows, where not all are looked at.
    pub(crate) fn all_rows(&self) -> Option<usize> {
        match self {
            RowSample::All => None,
            RowSample::Of(_, all) => Some(*all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_are_all_looked_at() {
        let sample = RowSample::of_about(4, 8);
        assert_eq!(sample.all_rows(), None);
        assert_eq!(*sample.pick(&[1, 2, 3], 1), [1, 2, 3]);
    }

    /// Whatever the period of the data, a class of rows has its share.
    #[test]
    fn many_rows_are_sampled_evenly() {
        let rows = 100_003;
        let sample = RowSample::of_about(5000, rows);
        assert_eq!(sample.all_rows(), Some(rows));
        let numbers: Vec<usize> = (0..rows).collect();
        let picked = sample.pick(&numbers, 1);
        assert!(picked.len().abs_diff(5000) <= 5, "{}", picked.len());
        for period in [2, 3, 7, 10, 64, 97, 1000] {
            let share = picked.iter().filter(|row| **row % period == 0).count();
            let expected = 5000.0 / period as f64;
            let error = (share as f64 - expected).abs();
            assert!(
                error <= 4.0 * expected.sqrt() + 3.0,
                "{period}: {share} {expected}"
            );
        }
        let pairs: Vec<usize> = (0..2 * rows).collect();
        let both = sample.pick(&pairs, 2);
        assert!(
            both.chunks(2)
                .zip(&*picked)
                .all(|(pair, row)| pair == [2 * row, 2 * row + 1])
        );
    }
}
