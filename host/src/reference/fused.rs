//! `w = α·Xᵀ(v ⊙ (X·y − shift)) + β·z` and its two halves, in f64, with error bounds.

use super::Rows;
use super::rounding::gamma;
use super::rows::Magnitudes;

/// Everything of the pattern besides X and the input vector. Absent parts are `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms<'a, T> {
    /// α.
    pub alpha: T,
    /// v, m elements.
    pub weights: Option<&'a [T]>,
    /// A scalar subtracted from every element of X·y.
    pub shift: Option<T>,
    /// β, multiplied with z; without effect when z is absent.
    pub beta: T,
    /// z, as long as the result.
    pub z: Option<&'a [T]>,
}

impl<T> Terms<'_, T> {
    /// α alone: no v, no shift, no z.
    pub fn scaled(alpha: T, beta: T) -> Self {
        Terms {
            alpha,
            weights: None,
            shift: None,
            beta,
            z: None,
        }
    }
}

/// `w = α·Xᵀ(v ⊙ (X·y − shift)) + β·z`: n elements from `y` of n elements.
///
/// # Panics
/// When the length of `y`, v or z does not fit X.
///
/// ```
/// use ndarray::array;
/// use warpfuse::reference::fused::{Terms, fused};
/// let x = array![[1.0f32, 2.0], [0.0, 3.0]];
/// let terms = Terms { weights: Some(&[2.0, 1.0]), ..Terms::scaled(1.0, 0.0) };
/// assert_eq!(fused(&x, &[1.0, 1.0], &terms), [6.0, 21.0]);
/// ```
pub fn fused<T: Copy + Into<f64>>(x: &impl Rows, y: &[T], terms: &Terms<T>) -> Vec<f64> {
    Widened::new(terms).fused(x, &widen(y))
}

/// `p = α·v ⊙ (X·y − shift) + β·z`: m elements from `y` of n elements.
///
/// # Panics
/// When the length of `y`, v or z does not fit X.
pub fn forward<T: Copy + Into<f64>>(x: &impl Rows, y: &[T], terms: &Terms<T>) -> Vec<f64> {
    Widened::new(terms).forward(x, &widen(y))
}

/// `w = α·Xᵀ(v ⊙ p) + β·z`: n elements from `p` of m elements. The shift belongs to X·y: p has been shifted already.
///
/// # Panics
/// When the length of `p`, v or z does not fit X.
pub fn transposed<T: Copy + Into<f64>>(x: &impl Rows, p: &[T], terms: &Terms<T>) -> Vec<f64> {
    Widened::new(terms).transposed(x, &widen(p))
}

/// `|α|·|X|ᵀ(|v| ⊙ (|X|·|y| + |shift|)) + |β·z|`: what errors of [`fused`] are relative to.
///
/// # Panics
/// As [`fused`].
pub fn fused_magnitude<T: Copy + Into<f64>>(x: &impl Rows, y: &[T], terms: &Terms<T>) -> Vec<f64> {
    Widened::new(terms)
        .magnitudes()
        .fused(&Magnitudes(x), &magnitudes(&widen(y)))
}

/// `|α|·|v| ⊙ (|X|·|y| + |shift|) + |β·z|`: what errors of [`forward`] are relative to.
///
/// # Panics
/// As [`forward`].
pub fn forward_magnitude<T: Copy + Into<f64>>(
    x: &impl Rows,
    y: &[T],
    terms: &Terms<T>,
) -> Vec<f64> {
    Widened::new(terms)
        .magnitudes()
        .forward(&Magnitudes(x), &magnitudes(&widen(y)))
}

/// `|α|·|X|ᵀ(|v| ⊙ |p|) + |β·z|`: what errors of [`transposed`] are relative to.
///
/// # Panics
/// As [`transposed`].
pub fn transposed_magnitude<T: Copy + Into<f64>>(
    x: &impl Rows,
    p: &[T],
    terms: &Terms<T>,
) -> Vec<f64> {
    Widened::new(terms)
        .magnitudes()
        .transposed(&Magnitudes(x), &magnitudes(&widen(p)))
}

/// The roundings that a term of the pattern can pass through, in any order of summation.
///
/// One per addition of the longest row's dot product, one per addition over the rows, and at most
/// eight for the products with x (twice), v, α, β, the shift, the last addition and the final store.
pub fn roundings(x: &impl Rows) -> usize {
    let longest_row = (0..x.rows())
        .map(|row| x.entries(row).count())
        .max()
        .unwrap_or(0);
    longest_row + x.rows() + 8
}

/// Bounds for `|computed − fused|` when everything is computed with unit roundoff `unit`.
///
/// Holds for every order of summation, barring underflow. See [`super::rounding`] for the source.
///
/// # Panics
/// As [`fused`].
pub fn error_bound<T: Copy + Into<f64>>(
    x: &impl Rows,
    y: &[T],
    terms: &Terms<T>,
    unit: f64,
) -> Vec<f64> {
    let gamma = gamma(roundings(x), unit);
    fused_magnitude(x, y, terms)
        .iter()
        .map(|magnitude| gamma * magnitude)
        .collect()
}

/// [`Terms`] in f64, owned.
struct Widened {
    alpha: f64,
    weights: Option<Vec<f64>>,
    shift: f64,
    addend: Option<Vec<f64>>,
}

impl Widened {
    fn new<T: Copy + Into<f64>>(terms: &Terms<T>) -> Self {
        let beta: f64 = terms.beta.into();
        Widened {
            alpha: terms.alpha.into(),
            weights: terms.weights.map(widen),
            shift: terms.shift.map_or(0.0, Into::into),
            addend: terms
                .z
                .map(|z| z.iter().map(|&z| beta * z.into()).collect()),
        }
    }

