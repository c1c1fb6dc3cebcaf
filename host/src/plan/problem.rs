//! The shape of what is to be computed.

use std::fmt;

use gpu_kernels::fused::Product as KernelProduct;
use gpu_kernels::fused::dense_order::leading_dimension;
use serde::{Deserialize, Serialize};

use super::error::PlanError;
pub use super::form::{Maker, Processor, Stored};
use crate::matrix::RowSteps;

/// The type of the elements of X and of the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
}

impl Precision {
    /// Bytes of one element.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

/// Which part of the pattern a kernel computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Product {
    /// `w = α·Xᵀ(v ⊙ (X·y)) + β·z`, X read once.
    Fused,
    /// `p = X·y`.
    Forward,
    /// `w = α·Xᵀ·p + β·z`.
    Transposed,
}

impl Product {
    /// Of X with m rows and n columns, the lengths of the vector that is multiplied and of the one that comes out.
    pub fn lengths<N: Copy>(self, m: N, n: N) -> (N, N) {
        KernelProduct::from(self).lengths(m, n)
    }
}

impl From<Product> for KernelProduct {
    fn from(product: Product) -> Self {
        match product {
            Product::Fused => KernelProduct::Fused,
            Product::Forward => KernelProduct::Forward,
            Product::Transposed => KernelProduct::Transposed,
        }
    }
}

impl From<KernelProduct> for Product {
    fn from(product: KernelProduct) -> Self {
        match product {
            KernelProduct::Fused => Product::Fused,
            KernelProduct::Forward => Product::Forward,
            KernelProduct::Transposed => Product::Transposed,
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fused => "Xᵀ(v ⊙ (X·y))",
            Self::Forward => "X·y",
            Self::Transposed => "Xᵀ·p",
        })
    }
}

/// What is promised of the bits of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Summation {
    /// Nothing: additions come in any order.
    #[default]
    Free,
    /// The same bits on every run, grid and device, the CPU included.
    Reproducible,
}

/// How the values of hot columns' entries are stored, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredValues {
    /// As they are.
    #[default]
    Whole,
    /// As f32, those of an f64 matrix.
    F32,
    /// As bfloat16.
    Bf16,
    /// One for each row: those of a row are equal.
    OfRows,
    /// One for all: they are equal.
    Equal,
}

impl StoredValues {
    /// Bytes of the value of an entry.
    pub const fn bytes(self, dtype: Precision) -> u32 {
        match self {
            Self::Whole => dtype.bytes(),
            Self::F32 => 4,
            Self::Bf16 => 2,
            Self::OfRows | Self::Equal => 0,
        }
    }
}

impl fmt::Display for StoredValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole => "whole values",
            Self::F32 => "values as f32",
            Self::Bf16 => "values as bf16",
            Self::OfRows => "a value for each row",
            Self::Equal => "one value",
        })
    }
}

/// How the entries of a sparse matrix are spread over its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ColumnUse {
    /// Entries of the most frequent column.
    pub busiest: u64,
    /// The most frequent columns that are, or could be, kept apart as hot ones.
    pub hot_columns: u32,
    /// Their entries.
    pub hot_entries: u64,
    /// Other columns that have entries.
    pub cold_columns: u32,
    /// Entries of the 8, 16 and 32 neighbouring columns that have most, whose elements of 16, 8 and 4 bytes share a line of
    /// 128 bytes; zeros where they are not known.
    #[serde(default)]
    pub lines: [u64; 3],
}

impl ColumnUse {
    /// The same with the lines that were known before.
    pub fn with_lines_of(self, before: Option<ColumnUse>) -> Self {
        let lines = before.map_or([0; 3], |known| known.lines);
        Self { lines, ..self }
    }
}

