//! Spreads of columns that lie far from 0, where sums of squares have lost their digits.
//!
//! Σx² − (Σx)²/m has as many digits fewer than f64 as the square of a column's mean has more than its variance: of times in
//! seconds since 1970, taken within a minute, it has none left, and the column looks constant. Such columns are few. For them
//! the sums are over differences from the column's first element.
//!
//! Source: T. Chan, G. Golub, R. LeVeque, "Algorithms for computing the sample variance", The American Statistician 37, 1983.

use super::fit::Training;
use super::spec::ObjectiveSpec;
use super::{FitOptions, ResidentDataset, RowMoments};
use crate::matrix::{CsrMatrix, Dtype, Element, Features, Storage};
use crate::ops::Number;
use crate::parallel;

/// Share of Σx² below which Σ(x − μ)² is computed anew: else it has eight digits.
const FEW_DIGITS: f64 = 1e-8;
/// Share of a column's mean that a deviation has to exceed, in units of f64's last place: less is how elements were rounded.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// Share of a column's Σx² below which its centred square sum is taken for rounding noise, in scaling.
const NOISE: f64 = 1e-10;
/// Share of a column's Σx² below which a centred column counts as constant.
const CONSTANT: f64 = 1e-15;

/// Σ(x − μ)² of some columns, with their numbers in ascending order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Spreads(Vec<(usize, f64)>);

/// Σ of the differences from the first element, of their squares, and that element.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    first: Option<f64>,
    sum: f64,
    squares: f64,
    count: f64,
}

impl Sums {
    fn add(&mut self, value: f64, times: f64) {
        if times > 0.0 {
            let difference = value - *self.first.get_or_insert(value);
            self.sum += times * difference;
            self.squares += times * difference * difference;
            self.count += times;
        }
    }

    /// Σ(x − μ)²; 0 of a spread that is rounding.
    fn spread(&self) -> f64 {
        let rows = self.count.max(1.0);
        let centred = self.squares - self.sum * self.sum / rows;
        let mean = self.first.unwrap_or(0.0) + self.sum / rows;
        match centred > rows * (ROUNDING * mean).powi(2) {
            true => centred,
            false => 0.0,
        }
    }
}

impl Spreads {
    /// Where X is at hand and is computed with in f64. They are added up on the host, alike whatever the device.
    pub(super) fn at_hand<T: Number>(
        data: &ResidentDataset<T>,
        moments: &RowMoments,
        options: &FitOptions<'_>,
    ) -> Spreads {
        let is_wide = T::DTYPE == Dtype::F64 || data.matrix().device().is_cpu();
        let Some(features) = data.host_features().filter(|_| is_wide) else {
            return Spreads::default();
        };
        // Moments that are given are those of the rows with weight.
        let weights = options.sample_weight.filter(|_| options.moments.is_some());
        Spreads::of(features, moments, |row| {
            weights.is_none_or(|weights| weights[row] > 0.0)
        })
    }

    /// Of the columns of `features` that need it, over the rows that `takes` takes, whose sums are `moments`.
    pub(super) fn of<T: Element>(
        features: &Features<T>,
        moments: &RowMoments,
        takes: impl Fn(usize) -> bool,
    ) -> Spreads {
        let columns = &moments.columns;
        let far = |j: &usize| {
            let (sum, squares) = (columns.sum[*j], columns.sum_of_squares[*j]);
            let centred = squares - sum * sum / moments.rows.max(1) as f64;
            squares > 0.0 && centred <= FEW_DIGITS * squares
        };
        let far: Vec<usize> = (0..columns.sum.len()).filter(far).collect();
        if far.is_empty() {
            return Spreads::default();
        }
        let mut sums = vec![Sums::default(); far.len()];
        match features.storage() {
            Storage::Dense(x) => {
                for (at, j) in far.iter().enumerate() {
                    let elements = x.column(*j).into_iter().enumerate();
                    let taken = elements.filter(|(row, _)| takes(*row));
                    taken.for_each(|(_, x)| sums[at].add(x.to_f64(), 1.0));
                }
            }
            Storage::Sparse(x) => of_stored(x, &far, &mut sums, takes),
        }
        Spreads(far.into_iter().zip(sums.iter().map(Sums::spread)).collect())
    }

