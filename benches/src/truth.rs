//! f64 results on the CPU, quick enough for the very matrices that are timed.

use anyhow::{Result, ensure};
use rayon::prelude::*;
use warpfuse::matrix::{Element, Features, Storage};
use warpfuse::plan::fused::Product;

/// Everything of the pattern besides X and the input vector, in host memory.
#[derive(Clone, Debug)]
pub struct HostTerms<'a, T> {
    /// α.
    pub alpha: f64,
    /// v.
    pub weights: Option<&'a [T]>,
    /// s.
    pub shift: f64,
    /// β and z.
    pub addend: Option<(f64, &'a [T])>,
}

impl<T> Default for HostTerms<'_, T> {
    fn default() -> Self {
        HostTerms {
            alpha: 1.0,
            weights: None,
            shift: 0.0,
            addend: None,
        }
    }
}

/// `product` of `x` in f64.
pub fn product<T: Element>(
    x: &Features<T>,
    product: Product,
    input: &[T],
    terms: &HostTerms<'_, T>,
) -> Vec<f64> {
    let input: Vec<f64> = input.par_iter().map(|value| value.to_f64()).collect();
    let rows = Rows::of(x);
    let (mut result, shift) = match product {
        Product::Transposed => (input, 0.0),
        Product::Fused | Product::Forward => (rows.dots(&input), terms.shift),
    };
    result.par_iter_mut().enumerate().for_each(|(row, value)| {
        let weight = terms.weights.map_or(1.0, |weights| weights[row].to_f64());
        *value = weight * (*value - shift);
    });
    if product != Product::Forward {
        result = rows.sum_of_rows(&result);
    }
    result.par_iter_mut().enumerate().for_each(|(i, value)| {
        *value = terms.alpha * *value + terms.addend.map_or(0.0, |(beta, z)| beta * z[i].to_f64());
    });
    result
}

