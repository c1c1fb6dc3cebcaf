//! Sparse products whose bits are the same on every run and every device.
//!
//! Dot products add in the order of the GPU's lanes, and columns are summed as the fixed-point integers of
//! [`gpu_kernels::fused::fixed_point`], in any order. Everything that rounds is that module's, so the kernels and
//! this file cannot differ.
//!
//! The rows may be part of a larger matrix ([`Whole`]), of which others have the rest: exponents and [`Ranges`] are the
//! greatest of all parts, sums the sums of theirs, and the bits are those of the whole.

pub use gpu_kernels::fused::fixed_point::Ranges;
use gpu_kernels::fused::fixed_point::{self, FixedPoint, Total, column_exponent, lanes_per_row};
use rayon::prelude::*;

use super::chunks;
use super::fused::{ChunkedRows, for_each_piece};
use super::matrix::Csr;
use super::scalar::Scalar;
use super::terms::{Addend, Terms};

/// Entries that one task looks at when columns are scaled.
const ENTRIES_PER_TASK: usize = 1 << 20;

/// The exponents that the columns of a matrix are scaled by; of its values alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    exponents: Vec<i32>,
    has_non_finite: bool,
}

impl Columns {
    /// Looks at all values of `x`.
    pub fn of<T: Scalar + FixedPoint>(x: &Csr<'_, T>) -> Columns {
        let cols = x.cols();
        let tasks = x
            .indices()
            .par_chunks(ENTRIES_PER_TASK.max(cols))
            .zip(x.values().par_chunks(ENTRIES_PER_TASK.max(cols)));
        let fields = tasks.map(|(indices, values)| largest_fields(cols, indices, values));
        let (fields, has_non_finite) = fields.reduce(
            || (vec![0; cols], false),
            |a, b| (larger(a.0, &b.0), a.1 || b.1),
        );
        Columns {
            exponents: fields.into_iter().map(column_exponent::<T>).collect(),
            has_non_finite,
        }
    }
}

impl Columns {
    /// One exponent for each column: of parts of a matrix, the greatest of theirs are those of the whole.
    pub fn exponents_mut(&mut self) -> &mut [i32] {
        &mut self.exponents
    }

    /// The range of y with every element scaled like its column, also where that is more than T holds.
    fn range_of_scaled<T: FixedPoint>(&self, y: &[T]) -> u32 {
        let scaled = y.iter().zip(&self.exponents);
        scaled.fold(0, |most, (y, e)| fixed_point::range_of_scaled(most, *y, *e))
    }
}

/// What sums depend on of the whole matrix, of which X may be some rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole {
    /// m.
    pub rows: u64,
    /// Stored entries.
    pub entries: u64,
    /// Entries of the longest row.
    pub longest: u64,
}

impl Whole {
    /// X itself.
    pub fn of<T: Scalar>(x: &Csr<'_, T>) -> Whole {
        let lengths = x.offsets().windows(2).map(|ends| ends[1] - ends[0]);
        Whole {
            rows: x.rows() as u64,
            entries: x.nnz() as u64,
            longest: u64::from(lengths.max().unwrap_or(0) as u32),
        }
    }

    fn lanes(&self) -> usize {
        lanes_per_row(self.rows, self.entries, self.longest) as usize
    }
}

fn largest_fields<T: FixedPoint>(cols: usize, indices: &[u32], values: &[T]) -> (Vec<u32>, bool) {
    let (mut fields, mut has_non_finite) = (vec![0; cols], false);
    for (&column, value) in indices.iter().zip(values) {
        match value.exponent_field() {
            field if field == T::NON_FINITE => has_non_finite = true,
            field => {
                let largest = &mut fields[column as usize];
                *largest = field.max(*largest);
            }
        }
    }
    (fields, has_non_finite)
}

fn larger(mut a: Vec<u32>, b: &[u32]) -> Vec<u32> {
    a.iter_mut().zip(b).for_each(|(a, b)| *a = (*a).max(*b));
    a
}

