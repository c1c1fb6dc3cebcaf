//! Estimators on every device against tight solutions of scikit-learn and statsmodels.

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use ndarray::Array2;
use warpfuse::device::Device;
use warpfuse::learning::{
    ClassWeight, Classifier, Convergence, ElasticNet, Family, FitError, FitOptions, FitReport, Glm,
    Labels, Lasso, LinearSvc, LinearSvr, Link, LogisticRegression, Penalty, Regressor, Ridge,
};
use warpfuse::matrix::{CsrMatrix, Dtype, Features};
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::estimators::{Case, Fixture, fixture, names};

use super::suite::{Suite, Test};

/// How the features are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    Sparse,
    Dense,
}

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    add_awkward(suite);
    for name in names() {
        // An emulator takes the smallest ones only.
        let subset = match name {
            "iris" | "linnerud_pulse" => Subset::Small,
            _ => Subset::Full,
        };
        for storage in [Storage::Sparse, Storage::Dense] {
            let test = |dtype: Dtype| {
                let name = format!("learning/estimators_{name}_{storage:?}/{dtype}");
                Test::new(name.to_lowercase()).within(subset)
            };
            let of_f32 = move |device: &Device| all_cases::<f32>(device, name, storage);
            let of_f64 = move |device: &Device| all_cases::<f64>(device, name, storage);
            suite.add_in_both(test, of_f32, of_f64);
        }
    }
}

/// A test on a device.
type Run = fn(&Device) -> Result<()>;

/// Data that have no solution, more than one, or none that is finite.
fn add_awkward(suite: &mut Suite) {
    let cases: [(&str, Run); 5] = [
        ("separable", separable),
        ("one_class", one_class),
        ("not_a_number", not_a_number),
        ("still_and_equal_columns", still_and_equal_columns),
        ("repeated", repeated),
    ];
    for (name, run) in cases {
        suite.add(Test::new(format!("learning/awkward_{name}/f64")), run);
    }
}

fn line() -> (Features<f64>, Labels) {
    let x = Array2::from_shape_fn((8, 1), |(i, _)| i as f64);
    let labels = (0..8).map(|i| f64::from(u8::from(i > 3))).collect();
    (Features::Dense(x), Labels::Numbers(labels))
}

fn separable(device: &Device) -> Result<()> {
    let (x, labels) = line();
    let fit = LogisticRegression::params().penalty(Penalty::None);
    let model = fit.fit(device, x.clone(), &labels)?;
    ensure!(
        model.report().convergence == Convergence::Separable,
        "{:?}",
        model.report()
    );
    ensure!(model.score(device, x, &labels)? == 1.0, "not separated");
    Ok(())
}

fn one_class(device: &Device) -> Result<()> {
    let (x, _) = line();
    let labels = Labels::Numbers(vec![3.0; 8]);
    let error = LogisticRegression::params().fit(device, x, &labels);
    ensure!(
        matches!(error, Err(FitError::Classes { found: 1 })),
        "{error:?}"
    );
    Ok(())
}

fn not_a_number(device: &Device) -> Result<()> {
    let (_, labels) = line();
    let mut x = Array2::zeros((8, 3));
    x[[2, 1]] = f64::NAN;
    let error = LinearSvc::params().fit(device, Features::Dense(x), &labels);
    ensure!(
        matches!(error, Err(FitError::ColumnNotFinite { column: 1 })),
        "{error:?}"
    );
    Ok(())
}

/// Columns 0 and 2 are equal, column 1 is constant, column 3 is zero.
fn still_and_equal_columns(device: &Device) -> Result<()> {
    let values = |i: usize, j: usize| match j {
        0 | 2 => (i * 7 % 5) as f64,
        1 => 3.0,
        _ => 0.0,
    };
    let x = Array2::from_shape_fn((20, 4), |(i, j)| values(i, j));
    let targets: Vec<f64> = (0..20).map(|i| (1 + i * 3 % 7) as f64).collect();
    let fit = Glm::params().family(Family::Poisson).alpha(0.1);
    let model = fit.fit(device, Features::Dense(x), &targets)?;
    let coef = model.coef();
    ensure!(model.converged(), "{:?}", model.report());
    ensure!(coef[1] == 0.0 && coef[3] == 0.0, "{coef:?}");
    let apart = (coef[0] - coef[2]).abs();
    ensure!(apart <= 1e-12 * coef[0].abs(), "{coef:?}");
    Ok(())
}

