//! What a sample's products have to be, and how far computed ones may be from that.

use warpfuse::matrix::{Element, Storage};
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse::reference::Rows;
use warpfuse::reference::fused::{self, Terms};

use super::{Sample, Values};
use crate::tolerance::{Truth, growth, smallest_normal, unit_roundoff};

impl<T: Number> Sample<T> {
    /// The true result of a product with these terms, and how far a computed one may be from it.
    ///
    /// # Panics
    /// When the sample is of integers, and too large for their sums to be exact.
    pub fn truth(&self, product: Product, terms: &Terms<'_, T>) -> Truth {
        match self.features.storage() {
            Storage::Sparse(x) => self.truth_of(x, product, terms),
            Storage::Dense(x) => self.truth_of(&x, product, terms),
        }
    }

    fn truth_of(&self, x: &impl Rows, product: Product, terms: &Terms<'_, T>) -> Truth {
        let input = self.input(product);
        let (values, magnitudes) = match product {
            Product::Fused => (
                fused::fused(x, input, terms),
                fused::fused_magnitude(x, input, terms),
            ),
            Product::Forward => (
                fused::forward(x, input, terms),
                fused::forward_magnitude(x, input, terms),
            ),
            Product::Transposed => (
                fused::transposed(x, input, terms),
                fused::transposed_magnitude(x, input, terms),
            ),
        };
        if self.values == Values::Integers {
            return exact::<T>(values, &magnitudes);
        }
        let counts = Counts::of(x);
        let underflow = smallest_normal(T::DTYPE) * self.amplification(x, terms);
        let unit = unit_roundoff(T::DTYPE);
        let bound = |(i, magnitude): (usize, &f64)| {
            let (roundings, operations) = counts.of_result(product, i);
            growth(roundings, unit) * magnitude + underflow * operations
        };
        let bounds = magnitudes.iter().enumerate().map(bound).collect();
        Truth { values, bounds }
    }

    /// The most that an absolute error is multiplied by on its way into the result.
    fn amplification(&self, x: &impl Rows, terms: &Terms<'_, T>) -> f64 {
        let entries = (0..x.rows()).flat_map(|row| x.entries(row).map(|(_, value)| value));
        let weights = terms
            .weights
            .unwrap_or(&[])
            .iter()
            .map(|v| Element::to_f64(*v));
        let alpha = Element::to_f64(terms.alpha);
        at_least_one(entries) * at_least_one(weights) * at_least_one([alpha].into_iter())
    }
}

/// The largest finite magnitude, or 1 if that is more.
fn at_least_one(values: impl Iterator<Item = f64>) -> f64 {
    values
        .map(f64::abs)
        .filter(|value| value.is_finite())
        .fold(1.0, f64::max)
}

fn exact<T: Number>(values: Vec<f64>, magnitudes: &[f64]) -> Truth {
    let largest = magnitudes.iter().fold(0.0, |max: f64, m| max.max(*m));
    let limit = 1.0 / unit_roundoff(T::DTYPE);
    assert!(
        largest < limit,
        "sums of integers up to {largest} are not exact in {}",
        T::DTYPE
    );
    Truth::exact(values)
}

/// How many terms the sums have.
struct Counts {
    rows: Vec<usize>,
    columns: Vec<usize>,
    longest: usize,
}

impl Counts {
    fn of(x: &impl Rows) -> Counts {
        let mut columns = vec![0; x.cols()];
        let mut rows = Vec::with_capacity(x.rows());
        for row in 0..x.rows() {
            let entries = x.entries(row).inspect(|(column, _)| columns[*column] += 1);
            rows.push(entries.count());
        }
        let longest = rows.iter().copied().max().unwrap_or(0);
        Counts {
            rows,
            columns,
            longest,
        }
    }

    /// The roundings that one term of result `i` passes through, and the operations behind it. Eight are
    /// for the products with x (twice), v, α, β, the shift, the last addition and the store.
    fn of_result(&self, product: Product, i: usize) -> (usize, f64) {
        match product {
            Product::Forward => (self.rows[i] + 8, (self.rows[i] + 8) as f64),
            Product::Transposed => (self.columns[i] + 8, 2.0 * (self.columns[i] + 8) as f64),
            Product::Fused => {
                let column = self.columns[i];
                (
                    self.longest + column + 8,
                    (self.longest + 8) as f64 * (column + 1) as f64,
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Pattern;
    use crate::sample::{FULL, PLAIN};
    use crate::tolerance::compare;

    fn sample(values: Values) -> Sample<f64> {
        Sample::new(1, (40, 30), Pattern::PerRow(6), values)
    }

    #[test]
    fn integers_allow_no_error() {
        let sample = sample(Values::Integers);
        let truth = sample.truth(Product::Fused, &sample.terms(Product::Fused, FULL));
        assert!(truth.bounds.iter().all(|bound| *bound == 0.0));
        assert!(truth.values.iter().any(|value| *value != 0.0));
    }

    #[test]
    fn missing_rows_are_noticed() {
        for values in [
            Values::Integers,
            Values::Uniform,
            Values::Huge,
            Values::Tiny,
        ] {
            let sample = sample(values);
            for product in [Product::Fused, Product::Forward, Product::Transposed] {
                let terms = sample.terms(product, FULL);
                let truth = sample.truth(product, &terms);
                let mut without = sample.weights.clone();
                // Several, because one of them may have the factor 0.
                without[5..9].fill(0.0);
                let less = Terms {
                    weights: Some(&without),
                    ..terms
                };
                let computed = sample.truth(product, &less).values;
                assert!(compare(&truth.values, &truth).is_ok(), "{values} {product}");
                assert!(compare(&computed, &truth).is_err(), "{values} {product}");
            }
        }
    }

    #[test]
    fn special_values_reach_the_result() {
        for values in [Values::Nan, Values::Infinity] {
            let sample = sample(values);
            let truth = sample.truth(Product::Fused, &sample.terms(Product::Fused, PLAIN));
            assert!(
                truth.values.iter().any(|value| !value.is_finite()),
                "{values}"
            );
            assert!(
                truth.values.iter().any(|value| value.is_finite()),
                "{values}"
            );
        }
    }

    #[test]
    fn a_transposed_product_has_no_shift() {
        let sample = sample(Values::Uniform);
        assert_eq!(sample.terms(Product::Transposed, FULL).shift, None);
        assert_eq!(sample.terms(Product::Fused, FULL).shift, Some(sample.shift));
        assert_eq!(sample.terms(Product::Fused, PLAIN), Terms::scaled(1.0, 0.0));
    }
}
