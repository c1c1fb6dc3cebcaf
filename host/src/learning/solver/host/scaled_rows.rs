//! Rows times factors: one side of a weighted Gram matrix.

use faer::MatRef;

/// Rows times factors, without those whose factor is 0: rows outside the margin of a support vector machine take no part.
#[derive(Default)]
pub(super) struct ScaledRows {
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
        let factors: Vec<f64> = (0..block.nrows()).map(factor).collect();
        let kept = |by: &&f64| **by != 0.0;
        self.rows = factors.iter().filter(kept).count();
        for (i, by) in factors.iter().enumerate().filter(|(_, by)| kept(by)) {
            let row = block.row(i);
            self.scaled.extend(row.iter().map(|value| by * value));
            if self.rows < block.nrows() {
                self.left.extend(row.iter());
            }
        }
    }

    /// The rows, and those times their factors.
    pub(super) fn both<'a>(&'a self, block: MatRef<'a, f64>) -> (MatRef<'a, f64>, MatRef<'a, f64>) {
        let width = block.ncols();
        let of = |values: &'a [f64]| MatRef::from_row_major_slice(values, self.rows, width);
        let left = if self.rows < block.nrows() {
            of(&self.left)
        } else {
            block
        };
        (left, of(&self.scaled))
    }
}
