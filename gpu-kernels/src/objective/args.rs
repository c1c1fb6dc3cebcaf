//! Arguments of the kernels, and what they must satisfy.

use super::LossCode;
use crate::cg::state;
use crate::memory::{In, Out};
use crate::table::Violation;

/// What rows are judged by, and where what they contribute goes.
#[repr(C)]
pub struct RowArgs<'a, T> {
    /// The loss.
    pub loss: LossCode<T>,
    /// A factor of all weights.
    pub scale: T,
    /// b (m elements), optional: 0.
    pub target: In<'a, T>,
    /// m elements, optional: 1.
    pub weights: In<'a, T>,
    /// o (m elements), optional: 0.
    pub offset: In<'a, T>,
    /// c (one element), optional: 0.
    pub intercept: In<'a, T>,
    /// g (m elements), optional.
    pub residual: Out<'a, T>,
    /// d (m elements), optional.
    pub curvature: Out<'a, T>,
    /// Σ v·loss, Σ g and Σ d are added here.
    pub sums: Out<'a, f64>,
    /// Σ g is added here too (one element), optional: the gradient's last element.
    pub slope: Out<'a, T>,
    /// The state of a conjugate-gradient solve, optional: once it has ended, nothing is computed.
    pub solve: In<'a, f64>,
}

/// Arguments of an objective's kernels; `X` is that of the fused pattern.
#[repr(C)]
pub struct ObjectiveArgs<'a, T, X> {
    /// X, y as `input` and w as `output`; its weights, shift and addend are not used.
    pub x: X,
    /// The rows.
    pub rows: RowArgs<'a, T>,
}

/// p = X·y, computed before.
#[repr(C)]
pub struct Products<'a, T> {
    /// m.
    pub rows: u64,
    /// p (m elements).
    pub products: In<'a, T>,
    /// The sums of each block, three of them, of [`RowObjectiveVariant::InOrder`](super::RowObjectiveVariant).
    pub partials: Out<'a, f64>,
    /// Zero before and after, of the same.
    pub counter: Out<'a, u32>,
}

impl<T: Copy> Clone for RowArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for RowArgs<'_, T> {}

impl<T: Copy, X: Copy> Clone for ObjectiveArgs<'_, T, X> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy, X: Copy> Copy for ObjectiveArgs<'_, T, X> {}

impl<T> Clone for Products<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Products<'_, T> {}

impl<T> RowArgs<'_, T> {
    /// The lengths for m rows.
    pub(super) fn check(&self, rows: u64) -> Result<(), Violation> {
        use crate::fused::check_optional;
        check_optional(&self.target, "length of target", rows)?;
        check_optional(&self.weights, "length of weights", rows)?;
        check_optional(&self.offset, "length of offset", rows)?;
        check_optional(&self.intercept, "length of intercept", 1)?;
        for (what, out, len) in [
            ("length of residual", &self.residual, rows),
            ("length of curvature", &self.curvature, rows),
            ("length of slope", &self.slope, 1),
        ] {
            if out.is_some() {
                Violation::at_least(what, len, out.len())?;
            }
        }
        check_solve(&self.solve)?;
        Violation::at_least("length of sums", 3, self.sums.len())
    }
}

/// The length of an optional state of a solve.
pub(super) fn check_solve(solve: &In<'_, f64>) -> Result<(), Violation> {
    crate::fused::check_optional(solve, "length of the state", state::LEN as u64)
}
