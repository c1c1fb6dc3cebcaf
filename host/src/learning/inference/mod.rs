//! How sure coefficients are: standard errors, tests and confidence intervals of fits without a penalty.
//!
//! The covariance is φ·(X̃ᵀWX̃)⁻¹ with X̃ = [X, 1] and the expected weights W = v·(dμ/dt)²/V(μ), as statsmodels' `OLS`,
//! `Logit` and `GLM` have it: φ and Student's t for least squares; the normal distribution for generalised linear models,
//! with φ = 1 for binomial and Poisson targets and Pearson's χ² over the degrees of freedom for others. Sample weights are
//! what statsmodels calls `var_weights`, and rows of weight 0 are not counted.
//!
//! Source: McCullagh & Nelder, *Generalized Linear Models*, 2nd ed., 2.5.

mod distributions;
mod information;

use serde::Serialize;
use thiserror::Error;

pub(super) use distributions::Distribution;

use super::family::{Family, Link};
use super::problem::{Coding, Stated};
use super::spec::{ObjectiveSpec, SampleLoss};
use super::{ClassWeight, FitError, Model, Targets};
use crate::matrix::Element;
use crate::ops::objective::Loss;
use crate::ops::{Matrix, Number};
use information::Information;

/// Chance that an interval does not hold the true coefficient.
const LEVEL: f64 = 0.05;

/// How sure the coefficients of a model are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inference {
    /// `t` for least squares, else `z`: what the statistics are.
    pub statistic: &'static str,
    /// Rows with weight, less the coefficients.
    pub degrees_of_freedom: f64,
    /// φ, the dispersion.
    pub dispersion: f64,
    /// One for each column of X; `None` for columns that are constant beside an intercept, which have no coefficient.
    pub columns: Vec<Option<Estimate>>,
    /// Of the intercept, where there is one.
    pub intercept: Option<Estimate>,
}

/// A coefficient and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The coefficient.
    pub coef: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The coefficient over its standard error.
    pub statistic: f64,
    /// The chance of a statistic at least as far from 0 where the true coefficient is 0.
    pub p_value: f64,
    /// The lower end of the 95 % confidence interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Why there are no standard errors.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum InferenceError {
    /// They are not defined for this model.
    #[error("{0}")]
    Undefined(&'static str),
    /// The products failed.
    #[error(transparent)]
    Fit(#[from] FitError),
}

impl Model {
    /// Standard errors, tests and 95 % confidence intervals of the coefficients, on the rows that the model was fitted to.
    ///
    /// X is read once for every eight columns: see [`Inference`].
    ///
    /// # Errors
    /// [`InferenceError::Undefined`] for models with a penalty, without a likelihood or of more than two classes, for
    /// dependent columns and where there are no more rows than coefficients; [`InferenceError::Fit`] as
    /// [`Model::evaluate_on`].
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::learning::{LinearRegression, Model, Targets};
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::Matrix;
    ///
    /// let (device, y) = (Device::cpu(), [1.0, 2.9, 5.2, 6.9]);
    /// let x = Features::Dense(array![[0.0], [1.0], [2.0], [3.0]]);
    /// let model = LinearRegression::params().tolerance(1e-14).fit(&device, x.clone(), &y)?;
    /// let matrix = Matrix::new(&device, x)?;
    /// let found = Model::Regressor(model).infer(&matrix, Targets::Numbers(&y), None).expect("no penalty");
    /// let slope = found.columns[0].expect("a coefficient");
    /// // √(0.03 / 5): the residuals' variance over the squares of the column about its mean.
    /// assert!((slope.standard_error - 0.006_f64.sqrt()).abs() < 1e-9 && slope.p_value < 0.01);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn infer<T: Number>(
        &self,
        x: &Matrix<T>,
        targets: Targets<'_, T>,
        weights: Option<&[f64]>,
    ) -> Result<Inference, InferenceError> {
        let rows = Rows::of(self, targets, weights)?;
        let likelihood = Likelihood::of(self, &rows)?;
        let predictors = self.predictors_on(x)?.to_vec().map_err(FitError::from)?;
        let information = Information::of(
            x,
            &likelihood.expected(&predictors, &rows),
            likelihood.intercept,
        )
        .map_err(FitError::from)?;
        let coefficients = information.coefficients() as f64;
        let degrees = rows.counted() as f64 - coefficients;
        if degrees <= 0.0 {
            return Err(InferenceError::Undefined(
                "there are no more rows than coefficients: nothing is left to estimate errors from",
            ));
        }
        let (variances, of_intercept) = information
            .variances()
            .ok_or(InferenceError::Undefined("the columns depend on each other: their coefficients are not determined one by one"))?;
        let dispersion = likelihood.dispersion(&predictors, &rows, degrees);
        let distribution = match likelihood.is_exact {
            true => Distribution::Student(degrees),
            false => Distribution::Normal,
        };
        let reach = distribution.quantile(LEVEL);
        let estimate = |coef: f64, variance: f64| {
            Estimate::new(coef, (dispersion * variance).sqrt(), distribution, reach)
        };
        let (coef, intercept) = (self.coef(), self.intercept());
        let columns = coef[0].iter().zip(variances);
        Ok(Inference {
            statistic: if likelihood.is_exact { "t" } else { "z" },
            degrees_of_freedom: degrees,
            dispersion,
            columns: columns
                .map(|(coef, variance)| variance.map(|variance| estimate(*coef, variance)))
                .collect(),
            intercept: of_intercept.map(|variance| estimate(intercept[0], variance)),
        })
    }
}

