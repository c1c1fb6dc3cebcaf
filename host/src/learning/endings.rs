//! How fits of awkward data end: "converged" only where the objective is the minimum's.
//!
//! Every estimator is fitted to every kind of data on the CPU, by the solver that suits it best, and again as tightly as f64 allows. A
//! fit that says that it converged has the objective of the tight one to 10⁻⁶; those that cannot converge are listed, with
//! what they say instead. In f32, of the same numbers rounded, the objective is computed anew in f64 from the coefficients,
//! and has to be the tight one's to 10⁻⁵.

use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{
    Convergence, ElasticNet, Estimator, Family, FitError, FitOptions, FitReport, Glm, Labels,
    Lasso, LinearSvc, LinearSvr, Link, LogisticRegression, Model, Penalty, Ridge,
    Targets as FitTargets,
};
use crate::device::Device;
use crate::matrix::Features;
use crate::ops::Number;

/// The weight of an l1 penalty or an elastic net, and the half-width of a tube.
const ALPHA: f64 = 0.02;
const EPSILON: f64 = 0.1;

/// Kinds of data.
const DATA: [&str; 8] = [
    "one-hot",
    "equal columns",
    "nearly equal columns",
    "columns of scales from 1e-4 to 1e4",
    "columns far from 0",
    "more columns than rows",
    "seven rows",
    "powers",
];

/// Estimators.
const ESTIMATORS: [&str; 13] = [
    "least squares",
    "ridge",
    "lasso",
    "elastic net",
    "logistic",
    "logistic l1",
    "logistic, no penalty",
    "multinomial",
    "multinomial l1",
    "poisson",
    "poisson sqrt, no penalty",
    "svc",
    "svr",
];

/// Fits that end otherwise than by converging: classes that can be separated have no best coefficients.
const OTHERWISE: [(&str, &str, Convergence); 1] = [(
    "more columns than rows",
    "logistic, no penalty",
    Convergence::Separable,
)];

fn features(kind: &str) -> Array2<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut numbers = |rows: usize, cols: usize| {
        Array2::from_shape_fn((rows, cols), |_| 2.0 * random.random::<f64>() - 1.0)
    };
    match kind {
        "one-hot" => Array2::from_shape_fn((240, 18), |(i, j)| {
            let group = j / 6;
            f64::from((i * (2 * group + 3) + i / (group + 2)) % 6 == j % 6)
        }),
        "equal columns" => {
            let mut x = numbers(90, 6);
            let first = x.column(0).to_owned();
            x.column_mut(4).assign(&first);
            x
        }
        "nearly equal columns" => {
            let mut x = numbers(90, 6);
            for i in 0..90 {
                x[[i, 5]] = x[[i, 0]] + 1e-6 * x[[i, 5]];
            }
            x
        }
        "columns of scales from 1e-4 to 1e4" => {
            let mut x = numbers(90, 5);
            for (j, mut column) in x.columns_mut().into_iter().enumerate() {
                column *= 10f64.powi(2 * j as i32 - 4);
            }
            x
        }
        "columns far from 0" => numbers(90, 4) + 1e4,
        "more columns than rows" => numbers(20, 60),
        "seven rows" => numbers(7, 3),
        _ => Array2::from_shape_fn((120, 10), |(i, j)| (i as f64 / 119.0).powi(j as i32 + 1)),
    }
}

/// What rows are worth: depends on the first three columns, each in its own units, with much noise.
fn scores(x: &Array2<f64>) -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let rows = x.nrows() as f64;
    let units: Vec<(f64, f64)> = x
        .columns()
        .into_iter()
        .map(|column| {
            let mean = column.sum() / rows;
            let square: f64 = column.iter().map(|x| (x - mean).powi(2)).sum();
            (mean, (square / rows).sqrt().max(1e-12))
        })
        .collect();
    let score = |row: ndarray::ArrayView1<'_, f64>| -> f64 {
        let parts = row.iter().zip(&units).take(3);
        parts.map(|(x, (mean, unit))| (x - mean) / unit).sum()
    };
    x.rows()
        .into_iter()
        .map(|row| score(row) + 4.0 * (random.random::<f64>() - 0.5))
        .collect()
}

/// What is learnt from the scores of rows: two and three classes, counts.
struct Targets {
    scores: Vec<f64>,
    two: Vec<f64>,
    three: Vec<f64>,
    counts: Vec<f64>,
}

impl Targets {
    fn of(x: &Array2<f64>) -> Targets {
        let scores = scores(x);
        let classes = |thresholds: &[f64]| {
            let class = |score: &f64| thresholds.iter().filter(|t| *score > **t).count() as f64;
            scores.iter().map(class).collect()
        };
        Targets {
            two: classes(&[0.3]),
            three: classes(&[-0.6, 0.6]),
            counts: scores.iter().map(|s| (s + 4.0).max(0.0).floor()).collect(),
            scores,
        }
    }