/// ‖found − truth‖ / ‖truth‖; NaN where something is not finite.
pub fn relative_error<T: Element>(found: &[T], truth: &[f64]) -> f64 {
    let pairs = found.par_iter().zip(truth.par_iter());
    let squares = pairs.map(|(found, truth)| ((found.to_f64() - truth).powi(2), truth.powi(2)));
    let (error, norm) = squares.reduce(|| (0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    (error / norm).sqrt()
}

/// The error of a result that may be timed. f32 sums of 10⁷ terms stay below 10⁻⁵, f64 ones below 10⁻¹³; a
/// wrong index, or lower precision somewhere, is above the limits.
///
/// # Errors
/// When the lengths differ, or the error is too large or NaN.
pub fn checked_error<T: Element>(found: &[T], truth: &[f64]) -> Result<f64> {
    let (expected, length) = (truth.len(), found.len());
    ensure!(
        length == expected,
        "wrong result: {length} elements instead of {expected}"
    );
    let error = relative_error(found, truth);
    let limit = if size_of::<T>() == 4 { 1e-4 } else { 1e-11 };
    ensure!(
        error <= limit,
        "wrong result: relative error {error:.1e}, expected at most {limit:.0e}"
    );
    Ok(error)
}

/// The rows of a matrix as slices.
enum Rows<'a, T> {
    Dense {
        cols: usize,
        values: &'a [T],
    },
    Sparse {
        cols: usize,
        offsets: Vec<u64>,
        indices: &'a [u32],
        values: &'a [T],
    },
}

impl<'a, T: Element> Rows<'a, T> {
    fn of(x: &'a Features<T>) -> Self {
        let cols = x.cols();
        match x.storage() {
            Storage::Dense(x) => Rows::Dense {
                cols,
                values: x.to_slice().expect("benchmark data are row-major"),
            },
            Storage::Sparse(x) => {
                let offsets = x.proper_indptr().into_owned();
                Rows::Sparse {
                    cols,
                    offsets,
                    indices: x.indices(),
                    values: x.data(),
                }
            }
        }
    }

    fn rows(&self) -> usize {
        match self {
            Rows::Dense { cols, values } => values.len() / cols,
            Rows::Sparse { offsets, .. } => offsets.len() - 1,
        }
    }

    fn cols(&self) -> usize {
        match self {
            Rows::Dense { cols, .. } | Rows::Sparse { cols, .. } => *cols,
        }
    }

    /// Calls `visit` with the column and the value of each entry of a row.
    #[inline(always)]
    fn entries(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        match self {
            Rows::Dense { cols, values } => {
                let values = &values[row * cols..][..*cols];
                values
                    .iter()
                    .enumerate()
                    .for_each(|(column, value)| visit(column, value.to_f64()));
            }
            Rows::Sparse {
                offsets,
                indices,
                values,
                ..
            } => {
                let range = offsets[row] as usize..offsets[row + 1] as usize;
                let entries = indices[range.clone()].iter().zip(&values[range]);
                entries.for_each(|(&column, value)| visit(column as usize, value.to_f64()));
            }
        }
    }

    /// X·y.
    fn dots(&self, y: &[f64]) -> Vec<f64> {
        let dot = |row| {
            let mut sum = 0.0;
            self.entries(row, |column, value| sum += value * y[column]);
            sum
        };
        (0..self.rows()).into_par_iter().map(dot).collect()
    }

    /// Xᵀ·p; each thread has a w of its own.
    fn sum_of_rows(&self, p: &[f64]) -> Vec<f64> {
        let share = self.rows().div_ceil(rayon::current_num_threads()).max(1);
        let sum = |(part, p): (usize, &[f64])| {
            let mut w = vec![0.0; self.cols()];
            for (row, &p) in p.iter().enumerate() {
                self.entries(part * share + row, |column, value| w[column] += value * p);
            }
            w
        };
        let parts = p.par_chunks(share).enumerate().map(sum);
        parts
            .reduce_with(added)
            .unwrap_or_else(|| vec![0.0; self.cols()])
    }
}

fn added(mut a: Vec<f64>, b: Vec<f64>) -> Vec<f64> {
    a.par_iter_mut().zip(b).for_each(|(a, b)| *a += b);
    a
}

#[cfg(test)]
mod tests {
    use warpfuse::reference;

    use super::*;
    use crate::data;

    /// The library's reference, which its tests use, and this one agree.
    #[test]
    fn products_are_those_of_the_reference() {
        let (m, n) = (301, 40);
        let (y, p) = (data::values::<f64>(n, 5), data::values::<f64>(m, 6));
        let (v, z) = (data::values::<f64>(m, 7), data::values::<f64>(n, 8));
        let terms = HostTerms {
            alpha: 0.5,
            weights: Some(&v[..]),
            shift: 0.1,
            addend: Some((2.0, &z[..])),
        };
        let theirs = reference::fused::Terms {
            alpha: 0.5,
            weights: Some(&v[..]),
            shift: Some(0.1),
            beta: 2.0,
            z: Some(&z[..]),
        };
        let dense = Features::Dense(data::dense(m, n, 1));
        let sparse = Features::Sparse(data::stratified(m, n, 7, 2).expect("a valid matrix"));
        for x in [dense, sparse] {
            let fused = product(&x, Product::Fused, &y, &terms);
            assert!(checked_error(&fused, &reference::fused::fused(&x, &y, &theirs)).is_ok());
            let terms = HostTerms {
                shift: 0.0,
                ..terms.clone()
            };
            let theirs = reference::fused::Terms {
                shift: None,
                ..theirs
            };
            let transposed = product(&x, Product::Transposed, &p, &terms);
            assert!(
                checked_error(&transposed, &reference::fused::transposed(&x, &p, &theirs)).is_ok()
            );
            let forward = product(&x, Product::Forward, &y, &HostTerms::default());
            let alone = reference::fused::Terms::scaled(1.0, 0.0);
            assert!(checked_error(&forward, &reference::fused::forward(&x, &y, &alone)).is_ok());
        }
    }

    #[test]
    fn nan_a_missing_element_and_a_wrong_one_fail() {
        let truth = [1.0, 2.0, 3.0];
        assert!(checked_error(&[1.0_f32, 2.0, 3.0], &truth).is_ok());
        assert!(checked_error(&[1.0_f32, f32::NAN, 3.0], &truth).is_err());
        assert!(checked_error(&[1.0_f32, 2.0], &truth).is_err());
        assert!(checked_error(&[1.0_f32, 2.01, 3.0], &truth).is_err());
    }
}