    /// Σ(x − μ)² of column j, where it was computed anew.
    pub(super) fn of_column(&self, j: usize) -> Option<f64> {
        let at = self.0.binary_search_by_key(&j, |(column, _)| *column);
        at.ok().map(|at| self.0[at].1)
    }
}

impl<T: Number> Training<'_, T> {
    /// Σ(x − μ)² of column j, unless it is constant.
    pub(super) fn spread(&self, j: usize) -> Option<f64> {
        if let Some(centred) = self.spreads.of_column(j) {
            return (centred > 0.0).then_some(centred);
        }
        let (rows, moments) = (self.moments.rows as f64, &self.moments.columns);
        let (sum, squares) = (moments.sum[j], moments.sum_of_squares[j]);
        let centred = squares - sum * sum / rows;
        // What sums of squares that lost their digits show of a deviation is mostly rounding.
        (centred > CONSTANT * squares).then(|| centred.max(NOISE * squares))
    }

    /// Mean of ‖x̃‖² over the rows, but for factors of penalties: of columns that are centred and divided as the controls have
    /// it.
    pub(super) fn mean_square(&self, spec: &ObjectiveSpec) -> f64 {
        let centred = self.controls.fit_intercept && spec.intercept_l2 == 0.0;
        let squares = &self.moments.columns.sum_of_squares;
        parallel::sum(squares.len(), |j| {
            let spread = || self.spread(j).unwrap_or(0.0);
            let square = if centred { spread() } else { squares[j] };
            match self.controls.standardize && spread() > 0.0 {
                true => square / spread(),
                false => square / self.moments.rows.max(1) as f64,
            }
        })
    }
}

/// Entries that are not stored are zeros.
fn of_stored<T: Element>(
    x: &CsrMatrix<T>,
    columns: &[usize],
    sums: &mut [Sums],
    takes: impl Fn(usize) -> bool,
) {
    let mut taken = 0.0;
    for (_, row) in x
        .outer_iterator()
        .enumerate()
        .filter(|(row, _)| takes(*row))
    {
        taken += 1.0;
        for (j, value) in row.iter() {
            if let Ok(at) = columns.binary_search(&j) {
                sums[at].add(value.to_f64(), 1.0);
            }
        }
    }
    for sums in sums {
        sums.add(0.0, taken - sums.count);
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};
    use sprs::CsMat;

    use super::*;

    fn spreads(x: Array2<f64>) -> Spreads {
        let features = Features::Dense(x);
        Spreads::of(&features, &RowMoments::of_all(&features), |_| true)
    }

    #[test]
    fn columns_far_from_0_keep_their_digits() {
        let second = 1.7e9;
        let found = spreads(array![
            [second, 1.0, 7.0],
            [second + 1.0, 2.0, 7.0],
            [second + 5.0, 3.0, 7.0]
        ]);
        let all = [0, 1, 2].map(|j| found.of_column(j));
        assert_eq!(all, [Some(14.0), None, Some(0.0)]); // (0 − 2)² + (1 − 2)² + (5 − 2)²
    }

    #[test]
    fn rounding_is_no_spread() {
        let next = f64::from_bits(0.1_f64.to_bits() + 1);
        let found = spreads(Array2::from_shape_fn((100, 1), |(i, _)| {
            if i % 3 == 0 { next } else { 0.1 }
        }));
        assert_eq!(found.of_column(0), Some(0.0));
    }

    #[test]
    fn rows_that_are_not_taken_and_zeros_that_are_not_stored_are_seen() {
        let dense = array![[3e8, 0.0], [3e8 + 2.0, 1.0], [9.0, 5.0], [3e8 + 4.0, 0.0]];
        let csr = CsMat::csr_from_dense(dense.view(), 0.0);
        let indices = csr.indices().iter().map(|j| *j as u32).collect();
        let offsets = csr
            .indptr()
            .raw_storage()
            .iter()
            .map(|at| *at as u64)
            .collect();
        let sparse = crate::matrix::csr_from_parts((4, 2), offsets, indices, csr.data().to_vec());
        let takes = [1.0, 1.0, 0.0, 1.0];
        for x in [
            Features::Dense(dense),
            Features::Sparse(sparse.expect("rows")),
        ] {
            let moments = RowMoments::of(&x, &takes);
            let found = Spreads::of(&x, &moments, |row| takes[row] > 0.0);
            assert_eq!((found.of_column(0), found.of_column(1)), (Some(8.0), None));
        }
    }
}
