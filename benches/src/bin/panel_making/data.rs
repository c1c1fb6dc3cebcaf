//! The cold columns of kddb's shape, called by their ranks, and columns that are equally frequent.

use anyhow::Result;
use rayon::prelude::*;
use warpfuse::matrix::{CsrMatrix, Element, csr_from_parts, frequencies};
use warpfuse_benches::data::{uniform, values};

/// Frequencies below are alike, as panels have them.
const RARE: u64 = 64;

/// A matrix.
pub struct Shape {
    pub name: &'static str,
    rows: usize,
    cols: usize,
    per_row: usize,
    /// How uneven columns are: ranks are the number of columns times a power of uniform numbers.
    power: i32,
}

/// All of them, or a part of their rows and columns.
pub fn shapes(parts: usize) -> [Shape; 2] {
    [
        Shape {
            name: "kddb_cold",
            rows: 19_264_097 / parts,
            cols: 29_890_095 / parts,
            per_row: 12,
            power: 3,
        },
        Shape {
            name: "uniform_1000000",
            rows: 4_000_000 / parts,
            cols: 1_000_000 / parts,
            per_row: 20,
            power: 1,
        },
    ]
}

impl Shape {
    pub fn matrix<T: Element>(&self) -> Result<CsrMatrix<T>> {
        let mut rows = self.draw();
        if self.power > 1 {
            let ranks = self.ranks(&rows)?;
            rows.par_iter_mut().for_each(|row| {
                row.iter_mut()
                    .for_each(|column| *column = ranks[*column as usize]);
                row.sort_unstable();
            });
        }
        self.of_rows(&rows)
    }

    /// The columns of each row.
    fn draw(&self) -> Vec<Vec<u32>> {
        let column = |entry: usize| {
            let place = uniform(25, entry).powi(self.power);
            ((place * self.cols as f64) as u32).min(self.cols as u32 - 1)
        };
        let row = |row: usize| {
            let entries = row * self.per_row..(row + 1) * self.per_row;
            let mut columns: Vec<u32> = entries.map(column).collect();
            columns.sort_unstable();
            columns.dedup();
            columns
        };
        (0..self.rows).into_par_iter().map(row).collect()
    }

    fn of_rows<T: Element>(&self, rows: &[Vec<u32>]) -> Result<CsrMatrix<T>> {
        let mut offsets = vec![0];
        for row in rows {
            offsets.push(offsets[offsets.len() - 1] + row.len() as u64);
        }
        let indices = rows.concat();
        let data = values(indices.len(), 9);
        Ok(csr_from_parts(
            (self.rows, self.cols),
            offsets,
            indices,
            data,
        )?)
    }

    /// The rank of each column, by the number of binary digits of its frequency.
    fn ranks(&self, rows: &[Vec<u32>]) -> Result<Vec<u32>> {
        let counts = frequencies(&self.of_rows::<f32>(rows)?);
        let mut order: Vec<u32> = (0..self.cols as u32).collect();
        order.par_sort_by_key(|column| counts[*column as usize].max(RARE).leading_zeros());
        let mut ranks = vec![0; self.cols];
        for (rank, column) in (0..).zip(order) {
            ranks[column as usize] = rank;
        }
        Ok(ranks)
    }
}
