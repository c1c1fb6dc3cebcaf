//! Several right-hand sides on the CPU: `W = α·Xᵀ(V ⊙ (X·Y − s)) + β·Z` with row-major n × k arrays, and the halves.
//!
//! Rows are cut into chunks by shapes alone, each with a copy of W in f64; the copies are added in the order of the
//! chunks, so that the same bits come out whatever the number of threads. X is read once.

use std::ops::Range;

use super::chunks;
use super::fused::{ChunkedRows, for_each_piece};
use super::matrix::{Csr, Dense};
use super::scalar::Scalar;
use crate::parallel;

/// V.
#[derive(Debug, Clone, Copy)]
pub enum Weights<'a, T> {
    /// Ones.
    Absent,
    /// m elements: one weight of a row for all sides.
    OfRows(&'a [T]),
    /// m × k elements.
    OfEntries(&'a [T]),
}

/// What there is besides X and the input.
#[derive(Debug, Clone, Copy)]
pub struct ManyTerms<'a, T> {
    /// k.
    pub sides: usize,
    /// α.
    pub alpha: T,
    /// V.
    pub weights: Weights<'a, T>,
    /// s, k elements, subtracted from every row of X·Y.
    pub shift: Option<&'a [T]>,
    /// β and Z, as long as the result.
    pub addend: Option<(T, &'a [T])>,
}

impl<T: Scalar> ManyTerms<'_, T> {
    fn weight(&self, row: usize, side: usize) -> f64 {
        match self.weights {
            Weights::Absent => 1.0,
            Weights::OfRows(weights) => weights[row].into(),
            Weights::OfEntries(weights) => weights[row * self.sides + side].into(),
        }
    }

    /// Turns X·Y of one row into V ⊙ (X·Y − s).
    fn weigh(&self, row: usize, products: &mut [f64]) {
        for (side, product) in products.iter_mut().enumerate() {
            let shift = self.shift.map_or(0.0, |shift| shift[side].into());
            *product = self.weight(row, side) * (*product - shift);
        }
    }

    /// `out = α·sums + β·Z`, from element `first` of the result on.
    fn finish(&self, sums: &[f64], first: usize, out: &mut [T]) {
        let alpha: f64 = self.alpha.into();
        for (i, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
            let addend = self.addend.map_or(0.0, |(beta, z)| {
                let (beta, z): (f64, f64) = (beta.into(), z[first + i].into());
                beta * z
            });
            *out = T::narrow(alpha * sum + addend);
        }
    }
}

/// Where the rows that go into Xᵀ come from.
#[derive(Debug, Clone, Copy)]
pub enum ManyInput<'a, T> {
    /// The product with this Y, n × k.
    Product(&'a [T]),
    /// This P, m × k.
    Given(&'a [T]),
}

/// A storage whose rows can be listed. Sealed.
pub trait RowEntries<T>: ChunkedRows<T> {
    /// Calls `each(column, value)` for the stored entries of a row.
    fn each_entry(&self, row: usize, each: impl FnMut(usize, f64));
}

impl<T: Scalar> RowEntries<T> for Csr<'_, T> {
    #[inline(always)]
    fn each_entry(&self, row: usize, mut each: impl FnMut(usize, f64)) {
        let range = self.offsets()[row] as usize..self.offsets()[row + 1] as usize;
        let entries = self.indices()[range.clone()]
            .iter()
            .zip(&self.values()[range]);
        entries.for_each(|(&column, &value)| each(column as usize, value.into()));
    }
}

impl<T: Scalar> RowEntries<T> for Dense<'_, T> {
    #[inline(always)]
    fn each_entry(&self, row: usize, mut each: impl FnMut(usize, f64)) {
        let entries = self.row(row).iter().enumerate();
        entries.for_each(|(column, &value)| each(column, value.into()));
    }
}

/// `products = X[row]·Y`.
#[inline(always)]
fn multiply<T: Scalar>(x: &impl RowEntries<T>, row: usize, y: &[T], products: &mut [f64]) {
    products.fill(0.0);
    let sides = products.len();
    x.each_entry(row, |column, value| {
        let y = &y[column * sides..][..sides];
        for (product, &y) in products.iter_mut().zip(y) {
            let y: f64 = y.into();
            *product = value.mul_add(y, *product);
        }
    });
}

