//! What rows of a tall matrix become before they are factored.

use gpu_kernels::In;
use gpu_kernels::qr::Dress;

use crate::device::{Buffer, Device};
use crate::ops::qr::batch::Piece;
use crate::ops::{Number, OpError, checks};

/// What rows become on their way into a factorisation: row i of A as `roots[i] · [a − means, targets[i]]`. Nothing is written.
///
/// Least squares of centred columns and weighted rows, with the targets as the last column, is what it is for: the last column
/// of R is then Qᵀ times the targets.
#[derive(Debug)]
pub struct Dressing<'a, T: Number> {
    /// Subtracted from the columns of A, one for each.
    pub means: Option<&'a Buffer<T>>,
    /// Multiply the rows, one for each: the roots of their weights.
    pub roots: Option<&'a Buffer<T>>,
    /// A further column, one for each row.
    pub targets: Option<&'a Buffer<T>>,
}

impl<T: Number> Default for Dressing<'_, T> {
    /// Rows as they are.
    fn default() -> Self {
        Dressing {
            means: None,
            roots: None,
            targets: None,
        }
    }
}

impl<T: Number> Dressing<'_, T> {
    /// Whether anything changes.
    pub(super) fn is_plain(&self) -> bool {
        self.means.is_none() && self.roots.is_none() && self.targets.is_none()
    }

    pub(super) fn args(&self) -> Dress<'_, T> {
        Dress {
            means: self.means.map_or(In::none(), Buffer::input),
            roots: self.roots.map_or(In::none(), Buffer::input),
            targets: self.targets.map_or(In::none(), Buffer::input),
        }
    }

    /// Fails unless everything is on the device of the factorisation, and as long as it has to be.
    pub(super) fn check(&self, device: &Device, piece: &Piece) -> Result<(), OpError> {
        for (what, buffer, expected) in [
            ("means of the columns of A", self.means, piece.cols),
            ("roots of the weights of A's rows", self.roots, piece.rows),
            ("targets of A's rows", self.targets, piece.rows),
        ] {
            let Some(buffer) = buffer else { continue };
            buffer.expect_on(device, "factor a matrix")?;
            checks::same_length(what, buffer, expected)?;
        }
        Ok(())
    }
}
