//! What is said of a matrix, and what is asked of its factors.

use gpu_kernels::qr::{NOT_FINITE, ZERO_PIVOT};

/// What was met in one matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Status {
    /// A number of A or of its factors is infinite or NaN.
    pub not_finite: bool,
    /// An element of R's diagonal is exactly 0: A is rank-deficient.
    pub zero_pivot: bool,
}

impl Status {
    /// Nothing was.
    pub const FINE: Status = Status {
        not_finite: false,
        zero_pivot: false,
    };

    pub(super) fn of(word: u32) -> Status {
        Status {
            not_finite: word & NOT_FINITE != 0,
            zero_pivot: word & ZERO_PIVOT != 0,
        }
    }
}

/// Q or its transpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Q.
    Q,
    /// Qᵀ.
    QTransposed,
}
