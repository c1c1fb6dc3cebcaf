//! X with all vectors and scalars of the pattern, and the truth for any choice of them.

use std::fmt;
use std::sync::Arc;

use warpfuse::matrix::{Element, Features};
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse::reference::Rows;
use warpfuse::reference::fused::{self, Terms};

use crate::generate::{Pattern, Random, matrix};
use crate::tolerance::{Truth, growth, smallest_normal, unit_roundoff};

/// An optional part of the pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// α other than 1.
    Alpha,
    /// v.
    Weights,
    /// s.
    Shift,
    /// β·z.
    Addend,
}

/// Nothing but X and its input.
pub const PLAIN: &[Part] = &[];
/// Every part at once.
pub const FULL: &[Part] = &[Part::Alpha, Part::Weights, Part::Shift, Part::Addend];

/// What the numbers are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Values {
    /// Small integers: every order of summation gives the same result, exactly.
    Integers,
    /// Uniform in (−1, 1).
    Uniform,
    /// X about 10³⁰, its inputs about 10⁻³⁰.
    Huge,
    /// X about 10⁻³⁰, its inputs about 10³⁰.
    Tiny,
    /// X subnormal, y large enough that X·y is not: shows whether inputs are flushed to zero.
    Subnormal,
    /// One NaN in X.
    Nan,
    /// One infinity in X.
    Infinity,
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Values::Integers => "integers",
            Values::Uniform => "uniform",
            Values::Huge => "huge",
            Values::Tiny => "tiny",
            Values::Subnormal => "subnormal",
            Values::Nan => "nan",
            Values::Infinity => "infinity",
        })
    }
}

/// Magnitudes of a sample's numbers.
struct Scales {
    x: f64,
    input: f64,
    result: f64,
}

impl Values {
    fn scales<T: Number>(self) -> Scales {
        let scales = |x, input, result| Scales { x, input, result };
        match self {
            Values::Integers | Values::Uniform | Values::Nan | Values::Infinity => {
                scales(1.0, 1.0, 1.0)
            }
            Values::Huge => scales(1e30, 1e-30, 1.0),
            Values::Tiny => scales(1e-30, 1e30, 1e-30),
            Values::Subnormal => scales(smallest_normal(T::DTYPE), f64::powi(2.0, 100), 1e-30),
        }
    }
}

/// X, m × n, with everything that the pattern takes.
#[derive(Debug, Clone)]
pub struct Sample<T> {
    /// X.
    pub features: Arc<Features<T>>,
    /// y, n elements.
    pub y: Vec<T>,
    /// p, m elements.
    pub p: Vec<T>,
    /// v, m elements.
    pub weights: Vec<T>,
    /// s.
    pub shift: T,
    /// z of a result with m elements.
    pub tall_addend: Vec<T>,
    /// z of a result with n elements.
    pub wide_addend: Vec<T>,
    /// α.
    pub alpha: T,
    /// β.
    pub beta: T,
    values: Values,
}

impl<T: Number> Sample<T> {
    /// Draws everything from `seed`.
    pub fn new(seed: u64, shape: (usize, usize), pattern: Pattern, values: Values) -> Self {
        let random = &mut Random::new(seed);
        let (rows, cols) = shape;
        let Scales { x, input, result } = values.scales::<T>();
        let draw = |limit: usize, scale: f64| {
            move |random: &mut Random| match values {
                Values::Integers => random.integer(limit),
                _ => scale * random.signed(),
            }
        };
        let mut features = matrix(random, shape, pattern, draw(1, x));
        match values {
            Values::Nan => spoil(&mut features, f64::NAN),
            Values::Infinity => spoil(&mut features, f64::INFINITY),
            _ => {}
        }
        let mut vector = |len: usize, mut value: Box<dyn Fn(&mut Random) -> f64>| -> Vec<T> {
            (0..len).map(|_| of(value.as_mut()(random))).collect()
        };
        let whole = values == Values::Integers;
        Sample {
            features: Arc::new(features),
            y: vector(cols, Box::new(draw(1, input))),
            p: vector(rows, Box::new(draw(1, input))),
            weights: vector(rows, Box::new(draw(2, 1.0))),
            tall_addend: vector(rows, Box::new(draw(8, result))),
            wide_addend: vector(cols, Box::new(draw(8, result))),
            shift: of(if whole { 2.0 } else { 0.37 * x * input }),
            alpha: of(if whole { 3.0 } else { 1.7 }),
            beta: of(if whole { -2.0 } else { -0.6 }),
            values,
        }
    }

    /// The vector that a product takes.
    pub fn input(&self, product: Product) -> &[T] {
        match product {
            Product::Fused | Product::Forward => &self.y,
            Product::Transposed => &self.p,
        }
    }

    /// z of a product.
    pub fn addend(&self, product: Product) -> &[T] {
        match product {
            Product::Forward => &self.tall_addend,
            Product::Fused | Product::Transposed => &self.wide_addend,
        }
    }

    /// The chosen parts as the reference takes them. Xᵀ·p has no shift.
    pub fn terms(&self, product: Product, parts: &[Part]) -> Terms<'_, T> {
        let has = |part| parts.contains(&part);
        let shifts = has(Part::Shift) && product != Product::Transposed;
        Terms {
            alpha: if has(Part::Alpha) {
                self.alpha
            } else {
                of(1.0)
            },
            weights: has(Part::Weights).then_some(&self.weights),
            shift: shifts.then_some(self.shift),
            beta: if has(Part::Addend) {
                self.beta
            } else {
                of(0.0)
            },
            z: has(Part::Addend).then(|| self.addend(product)),
        }
    }

    /// The true result of a product with these terms, and how far a computed one may be from it.
    ///
    /// # Panics
    /// When the sample is of integers, and too large for their sums to be exact.
    pub fn truth(&self, product: Product, terms: &Terms<'_, T>) -> Truth {
        match &*self.features {
            Features::Sparse(x) => self.truth_of(x, product, terms),
            Features::Dense(x) => self.truth_of(x, product, terms),
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

fn of<T: Number>(value: f64) -> T {
    <T as Element>::from_f64(value)
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

/// Puts `value` into the middle of the stored entries, if there are any.
fn spoil<T: Number>(features: &mut Features<T>, value: f64) {
    let entries = match features {
        Features::Sparse(x) => x.data_mut(),
        Features::Dense(x) => x.as_slice_mut().expect("generated row by row"),
    };
    let middle = entries.len() / 2;
    if let Some(entry) = entries.get_mut(middle) {
        *entry = of(value);
    }
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
    fn a_missing_row_is_noticed() {
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
                without[7] = 0.0;
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
