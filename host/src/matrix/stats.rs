//! Sizes and row lengths.

use serde::{Deserialize, Serialize};

use super::{CsrMatrix, Features, RowSteps, Storage};
use crate::parallel;

/// Bins of the histogram: empty rows, then one per power of two up to 2³².
const BINS: usize = 34;
/// Rows that one task looks at.
const ROWS_PER_TASK: usize = 1 << 14;

/// What a launch model needs to know about a matrix; no value is looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixStats {
    /// Samples, m.
    pub rows: usize,
    /// Features, n.
    pub cols: usize,
    /// Stored entries.
    pub nnz: u64,
    /// Whether the entries are stored dense (then nnz = m·n).
    pub dense: bool,
    /// Mean row length μ = nnz / m; 0 without rows.
    pub mean_row: f64,
    /// Entries of the shortest row; 0 without rows.
    pub min_row: u64,
    /// Entries of the longest row; 0 without rows.
    pub max_row: u64,
    /// Rows without an entry.
    pub empty_rows: usize,
    /// Row lengths by powers of two: bin 0 counts empty rows, bin k ≥ 1 rows with
    /// 2^(k−1) ≤ entries < 2^k; the last bin takes everything longer. Trailing zeros are cut off.
    pub row_length_histogram: Vec<u64>,
    /// What the lengths of neighbouring rows make of a warp's work; `None` where they are not known.
    pub row_steps: Option<RowSteps>,
}

impl MatrixStats {
    /// Statistics of `features`: for a sparse matrix one parallel pass over its offsets.
    ///
    /// ```
    /// use warpfuse::matrix::{csr_from_parts, Features, MatrixStats};
    /// let x = csr_from_parts((3, 4), vec![0, 0, 3, 4], vec![0, 1, 3, 2], vec![1.0_f32; 4])?;
    /// let stats = MatrixStats::of(&Features::Sparse(x));
    /// assert_eq!((stats.min_row, stats.max_row, stats.empty_rows), (0, 3, 1));
    /// assert_eq!(stats.row_length_histogram, [1, 1, 1]);
    /// # Ok::<(), warpfuse::matrix::CsrError>(())
    /// ```
    pub fn of<T>(features: &Features<T>) -> Self {
        match features.storage() {
            Storage::Sparse(x) => Self::of_csr(x),
            Storage::Dense(x) => Self::of_dense(x.nrows(), x.ncols()),
        }
    }

    /// Statistics of a sparse matrix.
    pub fn of_csr<T>(x: &CsrMatrix<T>) -> Self {
        Self::from_offsets(x.indptr().raw_storage(), x.cols())
    }

    /// Statistics from CSR row offsets (one more than there are rows) and the number of columns.
    pub fn from_offsets(offsets: &[u64], cols: usize) -> Self {
        let rows = offsets.len().saturating_sub(1);
        let of_task = |task: usize| {
            let first = task * ROWS_PER_TASK;
            RowLengths::of_offsets(&offsets[first..=rows.min(first + ROWS_PER_TASK)])
        };
        let lengths = parallel::map(rows.div_ceil(ROWS_PER_TASK), of_task);
        let lengths = lengths
            .into_iter()
            .fold(RowLengths::none(), RowLengths::merge);
        Self {
            row_steps: Some(RowSteps::of_offsets(offsets)),
            ..Self::new(cols, lengths, false)
        }
    }

    /// Statistics of a dense matrix of this shape.
    pub fn of_dense(rows: usize, cols: usize) -> Self {
        Self::new(cols, RowLengths::constant(rows as u64, cols as u64), true)
    }

    /// Statistics of an imagined sparse matrix of which only the sizes are known: rows as equal as
    /// `nnz` allows, so ⌊nnz/m⌋ or ⌈nnz/m⌉ entries each.
    pub fn uniform(rows: usize, cols: usize, nnz: u64) -> Self {
        let m = rows.max(1) as u64;
        let longer = nnz % m;
        let long = RowLengths::constant(longer, nnz / m + 1);
        let short = RowLengths::constant(rows as u64 - longer.min(rows as u64), nnz / m);
        Self::new(cols, long.merge(short), false)
    }

