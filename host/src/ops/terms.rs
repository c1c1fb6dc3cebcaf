//! What the pattern has besides X and the vector that is multiplied.

use gpu_kernels::In;

use super::{Number, OpError, vector};
use crate::device::Buffer;
use crate::plan::fused::Product;

/// Everything of the pattern besides X and the input vector. The default is α = 1 and nothing else.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a, T: Number> {
    /// α.
    pub alpha: T,
    /// v, one weight per row.
    pub weights: Option<&'a Buffer<T>>,
    /// s, a buffer of one element that is subtracted from every element of X·y. With `s = x̄·y` the columns
    /// of X are centred without touching X. `transposed` ignores it: p has been shifted already.
    pub shift: Option<&'a Buffer<T>>,
    /// β and z; z has the length of the result and is not the result itself.
    pub addend: Option<(T, &'a Buffer<T>)>,
    /// The [state](crate::ops::cg::CgVectors::state) of the solve that the product is for: once that has ended, w may be left
    /// as it is, or half done.
    pub solve: Option<&'a Buffer<f64>>,
}

impl<T: Number> Default for Terms<'_, T> {
    fn default() -> Self {
        Terms {
            alpha: <T as gpu_kernels::Real>::ONE,
            weights: None,
            shift: None,
            addend: None,
            solve: None,
        }
    }
}

impl<'a, T: Number> Terms<'a, T> {
    /// The terms that count for a product: `Xᵀ·p` has no shift.
    pub(super) fn of(&self, product: Product) -> Self {
        let shift = self.shift.filter(|_| product != Product::Transposed);
        Terms { shift, ..*self }
    }

    /// Those of `v ⊙ (X·y − s)`, the first half of the pattern.
    pub(super) fn of_first_half(&self) -> Self {
        Terms {
            weights: self.weights,
            shift: self.shift,
            solve: self.solve,
            ..Terms::default()
        }
    }

    /// Those of `α·Xᵀ·p + β·z`, the second half.
    pub(super) fn of_second_half(&self) -> Self {
        Terms {
            alpha: self.alpha,
            addend: self.addend,
            solve: self.solve,
            ..Terms::default()
        }
    }

    /// v for kernels.
    pub(super) fn weights(&self) -> In<'a, T> {
        self.weights.map_or(In::none(), Buffer::input)
    }

    /// s for kernels.
    pub(super) fn shift(&self) -> In<'a, T> {
        self.shift.map_or(In::none(), Buffer::input)
    }

    /// The state of the solve for kernels.
    pub(super) fn solve(&self) -> In<'a, f64> {
        self.solve.map_or(In::none(), Buffer::input)
    }

    /// β for kernels.
    pub(super) fn beta(&self) -> T {
        self.addend.map_or(T::ZERO, |(beta, _)| beta)
    }

    /// z for kernels.
    pub(super) fn addend(&self) -> In<'a, T> {
        self.addend.map_or(In::none(), |(_, z)| z.input())
    }
}

/// `w = β·z`, or zero: what the accumulating kernels add to.
pub(super) fn begin<T: Number>(w: &mut Buffer<T>, terms: &Terms<'_, T>) -> Result<(), OpError> {
    match terms.addend {
        Some((beta, z)) => vector::scaled_copy(beta, z, w),
        None => Ok(w.fill_zero()?),
    }
}
