//! Figures of predictions: on the device where there are many rows, else on the host.

use std::sync::Arc;

use ndarray::Array2;
use rayon::prelude::*;

use super::classifier::{Classifier, codes_of};
use super::metrics::{
    ClassificationSummary, ConfusionMatrix, DEVICE_CLASSES, Deviance, DevianceSummary, MetricError,
    RegressionSummary, ResidentClasses, ResidentTargets, Scores, auc, log_loss, takes_device,
};
use super::regressor::Regressor;
use super::{Family, FitError, Labels, Link};
use crate::device::{Buffer, Device};
use crate::matrix::{Element, Features};
use crate::ops::{Matrix, Number};

/// Of a regression; the deviance too of a generalised linear model.
pub(super) type NumberFigures = (RegressionSummary, Option<DevianceSummary>);

/// Scores linear predictors that lie on a device; `glm` are family and link of a generalised linear model.
pub(super) fn numbers<T: Number>(
    predictors: &Buffer<T>,
    targets: &[T],
    weights: Option<&[f64]>,
    glm: Option<(Family, Link)>,
) -> Result<NumberFigures, FitError> {
    if takes_device(predictors.len(), targets.len())? {
        let resident = ResidentTargets::new(&predictors.device(), targets, weights)?;
        let (family, link) = glm.unwrap_or_default();
        let figures = resident.score(predictors, family, link)?;
        let deviance = DevianceSummary {
            mean_deviance: figures.mean_deviance,
            explained_deviance: figures.explained_deviance,
        };
        if glm.is_none() {
            return Ok((figures.summary, None));
        }
        if !figures.mean_deviance.is_nan() {
            return Ok((figures.summary, Some(deviance)));
        }
        // The host tells which row has no deviance.
    }
    numbers_on_host(&predictors.to_vec()?, targets, weights, glm)
}

/// [`numbers`] of predictors that the host has.
pub(super) fn numbers_on_host<T: Number>(
    predictors: &[T],
    targets: &[T],
    weights: Option<&[f64]>,
    glm: Option<(Family, Link)>,
) -> Result<NumberFigures, FitError> {
    let (family, link) = glm.unwrap_or_default();
    let link = link.of_kernels();
    let mean = |t: &T| link.mean(Element::to_f64(*t));
    let means: Vec<f64> = predictors.par_iter().map(mean).collect();
    let targets: Vec<f64> = targets.iter().map(|b| Element::to_f64(*b)).collect();
    let summary = RegressionSummary::of(&targets, &means, weights)?;
    if glm.is_none() {
        return Ok((summary, None));
    }
    let deviance = Deviance::from(family);
    let deviance = DevianceSummary {
        mean_deviance: deviance.mean(&targets, &means, weights)?,
        explained_deviance: deviance.explained(&targets, &means, weights)?,
    };
    Ok((summary, Some(deviance)))
}

/// Scores a classifier's linear predictors that lie on a device, m × k by rows.
pub(super) fn labels<T: Number>(
    model: &Classifier,
    predictors: &Buffer<T>,
    labels: &Labels,
    weights: Option<&[f64]>,
) -> Result<ClassificationSummary, FitError> {
    let (decisions, classes) = (model.by_rows(predictors)?, model.classes().len());
    if !takes_device(decisions.nrows(), labels.len())? || classes > DEVICE_CLASSES {
        return labels_on_host(model, &decisions, labels, weights);
    }
    let codes = model.classes().codes(labels)?;
    let resident = ResidentClasses::new(&predictors.device(), &codes, classes, weights)?;
    let figures = resident.score(predictors, model.probabilities())?;
    if figures.log_loss.is_nan() {
        // The host tells which row has no probability.
        return labels_on_host(model, &decisions, labels, weights);
    }
    let log_loss = model.is_probabilistic().then_some(figures.log_loss);
    let area = area(model, &decisions, &codes, weights)?;
    Ok(ClassificationSummary::of_parts(
        &figures.confusion,
        log_loss,
        area,
    ))
}