/// The same bits on the CPU; elsewhere there is nothing to promise.
fn repeated(device: &Device) -> Result<()> {
    let fixture = fixture("iris")?;
    let features = Arc::new(features::<f64>(&fixture.x, Storage::Sparse));
    for case in fixture.cases.iter().filter(|_| device.is_cpu()) {
        let [first, second] = [(), ()].map(|()| fit::<f64>(device, &features, &fixture, case));
        let (first, second) = (first?, second?);
        ensure!(
            first.coef == second.coef && first.intercept == second.intercept,
            "{} {}",
            case.estimator,
            case.parameters
        );
    }
    Ok(())
}

/// What a fit found.
struct Found {
    coef: Vec<Vec<f64>>,
    intercept: Vec<f64>,
    report: FitReport,
}

impl From<Classifier> for Found {
    fn from(model: Classifier) -> Found {
        Found {
            coef: model.coef().to_vec(),
            intercept: model.intercept().to_vec(),
            report: model.report().clone(),
        }
    }
}

impl From<Regressor> for Found {
    fn from(model: Regressor) -> Found {
        Found {
            coef: vec![model.coef().to_vec()],
            intercept: vec![model.intercept()],
            report: model.report().clone(),
        }
    }
}

fn all_cases<T: Number>(device: &Device, name: &str, storage: Storage) -> Result<()> {
    let fixture = fixture(name)?;
    let features = Arc::new(features::<T>(&fixture.x, storage));
    for case in &fixture.cases {
        let what = || format!("{} {} {}", fixture.name, case.estimator, case.parameters);
        let found = fit::<T>(device, &features, &fixture, case).with_context(what)?;
        compare(&found, case, T::DTYPE).with_context(what)?;
    }
    Ok(())
}

fn features<T: Number>(x: &Array2<f64>, storage: Storage) -> Features<T> {
    if storage == Storage::Dense {
        return Features::Dense(x.mapv(T::from_f64));
    }
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in x.rows() {
        let stored = row.iter().enumerate().filter(|(_, x)| **x != 0.0);
        for (j, x) in stored {
            indices.push(j as u32);
            values.push(T::from_f64(*x));
        }
        offsets.push(values.len() as u64);
    }
    Features::Sparse(CsrMatrix::new(
        x.dim(),
        offsets.into(),
        indices.into(),
        values.into(),
    ))
}

fn fit<T: Number>(
    device: &Device,
    features: &Arc<Features<T>>,
    fixture: &Fixture,
    case: &Case,
) -> Result<Found> {
    let tolerance = match T::DTYPE {
        Dtype::F64 => 1e-11,
        Dtype::F32 => 1e-6,
    };
    let weights = case.weights(fixture.y.len());
    let options = FitOptions {
        sample_weight: weights.as_deref(),
        ..FitOptions::default()
    };
    let labels = Labels::Numbers(fixture.y.clone());
    let targets: Vec<T> = fixture.y.iter().map(|y| T::from_f64(*y)).collect();
    let x = features.clone();
    Ok(match case.estimator.as_str() {
        "logreg" => logistic(case)?
            .tolerance(tolerance)
            .fit_with(device, x, &labels, options)?
            .into(),
        "svc" => LinearSvc::params()
            .c(case.number("c"))
            .intercept_scaling(case.number("intercept_scaling"))
            .fit_intercept(case.flag("fit_intercept", true))
            .tolerance(tolerance)
            .fit_with(device, x, &labels, options)?
            .into(),
        "svr" => LinearSvr::params()
            .c(case.number("c"))
            .epsilon(case.number("epsilon"))
            .tolerance(tolerance)
            .fit_with(device, x, &targets, options)?
            .into(),
        "ridge" => Ridge::params()
            .alpha(case.number("alpha"))
            .tolerance(tolerance)
            .fit_with(device, x, &targets, options)?
            .into(),
        "lasso" => Lasso::params()
            .alpha(case.number("alpha"))
            .tolerance(tolerance)
            .fit_with(device, x, &targets, options)?
            .into(),
        "elasticnet" => ElasticNet::params()
            .alpha(case.number("alpha"))
            .l1_ratio(case.number("l1_ratio"))
            .tolerance(tolerance)
            .fit_with(device, x, &targets, options)?
            .into(),
        "glm" => glm(case)?
            .tolerance(tolerance)
            .fit_with(device, x, &targets, options)?
            .into(),
        other => bail!("no estimator {other}"),
    })
}

