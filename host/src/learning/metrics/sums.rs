//! Sums over samples in parallel, in an order that their number alone decides.

use super::MetricError;
use crate::parallel;

/// Samples that one task adds.
const CHUNK: usize = 1 << 14;

/// Σᵢ term(i) over `0..len`, `N` sums at once.
pub(in crate::learning) fn sums<const N: usize>(
    len: usize,
    term: impl Fn(usize) -> [f64; N] + Sync,
) -> [f64; N] {
    let partial = |chunk: usize| {
        let rows = chunk * CHUNK..len.min((chunk + 1) * CHUNK);
        rows.map(&term).fold([0.0; N], add)
    };
    let partials = parallel::map(len.div_ceil(CHUNK), partial);
    partials.into_iter().fold([0.0; N], add)
}

/// `1 − residual / total`. Where the total is 0, as for constant targets, 1 for no residual at all and 0 otherwise, as in
/// scikit-learn.
pub(super) fn explained_share(residual: f64, total: f64) -> f64 {
    match (residual == 0.0, total == 0.0) {
        (true, true) => 1.0,
        (false, true) => 0.0,
        _ => 1.0 - residual / total,
    }
}

fn add<const N: usize>(a: [f64; N], b: [f64; N]) -> [f64; N] {
    std::array::from_fn(|i| a[i] + b[i])
}

/// Weights that have been checked: one per sample, none negative, some positive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weights<'a> {
    given: Option<&'a [f64]>,
    len: usize,
}

impl<'a> Weights<'a> {
    /// Checks `given` for `len` samples.
    pub(super) fn check(given: Option<&'a [f64]>, len: usize) -> Result<Self, MetricError> {
        if len == 0 {
            return Err(MetricError::NoSamples);
        }
        let Some(weights) = given else {
            return Ok(Weights { given, len });
        };
        same_length("weights", weights.len(), len)?;
        let valid = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        if let Some(row) = parallel::position(weights, |weight| !valid(weight)) {
            let value = weights[row];
            return Err(MetricError::Weight { row, value });
        }
        if parallel::position(weights, |weight| *weight > 0.0).is_none() {
            return Err(MetricError::NoWeight);
        }
        Ok(Weights { given, len })
    }

    /// Whether samples may weigh differently.
    pub(super) fn are_given(self) -> bool {
        self.given.is_some()
    }

    /// The weight of a sample, 1 where none were given.
    pub(super) fn of(self, row: usize) -> f64 {
        self.given.map_or(1.0, |weights| weights[row])
    }

    /// Σ wᵢ.
    pub(super) fn total(self) -> f64 {
        match self.given {
            None => self.len as f64,
            Some(weights) => sums(weights.len(), |row| [weights[row]])[0],
        }
    }

    /// Σ wᵢ·term(i) / Σ wᵢ.
    pub(super) fn mean(self, term: impl Fn(usize) -> f64 + Sync) -> f64 {
        sums(self.len, |row| [self.of(row) * term(row)])[0] / self.total()
    }
}

/// Fails unless there are samples, a prediction for each, and weights that fit.
pub(in crate::learning) fn check_samples(
    targets: usize,
    predictions: usize,
    weights: Option<&[f64]>,
) -> Result<(), MetricError> {
    same_length("predictions", predictions, targets)?;
    Weights::check(weights, targets).map(|_| ())
}

/// Fails unless there are as many of `what` as samples.
pub(super) fn same_length(
    what: &'static str,
    found: usize,
    expected: usize,
) -> Result<(), MetricError> {
    if found == expected {
        return Ok(());
    }
    Err(MetricError::Length {
        what,
        expected,
        found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_cross_the_edges_of_chunks() {
        for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7] {
            let [ones, rows] = sums(len, |row| [1.0, row as f64]);
            assert_eq!(ones, len as f64);
            assert_eq!(rows, (len * len.saturating_sub(1) / 2) as f64);
        }
    }

    #[test]
    fn weights_that_make_no_sense_are_refused() {
        assert_eq!(Weights::check(None, 0).err(), Some(MetricError::NoSamples));
        let found = |weights: &[f64]| Weights::check(Some(weights), 2).err();
        assert!(matches!(found(&[1.0]), Some(MetricError::Length { .. })));
        assert!(matches!(
            found(&[1.0, -1.0]),
            Some(MetricError::Weight { row: 1, .. })
        ));
        assert!(matches!(
            found(&[f64::NAN, 1.0]),
            Some(MetricError::Weight { row: 0, .. })
        ));
        assert_eq!(found(&[0.0, 0.0]), Some(MetricError::NoWeight));
        assert_eq!(found(&[0.0, 2.0]), None);
    }
}
