//! A start inside the domain of a link, where a fit without an intercept cannot begin at coefficients of 0.
//!
//! Counts have means above 0, and so does every row's predictor by the identity link: a system of linear inequalities, one for
//! each row. A squared hinge whose rows all have the target 1 is 0 exactly where all of them hold with a margin, and Newton's
//! method finds such coefficients in a few steps. The first is the least squares solution of X·w ≈ 1, which mostly does;
//! a further step looks at the rows that it leaves short alone. [`WayIn`] says for which predictors, by family and link.
//!
//! The rows that are hardest to satisfy have the others far beyond: predictors that may be multiplied by any number are brought
//! back to the mean of the targets. Newton's method in a region took 1,000 iterations from a start ten times beyond, and did not
//! arrive (counts by the square root, columns of sizes 0.01 to 10); from the mean it takes 6.
//!
//! Source: O. Mangasarian, "A finite Newton method for classification", Optimization Methods and Software 17, 2002.

use std::sync::Arc;

use super::controls::Controls;
use super::error::mismatch;
use super::fit::{Prepared, Training};
use super::given::Given;
use super::options::FitOptions;
use super::row_targets::RowTargets;
use super::sample_weights::SampleWeights;
use super::solver::{Begin, Point, Solver};
use super::spec::{ObjectiveSpec, SampleLoss};
use super::start::WayIn;
use super::weights::Weights;
use super::{Codes, FitError};
use crate::matrix::Element;
use crate::ops::{Number, OpError};

/// A ridge, as a share of the mean of ‖x‖² over the rows: of many ways in it chooses a short one. It costs a row about as much of
/// its margin.
const RIDGE: f64 = 1e-8;
/// Of the gradient: far less than a margin is left of it.
const TOLERANCE: f64 = 1e-3;
/// Steps that a search takes at most.
const MOST_STEPS: usize = 100;

