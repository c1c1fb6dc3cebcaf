//! Rows times factors: one side of a weighted Gram matrix.

use faer::MatRef;

/// Rows times factors, without those whose factor is 0: rows outside the margin of a support vector machine take no part.
/// Rows of one factor all are left as they are.
#[derive(Default)]
pub(super) struct ScaledRows {
    factors: Vec<f64>,
    scaled: Vec<f64>,
    /// The rows themselves, where some are left out.
    left: Vec<f64>,
    rows: usize,
}

impl ScaledRows {
    /// Takes the rows of a block.
    pub(super) fn fill(&mut self, block: MatRef<'_, f64>, factor: impl Fn(usize) -> f64) {
        self.scaled.clear();
        self.left.clear();
        self.factors.clear();
        self.factors.extend((0..block.nrows()).map(factor));
        self.rows = self.factors.iter().filter(|by| **by != 0.0).count();
        if self.common().is_some() {
            return;
        }
        for (i, by) in self.factors.iter().enumerate() {
            if *by == 0.0 {
                continue;
            }
            let row = block.row(i).try_as_row_major();
            let row = row.expect("blocks are given row by row").as_slice();
            self.scaled.extend(row.iter().map(|value| by * value));
            if self.rows < self.factors.len() {
                self.left.extend_from_slice(row);
            }
        }
    }

    /// The factor of all rows.
    fn common(&self) -> Option<f64> {
        let first = *self.factors.first()?;
        self.factors.iter().all(|by| *by == first).then_some(first)
    }

    /// The rows, those times their factors, and what both are to be multiplied by.
    pub(super) fn both<'a>(
        &'a self,
        block: MatRef<'a, f64>,
    ) -> (MatRef<'a, f64>, MatRef<'a, f64>, f64) {
        if let Some(by) = self.common() {
            return (block, block, by);
        }
        let of = |values: &'a [f64]| MatRef::from_row_major_slice(values, self.rows, block.ncols());
        let left = if self.rows < block.nrows() {
            of(&self.left)
        } else {
            block
        };
        (left, of(&self.scaled), 1.0)
    }
}
