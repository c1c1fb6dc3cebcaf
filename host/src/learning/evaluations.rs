//! How often a solve is expected to read X: what a further form of X is weighed against, before anything is known of how
//! well it is conditioned.

use super::controls::Controls;
use crate::ops::objective::PRODUCTS_PER_POINT;

/// Evaluations for each factor e by which a gradient shrinks. Logistic fits to 1e-6 (13.8 factors e) took 12, 32, 168 and
/// 894 of them (`benches/results/h200/learning.jsonl`), 276 in the mean: what a form saves grows with them, so it is their mean that
/// says what it saves of all fits.
const PER_FACTOR_E: f64 = 20.0;
/// Evaluations of an outer iteration, in the middle: a point, and products of its Hessian.
const PER_ITERATION: u64 = 1 + PRODUCTS_PER_POINT;

impl Controls {
    /// Of an objective of one linear predictor, until its gradient is small enough or the iterations are spent.
    pub(super) fn evaluations(&self) -> u64 {
        let most = (self.max_iter as u64).saturating_mul(PER_ITERATION);
        steps(self.tolerance, 1.0 / PER_FACTOR_E).min(most)
    }
}

/// Steps of a linear iteration that shrinks the distance to the limit by e to the `rate` each, until it is a `tolerance`
/// of that at the start; without a tolerance as many as shrink it to a rounding error.
pub(super) fn steps(tolerance: f64, rate: f64) -> u64 {
    let factors = -tolerance.clamp(f64::EPSILON, 1.0).ln();
    // A float cast saturates, which is what an absurd number should do.
    (factors / rate.max(f64::MIN_POSITIVE)).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_take_about_as_many_evaluations_as_recorded() {
        let usual = Controls::default().evaluations();
        assert!((270..285).contains(&usual), "{usual}");
    }

    #[test]
    fn few_iterations_and_loose_tolerances_take_fewer() {
        let controls = Controls {
            max_iter: 2,
            ..Controls::default()
        };
        assert_eq!(controls.evaluations(), 36);
        let loose = Controls {
            tolerance: 0.1,
            ..Controls::default()
        };
        assert_eq!(loose.evaluations(), 47);
        for tolerance in [1.0, 7.0, f64::INFINITY] {
            assert_eq!(steps(tolerance, 1.0), 0, "{tolerance}");
        }
        assert_eq!(steps(0.0, 1.0), 37);
    }
}
