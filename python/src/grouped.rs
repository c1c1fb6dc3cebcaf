//! A model for each group of rows.

use std::borrow::Cow;

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use warpfuse::device::Device as Inner;
use warpfuse::learning::{
    Convergence, Ending, Estimator, FitError, FitOptions, GroupedModel, Member,
    group_predictors as predictors,
};
use warpfuse::matrix::Features;

use crate::arrays::{self, Scalar, either};
use crate::device::Device;
use crate::targets::{self, FitTargets, Y};
use crate::{estimators, watch};

/// Coefficients (groups × n) and intercepts of all groups in the precision of X, and how their fits ended.
#[pyclass(frozen, module = "warpfuse._native")]
pub struct GroupedSolution {
    #[pyo3(get)]
    coef: Py<PyAny>,
    #[pyo3(get)]
    intercept: Py<PyAny>,
    #[pyo3(get)]
    n_iter: Py<PyAny>,
    /// How each ended, in a word.
    #[pyo3(get)]
    status: Vec<&'static str>,
    /// The first that did not converge, and what would help it.
    #[pyo3(get)]
    unconverged: Option<(usize, &'static str)>,
    /// Those without a model, and why.
    #[pyo3(get)]
    failed: Vec<(usize, String)>,
}

/// Fits a model to each group of the rows of `x`; `groups` number the group of each row, from 0 on without gaps.
#[pyfunction]
#[pyo3(signature = (x, device, estimator, params, y, groups, sample_weight = None))]
pub fn fit_groups(
    x: &Bound<'_, PyAny>,
    device: &Device,
    estimator: &str,
    params: &Bound<'_, PyDict>,
    y: &Bound<'_, PyAny>,
    groups: &Bound<'_, PyAny>,
    sample_weight: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<GroupedSolution> {
    let (py, features, device) = (x.py(), arrays::features(x)?, &device.0);
    let (y, groups) = (targets::Given::of(y)?, targets::Given::of(groups)?);
    let weights = sample_weight.as_ref().map(PyReadonlyArray1::as_slice);
    let rows = Rows {
        y: y.elements()?,
        groups: groups.elements()?,
        weights: weights.transpose()?,
    };
    let estimator = estimators::estimator(estimator, params, features.dtype())?;
    either!(features, x => rows.solve(py, &estimator, device, &x))
}

/// What belongs to rows besides features.
struct Rows<'a> {
    y: Y<'a>,
    groups: Y<'a>,
    weights: Option<&'a [f64]>,
}

impl Rows<'_> {
    fn solve<T: Scalar>(
        &self,
        py: Python<'_>,
        estimator: &Estimator,
        device: &Inner,
        x: &Features<T>,
    ) -> PyResult<GroupedSolution> {
        let fit = || watch::timed(|| self.fit(estimator, device, x));
        let model = watch::watched(py, None, |_| fit())?;
        let members = match &model {
            GroupedModel::Regressor(model) => model.members(),
            GroupedModel::Classifier(model) => model.members(),
        };
        Ok(GroupedSolution::of::<T>(py, members))
    }

    fn fit<T: Scalar>(
        &self,
        estimator: &Estimator,
        device: &Inner,
        x: &Features<T>,
    ) -> Result<GroupedModel, FitError> {
        let options = FitOptions {
            sample_weight: self.weights,
            ..FitOptions::default()
        };
        let FitTargets::Codes(groups, numbers) = self.groups.targets::<T>() else {
            let remedy = "number them from 0 on";
            return Err(FitError::Combination {
                first: "groups",
                second: "labels that are no codes",
                remedy,
            });
        };
        let groups = (&groups, numbers);
        let y = match self.y.targets::<T>() {
            FitTargets::Numbers(y) => y,
            FitTargets::Wide(y) => Cow::Owned(arrays::narrow::<T>(y)),
            FitTargets::Codes(classes, codes) => {
                let labels = (&classes, codes);
                return estimator.fit_encoded_labels_of_groups(device, x, labels, groups, options);
            }
        };
        estimator.fit_encoded_groups(device, x, &y, groups, options)
    }
}

impl GroupedSolution {
    fn of<T: Scalar>(py: Python<'_>, members: &[Member]) -> Self {
        let coef: Vec<&[f64]> = members.iter().map(Member::coef).collect();
        let intercept: Vec<f64> = members.iter().map(Member::intercept).collect();
        let n_iter = members
            .iter()
            .map(|member| i32::try_from(member.n_iter()).unwrap_or(i32::MAX));
        let n_iter = PyArray1::from_iter(py, n_iter);
        let each = || members.iter().map(Member::ending).enumerate();
        let unconverged = each().find_map(|(group, ending)| match ending {
            Ending::Fitted(how) if !how.is_success() => Some((group, how.advice())),
            _ => None,
        });
        let failed = each().filter_map(|(group, ending)| match ending {
            Ending::Failed(why) => Some((group, why.clone())),
            _ => None,
        });
        GroupedSolution {
            coef: arrays::rows::<T>(py, &coef).into_any().unbind(),
            intercept: arrays::numbers::<T>(py, &intercept).into_any().unbind(),
            n_iter: n_iter.into_any().unbind(),
            status: each().map(|(_, ending)| name(ending)).collect(),
            unconverged,
            failed: failed.collect(),
        }
    }
}

/// How a fit ended, in a word.
fn name(ending: &Ending) -> &'static str {
    match ending {
        Ending::OneClass => "one_class",
        Ending::Failed(_) => "failed",
        Ending::Fitted(convergence) => match convergence {
            Convergence::Converged => "converged",
            Convergence::IterationLimit => "iteration_limit",
            Convergence::Singular => "singular",
            Convergence::NotFinite => "not_finite",
            Convergence::PrecisionLimit => "precision_limit",
            Convergence::Stalled => "stalled",
            Convergence::Separable => "separable",
            Convergence::EarlyStopped => "early_stopped",
        },
    }
}

/// Linear predictors of the rows of `x`, each by the coefficients and the intercept of its group.
#[pyfunction]
pub fn group_predictors<'py>(
    x: &Bound<'py, PyAny>,
    coef: PyReadonlyArray2<'py, f64>,
    intercept: PyReadonlyArray1<'py, f64>,
    groups: PyReadonlyArray1<'py, u32>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (py, features) = (x.py(), arrays::features(x)?);
    let models = (coef.as_array(), intercept.as_slice()?);
    let groups = groups.as_slice()?;
    let found =
        either!(features, x => watch::watched(py, None, |_| predictors(&x, models, groups)));
    Ok(PyArray1::from_vec(py, found?))
}