    fn magnitudes(&self) -> Self {
        Widened {
            alpha: self.alpha.abs(),
            weights: self.weights.as_deref().map(magnitudes),
            // Subtracted, so that its magnitude is added.
            shift: -self.shift.abs(),
            addend: self.addend.as_deref().map(magnitudes),
        }
    }

    fn fused(&self, x: &impl Rows, y: &[f64]) -> Vec<f64> {
        self.transpose_weighted(x, &self.weigh(self.shifted(&product(x, y))))
    }

    fn transposed(&self, x: &impl Rows, p: &[f64]) -> Vec<f64> {
        assert_eq!(p.len(), x.rows(), "p needs one element per row of X");
        self.transpose_weighted(x, &self.weigh(p.to_vec()))
    }

    fn forward(&self, x: &impl Rows, y: &[f64]) -> Vec<f64> {
        let weighted = self.weigh(self.shifted(&product(x, y)));
        self.scale_and_add(weighted)
    }

    /// `p − shift`.
    fn shifted(&self, p: &[f64]) -> Vec<f64> {
        p.iter().map(|p| p - self.shift).collect()
    }

    /// `v ⊙ p`.
    fn weigh(&self, mut p: Vec<f64>) -> Vec<f64> {
        if let Some(weights) = &self.weights {
            assert_eq!(weights.len(), p.len(), "v needs one element per row of X");
            p.iter_mut().zip(weights).for_each(|(p, v)| *p *= v);
        }
        p
    }

    fn transpose_weighted(&self, x: &impl Rows, weighted: &[f64]) -> Vec<f64> {
        let mut w = vec![0.0; x.cols()];
        for (row, p) in weighted.iter().enumerate() {
            for (column, value) in x.entries(row) {
                w[column] += value * p;
            }
        }
        self.scale_and_add(w)
    }

    fn scale_and_add(&self, mut result: Vec<f64>) -> Vec<f64> {
        if let Some(addend) = &self.addend {
            assert_eq!(
                addend.len(),
                result.len(),
                "z needs the length of the result"
            );
        }
        for (i, value) in result.iter_mut().enumerate() {
            *value *= self.alpha;
            if let Some(addend) = &self.addend {
                *value += addend[i];
            }
        }
        result
    }
}

fn product(x: &impl Rows, y: &[f64]) -> Vec<f64> {
    assert_eq!(y.len(), x.cols(), "y needs one element per column of X");
    (0..x.rows())
        .map(|row| {
            x.entries(row)
                .map(|(column, value)| value * y[column])
                .sum()
        })
        .collect()
}

fn widen<T: Copy + Into<f64>>(values: &[T]) -> Vec<f64> {
    values.iter().map(|&value| value.into()).collect()
}

fn magnitudes(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.abs()).collect()
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;
    use crate::matrix::CsrMatrix;

    fn full() -> Terms<'static, f64> {
        Terms {
            alpha: 2.0,
            weights: Some(&[1.0, -1.0]),
            shift: Some(1.0),
            beta: 3.0,
            z: Some(&[1.0, 0.0, -1.0]),
        }
    }

    fn dense() -> Array2<f64> {
        array![[1.0, 0.0, 2.0], [0.0, -3.0, 0.0]]
    }

    fn sparse() -> CsrMatrix<f64> {
        let (offsets, indices) = (vec![0, 2, 3], vec![0, 2, 1]);
        let values = vec![1.0, 2.0, -3.0];
        CsrMatrix::new((2, 3), offsets.into(), indices.into(), values.into())
    }

    #[test]
    fn every_term_by_hand() {
        // X·y = (7, -6); minus 1: (6, -7); times v: (6, 7); Xᵀ: (6, -21, 12).
        let y = [1.0, 2.0, 3.0];
        assert_eq!(fused(&dense(), &y, &full()), [15.0, -42.0, 21.0]);
        assert_eq!(fused(&sparse(), &y, &full()), [15.0, -42.0, 21.0]);
    }

    #[test]
    fn halves_compose() {
        let y = [1.0, 2.0, 3.0];
        let half = Terms {
            beta: 0.0,
            z: None,
            alpha: 1.0,
            ..full()
        };
        let p = forward(&sparse(), &y, &half);
        assert_eq!(p, [6.0, 7.0]);
        let rest = Terms {
            weights: None,
            shift: None,
            ..full()
        };
        assert_eq!(
            transposed(&sparse(), &p, &rest),
            fused(&dense(), &y, &full())
        );
    }

    #[test]
    fn magnitudes_add_without_cancellation() {
        // |X|·|y| = (7, 6); plus 1: (8, 7); |X|ᵀ: (8, 21, 16); times 2, plus 3|z|. The shift belongs to X·y alone.
        let y = [1.0, 2.0, 3.0];
        assert_eq!(fused_magnitude(&sparse(), &y, &full()), [19.0, 42.0, 35.0]);
        let terms = Terms {
            z: Some(&[1.0, -1.0]),
            ..full()
        };
        assert_eq!(forward_magnitude(&sparse(), &y, &terms), [19.0, 17.0]);
        assert_eq!(
            transposed_magnitude(&sparse(), &[1.0, -1.0], &full()),
            [5.0, 6.0, 7.0]
        );
    }

    #[test]
    fn a_bound_counts_rows_and_the_longest_row() {
        assert_eq!(roundings(&sparse()), 2 + 2 + 8);
        let bound = error_bound(&sparse(), &[1.0, 2.0, 3.0], &full(), 0.5f64.powi(53));
        assert!(bound.iter().all(|&bound| bound > 0.0 && bound < 1e-12));
    }
}