    /// The same in another precision and back.
    fn rounded(self) -> Targets {
        Targets {
            scores: self.scores.iter().map(|t| f64::from(*t as f32)).collect(),
            ..self
        }
    }
}

/// How a fit of `estimator` ends with this tolerance.
fn fit<T: Number>(
    x: &Array2<f64>,
    targets: &Targets,
    estimator: &str,
    tolerance: f64,
) -> Result<Model, FitError> {
    let numbers = |numbers: &[f64]| -> Vec<T> { numbers.iter().map(|t| T::from_f64(*t)).collect() };
    let (scores, counts) = (numbers(&targets.scores), numbers(&targets.counts));
    let labels = |classes: &[f64]| Labels::Numbers(classes.to_vec());
    let (two, three) = (labels(&targets.two), labels(&targets.three));
    let logistic = |penalty| LogisticRegression::params().penalty(penalty);
    let poisson = || Glm::params().family(Family::Poisson);
    let (params, targets): (Estimator, FitTargets<'_, T>) = match estimator {
        "least squares" => (
            Ridge::params().alpha(0.0).into(),
            FitTargets::Numbers(&scores),
        ),
        "ridge" => (Ridge::params().into(), FitTargets::Numbers(&scores)),
        "lasso" => (
            Lasso::params().alpha(ALPHA).into(),
            FitTargets::Numbers(&scores),
        ),
        "elastic net" => (
            ElasticNet::params().alpha(ALPHA).into(),
            FitTargets::Numbers(&scores),
        ),
        "logistic" => (logistic(Penalty::L2).into(), FitTargets::Labels(&two)),
        "logistic l1" => (logistic(Penalty::L1).into(), FitTargets::Labels(&two)),
        "logistic, no penalty" => (logistic(Penalty::None).into(), FitTargets::Labels(&two)),
        "multinomial" => (logistic(Penalty::L2).into(), FitTargets::Labels(&three)),
        "multinomial l1" => (logistic(Penalty::L1).into(), FitTargets::Labels(&three)),
        "poisson" => (poisson().alpha(0.1).into(), FitTargets::Numbers(&counts)),
        "poisson sqrt, no penalty" => (
            poisson().link(Link::Sqrt).alpha(0.0).into(),
            FitTargets::Numbers(&counts),
        ),
        "svc" => (LinearSvc::params().into(), FitTargets::Labels(&two)),
        _ => (
            LinearSvr::params().epsilon(EPSILON).into(),
            FitTargets::Numbers(&scores),
        ),
    };
    let x = Features::Dense(x.mapv(T::from_f64));
    params
        .tolerance(tolerance)
        .fit_with(&Device::cpu(), x, targets, FitOptions::default())
}

/// The report of a fit in f64 of one of these estimators to one of these kinds of data.
fn report(kind: &str, estimator: &str, tolerance: f64) -> FitReport {
    let x = features(kind);
    let model = fit::<f64>(&x, &Targets::of(&x), estimator, tolerance);
    let model = model.unwrap_or_else(|error| panic!("{estimator} on {kind}: {error}"));
    model.report().clone()
}

