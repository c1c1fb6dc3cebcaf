//! Products of a Hessian as fused products over a further form of X, whose sums an intercept finds elsewhere.
//!
//! With X̃ = [(X − 1·μᵀ)·S, 1] and X̃p = X·y + c, `X̃ᵀ(d ⊙ X̃p) = S ⊙ Xᵀ(d ⊙ (X·y + c)) + a·σ`, σ = Σ d ⊙ X̃p (see
//! [`crate::ops::design`]). A fused product gives the first term in one pass, and no sum over the rows. But σ = p·X̃ᵀd, and
//! X̃ᵀd, the *level*, is the same for all directions: it is made once for each point at which a Hessian counts.

use super::rows_objective::Directed;
use crate::device::{Buffer, Device};
use crate::matrix::Element;
use crate::ops::design::{DesignVectors, Ridge};
use crate::ops::objective::ObjectiveSums;
use crate::ops::vector::{Column, Dots, put_column, scaled_copy, take_column};
use crate::ops::{Matrix, Number, OpError, Terms};

/// What belongs to the points of one objective.
pub(super) struct FusedHessian<T: Number> {
    /// −c.
    shift: Buffer<T>,
    /// X̃ᵀd of the accepted point; made when a product first needs it.
    level: Option<Buffer<T>>,
    is_levelled: bool,
    curvature: Curvature,
    /// Σ d of the accepted point and of the last one.
    accepted: Buffer<f64>,
    trial: Buffer<f64>,
    dots: Dots,
    /// Whether no point has left sums since they were cleared.
    are_clear: bool,
}

/// How d depends on the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Curvature {
    /// Not at all, as of squared errors.
    Constant,
    /// Somehow.
    OfPoint,
}

/// The element of the sums that an intercept's derivative is.
const SLOPE: Column = Column {
    index: 1,
    of: ObjectiveSums::LEN,
};
/// Σ d among the sums.
const BEND: Column = Column {
    index: 2,
    of: ObjectiveSums::LEN,
};

impl<T: Number> FusedHessian<T> {
    /// Of directions of `len` elements.
    pub(super) fn new(device: &Device, len: usize, curvature: Curvature) -> Result<Self, OpError> {
        Ok(FusedHessian {
            shift: device.zeros(1)?,
            level: None,
            is_levelled: false,
            curvature,
            accepted: device.zeros(1)?,
            trial: device.zeros(1)?,
            dots: Dots::new(device, len)?,
            are_clear: false,
        })
    }

    /// Takes Σ d of a point from its sums.
    pub(super) fn take(&mut self, sums: &Buffer<f64>) -> Result<(), OpError> {
        take_column(sums, BEND, &mut self.trial)
    }

    /// A point is about to be evaluated, which takes memory: a large level goes, and the next product makes it again.
    pub(super) fn make_room(&mut self, device: &Device) {
        let level = self.level.as_ref().map_or(0, Buffer::len);
        let is_large = !device.ledger().keeps_idle(level * size_of::<T>());
        if self.curvature == Curvature::OfPoint && is_large {
            self.level = None;
            self.is_levelled = false;
        }
    }

    /// A point has been evaluated, which has left its sums.
    pub(super) fn evaluated(&mut self) {
        self.are_clear = false;
    }

    /// The last point is the one whose Hessian counts.
    pub(super) fn accept(&mut self) {
        std::mem::swap(&mut self.accepted, &mut self.trial);
        self.is_levelled &= self.curvature == Curvature::Constant;
    }

    /// Puts Xᵀ(d ⊙ X̃p) and σ of the direction that has entered `vectors` where they leave from.
    pub(super) fn product(
        &mut self,
        x: &Matrix<T>,
        vectors: &mut DesignVectors<T>,
        of: Directed<'_, T>,
    ) -> Result<(), OpError> {
        let weights = Some(of.kept);
        if !vectors.has_intercept {
            // A sum that is no number would count, though it is multiplied by 0.
            if !std::mem::replace(&mut self.are_clear, true) {
                vectors.sums.fill_zero()?;
            }
            let terms = Terms {
                weights,
                solve: of.solve,
                ..Terms::default()
            };
            let y = of.as_is.unwrap_or(&vectors.y);
            return x.fused(y, &terms, &mut vectors.raw);
        }
        let level = self.level(x, vectors, of)?;
        self.dots
            .dot(&level, of.direction, &mut vectors.sums, SLOPE.index)?;
        self.level = Some(level);
        let minus = <T as Element>::from_f64(-1.0);
        scaled_copy(minus, &vectors.constants, &mut self.shift)?;
        let terms = Terms {
            weights,
            shift: Some(&self.shift),
            solve: of.solve,
            ..Terms::default()
        };
        x.fused(&vectors.y, &terms, &mut vectors.raw)
    }

    /// `Xᵀ(d ⊙ X·p) + λ·p` of a direction that X takes as it is: the ridge is the product's addend.
    pub(super) fn whole(
        x: &Matrix<T>,
        of: Directed<'_, T>,
        (ridge, out): (Ridge, &mut Buffer<T>),
    ) -> Result<(), OpError> {
        let l2 = <T as Element>::from_f64(ridge.coefficients);
        let terms = Terms {
            weights: Some(of.kept),
            addend: (l2 != T::default()).then_some((l2, of.direction)),
            solve: of.solve,
            ..Terms::default()
        };
        x.fused(of.direction, &terms, out)
    }

    /// X̃ᵀd, to be put back.
    fn level(
        &mut self,
        x: &Matrix<T>,
        vectors: &mut DesignVectors<T>,
        of: Directed<'_, T>,
    ) -> Result<Buffer<T>, OpError> {
        let mut level = match self.level.take() {
            Some(level) if self.is_levelled => return Ok(level),
            Some(level) => level,
            None => x.device().zeros(of.direction.len())?,
        };
        x.transposed(of.kept, &Terms::default(), &mut vectors.raw)?;
        put_column(1.0, &self.accepted, &mut vectors.sums, SLOPE)?;
        vectors.leave_product(of.direction, NO_RIDGE, &mut level)?;
        self.is_levelled = true;
        Ok(level)
    }
}

const NO_RIDGE: Ridge = Ridge {
    coefficients: 0.0,
    intercept: 0.0,
};

#[cfg(all(test, feature = "emulator"))]
mod tests;
