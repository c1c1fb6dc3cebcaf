//! X with all vectors and scalars of the pattern, and the truth for any choice of them.

use std::fmt;
use std::sync::Arc;

use warpfuse::matrix::{Element, Features, with_entries};
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse::reference::fused::Terms;

use crate::generate::{Pattern, Random, matrix};
use crate::tolerance::smallest_normal;

mod truth;

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

    /// The same with other values in a sparse X: `value` of the row and of what was there.
    pub fn with_entries(mut self, value: impl Fn(usize, f64) -> f64) -> Self {
        let mut features = (*self.features).clone();
        if let Features::Sparse(x) = &mut features {
            *x = with_entries(x, |row, entry| of(value(row, Element::to_f64(entry))));
        }
        self.features = Arc::new(features);
        self
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
}

fn of<T: Number>(value: f64) -> T {
    <T as Element>::from_f64(value)
}

/// Puts `value` into the middle of the stored entries, if there are any.
fn spoil<T: Number>(features: &mut Features<T>, value: f64) {
    let put = |entries: &mut [T]| {
        let middle = entries.len() / 2;
        if let Some(entry) = entries.get_mut(middle) {
            *entry = of(value);
        }
    };
    match features {
        Features::Sparse(x) => {
            let mut values = x.data().to_vec();
            put(&mut values);
            let mut values = values.into_iter();
            *x = with_entries(x, |_, _| values.next().expect("as many as before"));
        }
        Features::Dense(x) => put(x.as_slice_mut().expect("generated row by row")),
        Features::Narrow(_) | Features::Shared(_) => unreachable!("samples own their features"),
    }
}
