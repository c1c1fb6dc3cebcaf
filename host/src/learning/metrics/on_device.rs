//! Figures computed where predictions lie, which then need not be copied: for many rows.
//!
//! One launch reads predictors and targets once, and a few sums come back. The definitions are those of the other files;
//! sums are added in f64 in an order that the number of rows alone decides, so that two runs give the same bits.
//!
//! The area under the ROC curve needs the order of all scores: they are copied and sorted on the host, by all cores.

use ndarray::Array2;
use rayon::prelude::*;

use super::sums::{Weights, explained_share, same_length};
use super::{ConfusionMatrix, MetricError, RegressionSummary};
use crate::device::{Buffer, Device};
use crate::learning::{Family, FitError, Link};
use crate::matrix::Element;
use crate::ops::Number;
use crate::ops::objective::{
    ClassCodes, NumberSums, Probabilities, RowWeights, score_classes, score_numbers, unit_deviance,
};

/// From this many rows on, `score`, `evaluate` and [`Validation`](crate::learning::Validation) compute figures on the
/// device: fewer cost no more than a launch and a read on the host.
pub const DEVICE_ROWS: usize = 1 << 16;
/// Up to this many classes: beyond, the confusion matrix would be larger than the predictions.
pub const DEVICE_CLASSES: usize = 256;

/// Targets of a regression on a device, with weights if there are any.
///
/// ```
/// use warpfuse::device::Device;
/// use warpfuse::learning::metrics::ResidentTargets;
/// use warpfuse::learning::{Family, Link};
/// let device = Device::auto();
/// let targets = ResidentTargets::new(&device, &[1.0_f32, 2.0, 3.0], None)?;
/// let predictors = device.upload(&[1.0_f32, 2.0, 2.0])?;
/// let figures = targets.score(&predictors, Family::Gaussian, Link::Identity)?;
/// assert_eq!(figures.summary.r2, 0.5);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug)]
pub struct ResidentTargets<T: Number> {
    targets: Buffer<T>,
    weights: Option<RowWeights>,
    mean: f64,
    is_constant: bool,
    /// Whether there are two samples with weight, without which R² is not defined.
    are_several: bool,
}

/// Figures of predicted means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegressionFigures {
    /// R², RMSE, MAE.
    pub summary: RegressionSummary,
    /// Mean unit deviance of the family; NaN where a target or a mean is none of the family's.
    pub mean_deviance: f64,
    /// D², the share of the deviance that is explained.
    pub explained_deviance: f64,
}

impl<T: Number> ResidentTargets<T> {
    /// Puts targets and weights on `device`; the mean of the targets, which deviations are taken from, is the host's.
    ///
    /// # Errors
    /// [`FitError::Metric`] without targets and when weights do not fit, [`FitError::Op`] when the device fails.
    pub fn new(device: &Device, targets: &[T], weights: Option<&[f64]>) -> Result<Self, FitError> {
        let all = Weights::check(None, targets.len())?;
        Ok(ResidentTargets {
            weights: place(device, weights, targets.len())?,
            mean: all.mean(|row| Element::to_f64(targets[row])),
            is_constant: targets.par_iter().all(|target| *target == targets[0]),
            are_several: match weights {
                None => targets.len() >= 2,
                Some(weights) => weights.iter().filter(|w| **w > 0.0).take(2).count() == 2,
            },
            targets: device.upload(targets)?,
        })
    }

    /// Scores one linear predictor per row; the mean is what `link` makes of it.
    ///
    /// # Errors
    /// [`FitError::Op`] when the lengths differ or the device fails.
    pub fn score(
        &self,
        predictors: &Buffer<T>,
        family: Family,
        link: Link,
    ) -> Result<RegressionFigures, FitError> {
        let model = (family.of_kernels(), link.of_kernels());
        let weights = self.weights.as_ref();
        let sums = score_numbers(predictors, &self.targets, weights, model, self.mean)?;
        Ok(self.figures(&sums, family))
    }

    fn figures(&self, sums: &NumberSums, family: Family) -> RegressionFigures {
        let NumberSums {
            weight, squared, ..
        } = *sums;
        let shift = sums.centred / weight;
        // Around the weighted mean: Σ w·d(b, c) is Σ w·d(b, b̄) + W·d(b̄, c) for squares and for every deviance.
        let (mean, family) = (self.mean + shift, family.of_kernels());
        let to_mean = unit_deviance(family, mean, self.mean);
        let (total, null) = if self.is_constant {
            (0.0, 0.0)
        } else {
            (
                sums.centred_squared - sums.centred * shift,
                sums.centred_deviance - weight * to_mean,
            )
        };
        RegressionFigures {
            summary: RegressionSummary {
                r2: if self.are_several {
                    explained_share(squared, total)
                } else {
                    f64::NAN
                },
                rmse: (squared / weight).sqrt(),
                mae: sums.absolute / weight,
            },
            mean_deviance: sums.deviance / weight,
            explained_deviance: explained_share(sums.deviance, null),
        }
    }
}

/// Classes of rows on a device, with weights if there are any.
#[derive(Debug)]
pub struct ResidentClasses {
    codes: ClassCodes,
    weights: Option<RowWeights>,
}

/// Figures of predicted classes.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassificationFigures {
    /// Which were taken for which: accuracy, precision, recall and F1 are its own.
    pub confusion: ConfusionMatrix,
    /// Mean negative log-likelihood, as [`log_loss`](super::log_loss); 0 without probabilities, NaN where a predictor is.
    pub log_loss: f64,
}

impl ResidentClasses {
    /// Puts codes below `classes`, of which there are two at least, and weights on `device`.
    ///
    /// # Errors
    /// [`FitError::Metric`] without rows and when weights do not fit, [`FitError::Op`] for a code that is not below
    /// `classes` and when the device fails.
    pub fn new(
        device: &Device,
        codes: &[u32],
        classes: usize,
        weights: Option<&[f64]>,
    ) -> Result<Self, FitError> {
        Ok(ResidentClasses {
            weights: place(device, weights, codes.len())?,
            codes: ClassCodes::new(device, codes, classes)?,
        })
    }

    /// Scores linear predictors: m × 1 for two classes, m × k for more, by rows.
    ///
    /// # Errors
    /// [`FitError::Op`] when the lengths do not fit or the device fails.
    pub fn score<T: Number>(
        &self,
        predictors: &Buffer<T>,
        probabilities: Probabilities,
    ) -> Result<ClassificationFigures, FitError> {
        let weights = self.weights.as_ref();
        let sums = score_classes(predictors, &self.codes, weights, probabilities)?;
        let confusion: Array2<f64> = sums.confusion;
        Ok(ClassificationFigures {
            confusion: ConfusionMatrix::of_weights(confusion),
            log_loss: sums.log_loss / sums.weight,
        })
    }
}

fn place(
    device: &Device,
    weights: Option<&[f64]>,
    rows: usize,
) -> Result<Option<RowWeights>, FitError> {
    Weights::check(weights, rows)?;
    let resident = weights.map(|weights| RowWeights::new(device, weights));
    Ok(resident.transpose()?)
}

/// Whether this many rows, each with one target, are scored on the device.
pub(in crate::learning) fn takes_device(rows: usize, targets: usize) -> Result<bool, MetricError> {
    same_length("predictions", rows, targets)?;
    Ok(rows >= DEVICE_ROWS)
}
