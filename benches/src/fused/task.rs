//! What is computed with a matrix.

use warpfuse::ops::Number;
use warpfuse::plan::fused::{Product, Stored, Summation};

use crate::case::{Case, SEED};
use crate::shape::Shape;

/// A product, with or without the other terms of the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The product.
    pub product: Product,
    /// What is computed besides.
    pub terms: TermSet,
    /// In which forms a sparse X is stored.
    pub stored: Stored,
    /// What is promised of the bits.
    pub sums: Summation,
    /// What the values of X are like.
    pub entries: Entries,
}

/// What the values of X are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// As they are drawn.
    Drawn,
    /// All equal, as of one-hot data.
    Equal,
    /// Equal in each row, as of one-hot data with rows of length 1.
    OfRows,
    /// As they are drawn, rounded to bfloat16.
    Bf16,
}

impl Entries {
    /// An entry of row `row`, of which another was drawn.
    pub fn value(self, row: usize, drawn: f64) -> f64 {
        match self {
            Entries::Drawn => drawn,
            Entries::Equal => 1.0,
            Entries::OfRows => 1.0 / (1.0 + (row % 100) as f64).sqrt(),
            Entries::Bf16 => {
                let upper = (drawn as f32).to_bits() & 0xffff_0000;
                f64::from(f32::from_bits(upper))
            }
        }
    }
}

/// Which terms there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermSet {
    /// α = 1 and nothing else.
    Alone,
    /// α, v, s and β·z.
    All,
}

const fn task(product: Product, terms: TermSet, stored: Stored) -> Task {
    Task {
        product,
        terms,
        stored,
        sums: Summation::Free,
        entries: Entries::Drawn,
    }
}

/// The fused product with hot columns, of values that take fewer bits.
const fn compressed(entries: Entries) -> Task {
    let stored = Stored::RowsAndHotColumns;
    Task {
        entries,
        ..task(Product::Fused, TermSet::Alone, stored)
    }
}

const fn reproducible(product: Product) -> Task {
    Task {
        sums: Summation::Reproducible,
        ..task(product, TermSet::Alone, Stored::Rows)
    }
}

/// Columns of a sparse w that shared memory holds, and for which reproducible sums are measured.
const SHARED_COLUMNS: usize = 58_000;
/// Columns up to which no further form is of use: each warp has its own w.
const FEW_COLUMNS: usize = 250;

/// All tasks.
pub const TASKS: [Task; 16] = [
    task(Product::Fused, TermSet::Alone, Stored::Rows),
    task(Product::Fused, TermSet::All, Stored::Rows),
    task(Product::Forward, TermSet::Alone, Stored::Rows),
    task(Product::Transposed, TermSet::Alone, Stored::Rows),
    task(Product::Fused, TermSet::Alone, Stored::RowsAndPanels),
    task(Product::Forward, TermSet::Alone, Stored::RowsAndPanels),
    task(Product::Transposed, TermSet::Alone, Stored::RowsAndPanels),
    task(Product::Fused, TermSet::Alone, Stored::RowsAndHotColumns),
    task(
        Product::Transposed,
        TermSet::Alone,
        Stored::RowsAndHotColumns,
    ),
    task(Product::Fused, TermSet::Alone, Stored::RowsAndTranspose),
    task(
        Product::Transposed,
        TermSet::Alone,
        Stored::RowsAndTranspose,
    ),
    reproducible(Product::Fused),
    reproducible(Product::Transposed),
    compressed(Entries::Equal),
    compressed(Entries::OfRows),
    compressed(Entries::Bf16),
];

impl Task {
    /// Whether this is measured for a shape: that further terms cost nothing is shown on two, and further forms are for
    /// more than a few columns.
    pub fn applies_to(&self, shape: &Shape) -> bool {
        match (self.terms, self.stored) {
            _ if self.sums == Summation::Reproducible => {
                !shape.is_sparse() || shape.cols() <= SHARED_COLUMNS
            }
            (TermSet::Alone, Stored::Rows) => true,
            (TermSet::Alone, _) => shape.is_sparse() && shape.cols() > FEW_COLUMNS,
            (TermSet::All, _) => matches!(
                (shape.is_sparse(), shape.cols()),
                (false, 128) | (true, 1_000)
            ),
        }
    }

    /// The name of the task over a matrix.
    pub fn case<T: Number>(&self, shape: Shape) -> Case {
        let work = match (self.product, self.terms, self.stored) {
            (Product::Fused, ..) if self.sums == Summation::Reproducible => "fused_reproducible",
            _ if self.sums == Summation::Reproducible => "transposed_reproducible",
            (Product::Fused, TermSet::All, _) => "fused_all_terms",
            (Product::Fused, _, Stored::Rows) => "fused",
            (Product::Fused, _, Stored::RowsAndPanels) => "fused_prepared",
            (Product::Fused, _, Stored::RowsAndHotColumns) => match self.entries {
                Entries::Drawn => "fused_hot_columns",
                Entries::Equal => "fused_hot_columns_equal",
                Entries::OfRows => "fused_hot_columns_of_rows",
                Entries::Bf16 => "fused_hot_columns_bf16",
            },
            (Product::Forward, _, Stored::Rows) => "forward",
            (Product::Forward, ..) => "forward_prepared",
            (Product::Transposed, _, Stored::Rows) => "transposed",
            (Product::Transposed, _, Stored::RowsAndPanels) => "transposed_prepared",
            (Product::Transposed, _, Stored::RowsAndHotColumns) => "transposed_hot_columns",
            // No task is over a form of the CPU's.
            (Product::Fused, ..) => "fused_stored_transpose",
            (Product::Transposed, ..) => "transposed_stored_transpose",
        };
        Case {
            family: "fused",
            work,
            shape,
            dtype: T::DTYPE.into(),
            seed: SEED,
        }
    }

    /// Elements of the vectors that are read and written besides X, at least once each.
    pub fn vector_elements(&self, shape: &Shape) -> usize {
        let (m, n) = (shape.rows(), shape.cols());
        let ends = if self.product == Product::Fused {
            2 * n
        } else {
            m + n
        };
        match self.terms {
            TermSet::Alone => ends,
            TermSet::All => ends + m + n,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{DRAWN, MATRICES, SPARSE_WIDTHS};

    #[test]
    fn names_differ_and_all_terms_are_shown_on_two_shapes() {
        let all: Vec<_> = MATRICES
            .iter()
            .chain(&SPARSE_WIDTHS)
            .chain(&DRAWN)
            .flat_map(|shape| TASKS.map(|task| (task, *shape)))
            .filter(|(task, shape)| task.applies_to(shape))
            .collect();
        let mut names: Vec<String> = all
            .iter()
            .map(|(task, shape)| task.case::<f32>(*shape).to_string())
            .collect();
        let with_all_terms = all.iter().filter(|(task, _)| task.terms == TermSet::All);
        assert_eq!(with_all_terms.count(), 2);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