/// The matrix X of a pattern: m rows × n columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Problem {
    /// Rows m.
    pub rows: u64,
    /// Columns n.
    pub cols: u64,
    /// Stored entries of a sparse matrix; `None` for a dense one.
    pub nnz: Option<u64>,
    /// The type of the elements.
    pub dtype: Precision,
    /// Entries of the longest row of a sparse matrix, when known.
    pub longest_row: Option<u64>,
    /// Steps of warps over the rows of a sparse matrix, when known; else rows are taken to be alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_steps: Option<RowSteps>,
    /// Elements between the starts of two rows of a dense matrix; n unless rows are padded, with zeros.
    pub pitch: u64,
    /// In which forms a sparse matrix is stored.
    #[serde(default)]
    pub stored: Stored,
    /// How entries are spread over the columns of a sparse matrix, when known; else all columns are taken to be alike.
    #[serde(default)]
    pub columns: Option<ColumnUse>,
    /// How a form with hot columns stores its values.
    #[serde(default)]
    pub values: StoredValues,
}

impl Problem {
    /// A sparse matrix in CSR form.
    pub const fn sparse(rows: u64, cols: u64, nnz: u64, dtype: Precision) -> Self {
        Self {
            rows,
            cols,
            nnz: Some(nnz),
            dtype,
            longest_row: None,
            row_steps: None,
            pitch: cols,
            stored: Stored::Rows,
            columns: None,
            values: StoredValues::Whole,
        }
    }

    /// A dense matrix, row-major without padding.
    pub const fn dense(rows: u64, cols: u64, dtype: Precision) -> Self {
        Self {
            rows,
            cols,
            nnz: None,
            dtype,
            longest_row: None,
            row_steps: None,
            pitch: cols,
            stored: Stored::Rows,
            columns: None,
            values: StoredValues::Whole,
        }
    }

    /// The same with the number of entries of the longest row.
    pub const fn with_longest_row(self, longest: u64) -> Self {
        Self {
            longest_row: Some(longest),
            ..self
        }
    }

    /// The same with the distance between rows that dense matrices have on a GPU.
    pub const fn as_stored(self) -> Self {
        let pack = 16 / self.dtype.bytes() as u64;
        match self.nnz {
            None => self.with_pitch(leading_dimension(self.cols, pack)),
            Some(_) => self,
        }
    }

    /// The same with the steps of warps over its rows.
    pub const fn with_row_steps(self, steps: RowSteps) -> Self {
        Self {
            row_steps: Some(steps),
            ..self
        }
    }

    /// The same with `pitch` elements between the starts of two rows.
    pub const fn with_pitch(self, pitch: u64) -> Self {
        Self { pitch, ..self }
    }

    /// One of `parts` blocks of rows that are alike.
    ///
    /// ```
    /// use warpfuse::plan::{Precision, Problem};
    /// let x = Problem::sparse(1_000, 50, 20_000, Precision::F32);
    /// assert_eq!(x.part(10), Problem::sparse(100, 50, 2_000, Precision::F32));
    /// ```
    ///
    /// # Panics
    /// When there are to be no parts.
    pub fn part(self, parts: u64) -> Self {
        let columns = self.columns.map(|columns| ColumnUse {
            busiest: columns.busiest.div_ceil(parts),
            hot_entries: columns.hot_entries.div_ceil(parts),
            lines: columns.lines.map(|line| line.div_ceil(parts)),
            ..columns
        });
        let nnz = self.nnz.map(|nnz| nnz.div_ceil(parts));
        Self {
            rows: self.rows.div_ceil(parts),
            nnz,
            // A row is no longer than its block.
            longest_row: self
                .longest_row
                .map(|longest| longest.min(nnz.unwrap_or(longest))),
            row_steps: None,
            columns,
            ..self
        }
    }

    /// The same in other forms of storage.
    pub const fn with_stored(self, stored: Stored) -> Self {
        Self { stored, ..self }
    }

    /// The same with what is known of its columns.
    pub const fn with_columns(self, columns: ColumnUse) -> Self {
        Self {
            columns: Some(columns),
            ..self
        }
    }

    /// The same with what is known of its values.
    pub const fn with_values(self, values: StoredValues) -> Self {
        Self { values, ..self }
    }

