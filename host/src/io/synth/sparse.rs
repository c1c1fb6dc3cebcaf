//! Sparse synthetic data.

use super::random::{Purpose, Stream, Zipf};
use super::{ROWS_PER_STREAM, SynthError, Synthetic};
use super::{check_memory, check_parameter, check_shape, with_targets};
use crate::matrix::{Element, Features, RowBlock, csr_from_blocks};
use crate::parallel;

/// Draws of the missing columns of a row before the rest is filled from the left.
const MAX_DRAWS: usize = 32;

/// How many entries the rows have; never more than there are columns.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RowLengths {
    /// The same in every row.
    Constant(u32),
    /// Log-normal, rounded: most rows short, some long, now and then an empty one if the mean is
    /// small.
    LogNormal {
        /// Mean length.
        mean: f64,
        /// Standard deviation of the logarithm; 0 makes all rows equal.
        sigma: f64,
    },
    /// All rows equal but for a few giants, which no block of threads can take at one go.
    WithGiants {
        /// Entries of an ordinary row.
        typical: u32,
        /// Entries of a giant.
        giant: u32,
        /// Every so-manyth row is a giant.
        every: u32,
    },
}

/// Which columns the entries of a row stand in.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ColumnDistribution {
    /// All equally often.
    Uniform,
    /// Zipf's law: column j (from 0) with a weight of (j + 1)^−exponent, as words in a text.
    Zipf {
        /// The exponent, above 0; real data have 1 to 1.5.
        exponent: f64,
    },
}

/// What the entries are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SparseValues {
    /// All 1, as indicator features.
    Ones,
    /// Standard normal.
    Normal,
    /// Positive, each row with a sum of squares of 1, as normalised term frequencies.
    UnitRows,
}

/// Sparse data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SparseSpec {
    /// Samples, m.
    pub rows: usize,
    /// Features, n.
    pub cols: usize,
    /// Entries per row.
    pub row_lengths: RowLengths,
    /// Columns of the entries.
    pub columns: ColumnDistribution,
    /// Values of the entries.
    pub values: SparseValues,
    /// Standard deviation of the noise in the targets.
    pub noise: f64,
    /// The seed.
    pub seed: u64,
}

impl SparseSpec {
    /// Makes the data.
    ///
    /// # Errors
    ///
    /// [`SynthError`] for an empty shape, a parameter out of its range, or more data than memory.
    ///
    /// ```
    /// use warpfuse::io::synth::{ColumnDistribution, RowLengths, SparseSpec, SparseValues};
    /// let spec = SparseSpec {
    ///     rows: 1000,
    ///     cols: 5000,
    ///     row_lengths: RowLengths::Constant(20),
    ///     columns: ColumnDistribution::Zipf { exponent: 1.1 },
    ///     values: SparseValues::Ones,
    ///     noise: 0.1,
    ///     seed: 7,
    /// };
    /// let made = spec.generate::<f32>()?;
    /// assert_eq!(made.dataset.features.nnz(), 20_000);
    /// # Ok::<(), warpfuse::io::synth::SynthError>(())
    /// ```
    pub fn generate<T: Element>(&self) -> Result<Synthetic<T>, SynthError> {
        check_shape(self.rows, self.cols)?;
        self.check_parameters()?;
        let per_row = 8.0 + (self.mean_length() + 1.0) * (4 + size_of::<T>()) as f64;
        check_memory(2.0 * self.rows as f64 * per_row + 8.0 * self.cols as f64)?;

        let columns = Columns::new(self);
        let count = self.rows.div_ceil(ROWS_PER_STREAM);
        let blocks = parallel::map(count, |block| self.block(block, &columns));
        let x = csr_from_blocks(self.cols, blocks).expect("columns are drawn sorted and distinct");
        Ok(with_targets(Features::Sparse(x), self.seed, self.noise))
    }

    /// Mean number of entries per row, as requested.
    pub fn mean_length(&self) -> f64 {
        let mean = match self.row_lengths {
            RowLengths::Constant(length) => f64::from(length),
            RowLengths::LogNormal { mean, .. } => mean,
            RowLengths::WithGiants {
                typical,
                giant,
                every,
            } => {
                let (typical, giant) = (f64::from(typical), f64::from(giant));
                typical + (giant - typical) / f64::from(every.max(1))
            }
        };
        mean.min(self.cols as f64)
    }