/// [`labels`] of linear predictors that the host has.
pub(super) fn labels_on_host(
    model: &Classifier,
    decisions: &Array2<f64>,
    labels: &Labels,
    weights: Option<&[f64]>,
) -> Result<ClassificationSummary, FitError> {
    let codes = model.classes().codes(labels)?;
    let (predicted, classes) = (codes_of(decisions), model.classes().len());
    let confusion = ConfusionMatrix::of(&codes, &predicted, classes, weights)?;
    let loss = |p: Array2<f64>| log_loss(&codes, p.view(), weights);
    let probabilities = model.is_probabilistic();
    let probabilities = probabilities.then(|| model.probabilities_of(decisions));
    let log_loss = probabilities.map(loss).transpose()?;
    let area = area(model, decisions, &codes, weights)?;
    Ok(ClassificationSummary::of_parts(&confusion, log_loss, area))
}

/// The area under the ROC curve. Two classes are ranked by the linear predictor: probabilities rank alike, but for those
/// that round to 1.
pub(super) fn area(
    model: &Classifier,
    decisions: &Array2<f64>,
    codes: &[u32],
    weights: Option<&[f64]>,
) -> Result<Option<f64>, MetricError> {
    match decisions.ncols() {
        1 => auc(codes, Scores::Decisions(decisions.view()), weights),
        _ => with_scores(model, decisions, |scores| auc(codes, scores, weights)),
    }
}

/// Hands on the probabilities of a model that knows them, else the linear predictors.
fn with_scores<R>(
    model: &Classifier,
    decisions: &Array2<f64>,
    each: impl FnOnce(Scores<'_>) -> R,
) -> R {
    if model.is_probabilistic() {
        each(Scores::Probabilities(
            model.probabilities_of(decisions).view(),
        ))
    } else {
        each(Scores::Decisions(decisions.view()))
    }
}

/// The share of rows whose class is predicted.
pub(super) fn accuracy<T: Number>(
    model: &Classifier,
    predictors: &Buffer<T>,
    labels: &Labels,
) -> Result<f64, FitError> {
    let (codes, classes) = (model.classes().codes(labels)?, model.classes().len());
    let rows = predictors.len() / model.coef().len();
    if takes_device(rows, codes.len())? && classes <= DEVICE_CLASSES {
        let resident = ResidentClasses::new(&predictors.device(), &codes, classes, None)?;
        let none = crate::ops::objective::Probabilities::None;
        return Ok(resident.score(predictors, none)?.confusion.accuracy());
    }
    let found = codes_of(&model.by_rows(predictors)?);
    Ok(super::metrics::accuracy(&codes, &found, None)?)
}

impl Regressor {
    /// R² of the predictions; of a [`Glm`](super::Glm) D², the share of the deviance that is explained.
    ///
    /// # Errors
    /// As [`Regressor::decision_function`]; [`FitError::Metric`] when there is not one target per row, or a
    /// target lies outside the distribution.
    pub fn score<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        targets: &[T],
    ) -> Result<f64, FitError> {
        let predictors = self.predictors_on(&Matrix::new(device, features)?)?;
        let (summary, deviance) = numbers(&predictors, targets, None, self.params.glm())?;
        Ok(deviance.map_or(summary.r2, |deviance| deviance.explained_deviance))
    }
}

impl Classifier {
    /// The share of rows whose label is predicted.
    ///
    /// # Errors
    /// As [`Classifier::decision_function`]; [`FitError::Labels`] for labels that were not trained on,
    /// [`FitError::Targets`] when there is not one per row.
    pub fn score<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        labels: &Labels,
    ) -> Result<f64, FitError> {
        let features = features.into();
        let (rows, targets) = (features.rows(), labels.len());
        if rows != targets {
            return Err(FitError::Targets { rows, targets });
        }
        let predictors = self.predictors_on(&Matrix::new(device, features)?)?;
        accuracy(self, &predictors, labels)
    }
}