impl<T: Number> Training<'_, T> {
    /// Coefficients by this way, in the units of X, over rows with these weights.
    pub(super) fn inside(
        &self,
        way: Option<WayIn>,
        (rows, weights): (usize, &SampleWeights),
        given: Given<'_>,
    ) -> Result<Option<Weights>, FitError> {
        let Some(way) = way else {
            return Ok(None);
        };
        let searching = self.with(Controls {
            solver: Solver::Auto,
            tolerance: TOLERANCE,
            max_iter: MOST_STEPS,
            ..self.controls
        });
        let plain = ObjectiveSpec::mean_of(SampleLoss::Single(way.loss));
        let spec = ObjectiveSpec {
            l2: RIDGE * self.mean_square(&plain),
            ..plain
        };
        let targets = RowTargets::Coded {
            codes: Arc::new(Codes::Bytes(vec![0; rows].into())),
            targets: vec![<T as Element>::from_f64(way.target)],
        };
        let offset = given.offset.map(|offset| scaled(offset, 1.0 / way.unit));
        let mut options = FitOptions {
            columns: given.mask,
            offset: offset.as_deref(),
            ..FitOptions::default()
        };
        let mut history = Vec::new();
        let (found, _) = searching.solve(&spec, &targets, weights, &mut options, &mut history)?;
        let mean = way.mean.filter(|_| given.offset.is_none());
        let by = match mean {
            Some(mean) => self.towards(mean, &found.coef[0], weights)?,
            None => way.unit,
        };
        Ok(Some(Weights {
            coef: found.coef.iter().map(|coef| scaled(coef, by)).collect(),
            ..found
        }))
    }

    /// What to multiply coefficients by so that predictors have this mean.
    fn towards(&self, mean: f64, coef: &[f64], weights: &SampleWeights) -> Result<f64, FitError> {
        let of_columns = self.weighted_means(weights)?;
        let pairs = of_columns.iter().zip(coef);
        Ok(mean / pairs.map(|(x, w)| x * w).sum::<f64>())
    }

    /// Fails where a fit that begins there begins outside the domain, since nothing is inside.
    pub(super) fn expect_inside(
        &self,
        spec: &ObjectiveSpec,
        (prepared, begin): (&Prepared<'_>, &Begin<T>),
        rows: (&RowTargets<'_, T>, Option<&[f64]>),
    ) -> Result<(), FitError> {
        let mut objective = self.objective(spec, prepared, rows)?;
        let first = begin.cold.as_ref().unwrap_or(&begin.theta);
        let first = first.try_clone().map_err(OpError::from)?;
        if Point::start(&mut *objective, first)?.is_finite() {
            return Ok(());
        }
        Err(mismatch(
            "this link without an intercept",
            "these rows, for all of which no coefficients were found to give a mean that the family has",
            "fit an intercept, or use the family's default link",
        ))
    }
}

fn scaled(values: &[f64], by: f64) -> Vec<f64> {
    values.iter().map(|value| by * value).collect()
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2, array};

    use crate::device::Device;
    use crate::learning::{Family, FitError, FitOptions, Glm, Link, Solver};
    use crate::matrix::Features;

    const ROWS: usize = 60;

    /// Columns of different sizes, the last of both signs.
    fn features() -> Array2<f64> {
        Array2::from_shape_fn((ROWS, 3), |(i, j)| match j {
            0 => 1.0 + ((i * 7) % 11) as f64,
            1 => 1e-2 * ((i * 5) % 13) as f64,
            _ => ((i * 3) % 7) as f64 - 3.0,
        })
    }

    /// Predictors from 0.03 to 0.8.
    fn coefficients() -> Array1<f64> {
        array![0.06, 0.9, 0.01]
    }

    /// Families and links for which a predictor of 0 is outside, and the factor of predictors.
    const CASES: [(Family, Link, f64); 13] = [
        (Family::Poisson, Link::Identity, 4.0),
        (Family::Poisson, Link::Sqrt, 2.0),
        (Family::Gamma, Link::Identity, 4.0),
        (Family::Gamma, Link::Inverse, 3.0),
        (Family::InverseGaussian, Link::Identity, 1.0),
        (Family::InverseGaussian, Link::Power(-2.0), 1.0),
        (Family::Tweedie { power: 1.5 }, Link::Identity, 4.0),
        (Family::Tweedie { power: 2.0 }, Link::Identity, 4.0),
        (Family::Gaussian, Link::Inverse, 2.0),
        (Family::Gaussian, Link::Power(0.5), 2.0),
        (Family::Binomial, Link::Identity, 1.0),
        (Family::Binomial, Link::Log, -1.0),
        (Family::Binomial, Link::Power(-1.0), 40.0),
    ];

    fn params((family, link, _): (Family, Link, f64)) -> Glm {
        Glm::params()
            .family(family)
            .link(link)
            .alpha(0.0)
            .fit_intercept(false)
            .tolerance(1e-11)
    }

    /// The coefficients that make the targets, whose deviance is 0.
    fn truth((_, link, factor): (Family, Link, f64)) -> (Array1<f64>, Vec<f64>) {
        let coef = coefficients() * factor;
        let means = features().dot(&coef).mapv(|t| link.mean(t)).to_vec();
        (coef, means)
    }

    fn error(found: &[f64], truth: &Array1<f64>) -> f64 {
        let pairs = found.iter().zip(truth);
        pairs.fold(0.0, |most: f64, (a, b)| match (a - b).abs() / b.abs() {
            error if error <= most => most,
            error => error,
        })
    }

    #[test]
    fn fits_without_an_intercept_find_their_way_in() {
        for case in CASES {
            let (coef, targets) = truth(case);
            for solver in [Solver::Auto, Solver::NewtonCg, Solver::Lbfgs] {
                let params = params(case).solver(solver);
                let x = Features::Dense(features());
                let model = params.fit(&Device::cpu(), x, &targets);
                let model = model.unwrap_or_else(|error| panic!("{case:?} by {solver:?}: {error}"));
                let error = error(model.coef(), &coef);
                assert!(error <= 1e-5, "{case:?} by {solver:?}: off by {error:e}");
            }
        }
    }

    /// Rows without weight may be outside; a start of one's own is not looked for.
    #[test]
    fn rows_without_weight_do_not_count() {
        let case = CASES[0];
        let (coef, mut targets) = truth(case);
        let (mut x, mut weights) = (features(), vec![1.0; ROWS]);
        x.row_mut(4).fill(-20.0);
        (weights[4], targets[4]) = (0.0, 3.0);
        let start = [coef.to_vec()];
        for start in [None, Some((&start[..], &[0.0][..]))] {
            let options = FitOptions {
                sample_weight: Some(&weights),
                start,
                ..FitOptions::default()
            };
            let x = Features::Dense(x.clone());
            let model = params(case).fit_with(&Device::cpu(), x, &targets, options);
            let error = error(model.expect("a fit").coef(), &coef);
            assert!(error <= 1e-5, "off by {error:e}");
        }
    }

    #[test]
    fn offsets_are_a_part_of_the_predictors() {
        let case = CASES[0];
        let coef = coefficients() * 4.0;
        let offset: Vec<f64> = (0..ROWS).map(|i| (i % 5) as f64 * 0.1 - 0.05).collect();
        let means = features().dot(&coef) + Array1::from(offset.clone());
        assert!(means.iter().all(|mean| *mean > 0.0));
        let options = FitOptions {
            offset: Some(&offset),
            ..FitOptions::default()
        };
        let x = Features::Dense(features());
        let model = params(case).fit_with(&Device::cpu(), x, &means.to_vec(), options);
        let error = error(model.expect("a fit").coef(), &coef);
        assert!(error <= 1e-5, "off by {error:e}");
    }

    #[test]
    fn single_precision_and_an_l1_term_begin_inside_too() {
        let (coef, targets) = truth(CASES[6]);
        let targets: Vec<f32> = targets.iter().map(|b| *b as f32).collect();
        let x = || Features::Dense(features().mapv(|x| x as f32));
        let params = params(CASES[6]).tolerance(1e-5);
        let model = params.fit(&Device::cpu(), x(), &targets).expect("a fit");
        assert!(error(model.coef(), &coef) <= 1e-2, "{:?}", model.coef());
        let lasso = params.alpha(1e-3).l1_ratio(1.0);
        let model = lasso.fit(&Device::cpu(), x(), &targets).expect("a fit");
        assert!(model.converged());
    }

    #[test]
    fn rows_on_opposite_sides_are_refused() {
        let x = || Features::Dense(array![[1.0], [-2.0], [3.0]]);
        for case in CASES
            .into_iter()
            .filter(|(family, ..)| *family != Family::Gaussian)
        {
            let found = params(case).fit(&Device::cpu(), x(), &[0.5, 0.25, 0.75]);
            let Err(FitError::Combination { remedy, .. }) = found else {
                panic!("{case:?}: {found:?}")
            };
            assert!(remedy.contains("fit an intercept"));
        }
    }
}