fn logistic(case: &Case) -> Result<LogisticRegression> {
    let penalty = match case.word("penalty") {
        "none" => Penalty::None,
        "l1" => Penalty::L1,
        "l2" => Penalty::L2,
        "elasticnet" => Penalty::ElasticNet {
            l1_ratio: case.number("l1_ratio"),
        },
        other => bail!("no penalty {other}"),
    };
    let class_weight = if case.flag("balanced", false) {
        ClassWeight::Balanced
    } else {
        ClassWeight::Uniform
    };
    Ok(LogisticRegression::params()
        .penalty(penalty)
        .c(case.number("c"))
        .fit_intercept(case.flag("fit_intercept", true))
        .class_weight(class_weight))
}

fn glm(case: &Case) -> Result<Glm> {
    let family = match case.word("family") {
        "gaussian" => Family::Gaussian,
        "binomial" => Family::Binomial,
        "poisson" => Family::Poisson,
        "gamma" => Family::Gamma,
        "inverse_gaussian" => Family::InverseGaussian,
        "tweedie" => Family::Tweedie {
            power: case.number("power"),
        },
        other => bail!("no family {other}"),
    };
    let link = match case.word("link") {
        "identity" => Link::Identity,
        "logit" => Link::Logit,
        "probit" => Link::Probit,
        "cloglog" => Link::Cloglog,
        "log" => Link::Log,
        "inverse" => Link::Inverse,
        "sqrt" => Link::Sqrt,
        "inverse_squared" => Link::Power(-2.0),
        other => bail!("no link {other}"),
    };
    let alpha = case.number("alpha");
    Ok(Glm::params().family(family).link(link).alpha(alpha))
}

/// f64: coefficients to 1e-6 of the largest; f32: to 1e-3, where the conditioning allows as much. The objective, which
/// is flat around its minimum, to 1e-6 in both, relative to itself.
fn compare(found: &Found, case: &Case, dtype: Dtype) -> Result<()> {
    let relative = match dtype {
        Dtype::F64 => 1e-6,
        Dtype::F32 => 1e-3,
    };
    let report = &found.report;
    let summary = || {
        format!(
            "{:?} after {} iterations, gradient {:.1e}, objective {}",
            report.convergence, report.n_iter, report.gradient_ratio, report.objective
        )
    };
    ensure!(report.convergence.is_success(), "{}", summary());
    let gap = (report.objective - case.objective).abs();
    ensure!(
        gap <= 1e-6 * case.objective.abs().max(1e-3),
        "objective {} instead of {}: {}",
        report.objective,
        case.objective,
        summary()
    );
    ensure!(
        found.coef.len() == case.coef.len(),
        "{} lists of coefficients",
        found.coef.len()
    );
    let all = |coef: &[Vec<f64>], intercept: &[f64]| [&coef.concat()[..], intercept].concat();
    let found_all = all(&found.coef, &found.intercept);
    let expected = all(&case.coef, &case.intercept);
    let size = case
        .coef
        .concat()
        .iter()
        .fold(0.0, |a: f64, b| a.max(b.abs()));
    for (i, (found, expected)) in found_all.iter().zip(&expected).enumerate() {
        let bound = relative * expected.abs().max(size);
        ensure!(
            (found - expected).abs() <= bound,
            "coefficient {i} is {found} instead of {expected}: {}",
            summary()
        );
    }
    Ok(())
}
