//! The rows that take part: those with weight.

use std::borrow::Cow;

/// Targets, predicted means and weights of the rows with weight.
pub(super) struct Rows<'a> {
    targets: Cow<'a, [f64]>,
    means: Cow<'a, [f64]>,
    weights: Option<Cow<'a, [f64]>>,
}

impl<'a> Rows<'a> {
    /// All lists are of one length.
    pub(super) fn of(targets: &'a [f64], means: &'a [f64], weights: Option<&'a [f64]>) -> Rows<'a> {
        let Some(weights) = weights.filter(|all| all.iter().any(|weight| *weight <= 0.0)) else {
            return Rows {
                targets: targets.into(),
                means: means.into(),
                weights: weights.map(Cow::from),
            };
        };
        let kept = |values: &[f64]| -> Cow<'a, [f64]> {
            let beside = values.iter().zip(weights);
            let kept = beside.filter(|(_, weight)| **weight > 0.0);
            kept.map(|(value, _)| *value).collect()
        };
        Rows {
            targets: kept(targets),
            means: kept(means),
            weights: Some(kept(weights)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.targets.len()
    }

    pub(super) fn targets(&self) -> &[f64] {
        &self.targets
    }

    pub(super) fn means(&self) -> &[f64] {
        &self.means
    }

    pub(super) fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// Target less prediction.
    pub(super) fn residuals(&self) -> impl Iterator<Item = f64> + Clone {
        let pairs = self.targets.iter().zip(&*self.means);
        pairs.map(|(target, mean)| target - mean)
    }
}