/// The largest exponent field of the finite values.
fn range<T: FixedPoint>(values: impl IntoIterator<Item = T>) -> u32 {
    let fields = values.into_iter().map(FixedPoint::exponent_field);
    fields
        .filter(|field| *field != T::NON_FINITE)
        .max()
        .unwrap_or(0)
}

/// What rows are multiplied by besides X.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a, T> {
    /// y of n elements: `w = α·Xᵀ(v ⊙ (X·y − shift)) + β·z`.
    Product(&'a [T]),
    /// p of m elements: `w = α·Xᵀ(v ⊙ p) + β·z`.
    Given(&'a [T]),
    /// The same of p that is known to be bounded by something.
    Bounded(&'a [T], Within<'a, T>),
}

/// What p of m elements is bounded by before it is known: `v ⊙ (q − s)`, with q = X·y or given. Sums have the scale of the
/// product with these vectors then.
#[derive(Debug, Clone, Copy)]
pub struct Within<'a, T> {
    /// Whether q is X·y.
    pub of_product: bool,
    /// y, or q of the rows of X.
    pub input: &'a [T],
    /// v, of the rows of X; ones when absent.
    pub weights: Option<&'a [T]>,
    /// s, or −s.
    pub shift: Option<T>,
}

/// A product over some rows, with the scales that it is computed in.
pub struct Walk<'a, T> {
    x: &'a Csr<'a, T>,
    columns: &'a Columns,
    lanes: usize,
    ranges: Ranges,
    /// y with every element scaled like its column.
    y: Option<Vec<T>>,
    p: &'a [T],
    weights: Option<&'a [T]>,
    shift: T,
    scale: i32,
}

/// The sum of one column.
#[derive(Debug, Clone, Copy)]
pub struct Sum<T> {
    /// The high words; they wrap.
    pub high: i64,
    /// The low words; they wrap.
    pub low: u64,
    /// What is infinite or NaN.
    pub special: T,
}

impl<T: Scalar + FixedPoint> Sum<T> {
    const ZERO: Sum<T> = Sum {
        high: 0,
        low: 0,
        special: <T as gpu_kernels::Real>::ZERO,
    };

    fn add(&mut self, product: T) {
        if product.exponent_field() == T::NON_FINITE {
            self.special = self.special + product;
        } else {
            let fixed = product.to_fixed();
            self.high = self.high.wrapping_add(fixed.high);
            self.low = self.low.wrapping_add(u64::from(fixed.low));
        }
    }

    fn merge(&mut self, other: &Sum<T>) {
        self.high = self.high.wrapping_add(other.high);
        self.low = self.low.wrapping_add(other.low);
        self.special = self.special + other.special;
    }
}

impl<'a, T: Scalar + FixedPoint> Walk<'a, T> {
    /// `Xᵀ(v ⊙ (X·y − shift))` or `Xᵀ(v ⊙ p)` over the rows of `x`; p and v are those of its rows.
    ///
    /// # Panics
    /// When the length of y or p or v does not fit X, or `columns` are those of another matrix.
    pub fn new(
        (x, whole): (&'a Csr<'a, T>, &Whole),
        columns: &'a Columns,
        input: Input<'a, T>,
        terms: &Terms<'a, T>,
    ) -> Self {
        let (rows, cols) = (x.rows(), x.cols());
        match input {
            Input::Product(y) => assert_eq!(y.len(), cols, "y needs one element per column of X"),
            Input::Given(p) => assert_eq!(p.len(), rows, "p needs one element per row of X"),
            Input::Bounded(p, within) => {
                assert_eq!(p.len(), rows, "p needs one element per row of X");
                let (given, needed) = match within.of_product {
                    true => (within.input.len(), cols),
                    false => (within.input.len(), rows),
                };
                assert_eq!(given, needed, "y or q has as many elements");
            }
        }
        assert_eq!(columns.exponents.len(), cols, "exponents are those of X");
        terms.check(rows, cols);
        let (y, p, shift) = match input {
            Input::Product(y) => {
                let scaled = y.iter().zip(&columns.exponents).map(|(y, e)| y.scaled(*e));
                (Some(scaled.collect::<Vec<T>>()), &[][..], terms.shift)
            }
            Input::Given(p) | Input::Bounded(p, _) => (None, p, None),
        };
        let of_weights = |weights: Option<&[T]>| {
            let one = T::BIAS as u32 + 1;
            weights.map_or(one, |v| range(v.iter().copied()))
        };
        let ranges = match input {
            Input::Bounded(_, within) => {
                let (input, longest) = match within.of_product {
                    true => (columns.range_of_scaled(within.input), whole.longest as u32),
                    false => (range(within.input.iter().copied()), 1),
                };
                Ranges {
                    input,
                    weights: of_weights(within.weights),
                    shift: range(within.shift),
                    longest,
                    rows: whole.rows,
                }
            }
            _ => Ranges {
                input: y
                    .as_ref()
                    .map_or_else(|| range(p.iter().copied()), |y| range(y.iter().copied())),
                weights: of_weights(terms.weights),
                shift: range(shift),
                longest: y.as_ref().map_or(1, |_| whole.longest as u32),
                rows: whole.rows,
            },
        };
        Walk {
            x,
            columns,
            lanes: whole.lanes(),
            ranges,
            y,
            p,
            weights: terms.weights,
            shift: shift.unwrap_or(T::ZERO),
            scale: ranges.scale::<T>(),
        }
    }

