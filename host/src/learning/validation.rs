//! What coefficients are worth on other data, while a fit goes on.

use std::sync::Arc;

use ndarray::Array2;

use super::classifier::codes_of;
use super::error::mismatch;
use super::metrics::{
    DEVICE_CLASSES, DEVICE_ROWS, Deviance, MetricError, ResidentClasses, ResidentTargets, accuracy,
    log_loss, r2,
};
use super::multinomial::softmax;
use super::problem::{Coding, Stated};
use super::weights::Weights;
use super::{Classes, Estimator, Family, FitError, Link, Targets};
use crate::device::{Buffer, Device};
use crate::matrix::{Element, Features};
use crate::ops::objective::Probabilities;
use crate::ops::{Matrix, Number};

/// Data on a device that coefficients are judged by: see [`FitOptions::evaluate`](super::FitOptions::evaluate).
///
/// | estimator | figure |
/// |---|---|
/// | logistic regression | mean log-loss |
/// | support vector classification, of two classes | accuracy |
/// | generalised linear models | mean deviance |
/// | other regressions | R² |
///
/// From [`DEVICE_ROWS`](super::metrics::DEVICE_ROWS) rows on the figure is computed on the device, so that one number per
/// iteration comes back and no prediction.
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::{Estimator, FitOptions, Ridge, Targets, Validation};
/// use warpfuse::matrix::Features;
///
/// let device = Device::cpu();
/// let estimator = Estimator::Ridge(Ridge::params().alpha(0.0));
/// let other = Features::Dense(array![[5.0], [7.0]]);
/// let mut validation = Validation::new(&device, other, &estimator, Targets::Numbers(&[10.0, 14.0]), None)?;
/// let mut evaluate = |coef: &[Vec<f64>], intercepts: &[f64]| validation.score(coef, intercepts);
/// let options = FitOptions { evaluate: Some(&mut evaluate), ..FitOptions::default() };
/// let x = Features::Dense(array![[0.0], [1.0], [2.0]]);
/// let model = estimator.fit_with(&device, x, Targets::Numbers(&[0.0, 2.0, 4.0]), options)?;
/// let history = &model.report().history;
/// assert!(history.last().and_then(|i| i.validation).is_some_and(|r2| r2 > 0.999));
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug)]
pub struct Validation<T: Number> {
    matrix: Matrix<T>,
    judge: Judge,
    resident: Option<OnDevice<T>>,
    failed: Option<FitError>,
}

/// Targets, and what predictions are compared with them by.
#[derive(Debug)]
enum Judge {
    LogLoss { codes: Vec<u32>, classes: usize },
    Accuracy { codes: Vec<u32>, classes: usize },
    Deviance(Family, Link, Vec<f64>),
    R2(Vec<f64>),
}

/// What a [`Judge`] compares with, on the device.
#[derive(Debug)]
enum OnDevice<T: Number> {
    Classes(ResidentClasses),
    Targets(ResidentTargets<T>),
}

impl<T: Number> Validation<T> {
    /// Puts `features` on `device`; the estimator decides on the figure. `classes` are those of the data that are
    /// learnt from, needed for labels.
    ///
    /// # Errors
    /// [`FitError`] when targets do not suit the estimator, the rows or the classes, or the device fails.
    pub fn new(
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        estimator: &Estimator,
        targets: Targets<'_, T>,
        classes: Option<&Classes>,
    ) -> Result<Self, FitError> {
        let features = features.into();
        let rows = features.rows();
        let judge = Judge::new(estimator, targets, classes)?;
        if judge.len() != rows {
            let targets = judge.len();
            return Err(FitError::Targets { rows, targets });
        }
        let resident = match rows >= DEVICE_ROWS {
            true => judge.place(device, targets)?,
            false => None,
        };
        Ok(Validation {
            matrix: Matrix::new(device, features)?,
            judge,
            resident,
            failed: None,
        })
    }

    /// The figure of a model of these coefficients, one list per linear predictor, and intercepts; NaN when it cannot be
    /// had: see [`Validation::failed`].
    pub fn score(&mut self, coef: &[Vec<f64>], intercepts: &[f64]) -> f64 {
        self.try_score(coef, intercepts).unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            f64::NAN
        })
    }

    /// Whether larger figures are better: of accuracies and R².
    pub fn larger_is_better(&self) -> bool {
        matches!(self.judge, Judge::Accuracy { .. } | Judge::R2(_))
    }

    /// The first failure of [`Validation::score`].
    pub fn failed(self) -> Option<FitError> {
        self.failed
    }

    fn try_score(&self, coef: &[Vec<f64>], intercepts: &[f64]) -> Result<f64, FitError> {
        let weights = Weights {
            coef: coef.to_vec(),
            intercept: intercepts.to_vec(),
        };
        let predictors = weights.predictors_on(&self.matrix)?;
        if let Some(resident) = &self.resident {
            let figure = self.judge.on_device(resident, &predictors)?;
            // Of a NaN the host tells which row it comes from.
            if !figure.is_nan() {
                return Ok(figure);
            }
        }
        let wide = predictors.to_vec()?.into_iter().map(Element::to_f64);
        let shape = (self.matrix.rows(), coef.len());
        let decisions = Array2::from_shape_vec(shape, wide.collect()).expect("m × k predictors");
        Ok(self.judge.on_host(&decisions)?)
    }
}

