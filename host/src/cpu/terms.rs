//! Everything of the pattern besides X and the input vector.

use super::scalar::Scalar;

/// What is added to the product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Addend<'a, T> {
    /// Nothing; what the output held before is not read.
    None,
    /// `β·z`. A NaN or an infinity in z shows in the result even when β = 0.
    Vector {
        /// β.
        beta: T,
        /// z, as long as the output.
        z: &'a [T],
    },
    /// `β` times what the output held before, as if z were the output.
    InPlace {
        /// β.
        beta: T,
    },
}

/// α, v, shift and β·z of `w = α·Xᵀ(v ⊙ (X·y − shift)) + β·z`.
///
/// ```
/// use warpfuse::cpu::{Addend, Terms};
/// let ridge = Terms { addend: Addend::InPlace { beta: 0.1 }, ..Terms::scaled(1.0) };
/// assert_eq!(ridge.weights, None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms<'a, T> {
    /// α.
    pub alpha: T,
    /// v, m elements; `None` stands for ones.
    pub weights: Option<&'a [T]>,
    /// Subtracted from every element of X·y; `None` stands for zero.
    pub shift: Option<T>,
    /// `β·z`.
    pub addend: Addend<'a, T>,
}

impl<'a, T: Scalar> Terms<'a, T> {
    /// α alone: no v, no shift, no z.
    pub fn scaled(alpha: T) -> Self {
        Terms {
            alpha,
            weights: None,
            shift: None,
            addend: Addend::None,
        }
    }

    /// Panics when v or z has the wrong length.
    pub(super) fn check(&self, rows: usize, output: usize) {
        if let Some(weights) = self.weights {
            assert_eq!(weights.len(), rows, "v needs one element per row of X");
        }
        if let Addend::Vector { z, .. } = self.addend {
            assert_eq!(z.len(), output, "z needs the length of the output");
        }
    }

    /// The part that applies between the two products.
    pub(super) fn row_map(&self) -> RowMap<'a, T> {
        // p − 0 is p, bit for bit: an absent shift costs one subtraction per row.
        RowMap {
            shift: self.shift.map_or(0.0, Into::into),
            weights: self.weights,
        }
    }

    /// `output[i] = α·products[i] + β·z[offset + i]`, rounded once at the end.
    pub(super) fn finish(&self, products: &[f64], offset: usize, output: &mut [T]) {
        let alpha: f64 = self.alpha.into();
        let pairs = output.iter_mut().zip(products);
        match self.addend {
            Addend::None => pairs.for_each(|(out, &product)| *out = T::narrow(alpha * product)),
            Addend::Vector { beta, z } => {
                let beta: f64 = beta.into();
                pairs.zip(&z[offset..]).for_each(|((out, &product), &z)| {
                    *out = T::narrow(alpha * product + beta * z.into());
                });
            }
            Addend::InPlace { beta } => {
                let beta: f64 = beta.into();
                pairs.for_each(|(out, &product)| {
                    *out = T::narrow(alpha * product + beta * (*out).into());
                });
            }
        }
    }
}

/// `p ↦ v[row]·(p − shift)`.
#[derive(Debug, Clone, Copy)]
pub struct RowMap<'a, T> {
    shift: f64,
    weights: Option<&'a [T]>,
}

impl<T: Scalar> RowMap<'_, T> {
    /// The image of `p`, the product of row `row` with y.
    #[inline(always)]
    pub fn apply(&self, row: usize, p: f64) -> f64 {
        let shifted = p - self.shift;
        match self.weights {
            // The same way for all rows, so the branch is always predicted.
            Some(weights) => weights[row].into() * shifted,
            None => shifted,
        }
    }
}