    /// What these rows have.
    pub fn ranges(&self) -> Ranges {
        self.ranges
    }

    /// With the ranges of all rows: the greatest of all parts.
    #[must_use]
    pub fn within(self, ranges: Ranges) -> Self {
        Walk {
            ranges,
            scale: ranges.scale::<T>(),
            ..self
        }
    }

    /// The sums of the columns over these rows.
    pub fn sums(&self) -> Vec<Sum<T>> {
        let (x, cols) = (self.x, self.x.cols());
        let chunks = ChunkedRows::copies(x);
        let of_chunk = |chunk: usize| {
            let mut sums = vec![Sum::ZERO; cols];
            let rows = x.first_row(chunk, chunks)..x.first_row(chunk + 1, chunks);
            self.add_rows(rows, self.lanes, &mut sums);
            sums
        };
        let merge = |mut a: Vec<Sum<T>>, b: Vec<Sum<T>>| {
            a.iter_mut().zip(&b).for_each(|(a, b)| a.merge(b));
            a
        };
        let sums = (0..chunks).into_par_iter().map(of_chunk).reduce_with(merge);
        sums.unwrap_or_else(|| vec![Sum::ZERO; cols])
    }

    /// `w = α·sums + β·z`, of the sums over all rows.
    ///
    /// # Panics
    /// When the length of `w` or z does not fit X.
    pub fn finish(&self, sums: &[Sum<T>], terms: &Terms<'_, T>, w: &mut [T]) {
        assert_eq!(
            w.len(),
            self.x.cols(),
            "w needs one element per column of X"
        );
        for (j, (w, sum)) in w.iter_mut().zip(sums).enumerate() {
            let (beta, z) = addend(terms, j, *w);
            *w = self.total(j, sum).result(terms.alpha, beta, z);
        }
    }

    /// Adds the rows of one chunk.
    fn add_rows(&self, rows: std::ops::Range<usize>, lanes: usize, sums: &mut [Sum<T>]) {
        let mut scaled = Vec::new();
        for row in rows {
            let (indices, values) = entries(self.x, row);
            scaled.clear();
            let exponents = indices.iter().map(|j| self.columns.exponents[*j as usize]);
            scaled.extend(values.iter().zip(exponents).map(|(x, e)| x.scaled(-e)));
            let p = match &self.y {
                Some(y) => dot(indices, &scaled, y, lanes) - self.shift,
                None => self.p[row],
            };
            let p = p * self
                .weights
                .map_or(<T as gpu_kernels::Real>::ONE, |v| v[row]);
            let is_finite = p.exponent_field() != T::NON_FINITE;
            let p = if is_finite { p.scaled(self.scale) } else { p };
            for (&column, &x) in indices.iter().zip(&scaled) {
                sums[column as usize].add(x * p);
            }
        }
    }

