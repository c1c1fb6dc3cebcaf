//! X̃ written from X: some rows, some of their columns, and products that touch stored entries only.

use std::borrow::Cow;
use std::ops::Range;

use ndarray::{ArrayView2, s};
use pulp::{Arch, Simd, WithSimd};

use crate::learning::Columns;
use crate::matrix::{Element, Features, Storage};

/// X with what is done to its columns.
pub(super) trait Rows: Sync {
    /// Writes some rows of X̃, row by row.
    fn write(&self, rows: Range<usize>, out: &mut [f64]);

    /// Writes these columns of some rows of X̃, row by row. `places` says for each column of X which of them it is.
    fn write_some(&self, rows: Range<usize>, columns: &[usize], places: &[u32], out: &mut [f64]);

    /// The sparse matrix, where products with it are shorter than with X̃.
    fn sparse_products(&self) -> Option<&dyn SparseProducts>;

    /// Its entries.
    fn entries(&self) -> Option<&dyn Entries>;
}

/// Products that touch stored entries only.
pub(super) trait SparseProducts: Sync {
    /// Coefficients of X whose products, with the constants added, are those of X̃ with Θ: for [`SparseProducts::predictors`]
    /// of any rows.
    fn enter<'t>(&self, theta: &'t [f64], k: usize) -> Entered<'t>;

    fn predictors(&self, entered: &Entered<'_>, rows: Range<usize>, out: &mut [f64]);
    /// `slopes` are those of the rows.
    fn transposed(&self, slopes: &[f64], k: usize, rows: Range<usize>, out: &mut [f64]);

    /// Stored entries of a row, in the mean.
    fn mean_entries(&self) -> f64;

    /// Adds f·x of some rows to the second element of each pair, f = d·(x·p + `constant`), p the first elements; Σ f.
    fn curved(&self, to: (&mut [[f64; 2]], f64), rows: (&[u32], &[f64])) -> f64;

    /// Makes of Σ f·x of all rows, with Σ f = `total`, that of `width` columns of X̃.
    fn leave(&self, sums: &mut Vec<f64>, total: f64, width: usize);

    /// Σ d·x and Σ d·x² of every column of X over some rows, one list after the other, and Σ d.
    fn weighted_squares(&self, rows: (&[u32], &[f64])) -> Vec<f64>;

    /// Σ d·x̃² of `width` columns of X̃, of what [`SparseProducts::weighted_squares`] of all rows add up to.
    fn centred_squares(&self, sums: Vec<f64>, width: usize) -> Vec<f64>;
}

/// Θ in the units of X.
pub(super) struct Entered<'t> {
    /// n × k; Θ's own where columns are not scaled.
    pub(super) coef: Cow<'t, [f64]>,
    /// One for each of k.
    pub(super) constants: Vec<f64>,
}

/// The entries of a sparse X, one by one.
pub(super) trait Entries: Sync {
    /// Calls `each` with the column and the scaled value of every entry of a row; nothing is subtracted.
    fn each(&self, row: usize, each: &mut dyn FnMut(usize, f64));
    /// What is subtracted from column j of the scaled X.
    fn centre(&self, j: usize) -> f64;
}

/// Says for a column of X that it is none of those requested.
pub(super) const ABSENT: u32 = u32::MAX;

/// X and what is done to its columns.
pub(super) struct Streamed<'a, T> {
    pub(super) features: &'a Features<T>,
    pub(super) columns: &'a Columns<'a>,
}

/// Share of stored entries below which products touch those alone.
const VERY_SPARSE: f64 = 0.05;

impl<T: Element> Streamed<'_, T> {
    pub(super) fn is_very_sparse(&self) -> bool {
        match self.features.storage() {
            Storage::Sparse(x) => {
                (x.nnz() as f64) < VERY_SPARSE * x.rows() as f64 * x.cols() as f64
            }
            Storage::Dense(_) => false,
        }
    }

    pub(super) fn mean(&self, j: usize) -> f64 {
        self.columns.means.as_ref().map_or(0.0, |means| means.at(j))
    }

    pub(super) fn scale(&self, j: usize) -> f64 {
        self.columns.scales.as_ref().map_or(1.0, |scales| scales[j])
    }

    /// X̃ of a zero entry of column j; 1 for the column of ones.
    fn of_zero(&self, j: usize) -> f64 {
        if j == self.features.cols() {
            1.0
        } else {
            -self.mean(j) * self.scale(j)
        }
    }
}

impl<T: Element> Streamed<'_, T> {
    /// Columns that follow one another, and ones in what rows of `width` have besides.
    fn write_dense(
        &self,
        x: ArrayView2<'_, T>,
        (columns, units): (Range<usize>, &Units),
        rows: Range<usize>,
        (width, out): (usize, &mut [f64]),
    ) {
        if columns.len() == x.ncols()
            && let Some(all) = x.slice(s![rows.clone(), ..]).to_slice()
        {
            let x = all;
            return Arch::new().dispatch(Centring {
                x,
                units,
                out,
                width,
            });
        }
        for (i, out) in rows.zip(out.chunks_exact_mut(width.max(1))) {
            let row = x.slice(s![i, columns.clone()]);
            match row.to_slice() {
                Some(x) => Arch::new().dispatch(Centring {
                    x,
                    units,
                    out,
                    width,
                }),
                None => {
                    let (own, ones) = out.split_at_mut(columns.len());
                    let places = own.iter_mut().zip(row).enumerate();
                    places.for_each(|(place, (out, x))| *out = units.of_entry(*x, place));
                    ones.fill(1.0);
                }
            }
        }
    }
}