    fn check_parameters(&self) -> Result<(), SynthError> {
        check_parameter("noise", self.noise, "0 or more", self.noise >= 0.0)?;
        if let ColumnDistribution::Zipf { exponent } = self.columns {
            let good = exponent > 0.0 && exponent <= 20.0;
            check_parameter(
                "the exponent",
                exponent,
                "a number above 0, at most 20",
                good,
            )?;
        }
        match self.row_lengths {
            RowLengths::Constant(_) => Ok(()),
            RowLengths::LogNormal { mean, sigma } => {
                check_parameter("the mean row length", mean, "a number above 0", mean > 0.0)?;
                let good = (0.0..=10.0).contains(&sigma);
                check_parameter("sigma", sigma, "a number from 0 to 10", good)
            }
            RowLengths::WithGiants { every, .. } => {
                let found = f64::from(every);
                check_parameter("every", found, "1 or more", every > 0)
            }
        }
    }

    fn block<T: Element>(&self, block: usize, columns: &Columns) -> RowBlock<T> {
        let mut stream = Stream::new(self.seed, Purpose::Entries, block as u64);
        let mut made = RowBlock::default();
        let start = block * ROWS_PER_STREAM;
        for row in start..self.rows.min(start + ROWS_PER_STREAM) {
            let length = self.length(row, &mut stream);
            columns.draw(length, &mut stream, &mut made.indices);
            self.push_values(length, &mut stream, &mut made.values);
            made.row_ends.push(made.indices.len() as u64);
        }
        made
    }

    fn length(&self, row: usize, stream: &mut Stream) -> usize {
        let length = match self.row_lengths {
            RowLengths::Constant(length) => length as usize,
            RowLengths::LogNormal { mean, sigma } => {
                // The mean of a log-normal variate is exp(location + sigma² / 2).
                let location = mean.ln() - sigma * sigma / 2.0;
                (location + sigma * stream.normal()).exp().round() as usize
            }
            RowLengths::WithGiants {
                typical,
                giant,
                every,
            } => {
                let is_giant = (row as u64 + 1).is_multiple_of(u64::from(every));
                if is_giant {
                    giant as usize
                } else {
                    typical as usize
                }
            }
        };
        length.min(self.cols)
    }

    fn push_values<T: Element>(&self, length: usize, stream: &mut Stream, values: &mut Vec<T>) {
        match self.values {
            SparseValues::Ones => values.extend(std::iter::repeat_n(T::one(), length)),
            SparseValues::Normal => {
                values.extend((0..length).map(|_| T::from_f64(stream.normal())));
            }
            SparseValues::UnitRows => {
                // 1 − unit is above 0, so no row has a norm of 0.
                let raw: Vec<f64> = (0..length).map(|_| 1.0 - stream.unit()).collect();
                let norm = raw.iter().map(|v| v * v).sum::<f64>().sqrt();
                values.extend(raw.iter().map(|v| T::from_f64(v / norm)));
            }
        }
    }
}

/// Draws sets of columns.
struct Columns {
    count: u32,
    zipf: Option<Zipf>,
}

impl Columns {
    fn new(spec: &SparseSpec) -> Self {
        let count = spec.cols as u32;
        let zipf = match spec.columns {
            ColumnDistribution::Uniform => None,
            ColumnDistribution::Zipf { exponent } => Some(Zipf::new(count, exponent)),
        };
        Self { count, zipf }
    }

    /// Appends `length` distinct columns in ascending order.
    fn draw(&self, length: usize, stream: &mut Stream, out: &mut Vec<u32>) {
        if self.zipf.is_none() && length > self.count as usize / 2 {
            return self.select(length, stream, out);
        }
        let mut row = Vec::with_capacity(length);
        for _ in 0..MAX_DRAWS {
            let missing = length - row.len();
            if missing == 0 {
                break;
            }
            row.extend((0..missing).map(|_| self.one(stream)));
            row.sort_unstable();
            row.dedup();
        }
        fill_up(&mut row, length);
        out.append(&mut row);
    }

    fn one(&self, stream: &mut Stream) -> u32 {
        match &self.zipf {
            Some(zipf) => zipf.sample(stream),
            None => stream.below(self.count),
        }
    }

    /// Selection sampling (Fan, Muller and Rezucha 1962): one look at each column, for rows that
    /// take most of them.
    fn select(&self, length: usize, stream: &mut Stream, out: &mut Vec<u32>) {
        let mut wanted = length as u32;
        for column in 0..self.count {
            if stream.below(self.count - column) < wanted {
                out.push(column);
                wanted -= 1;
            }
        }
    }
}

/// Adds the first columns that `row` lacks until it has `length`: what repeated drawing would come
/// to when the frequent columns are all taken.
fn fill_up(row: &mut Vec<u32>, length: usize) {
    let mut taken = row.clone().into_iter().peekable();
    let mut column = 0;
    while row.len() < length {
        if taken.next_if_eq(&column).is_none() {
            row.push(column);
        }
        column += 1;
    }
    row.sort_unstable();
}
