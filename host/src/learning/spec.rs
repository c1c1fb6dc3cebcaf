//! What is minimised: the loss of a row, the penalties, and how the objective is shown.

use super::solver::Iteration;
use crate::ops::design::Ridge;
use crate::ops::objective::Loss;

/// A loss of one linear predictor t with kinks, piecewise linear: minimised on the host by methods that know of them.
///
/// | loss | of one row | target b |
/// |---|---|---|
/// | `Quantile` | max(τ·(b − t), (τ − 1)·(b − t)) | any |
/// | `Hinge` | max(0, 1 − b·t) | −1 or 1 |
/// | `Tube` | max(0, \|t − b\| − ε) | any |
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kinked {
    /// τ.
    Quantile(f64),
    Hinge,
    /// ε.
    Tube(f64),
}

/// `max over a from low to high of a·(target − t)`: what losses with kinks are sums of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Piece {
    pub(super) target: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Kinked {
    /// The pieces of a row of target `b` and weight `v`.
    pub(super) fn pieces(self, b: f64, v: f64) -> impl Iterator<Item = Piece> {
        let piece = |target, low: f64, high: f64| Piece {
            target,
            low: v * low,
            high: v * high,
        };
        let (first, second) = match self {
            Kinked::Quantile(share) => (piece(b, share - 1.0, share), None),
            // b² = 1: 1 − b·t = b·(b − t).
            Kinked::Hinge => (piece(b, b.min(0.0), b.max(0.0)), None),
            Kinked::Tube(width) => (
                piece(b - width, 0.0, 1.0),
                Some(piece(b + width, -1.0, 0.0)),
            ),
        };
        std::iter::once(first).chain(second)
    }

    /// Loss and a slope of a row.
    pub(super) fn at(self, t: f64, b: f64) -> (f64, f64) {
        let mut at = (0.0, 0.0);
        for piece in self.pieces(b, 1.0) {
            let short = piece.target - t;
            let slope = if short > 0.0 { piece.high } else { piece.low };
            at = (at.0 + slope * short, at.1 - slope);
        }
        at
    }
}

/// The loss of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SampleLoss {
    /// Of one linear predictor.
    Single(Loss),
    /// Of one linear predictor, with kinks.
    Kinked(Kinked),
    /// −ln of the softmax of k linear predictors at the row's class.
    Multinomial {
        /// k.
        classes: usize,
    },
}

impl SampleLoss {
    /// Linear predictors of a row.
    pub(super) fn predictors(self) -> usize {
        match self {
            SampleLoss::Single(_) | SampleLoss::Kinked(_) => 1,
            SampleLoss::Multinomial { classes } => classes,
        }
    }
}

/// What is minimised: `Σ vᵢ·loss / Σ vᵢ + ½·l2·‖w‖² + l1·‖w‖₁`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ObjectiveSpec {
    pub(super) loss: SampleLoss,
    pub(super) l2: f64,
    pub(super) l1: f64,
    /// The ridge on the intercept, relative to 1 half square.
    pub(super) intercept_l2: f64,
    /// What the objective is multiplied by before it is shown.
    pub(super) factor: f64,
    /// What is added then.
    pub(super) constant: f64,
}

impl ObjectiveSpec {
    /// The mean of a loss, without penalties, shown as it is.
    pub(super) fn mean_of(loss: SampleLoss) -> Self {
        ObjectiveSpec {
            loss,
            l2: 0.0,
            l1: 0.0,
            intercept_l2: 0.0,
            factor: 1.0,
            constant: 0.0,
        }
    }

    /// `Σ v·½r² / S + α·ρ‖w‖₁ + α·(1 − ρ)/2·‖w‖²`.
    pub(super) fn mean_squares(alpha: f64, l1_ratio: f64) -> Self {
        ObjectiveSpec {
            l2: alpha * (1.0 - l1_ratio),
            l1: alpha * l1_ratio,
            ..Self::mean_of(SampleLoss::Single(Loss::Squared))
        }
    }

    /// `Σ v·r² + α‖w‖² = (Σ v·½r² / S + ½·(α/S)‖w‖²) · 2S`, S the total weight.
    pub(super) fn sum_of_squares(alpha: f64, total: f64) -> Self {
        ObjectiveSpec {
            factor: 2.0 * total,
            ..Self::mean_squares(alpha / total, 0.0)
        }
    }

    /// An iteration with the objective as the estimator documents it.
    pub(super) fn shown(&self, iteration: Iteration) -> Iteration {
        Iteration {
            objective: self.factor * iteration.objective + self.constant,
            ..iteration
        }
    }

    /// The ridge on coefficients and intercept.
    pub(super) fn ridge(&self) -> Ridge {
        Ridge {
            coefficients: self.l2,
            intercept: self.intercept_l2,
        }
    }
}
