//! What rows weigh: mostly the same, which takes no memory.

use std::borrow::Cow;
use std::sync::Arc;

use super::metrics::sums;
use crate::device::{Buffer, Device};
use crate::matrix::Element;
use crate::ops::{Number, OpError, vector};
use crate::parallel;

/// Weights of the rows of a fit, none negative.
#[derive(Debug, Clone)]
pub(super) enum SampleWeights {
    /// One for all rows.
    Even {
        /// How many rows there are.
        rows: usize,
        /// What each weighs.
        each: f64,
    },
    /// One for each row.
    Each(Arc<Vec<f64>>),
}

impl SampleWeights {
    /// 1 for each of `rows` rows.
    pub(super) fn ones(rows: usize) -> Self {
        SampleWeights::Even { rows, each: 1.0 }
    }

    /// One for each row.
    pub(super) fn each(weights: Vec<f64>) -> Self {
        SampleWeights::Each(Arc::new(weights))
    }

    /// The weight of a row.
    pub(super) fn at(&self, row: usize) -> f64 {
        match self {
            SampleWeights::Even { each, .. } => *each,
            SampleWeights::Each(weights) => weights[row],
        }
    }

    /// Whether there is one for all rows.
    pub(super) fn is_even(&self) -> bool {
        matches!(self, SampleWeights::Even { .. })
    }

    /// Σ v.
    pub(super) fn total(&self) -> f64 {
        match self {
            SampleWeights::Even { rows, each } => *rows as f64 * each,
            SampleWeights::Each(weights) => sums(weights.len(), |row| [weights[row]])[0],
        }
    }

    /// The same shares, which add up to 1.
    pub(super) fn normalised(&self) -> Self {
        let total = self.total();
        match self {
            SampleWeights::Even { rows, each } => SampleWeights::Even {
                rows: *rows,
                each: each / total,
            },
            SampleWeights::Each(weights) => {
                SampleWeights::each(parallel::convert(weights, |weight| weight / total))
            }
        }
    }

    /// Rows with a weight above 0, of which no more than `most` are counted.
    pub(super) fn positive(&self, most: usize) -> usize {
        match self {
            SampleWeights::Even { rows, each } if *each > 0.0 => most.min(*rows),
            SampleWeights::Even { .. } => 0,
            SampleWeights::Each(weights) => {
                let positive = weights.iter().filter(|weight| **weight > 0.0);
                positive.take(most).count()
            }
        }
    }

    /// Whether rows weigh differently, so that their mean is not that of all rows.
    pub(super) fn vary(&self) -> bool {
        match self {
            SampleWeights::Even { .. } => false,
            SampleWeights::Each(weights) => weights.windows(2).any(|pair| pair[0] != pair[1]),
        }
    }

    /// One for each row, in f64.
    pub(super) fn in_f64(&self) -> Cow<'_, [f64]> {
        match self {
            SampleWeights::Even { rows, each } => Cow::Owned(vec![*each; *rows]),
            SampleWeights::Each(weights) => Cow::Borrowed(weights),
        }
    }

    /// One for each row, as T.
    pub(super) fn narrow<T: Number>(&self) -> Vec<T> {
        match self {
            SampleWeights::Even { rows, each } => vec![<T as Element>::from_f64(*each); *rows],
            SampleWeights::Each(weights) => {
                parallel::convert(weights, |weight| <T as Element>::from_f64(*weight))
            }
        }
    }

    /// One for each row, as T, on a device: of rows that weigh the same nothing crosses the link, and other weights are
    /// narrowed on their way.
    pub(super) fn upload<T: Number>(&self, device: &Device) -> Result<Buffer<T>, OpError> {
        match self {
            SampleWeights::Even { rows, each } => {
                let mut buffer = device.zeros(*rows)?;
                vector::fill(<T as Element>::from_f64(*each), &mut buffer)?;
                Ok(buffer)
            }
            SampleWeights::Each(weights) => {
                Ok(device.upload_with(weights.len(), |range, to: &mut [T]| {
                    let pairs = to.iter_mut().zip(&weights[range]);
                    pairs.for_each(|(to, weight)| *to = <T as Element>::from_f64(*weight));
                })?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(weights: &[f64]) -> SampleWeights {
        SampleWeights::each(weights.to_vec()).normalised()
    }

    #[test]
    fn rows_that_weigh_the_same_are_as_those_of_a_list() {
        for rows in [1, 2, 1_000] {
            let (even, each) = (SampleWeights::ones(rows), vec![1.0; rows]);
            let listed = SampleWeights::each(each.clone());
            assert_eq!(even.total(), listed.total());
            assert_eq!(even.in_f64(), each);
            let even = even.normalised();
            assert_eq!(even.in_f64(), shares(&each).in_f64());
            assert_eq!(even.narrow::<f32>(), shares(&each).narrow::<f32>());
            assert_eq!(even.at(rows - 1), 1.0 / rows as f64);
            assert!(!even.vary());
        }
    }

    #[test]
    fn shares_add_up_to_one_and_rows_without_weight_are_not_counted() {
        let found = shares(&[0.0, 1.0, 3.0, 0.0]);
        assert_eq!(found.in_f64(), [0.0, 0.25, 0.75, 0.0].as_slice());
        assert_eq!((found.positive(9), found.positive(1)), (2, 1));
        assert!(found.vary());
        assert_eq!(SampleWeights::ones(4).positive(3), 3);
    }

    #[test]
    fn both_reach_a_device() {
        let device = Device::cpu();
        let found = |weights: SampleWeights| -> Vec<f32> {
            weights.upload(&device).unwrap().to_vec().unwrap()
        };
        assert_eq!(found(SampleWeights::ones(3)), [1.0; 3]);
        assert_eq!(found(shares(&[1.0, 3.0])), [0.25, 0.75]);
    }
}
