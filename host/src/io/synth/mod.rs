//! Synthetic data: seeded, and the same with any number of threads.
//!
//! Every block of rows has a random stream of its own, derived from the seed and the number of the
//! block; the draws use nothing but the generator's 64-bit words (xoshiro256++, Blackman and Vigna
//! 2021) and the system's elementary functions, so that a seed means the same data in every version
//! of this library. Targets are y = X·c + noise for a planted c: there is something to learn.

mod dense;
mod named;
mod random;
mod sparse;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use crate::io::options::MemoryLimit;
use crate::matrix::{Dataset, Element, Features, Storage};
use random::{Purpose, Stream};

pub use dense::DenseSpec;
pub use named::{NamedShape, Spec, UnknownShape};
pub use sparse::{ColumnDistribution, RowLengths, SparseSpec, SparseValues};

/// Rows per random stream; part of what a seed means.
const ROWS_PER_STREAM: usize = 1024;
/// Coefficients per random stream; part of what a seed means.
const COEFFICIENTS_PER_STREAM: usize = 1 << 16;

/// Why data cannot be made as requested.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SynthError {
    /// No rows, no columns, or more columns than a 32-bit index can name.
    #[error("expected at least one row and from 1 to 4294967295 columns, found {rows} × {cols}")]
    Shape {
        /// Rows requested.
        rows: usize,
        /// Columns requested.
        cols: usize,
    },
    /// A parameter of a distribution out of its range.
    #[error("expected {expected} for {name}, found {found}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its range.
        expected: &'static str,
        /// What was given.
        found: f64,
    },
    /// More data than the memory available.
    #[error(
        "expected data that fit {available} bytes of memory, found a need for about {needed} \
         bytes; ask for fewer rows or a smaller scale"
    )]
    TooLarge {
        /// Bytes needed, about.
        needed: u64,
        /// Bytes available.
        available: u64,
    },
}

/// Synthetic data and the truth behind them.
#[derive(Debug, Clone, PartialEq)]
pub struct Synthetic<T> {
    /// Features and targets.
    pub dataset: Dataset<T>,
    /// The planted coefficients c, one per column; there is no intercept.
    pub coef: Vec<f64>,
}

/// The planted coefficients: standard normal.
fn coefficients(seed: u64, cols: usize) -> Vec<f64> {
    let mut coef = vec![0.0; cols];
    coef.par_chunks_mut(COEFFICIENTS_PER_STREAM)
        .enumerate()
        .for_each(|(block, coef)| {
            let mut stream = Stream::new(seed, Purpose::Coefficients, block as u64);
            coef.fill_with(|| stream.normal());
        });
    coef
}

/// Adds targets to features: y = X·c plus normal noise of standard deviation `noise`.
fn with_targets<T: Element>(features: Features<T>, seed: u64, noise: f64) -> Synthetic<T> {
    let coef = coefficients(seed, features.cols());
    let mut targets = vec![T::default(); features.rows()];
    targets
        .par_chunks_mut(ROWS_PER_STREAM)
        .enumerate()
        .for_each(|(block, targets)| {
            let mut stream = Stream::new(seed, Purpose::Noise, block as u64);
            for (i, target) in targets.iter_mut().enumerate() {
                let signal = row_product(&features, block * ROWS_PER_STREAM + i, &coef);
                *target = T::from_f64(signal + noise * stream.normal());
            }
        });
    let dataset = Dataset {
        features,
        targets: Some(targets),
    };
    Synthetic { dataset, coef }
}

/// One element of X·c, in f64.
fn row_product<T: Element>(features: &Features<T>, row: usize, coef: &[f64]) -> f64 {
    match features.storage() {
        Storage::Sparse(x) => {
            let entries = x.indptr().outer_inds_sz(row);
            let indices = x.indices()[entries.clone()].iter();
            let products = indices.zip(&x.data()[entries]);
            products.map(|(&j, v)| v.to_f64() * coef[j as usize]).sum()
        }
        Storage::Dense(x) => {
            let products = x.row(row).into_iter().zip(coef);
            products.map(|(v, c)| v.to_f64() * c).sum()
        }
    }
}

fn check_shape(rows: usize, cols: usize) -> Result<(), SynthError> {
    if rows == 0 || cols == 0 || u32::try_from(cols).is_err() {
        return Err(SynthError::Shape { rows, cols });
    }
    Ok(())
}

fn check_parameter(
    name: &'static str,
    found: f64,
    expected: &'static str,
    good: bool,
) -> Result<(), SynthError> {
    // Written so that NaN, for which every comparison is false, is refused.
    if good && found.is_finite() {
        return Ok(());
    }
    Err(SynthError::Parameter {
        name,
        expected,
        found,
    })
}

/// Checks a need for memory that has been computed in floating point, where nothing overflows.
fn check_memory(needed: f64) -> Result<(), SynthError> {
    let available = MemoryLimit::Available.bytes();
    if needed <= available as f64 {
        return Ok(());
    }
    let needed = needed as u64;
    Err(SynthError::TooLarge { needed, available })
}