    /// Entries of the most frequent column: those of every other column, where nothing is known.
    pub fn busiest_column(&self) -> f64 {
        match self.columns {
            Some(columns) => columns.busiest as f64,
            None => self.nnz.unwrap_or(0) as f64 / self.cols.max(1) as f64,
        }
    }

    /// The most frequent columns and their entries, where they are known.
    pub(crate) fn frequent_columns(&self) -> Option<(f64, f64)> {
        let columns = self
            .columns
            .filter(|_| self.nnz.is_some_and(|nnz| nnz > 0))?;
        let entries = columns.hot_entries.min(self.nnz.unwrap_or(0));
        Some((f64::from(columns.hot_columns), entries as f64))
    }

    /// Whether X is stored dense.
    pub const fn is_dense(&self) -> bool {
        self.nnz.is_none()
    }

    /// Mean number of entries of a row, μ; n for a dense matrix, zero without rows.
    pub fn mean_row(&self) -> f64 {
        match self.nnz {
            None => self.cols as f64,
            Some(_) if self.rows == 0 => 0.0,
            Some(nnz) => nnz as f64 / self.rows as f64,
        }
    }

    /// Entries of the longest row, or the best lower bound on it.
    pub fn longest(&self) -> f64 {
        self.longest_row
            .map_or_else(|| self.mean_row().ceil(), |longest| longest as f64)
    }

    /// Steps of warps over the rows of a sparse matrix with vectors of `vs` lanes, as if all rows had the mean length
    /// where their lengths are not known.
    pub fn steps(&self, vs: u32) -> f64 {
        let vs = vs.clamp(1, 32);
        match self.row_steps {
            Some(steps) => steps.of(vs) as f64,
            None => {
                self.rows as f64 * f64::from(vs) / 32.0 * (self.mean_row() / f64::from(vs)).ceil()
            }
        }
    }

    /// Bytes that one pass over X reads: values, and for CSR 32-bit column indices and 64-bit offsets.
    pub fn matrix_bytes(&self) -> f64 {
        let value = f64::from(self.dtype.bytes());
        match self.nnz {
            None => self.rows as f64 * self.cols as f64 * value,
            Some(nnz) => nnz as f64 * (value + 4.0) + (self.rows as f64 + 1.0) * 8.0,
        }
    }

    /// Checks the figures against each other.
    ///
    /// # Errors
    /// [`PlanError::Nonzeros`], [`PlanError::LongestRow`] or [`PlanError::Pitch`] when they contradict
    /// each other, [`PlanError::TooLarge`] when X has more bytes than 64 bits can count.
    pub fn validate(&self) -> Result<(), PlanError> {
        let Self {
            rows, cols, pitch, ..
        } = *self;
        let places = u128::from(rows) * u128::from(cols);
        match (self.nnz, self.longest_row) {
            (None, _) if pitch < cols => return Err(PlanError::Pitch { cols, pitch }),
            (Some(nnz), _) if u128::from(nnz) > places => {
                return Err(PlanError::Nonzeros { rows, cols, nnz });
            }
            (Some(nnz), Some(longest)) if longest > cols.min(nnz) => {
                let limit = cols.min(nnz);
                return Err(PlanError::LongestRow { longest, limit });
            }
            _ => {}
        }
        match self.bytes() {
            Some(_) => Ok(()),
            None => Err(PlanError::TooLarge {
                what: "the size in bytes",
                rows,
                cols,
                bits: 64,
            }),
        }
    }

    // Bytes of X and of its longer vector, if 64 bits count them.
    fn bytes(&self) -> Option<(u64, u64)> {
        let value = u64::from(self.dtype.bytes());
        let matrix = match self.nnz {
            None => self.rows.checked_mul(self.pitch)?.checked_mul(value)?,
            Some(nnz) => nnz
                .checked_mul(value + 4)?
                .checked_add(self.rows.checked_mul(8)?)?,
        };
        Some((matrix, self.rows.max(self.cols).checked_mul(value)?))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} {}", self.rows, self.cols, self.dtype)?;
        match self.nnz {
            Some(nnz) => write!(f, ", {nnz} nonzeros"),
            None => f.write_str(", dense"),
        }
    }
}
