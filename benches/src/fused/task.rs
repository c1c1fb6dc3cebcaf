//! What is computed with a matrix.

use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;

use crate::case::{Case, SEED};
use crate::shape::Shape;

/// A product, with or without the other terms of the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The product.
    pub product: Product,
    /// What is computed besides.
    pub terms: TermSet,
}

/// Which terms there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermSet {
    /// α = 1 and nothing else.
    Alone,
    /// α, v, s and β·z.
    All,
}

/// All tasks.
pub const TASKS: [Task; 4] = [
    Task {
        product: Product::Fused,
        terms: TermSet::Alone,
    },
    Task {
        product: Product::Fused,
        terms: TermSet::All,
    },
    Task {
        product: Product::Forward,
        terms: TermSet::Alone,
    },
    Task {
        product: Product::Transposed,
        terms: TermSet::Alone,
    },
];

impl Task {
    /// Whether this is measured for a shape: that further terms cost nothing is shown on two.
    pub fn applies_to(&self, shape: &Shape) -> bool {
        self.terms == TermSet::Alone
            || matches!(
                (shape.is_sparse(), shape.cols()),
                (false, 128) | (true, 1_000)
            )
    }

    /// The name of the task over a matrix.
    pub fn case<T: Number>(&self, shape: Shape) -> Case {
        let work = match (self.product, self.terms) {
            (Product::Fused, TermSet::Alone) => "fused",
            (Product::Fused, TermSet::All) => "fused_all_terms",
            (Product::Forward, _) => "forward",
            (Product::Transposed, _) => "transposed",
        };
        Case {
            family: "fused",
            work,
            shape,
            dtype: T::DTYPE,
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
    use crate::shape::MATRICES;

    #[test]
    fn names_differ_and_all_terms_are_shown_on_two_shapes() {
        let all: Vec<_> = MATRICES
            .iter()
            .flat_map(|shape| TASKS.map(|task| (task, *shape)))
            .filter(|(task, shape)| task.applies_to(shape))
            .collect();
        let mut names: Vec<String> = all
            .iter()
            .map(|(task, shape)| task.case::<f32>(*shape).to_string())
            .collect();
        assert_eq!(names.len(), 3 * MATRICES.len() + 2);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