    fn total(&self, column: usize, sum: &Sum<T>) -> Total<T> {
        Total {
            high: sum.high,
            low: sum.low,
            exponent: self.columns.exponents[column] - self.scale,
            special: sum.special,
        }
    }
}

fn entries<'a, T: Scalar>(x: &Csr<'a, T>, row: usize) -> (&'a [u32], &'a [T]) {
    let range = x.offsets()[row] as usize..x.offsets()[row + 1] as usize;
    (&x.indices()[range.clone()], &x.values()[range])
}

/// A row times y as `lanes` lanes add it up: entry k in lane k mod lanes, then a butterfly.
fn dot<T: FixedPoint>(indices: &[u32], values: &[T], y: &[T], lanes: usize) -> T {
    let mut sums = [T::ZERO; 32];
    for (k, (&column, value)) in indices.iter().zip(values).enumerate() {
        let sum = &mut sums[k % lanes];
        *sum = value.fma(y[column as usize], *sum);
    }
    let mut distance = lanes / 2;
    while distance > 0 {
        for lane in 0..distance {
            sums[lane] = sums[lane] + sums[lane + distance];
        }
        distance /= 2;
    }
    sums[0]
}

/// `w = α·Xᵀ(v ⊙ (X·y − shift)) + β·z`, or `w = α·Xᵀ(v ⊙ p) + β·z`, with the bits of the GPU.
///
/// # Panics
/// When the length of y or p, `w`, v or z does not fit X, or `columns` are those of another matrix.
pub fn transpose<T: Scalar + FixedPoint>(
    x: &Csr<'_, T>,
    columns: &Columns,
    input: Input<'_, T>,
    terms: &Terms<'_, T>,
    w: &mut [T],
) {
    let walk = Walk::new((x, &Whole::of(x)), columns, input, terms);
    walk.finish(&walk.sums(), terms, w);
}

fn addend<T: Scalar + FixedPoint>(terms: &Terms<'_, T>, i: usize, before: T) -> (T, T) {
    match terms.addend {
        Addend::None => (T::ZERO, T::ZERO),
        Addend::Vector { beta, z } => (beta, z[i]),
        Addend::InPlace { beta } => (beta, before),
    }
}

/// `p = α·v ⊙ (X·y − shift) + β·z`, with the bits of the GPU.
///
/// # Panics
/// When the length of `y`, `p`, v or z does not fit X.
pub fn forward<T: Scalar + FixedPoint>(x: &Csr<'_, T>, y: &[T], terms: &Terms<'_, T>, p: &mut [T]) {
    forward_of((x, &Whole::of(x)), y, terms, p);
}

/// [`forward`] over some rows of the whole; v, z and p are those of these rows.
///
/// # Panics
/// As [`forward`].
pub fn forward_of<T: Scalar + FixedPoint>(
    (x, whole): (&Csr<'_, T>, &Whole),
    y: &[T],
    terms: &Terms<'_, T>,
    p: &mut [T],
) {
    assert_eq!(y.len(), x.cols(), "y needs one element per column of X");
    assert_eq!(p.len(), x.rows(), "p needs one element per row of X");
    terms.check(x.rows(), x.rows());
    let (count, lanes) = (ChunkedRows::row_chunks(x), whole.lanes());
    let shift = terms.shift.unwrap_or(T::ZERO);
    let pieces = chunks::split_mut(p, count, |chunk| x.first_row(chunk, count));
    for_each_piece(pieces, |(first, p)| {
        for (row, p) in (first..).zip(p) {
            let (indices, values) = entries(x, row);
            let weight = terms
                .weights
                .map_or(<T as gpu_kernels::Real>::ONE, |v| v[row]);
            let product = (dot(indices, values, y, lanes) - shift) * weight;
            let (beta, z) = addend(terms, row, *p);
            *p = terms.alpha.fma(product, beta * z);
        }
    });
}