impl Judge {
    /// The figure of linear predictors, m × k.
    fn on_host(&self, decisions: &Array2<f64>) -> Result<f64, MetricError> {
        let first = || decisions.column(0).to_vec();
        match self {
            Judge::R2(targets) => r2(targets, &first(), None),
            Judge::Deviance(family, link, targets) => {
                let mean = |t: f64| link.of_kernels().mean(t);
                let means: Vec<f64> = first().into_iter().map(mean).collect();
                Deviance::from(*family).mean(targets, &means, None)
            }
            Judge::Accuracy { codes, .. } => accuracy(codes, &codes_of(decisions), None),
            Judge::LogLoss { codes, .. } => log_loss(codes, probabilities(decisions).view(), None),
        }
    }

    /// The figure of linear predictors that lie on the device.
    fn on_device<T: Number>(
        &self,
        resident: &OnDevice<T>,
        predictors: &Buffer<T>,
    ) -> Result<f64, FitError> {
        let (family, link) = match self {
            Judge::Deviance(family, link, _) => (*family, *link),
            _ => Default::default(),
        };
        Ok(match (self, resident) {
            (Judge::Deviance(..), OnDevice::Targets(targets)) => {
                targets.score(predictors, family, link)?.mean_deviance
            }
            (_, OnDevice::Targets(targets)) => targets.score(predictors, family, link)?.summary.r2,
            (Judge::LogLoss { .. }, OnDevice::Classes(classes)) => {
                classes.score(predictors, Probabilities::Softmax)?.log_loss
            }
            (_, OnDevice::Classes(classes)) => {
                let figures = classes.score(predictors, Probabilities::None)?;
                figures.confusion.accuracy()
            }
        })
    }

    /// What it compares with, on `device`; none of more classes than are counted there.
    fn place<T: Number>(
        &self,
        device: &Device,
        targets: Targets<'_, T>,
    ) -> Result<Option<OnDevice<T>>, FitError> {
        let numbers = match targets {
            Targets::Numbers(numbers) => numbers,
            Targets::Labels(_) => &[],
        };
        Ok(match self {
            Judge::LogLoss { codes, classes } | Judge::Accuracy { codes, classes } => {
                if *classes > DEVICE_CLASSES {
                    return Ok(None);
                }
                let resident = ResidentClasses::new(device, codes, *classes, None)?;
                Some(OnDevice::Classes(resident))
            }
            _ => Some(OnDevice::Targets(ResidentTargets::new(
                device, numbers, None,
            )?)),
        })
    }
}

impl Judge {
    fn new<T: Element>(
        estimator: &Estimator,
        targets: Targets<'_, T>,
        classes: Option<&Classes>,
    ) -> Result<Judge, FitError> {
        let numbers = |targets: &[T]| targets.iter().map(|b| b.to_f64()).collect::<Vec<f64>>();
        match (estimator.stated(), targets) {
            (Stated::Classification(of), Targets::Labels(labels)) => {
                let known = classes.ok_or(FitError::Classes { found: 0 })?;
                let (codes, classes) = (known.codes(labels)?, known.len());
                if of.coding() != Coding::Numbers && classes > 2 {
                    return Err(mismatch(
                        "validation while it is fitted",
                        "one problem for each of several classes",
                        "evaluate the fitted model",
                    ));
                }
                Ok(match of.is_probabilistic() {
                    true => Judge::LogLoss { codes, classes },
                    false => Judge::Accuracy { codes, classes },
                })
            }
            (Stated::Regression(of), Targets::Numbers(targets)) => Ok(match of.glm() {
                Some((family, link)) => Judge::Deviance(family, link, numbers(targets)),
                None => Judge::R2(numbers(targets)),
            }),
            (_, targets) => Err(targets.mismatch()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Judge::LogLoss { codes, .. } | Judge::Accuracy { codes, .. } => codes.len(),
            Judge::Deviance(_, _, targets) | Judge::R2(targets) => targets.len(),
        }
    }
}

/// Of each class, from one linear predictor per row for two of them, or one per class.
fn probabilities(decisions: &Array2<f64>) -> Array2<f64> {
    let columns = decisions.ncols().max(2);
    let mut all = Array2::zeros((decisions.nrows(), columns));
    for (row, mut to) in decisions.rows().into_iter().zip(all.rows_mut()) {
        let mut values = match row.len() {
            1 => vec![0.0, row[0]],
            _ => row.to_vec(),
        };
        softmax(&mut values);
        to.iter_mut().zip(values).for_each(|(p, v)| *p = v);
    }
    all
}