impl Estimate {
    fn new(coef: f64, standard_error: f64, distribution: Distribution, reach: f64) -> Estimate {
        let statistic = coef / standard_error;
        Estimate {
            coef,
            standard_error,
            statistic,
            p_value: distribution.two_sided(statistic),
            low: coef - reach * standard_error,
            high: coef + reach * standard_error,
        }
    }
}

/// Targets as numbers, with weights.
struct Rows<'a> {
    targets: Vec<f64>,
    weights: Option<&'a [f64]>,
    classes: usize,
}

impl<'a> Rows<'a> {
    fn of<T: Number>(
        model: &Model,
        targets: Targets<'_, T>,
        weights: Option<&'a [f64]>,
    ) -> Result<Self, FitError> {
        let (targets, classes) = match (model, targets) {
            (Model::Classifier(model), Targets::Labels(labels)) => {
                let codes = model.classes().codes(labels)?;
                (
                    codes.into_iter().map(f64::from).collect(),
                    model.classes().len(),
                )
            }
            (Model::Regressor(_), Targets::Numbers(targets)) => {
                (targets.iter().map(|b| Element::to_f64(*b)).collect(), 0)
            }
            (_, targets) => return Err(targets.mismatch()),
        };
        Ok(Rows {
            targets,
            weights,
            classes,
        })
    }

    fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    fn counted(&self) -> usize {
        (0..self.targets.len())
            .filter(|row| self.weight(*row) > 0.0)
            .count()
    }
}

/// What a model is the maximum of.
struct Likelihood {
    family: Family,
    link: Link,
    intercept: bool,
    /// Least squares: Student's distribution holds for any number of rows.
    is_exact: bool,
}

impl Likelihood {
    fn of(model: &Model, rows: &Rows<'_>) -> Result<Likelihood, InferenceError> {
        const IMPORTED: InferenceError =
            InferenceError::Undefined("the model was imported: its penalty is not known");
        if model.report().has_offset {
            return Err(InferenceError::Undefined(
                "the model was fitted with an offset of each row, which it does not keep",
            ));
        }
        let stated = match model {
            Model::Regressor(model) => model.params().stated().map(Stated::Regression),
            Model::Classifier(model) => model.params().stated().map(Stated::Classification),
        };
        let stated = stated.ok_or(IMPORTED)?;
        let controls = match &stated {
            Stated::Regression(of) => of.controls(),
            Stated::Classification(of) => of.controls(),
        };
        if controls.non_negative {
            return Err(InferenceError::Undefined(
                "coefficients that may not be negative have no normal distribution",
            ));
        }
        let (spec, glm, intercept) = match stated {
            Stated::Regression(of) => {
                let total = (0..rows.targets.len()).map(|row| rows.weight(row)).sum();
                (of.spec(total), of.glm(), of.controls().fit_intercept)
            }
            Stated::Classification(of) => {
                if of.coding() != Coding::Numbers && rows.classes > 2 {
                    return Err(InferenceError::Undefined(
                        "each class was fitted against the rest: fit those two alone",
                    ));
                }
                if *of.class_weight() != ClassWeight::Uniform {
                    return Err(InferenceError::Undefined(
                        "class weights change what is estimated: fit without them",
                    ));
                }
                (
                    of.spec(rows.classes, 1.0),
                    None,
                    of.controls().fit_intercept,
                )
            }
        };
        let (family, link, is_exact) = family_of(&spec, glm)?;
        Ok(Likelihood {
            family,
            link,
            intercept,
            is_exact,
        })
    }

    /// v·(dμ/dt)²/V(μ).
    fn expected<T: Number>(&self, predictors: &[T], rows: &Rows<'_>) -> Vec<f64> {
        let of = |(row, t): (usize, &T)| {
            let t = Element::to_f64(*t);
            let (mean, slope) = (self.link.mean(t), self.link.slope(t));
            rows.weight(row) * slope * slope / self.family.variance(mean)
        };
        predictors.iter().enumerate().map(of).collect()
    }

    /// φ.
    fn dispersion<T: Number>(&self, predictors: &[T], rows: &Rows<'_>, degrees: f64) -> f64 {
        if matches!(self.family, Family::Binomial | Family::Poisson) {
            return 1.0;
        }
        let term = |row: usize| {
            let mean = self.link.mean(Element::to_f64(predictors[row]));
            let residual = rows.targets[row] - mean;
            rows.weight(row) * residual * residual / self.family.variance(mean)
        };
        let [sum] = super::metrics::sums(rows.targets.len(), |row| [term(row)]);
        sum / degrees
    }
}

/// Family, link, and whether this is least squares.
fn family_of(
    spec: &ObjectiveSpec,
    glm: Option<(Family, Link)>,
) -> Result<(Family, Link, bool), InferenceError> {
    if spec.l1 > 0.0 || spec.l2 > 0.0 {
        return Err(InferenceError::Undefined(
            "the coefficients are penalised: standard errors are defined for fits without a penalty",
        ));
    }
    match (spec.loss, glm) {
        (_, Some((family, link))) => Ok((family, link, false)),
        (SampleLoss::Single(Loss::Squared), None) => Ok((Family::Gaussian, Link::Identity, true)),
        (SampleLoss::Single(Loss::Logistic), None) => Ok((Family::Binomial, Link::Logit, false)),
        (SampleLoss::Multinomial { .. }, None) => Err(InferenceError::Undefined(
            "coefficients of more than two classes are determined only relative to each other",
        )),
        _ => Err(InferenceError::Undefined("the loss is no likelihood")),
    }
}

#[cfg(test)]
mod tests;