/// What is subtracted from the columns, and what they are multiplied by then; ones where absent.
struct Units {
    means: Vec<f64>,
    scales: Option<Vec<f64>>,
}

impl Units {
    /// Those of `columns` of X.
    fn of<T>(x: &Streamed<'_, T>, columns: impl Iterator<Item = usize> + Clone) -> Units
    where
        T: Element,
    {
        let scaled = x.columns.scales.is_some();
        Units {
            means: columns.clone().map(|j| x.mean(j)).collect(),
            scales: scaled.then(|| columns.map(|j| x.scale(j)).collect()),
        }
    }

    /// Of an entry in the column of this place.
    fn of_entry<T: Element>(&self, x: T, place: usize) -> f64 {
        let scale = self.scales.as_ref().map_or(1.0, |scales| scales[place]);
        (x.to_f64() - self.means[place]) * scale
    }
}

/// `(x − mean)·scale` of rows of which every element is wanted, for the vectors of the processor at hand.
struct Centring<'a, T> {
    /// Row by row.
    x: &'a [T],
    units: &'a Units,
    /// Rows of `width`, of which ones fill what the units leave.
    out: &'a mut [f64],
    width: usize,
}

impl<T: Element> WithSimd for Centring<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let count = self.units.means.len();
        let rows = self.out.chunks_exact_mut(self.width.max(1));
        for (i, out) in rows.enumerate() {
            let (out, ones) = out.split_at_mut(count);
            let row = &self.x[i * count..(i + 1) * count];
            centred(row, self.units, out);
            ones.fill(1.0);
        }
    }
}

/// `(x − mean)·scale` of a row.
#[inline(always)]
fn centred<T: Element>(row: &[T], units: &Units, out: &mut [f64]) {
    let pairs = out.iter_mut().zip(row).zip(&units.means);
    match &units.scales {
        None => pairs.for_each(|((out, x), mean)| *out = x.to_f64() - mean),
        Some(scales) => pairs
            .zip(scales)
            .for_each(|(((out, x), mean), scale)| *out = (x.to_f64() - mean) * scale),
    }
}

/// The first of columns that follow one another.
fn run_of(columns: &[usize]) -> Option<usize> {
    let follow = columns.windows(2).all(|pair| pair[1] == pair[0] + 1);
    columns.first().copied().filter(|_| follow)
}

impl<T: Element> Rows for Streamed<'_, T> {
    fn write(&self, rows: Range<usize>, out: &mut [f64]) {
        let n = self.features.cols();
        let width = n + usize::from(self.columns.intercept);
        let units = Units::of(self, 0..n);
        match self.features.storage() {
            Storage::Dense(x) => self.write_dense(x, (0..n, &units), rows, (width, out)),
            Storage::Sparse(x) => {
                let zeros: Vec<f64> = (0..width).map(|j| self.of_zero(j)).collect();
                for (i, out) in rows.zip(out.chunks_exact_mut(width.max(1))) {
                    out.copy_from_slice(&zeros);
                    for (j, x) in x.outer_view(i).expect("a row of X").iter() {
                        out[j] = units.of_entry(*x, j);
                    }
                }
            }
        }
    }

    fn write_some(&self, rows: Range<usize>, columns: &[usize], places: &[u32], out: &mut [f64]) {
        // The column of ones is none of X's.
        let of_x = columns.partition_point(|j| *j < self.features.cols());
        let units = Units::of(self, columns[..of_x].iter().copied());
        let width = columns.len();
        match self.features.storage() {
            Storage::Dense(x) => {
                if let Some(first) = run_of(&columns[..of_x]) {
                    let run = (first..first + of_x, &units);
                    return self.write_dense(x, run, rows, (width, out));
                }
                for (i, out) in rows.zip(out.chunks_exact_mut(width.max(1))) {
                    let (own, row) = (out.split_at_mut(of_x), x.row(i));
                    for (place, (out, j)) in own.0.iter_mut().zip(columns).enumerate() {
                        *out = units.of_entry(row[*j], place);
                    }
                    own.1.fill(1.0);
                }
            }
            Storage::Sparse(x) => {
                let zeros: Vec<f64> = columns.iter().map(|j| self.of_zero(*j)).collect();
                for (i, out) in rows.zip(out.chunks_exact_mut(width.max(1))) {
                    out.copy_from_slice(&zeros);
                    for (j, x) in x.outer_view(i).expect("a row of X").iter() {
                        if places[j] != ABSENT {
                            let place = places[j] as usize;
                            out[place] = units.of_entry(*x, place);
                        }
                    }
                }
            }
        }
    }

    fn sparse_products(&self) -> Option<&dyn SparseProducts> {
        self.features
            .is_sparse()
            .then_some(self as &dyn SparseProducts)
    }

    fn entries(&self) -> Option<&dyn Entries> {
        self.features.is_sparse().then_some(self as &dyn Entries)
    }
}

impl<T: Element> Entries for Streamed<'_, T> {
    fn each(&self, row: usize, each: &mut dyn FnMut(usize, f64)) {
        let x = self.sparse();
        for (j, x) in x.outer_view(row).expect("a row of X").iter() {
            each(j, x.to_f64() * self.scale(j));
        }
    }

    fn centre(&self, j: usize) -> f64 {
        self.mean(j) * self.scale(j)
    }
}