/// `P = α·V ⊙ (X·Y − s) + β·Z`: m × k elements from n × k.
///
/// # Panics
/// When lengths do not fit X and k.
pub fn forward<T: Scalar>(x: &impl RowEntries<T>, y: &[T], terms: &ManyTerms<'_, T>, p: &mut [T]) {
    let ((rows, cols), sides) = (x.shape(), terms.sides);
    assert_eq!((y.len(), p.len()), (cols * sides, rows * sides));
    if sides == 0 {
        return;
    }
    let chunks = x.row_chunks();
    let pieces = chunks::split_mut(p, chunks, |chunk| x.first_row(chunk, chunks) * sides);
    for_each_piece(pieces, |(start, p)| {
        let mut products = vec![0.0; sides];
        for (i, p) in p.chunks_mut(sides).enumerate() {
            let row = start / sides + i;
            multiply(x, row, y, &mut products);
            terms.weigh(row, &mut products);
            terms.finish(&products, row * sides, p);
        }
    });
}

/// `W = α·Xᵀ(V ⊙ (X·Y − s)) + β·Z`, or `W = α·Xᵀ(V ⊙ P) + β·Z`: n × k elements.
///
/// # Panics
/// When lengths do not fit X and k.
pub fn transpose<T: Scalar>(
    x: &impl RowEntries<T>,
    input: ManyInput<'_, T>,
    terms: &ManyTerms<'_, T>,
    w: &mut [T],
) {
    let ((rows, cols), sides) = (x.shape(), terms.sides);
    match input {
        ManyInput::Product(y) => assert_eq!(y.len(), cols * sides),
        ManyInput::Given(p) => assert_eq!(p.len(), rows * sides),
    }
    assert_eq!(w.len(), cols * sides);
    let chunks = x.copies();
    let sum = |chunk: usize| {
        let mut copy = vec![0.0; cols * sides];
        let rows = x.first_row(chunk, chunks)..x.first_row(chunk + 1, chunks);
        accumulate(x, rows, input, terms, &mut copy);
        copy
    };
    // A few at a time: their copies are the memory that this takes.
    let at_once = rayon::current_num_threads().max(1);
    let mut total = vec![0.0; cols * sides];
    for first in (0..chunks).step_by(at_once) {
        let count = at_once.min(chunks - first);
        for copy in parallel::map(count, |number| sum(first + number)) {
            total.iter_mut().zip(copy).for_each(|(w, part)| *w += part);
        }
    }
    terms.finish(&total, 0, w);
}

/// `w += X[rows]ᵀ·P`.
fn accumulate<T: Scalar>(
    x: &impl RowEntries<T>,
    rows: Range<usize>,
    input: ManyInput<'_, T>,
    terms: &ManyTerms<'_, T>,
    w: &mut [f64],
) {
    let sides = terms.sides;
    let unshifted = ManyTerms {
        shift: None,
        ..*terms
    };
    let mut p = vec![0.0; sides];
    for row in rows {
        match input {
            ManyInput::Product(y) => {
                multiply(x, row, y, &mut p);
                terms.weigh(row, &mut p);
            }
            ManyInput::Given(given) => {
                let given = &given[row * sides..][..sides];
                p.iter_mut()
                    .zip(given)
                    .for_each(|(p, &given)| *p = given.into());
                unshifted.weigh(row, &mut p);
            }
        }
        x.each_entry(row, |column, value| {
            let w = &mut w[column * sides..][..sides];
            w.iter_mut()
                .zip(&p)
                .for_each(|(w, p)| *w = value.mul_add(*p, *w));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{self, Addend, Terms, Workspace};

    /// Each column of the result is that of a single right-hand side.
    #[test]
    fn sides_are_products_of_their_own() {
        let (m, n, k) = (3, 2, 2);
        let values = [1.0, 2.0, 0.0, 3.0, -1.0, 0.5];
        let x = Dense::new(m, n, n, &values).expect("six values");
        let (y, z) = ([1.0, 2.0, -1.0, 0.5], [1.0, 0.0, 2.0, -3.0]);
        let weights = [1.0, 2.0, 0.5, -1.0, 3.0, 1.0];
        let terms = ManyTerms {
            sides: k,
            alpha: 2.0,
            weights: Weights::OfEntries(&weights),
            shift: Some(&[0.5, -0.5]),
            addend: Some((3.0, &z)),
        };
        let mut w = [f64::NAN; 4];
        transpose(&x, ManyInput::Product(&y), &terms, &mut w);
        for side in 0..k {
            let of =
                |all: &[f64]| -> Vec<f64> { all.iter().skip(side).step_by(k).copied().collect() };
            let (weights, z) = (of(&weights), of(&z));
            let single = Terms {
                weights: Some(&weights),
                shift: Some([0.5, -0.5][side]),
                addend: Addend::Vector { beta: 3.0, z: &z },
                ..Terms::scaled(2.0)
            };
            let mut expected = [0.0; 2];
            cpu::fused(&x, &of(&y), &single, &mut expected, &mut Workspace::new());
            assert_eq!(of(&w), expected);
        }
    }
}