    /// Statistics of the rows of all `parts`, which have the same columns; [`row_steps`](Self::row_steps) are not known.
    ///
    /// ```
    /// use warpfuse::matrix::MatrixStats;
    /// let (a, b) = (MatrixStats::from_offsets(&[0, 2], 9), MatrixStats::from_offsets(&[0, 0, 5], 9));
    /// let whole = MatrixStats::joined(&[a, b]);
    /// assert_eq!((whole.rows, whole.nnz, whole.max_row, whole.empty_rows), (3, 7, 5, 1));
    /// ```
    ///
    /// # Panics
    /// Without a part.
    pub fn joined(parts: &[Self]) -> Self {
        let first = parts.first().expect("a part of the rows");
        let lengths = parts.iter().map(RowLengths::of_stats);
        let all = lengths.fold(RowLengths::none(), RowLengths::merge);
        Self::new(first.cols, all, first.dense)
    }

    /// Fraction of the m·n places that hold an entry; 0 for an empty shape.
    pub fn density(&self) -> f64 {
        let places = self.rows as f64 * self.cols as f64;
        if places > 0.0 {
            self.nnz as f64 / places
        } else {
            0.0
        }
    }

    fn new(cols: usize, lengths: RowLengths, dense: bool) -> Self {
        let used = BINS - lengths.bins.iter().rev().take_while(|&&b| b == 0).count();
        let mean_row = match lengths.rows {
            0 => 0.0,
            rows => lengths.nnz as f64 / rows as f64,
        };
        Self {
            rows: lengths.rows as usize,
            cols,
            nnz: lengths.nnz,
            dense,
            mean_row,
            min_row: if lengths.rows == 0 { 0 } else { lengths.min },
            max_row: lengths.max,
            empty_rows: lengths.bins[0] as usize,
            row_length_histogram: lengths.bins[..used].to_vec(),
            row_steps: None,
        }
    }
}

/// What a set of row lengths comes to; merging is associative and commutative.
struct RowLengths {
    rows: u64,
    nnz: u64,
    min: u64,
    max: u64,
    bins: [u64; BINS],
}

impl RowLengths {
    fn none() -> Self {
        Self {
            rows: 0,
            nnz: 0,
            min: u64::MAX,
            max: 0,
            bins: [0; BINS],
        }
    }

    fn of_stats(stats: &MatrixStats) -> Self {
        let mut all = Self::none();
        all.bins[..stats.row_length_histogram.len()].copy_from_slice(&stats.row_length_histogram);
        RowLengths {
            rows: stats.rows as u64,
            nnz: stats.nnz,
            min: if stats.rows == 0 {
                u64::MAX
            } else {
                stats.min_row
            },
            max: stats.max_row,
            ..all
        }
    }

    fn constant(rows: u64, length: u64) -> Self {
        let mut all = Self::none();
        if rows > 0 {
            all.rows = rows;
            all.nnz = rows.saturating_mul(length);
            (all.min, all.max) = (length, length);
            all.bins[bin(length)] = rows;
        }
        all
    }

    /// Of the rows between these offsets.
    fn of_offsets(offsets: &[u64]) -> Self {
        let mut all = Self::none();
        for ends in offsets.windows(2) {
            all.add(ends[1].saturating_sub(ends[0]));
        }
        all
    }

    fn add(&mut self, length: u64) {
        self.rows += 1;
        self.nnz += length;
        self.min = self.min.min(length);
        self.max = self.max.max(length);
        self.bins[bin(length)] += 1;
    }

    fn merge(mut self, other: Self) -> Self {
        self.rows += other.rows;
        self.nnz += other.nnz;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        for (mine, theirs) in self.bins.iter_mut().zip(other.bins) {
            *mine += theirs;
        }
        self
    }
}

fn bin(length: u64) -> usize {
    ((u64::BITS - length.leading_zeros()) as usize).min(BINS - 1)
}
