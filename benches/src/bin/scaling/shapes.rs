//! Shapes of data sets, and numbers in them that any member makes of its rows.

use std::ops::Range;

use anyhow::Result;
use ndarray::Array2;
use rayon::prelude::*;
use warpfuse::matrix::{Features, csr_from_parts};
use warpfuse_benches::data::{hash, uniform};

/// A shape.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
    /// Entries of a row; all of a dense one.
    pub per_row: usize,
}

/// Those of the issue: few and many dense columns, sparse ones, and two data sets of LIBSVM's page.
pub const SHAPES: [Shape; 5] = [
    Shape {
        name: "higgs",
        rows: 11_000_000,
        cols: 28,
        per_row: 28,
    },
    Shape {
        name: "dense-512",
        rows: 1_500_000,
        cols: 512,
        per_row: 512,
    },
    Shape {
        name: "sparse-10k",
        rows: 20_000_000,
        cols: 10_000,
        per_row: 20,
    },
    Shape {
        name: "sparse-1m",
        rows: 20_000_000,
        cols: 1_000_000,
        per_row: 20,
    },
    Shape {
        name: "kddb",
        rows: 19_264_097,
        cols: 29_890_095,
        per_row: 29,
    },
];

impl Shape {
    /// With fewer rows, and of a sparse one fewer columns.
    pub fn divided(self, by: usize) -> Shape {
        let cols = match self.is_dense() {
            true => self.cols,
            false => (self.cols / by).max(self.per_row),
        };
        Shape {
            rows: self.rows / by,
            cols,
            ..self
        }
    }

    /// Whether every row has all columns.
    pub fn is_dense(&self) -> bool {
        self.per_row == self.cols
    }

    /// Some of the rows.
    pub fn features(&self, rows: Range<usize>) -> Result<Features<f32>> {
        let places = rows.start * self.per_row..rows.end * self.per_row;
        let value = |place: usize| uniform(1, place) as f32 - 0.5;
        let values: Vec<f32> = places.clone().into_par_iter().map(value).collect();
        if self.is_dense() {
            let all = Array2::from_shape_vec((rows.len(), self.cols), values)?;
            return Ok(Features::Dense(all));
        }
        let stratum = (self.cols / self.per_row) as f64;
        let column = |place: usize| {
            // Frequent columns come first, as in data with power laws, though not as many.
            let drawn = uniform(2, place).powi(3);
            ((place % self.per_row) as f64 * stratum + drawn * stratum) as u32
        };
        let indices = places.into_par_iter().map(column).collect();
        let offsets = (0..=rows.len()).map(|row| (row * self.per_row) as u64);
        let parts = (offsets.collect(), indices, values);
        let all = csr_from_parts((rows.len(), self.cols), parts.0, parts.1, parts.2)?;
        Ok(Features::Sparse(all))
    }

    /// Labels 0 and 1 of all rows, which depend on their first entries.
    pub fn labels(&self) -> Vec<f64> {
        let label = |row: usize| {
            let first = uniform(1, row * self.per_row) - 0.5;
            let noise = (hash(row as u64) >> 40) as f64 / (1_u64 << 24) as f64 - 0.5;
            f64::from(u8::from(first + noise > 0.0))
        };
        (0..self.rows).into_par_iter().map(label).collect()
    }
}
