//! What a solver needs of X: three products, on whatever device.

use crate::device::{Buffer, Device};
use crate::ops::{Matrix, Number, OpError, Spread, Terms};

/// A linear operator X, m × n, with the fused pattern.
///
/// Solvers are written against this alone; a [`Matrix`] is one.
pub trait Operator<T: Number> {
    /// Where vectors must lie.
    fn device(&self) -> &Device;
    /// m.
    fn rows(&self) -> usize;
    /// n.
    fn cols(&self) -> usize;

    /// `w = α · Xᵀ( v ⊙ (X·y − s) ) + β · z`.
    ///
    /// # Errors
    /// When shapes do not fit or the device fails.
    fn fused(&self, y: &Buffer<T>, terms: &Terms<'_, T>, w: &mut Buffer<T>) -> Result<(), OpError>;

    /// How members of a group keep vectors of n elements: [`Matrix::spread`]. Each has all of them unless told otherwise.
    ///
    /// # Errors
    /// When the group fails.
    fn spread(&self) -> Result<Option<Spread>, OpError> {
        Ok(None)
    }

    /// [`Operator::fused`], of which this member's share of w at least is wanted.
    ///
    /// # Errors
    /// As [`Operator::fused`].
    fn fused_share(
        &self,
        _spread: &Spread,
        y: &Buffer<T>,
        terms: &Terms<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.fused(y, terms, w)
    }

    /// `p = α · v ⊙ (X·y − s) + β · z`.
    ///
    /// # Errors
    /// When shapes do not fit or the device fails.
    fn forward(
        &self,
        y: &Buffer<T>,
        terms: &Terms<'_, T>,
        p: &mut Buffer<T>,
    ) -> Result<(), OpError>;

    /// `w = α · Xᵀ( v ⊙ p ) + β · z`.
    ///
    /// # Errors
    /// When shapes do not fit or the device fails.
    fn transposed(
        &self,
        p: &Buffer<T>,
        terms: &Terms<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError>;
}

impl<T: Number> Operator<T> for Matrix<T> {
    fn device(&self) -> &Device {
        self.device()
    }

    fn rows(&self) -> usize {
        self.rows()
    }

    fn cols(&self) -> usize {
        self.cols()
    }

    fn fused(&self, y: &Buffer<T>, terms: &Terms<'_, T>, w: &mut Buffer<T>) -> Result<(), OpError> {
        self.fused(y, terms, w)
    }

    fn spread(&self) -> Result<Option<Spread>, OpError> {
        self.spread(self.cols())
    }

    fn fused_share(
        &self,
        spread: &Spread,
        y: &Buffer<T>,
        terms: &Terms<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.in_shares(*spread.shares(), || self.fused(y, terms, w))
    }

    fn forward(
        &self,
        y: &Buffer<T>,
        terms: &Terms<'_, T>,
        p: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.forward(y, terms, p)
    }

    fn transposed(
        &self,
        p: &Buffer<T>,
        terms: &Terms<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.transposed(p, terms, w)
    }
}
