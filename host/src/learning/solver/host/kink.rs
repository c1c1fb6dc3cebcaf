//! What a coordinate costs besides what is smooth, and what it may be.

/// `l1·|x|`, and whether x may be negative.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Kink {
    pub(super) l1: f64,
    pub(super) non_negative: bool,
}

impl Kink {
    /// Whether 0 is a point like any other.
    pub(super) fn is_smooth(self) -> bool {
        self.l1 == 0.0 && !self.non_negative
    }

    /// The term itself, of an x that is allowed.
    pub(super) fn value(self, x: f64) -> f64 {
        self.l1 * x.abs()
    }

    /// The element of the least subgradient, of a smooth gradient `g` at `x`.
    pub(super) fn least_subgradient(self, g: f64, x: f64) -> f64 {
        if x > 0.0 {
            g + self.l1
        } else if x < 0.0 {
            g - self.l1
        } else if self.non_negative {
            (g + self.l1).min(0.0)
        } else {
            g.signum() * (g.abs() - self.l1).max(0.0)
        }
    }

    /// The minimum of `½·x² − z·x` with the term: z moved towards 0, but not past it.
    pub(super) fn soften(self, z: f64) -> f64 {
        if z > self.l1 {
            z - self.l1
        } else if z < -self.l1 && !self.non_negative {
            z + self.l1
        } else {
            0.0
        }
    }

    /// How far −`z`, the slope of the smooth part against x, exceeds what the term holds at 0.
    pub(super) fn excess(self, z: f64) -> f64 {
        (self.pull(z) - self.l1).max(0.0)
    }

    /// The part of `z` that can move x from 0.
    pub(super) fn pull(self, z: f64) -> f64 {
        if self.non_negative {
            (-z).max(0.0)
        } else {
            z.abs()
        }
    }
}