#[test]
fn fits_end_as_the_table_says_and_converged_means_the_minimum() {
    let mut wrong = Vec::new();
    for kind in DATA {
        for estimator in ESTIMATORS {
            let (found, tight) = (
                report(kind, estimator, 1e-6),
                report(kind, estimator, 1e-11),
            );
            let listed = OTHERWISE
                .iter()
                .find(|(k, e, _)| (*k, *e) == (kind, estimator));
            let expected = listed.map_or(Convergence::Converged, |(.., ending)| *ending);
            let least = found.objective.min(tight.objective);
            let scale = least.abs().max(1e-9 * first_objective(&found));
            let off = (found.objective - least) / scale;
            let honest = found.convergence != Convergence::Converged || off <= 1e-6;
            if found.convergence != expected || !honest {
                wrong.push(format!(
                    "{estimator} on {kind}: {:?} instead of {expected:?}, gradient {:.1e}, off by {off:.1e}, {} iterations, {}",
                    found.convergence,
                    found.gradient_ratio,
                    found.n_iter,
                    found.solver.name(),
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Objectives of perfect fits are 0 but for rounding: what they are relative to.
fn first_objective(report: &FitReport) -> f64 {
    report
        .history
        .first()
        .map_or(1.0, |first| first.objective.abs())
        .max(1.0)
}

/// The objective in f64, but for a factor and constants.
fn objective(estimator: &str, x: &Array2<f64>, targets: &Targets, model: &Model) -> f64 {
    let (coef, intercepts) = (model.coef(), model.intercept());
    let scores: Vec<Vec<f64>> = coef
        .iter()
        .zip(&intercepts)
        .map(|(coef, b)| {
            let dot = |row: ndarray::ArrayView1<'_, f64>| {
                row.iter().zip(*coef).map(|(x, w)| x * w).sum::<f64>() + b
            };
            x.rows().into_iter().map(dot).collect()
        })
        .collect();
    let rows = x.nrows() as f64;
    let all = || coef.iter().flat_map(|coef| coef.iter());
    let (squares, norm): (f64, f64) = (all().map(|w| w * w).sum(), all().map(|w| w.abs()).sum());
    let sum = |targets: &[f64], loss: &dyn Fn(f64, f64) -> f64| -> f64 {
        scores[0]
            .iter()
            .zip(targets)
            .map(|(t, y)| loss(*t, *y))
            .sum()
    };
    let square = |t: f64, y: f64| (t - y).powi(2);
    let logistic = |t: f64, y: f64| {
        let margin = if y == 1.0 { t } else { -t };
        (-margin.abs()).exp().ln_1p() + (-margin).max(0.0)
    };
    let entropy = || -> f64 {
        let row = |i: usize| {
            let own: Vec<f64> = scores.iter().map(|class| class[i]).collect();
            let most = own.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = own.iter().map(|t| (t - most).exp()).sum();
            sum.ln() + most - own[targets.three[i] as usize]
        };
        (0..x.nrows()).map(row).sum::<f64>()
    };
    // Half the deviance of a count y with mean μ, without what does not depend on μ.
    let poisson = |mean: f64, y: f64| if y > 0.0 { mean - y * mean.ln() } else { mean };
    let b = intercepts[0];
    match estimator {
        "least squares" => sum(&targets.scores, &square),
        "ridge" => sum(&targets.scores, &square) + squares,
        "lasso" => sum(&targets.scores, &square) / (2.0 * rows) + ALPHA * norm,
        "elastic net" => {
            sum(&targets.scores, &square) / (2.0 * rows) + ALPHA * (0.5 * norm + 0.25 * squares)
        }
        "logistic" => sum(&targets.two, &logistic) + 0.5 * squares,
        "logistic l1" => sum(&targets.two, &logistic) + norm,
        "logistic, no penalty" => sum(&targets.two, &logistic),
        "multinomial" => entropy() + 0.5 * squares,
        "multinomial l1" => entropy() + norm,
        "poisson" => sum(&targets.counts, &|t, y| poisson(t.exp(), y)) / rows + 0.05 * squares,
        "poisson sqrt, no penalty" => sum(&targets.counts, &|t, y| poisson(t * t, y)),
        "svc" => {
            let hinge = |t: f64, y: f64| (1.0 - if y == 1.0 { t } else { -t }).max(0.0).powi(2);
            0.5 * (squares + b * b) + sum(&targets.two, &hinge)
        }
        _ => {
            let outside = |t: f64, y: f64| ((t - y).abs() - EPSILON).max(0.0).powi(2);
            0.5 * (squares + b * b) + sum(&targets.scores, &outside)
        }
    }
}

/// Fits in f32 that end otherwise than by converging: coefficients of f32 do not hold the minimum.
const OTHERWISE_IN_F32: [(&str, &str, Convergence); 4] = [
    OTHERWISE[0],
    ("powers", "least squares", Convergence::PrecisionLimit),
    (
        "powers",
        "logistic, no penalty",
        Convergence::PrecisionLimit,
    ),
    (
        "powers",
        "poisson sqrt, no penalty",
        Convergence::PrecisionLimit,
    ),
];

#[test]
fn fits_in_f32_end_as_the_table_says_and_converged_means_the_minimum() {
    let mut wrong = Vec::new();
    for kind in DATA {
        let x = features(kind).mapv(|x| f64::from(x as f32));
        let targets = Targets::of(&x).rounded();
        for estimator in ESTIMATORS {
            let fail = |error| panic!("{estimator} on {kind}: {error}");
            let single = fit::<f32>(&x, &targets, estimator, 1e-6).unwrap_or_else(fail);
            let tight = fit::<f64>(&x, &targets, estimator, 1e-11).unwrap_or_else(fail);
            let listed = OTHERWISE_IN_F32
                .iter()
                .find(|(k, e, _)| (*k, *e) == (kind, estimator));
            let expected = listed.map_or(Convergence::Converged, |(.., ending)| *ending);
            let value = |model: &Model| objective(estimator, &x, &targets, model);
            let (found, least) = (value(&single), value(&tight));
            let without = f64::from(f32::EPSILON) * first_objective(tight.report());
            let scale = least.abs().max(without);
            let off = (found - least) / scale;
            let ended = single.report().convergence;
            // Neither further from the minimum than promised, nor below what is taken for it.
            let is_near = (-1e-9..=1e-5).contains(&off);
            if ended != expected || (ended == Convergence::Converged && !is_near) {
                wrong.push(format!(
                    "{estimator} on {kind}: {ended:?} instead of {expected:?}, gradient {:.1e}, {found:e} instead of {least:e}, off by {off:.1e}, {}",
                    single.report().gradient_ratio,
                    single.report().solver.name(),
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
