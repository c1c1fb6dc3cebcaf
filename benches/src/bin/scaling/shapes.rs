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
    /// The value of all entries, where they are one: of categories, one column of each stratum of columns.
    pub one_value: Option<f32>,
}

impl Shape {
    /// Of values that differ.
    pub const fn new(name: &'static str, (rows, cols): (usize, usize), per_row: usize) -> Shape {
        Shape {
            name,
            rows,
            cols,
            per_row,
            one_value: None,
        }
    }
}

/// Few and many dense columns, sparse ones, and data sets of LIBSVM's page.
pub const SHAPES: [Shape; 7] = [
    Shape::new("higgs", (11_000_000, 28), 28),
    Shape::new("kddb", (19_264_097, 29_890_095), 29),
    Shape::new("rcv1", (697_641, 47_236), 73),
    Shape {
        // A row's norm is 1, as in LIBSVM's file.
        one_value: Some(0.258_198_9),
        ..Shape::new("avazu", (40_428_967, 1_000_000), 15)
    },
    Shape::new("dense-512", (1_500_000, 512), 512),
    Shape::new("sparse-10k", (20_000_000, 10_000), 20),
    Shape::new("sparse-1m", (20_000_000, 1_000_000), 20),
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

    /// The column of an entry of a sparse shape.
    pub fn column(&self, place: usize) -> u32 {
        let stratum = (self.cols / self.per_row) as f64;
        // Frequent columns come first, as in data with power laws, though not as many.
        let drawn = uniform(2, place).powi(3);
        ((place % self.per_row) as f64 * stratum + drawn * stratum) as u32
    }

    /// Some of the rows.
    pub fn features(&self, rows: Range<usize>) -> Result<Features<f32>> {
        let places = rows.start * self.per_row..rows.end * self.per_row;
        let value = |place: usize| uniform(1, place) as f32 - 0.5;
        let values: Vec<f32> = match self.one_value {
            Some(value) => vec![value; places.len()],
            None => places.clone().into_par_iter().map(value).collect(),
        };
        if self.is_dense() {
            let all = Array2::from_shape_vec((rows.len(), self.cols), values)?;
            return Ok(Features::Dense(all));
        }
        let column = |place: usize| self.column(place);
        let indices = places.into_par_iter().map(column).collect();
        let offsets = (0..rows.len() + 1).into_par_iter();
        let offsets = offsets.map(|row| (row * self.per_row) as u64);
        let parts = (offsets.collect(), indices, values);
        let all = csr_from_parts((rows.len(), self.cols), parts.0, parts.1, parts.2)?;
        Ok(Features::Sparse(all))
    }

    /// The label, 0 or 1, of a row: it depends on the first entry, or on its column where all values are one.
    pub fn label(&self, row: usize) -> f64 {
        let first = match self.one_value {
            Some(_) => uniform(3, self.column(row * self.per_row) as usize),
            None => uniform(1, row * self.per_row),
        };
        let noise = (hash(row as u64) >> 40) as f64 / (1_u64 << 24) as f64;
        f64::from(u8::from(first + noise > 1.0))
    }

    /// The labels of all rows.
    pub fn labels(&self) -> Vec<f64> {
        let rows = (0..self.rows).into_par_iter();
        rows.map(|row| self.label(row)).collect()
    }
}
