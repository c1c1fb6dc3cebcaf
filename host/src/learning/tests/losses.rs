//! Losses, constraints and offsets beside results of scikit-learn 1.9 and statsmodels 0.14, at tolerances of 1e-12, on data that
//! formulas give.

use ndarray::Array2;

use crate::device::Device;
use crate::learning::{
    Convergence, ElasticNet, Estimator, Family, FitError, FitOptions, Glm, Huber, Labels, Lasso,
    LinearRegression, LinearSvc, LinearSvr, LogisticRegression, Model, Quantile, Ridge, Solver,
    SvmLoss, Targets,
};
use crate::matrix::Features;

const ROWS: usize = 41;

fn noise(i: usize) -> f64 {
    (3.1 * (i * i) as f64 + 0.5).cos()
}

/// 41 × 4.
fn features() -> Features<f64> {
    let at =
        |(i, j): (usize, usize)| (1.0 + ((i + 1) * (j + 1)) as f64 * 0.7).sin() + 0.1 * j as f64;
    Features::Dense(Array2::from_shape_fn((ROWS, 4), at))
}

fn entry(x: &Features<f64>, i: usize, j: usize) -> f64 {
    match x {
        Features::Dense(x) => x[[i, j]],
        _ => unreachable!("made dense"),
    }
}

/// A line with noise, and two rows that are far off.
fn targets() -> Vec<f64> {
    let x = features();
    let mut y: Vec<f64> = (0..ROWS)
        .map(|i| {
            let line = 1.5 * entry(&x, i, 0) - entry(&x, i, 1) + 0.5 * entry(&x, i, 2) + 0.3;
            line + 0.4 * noise(i)
        })
        .collect();
    y[7] += 6.0;
    y[23] -= 5.0;
    y
}

fn weights() -> Vec<f64> {
    (0..ROWS).map(|i| 1.0 + (i % 3) as f64).collect()
}

/// Of how far each row is on one side.
fn scores() -> Vec<f64> {
    let x = features();
    (0..ROWS)
        .map(|i| entry(&x, i, 0) - entry(&x, i, 1) + 0.8 * noise(i))
        .collect()
}

fn two_classes() -> Labels {
    let sign = |score: &f64| if *score > 0.1 { 1.0 } else { -1.0 };
    Labels::Numbers(scores().iter().map(sign).collect())
}

fn exposures() -> Vec<f64> {
    (0..ROWS).map(|i| 1.0 + (i % 5) as f64).collect()
}

fn counts() -> Vec<f64> {
    let x = features();
    let count = |(i, exposure): (usize, &f64)| {
        let rate = (0.3 * entry(&x, i, 0) - 0.2 * entry(&x, i, 2) + 0.4).exp();
        (exposure * rate + (noise(i) + 1.0) * 0.7).floor()
    };
    exposures().iter().enumerate().map(count).collect()
}

fn fit(estimator: impl Into<Estimator>, targets: &[f64], options: FitOptions<'_>) -> Model {
    let estimator = estimator.into().tolerance(1e-10);
    let found = estimator.fit_with(
        &Device::cpu(),
        features(),
        Targets::Numbers(targets),
        options,
    );
    let model = found.expect("fitted");
    assert!(model.converged(), "{:?}", model.report());
    model
}

fn weighted(weights: &[f64]) -> FitOptions<'_> {
    FitOptions {
        sample_weight: Some(weights),
        ..FitOptions::default()
    }
}

fn near(model: &Model, coef: [f64; 4], intercept: f64, off: f64) {
    let found = (model.coef()[0].to_vec(), model.intercept()[0]);
    let all = coef.iter().zip(&found.0).chain([(&intercept, &found.1)]);
    for (expected, found_here) in all {
        assert!(
            (expected - found_here).abs() <= off,
            "{found:?} instead of {coef:?}, {intercept}"
        );
    }
}

fn objective(model: &Model, expected: f64) {
    let found = model.report().objective;
    let off = (found - expected).abs() / expected;
    assert!(off <= 1e-8, "objective {found} instead of {expected}");
}

/// `QuantileRegressor`, by HiGHS.
#[test]
fn quantiles_are_scikit_learns() {
    let y = targets();
    let quantile = |alpha: f64| Quantile::params().quantile(0.3).alpha(alpha);
    let model = fit(quantile(0.0), &y, FitOptions::default());
    objective(&model, 0.20954024859151887);
    let coef = [1.5091043065, -1.0176787757, 0.5274418041, 0.0135882733];
    near(&model, coef, -0.0542301314, 1e-6);
    let model = fit(quantile(0.05), &y, FitOptions::default());
    objective(&model, 0.35646709205097615);
    let coef = [1.3838293403, -0.9520333341, 0.4462374320, 0.0212466925];
    near(&model, coef, -0.0054197556, 1e-6);
    let model = fit(quantile(0.02), &y, weighted(&weights()));
    objective(&model, 0.29950914911791837);
    assert_eq!(model.report().solver, Solver::InteriorPoint);
}

/// An interior point leaves 10⁻¹² where scikit-learn's simplex leaves 0.
#[test]
fn an_l1_penalty_holds_coefficients_of_quantiles_at_zero() {
    let x = features();
    let y: Vec<f64> = (0..ROWS).map(|i| 3.0 * entry(&x, i, 1) - 1.0).collect();
    let model = fit(Quantile::params().alpha(0.02), &y, FitOptions::default());
    let zero = |j: usize| model.coef()[0][j] == 0.0;
    assert!(
        zero(0) && !zero(1) && zero(2) && zero(3),
        "{:?}",
        model.coef()
    );
    assert!(model.converged());
}

/// A share of the rows lies below, whatever the rows: at most n + 1 on the line itself.
#[test]
fn a_share_of_the_rows_lies_below_a_quantile() {
    let y = targets();
    for share in [0.1, 0.25, 0.5, 0.9] {
        let params = Quantile::params().quantile(share).alpha(0.0);
        let model = fit(params, &y, FitOptions::default());
        let t: Vec<f64> = model
            .predict(&Device::cpu(), features())
            .expect("predicted");
        let below = y.iter().zip(&t).filter(|(y, t)| **y < **t - 1e-6).count() as f64;
        let rows = ROWS as f64;
        assert!(
            below <= share * rows && share * rows <= below + 5.0,
            "{share}: {below}"
        );
    }
}

#[test]
fn a_perfect_line_is_its_own_quantile() {
    let x = features();
    let y: Vec<f64> = (0..ROWS).map(|i| 2.0 * entry(&x, i, 1) - 1.0).collect();
    let model = fit(Quantile::params().alpha(0.0), &y, FitOptions::default());
    near(&model, [0.0, 2.0, 0.0, 0.0], -1.0, 1e-7);
}

/// `HuberRegressor`, whose L-BFGS ends 1e-6 away, carried on by Newton steps.
#[test]
fn huber_regressions_are_scikit_learns() {
    let y = targets();
    let scale = |model: &Model| match model {
        Model::Regressor(model) => match model.params() {
            crate::learning::RegressorParams::Huber(huber) => huber.scale_of_residuals(),
            other => panic!("{other:?}"),
        },
        Model::Classifier(_) => panic!("a regressor"),
    };
    let model = fit(Huber::params(), &y, FitOptions::default());
    let coef = [1.4961293554, -1.0217051413, 0.4614435790, 0.0137323437];
    near(&model, coef, 0.2266196285, 1e-7);
    assert!((scale(&model).expect("a scale") - 0.2987308396).abs() < 1e-7);
    let model = fit(Huber::params().alpha(1.0), &y, FitOptions::default());
    let coef = [1.4697377721, -1.0066374892, 0.4529987521, 0.0168899119];
    near(&model, coef, 0.2232914628, 1e-7);
    let params = Huber::params().alpha(0.1).epsilon(1.8);
    let model = fit(params, &y, weighted(&weights()));
    let coef = [1.4840704143, -1.0627167206, 0.4394426688, 0.0281260329];
    near(&model, coef, 0.2139326055, 1e-7);
    assert!((scale(&model).expect("a scale") - 0.3228107552).abs() < 1e-7);
}

/// Fifty rows of two hundred columns: what leaves no residuals is not approached for ever, and is the shortest of its kind.
#[test]
fn huber_without_a_penalty_on_more_columns_than_rows_is_a_perfect_fit() {
    let x = Array2::from_shape_fn((50, 200), |(i, j)| noise(i * 211 + j * j * 7 + 1));
    let y: Vec<f64> = (0..50)
        .map(|i| x[[i, 0]] + x[[i, 3]] + 0.1 * noise(i + 9))
        .collect();
    let fit = |estimator: Estimator| {
        let targets = Targets::Numbers(&y);
        let x = Features::Dense(x.clone());
        estimator.fit_with(&Device::cpu(), x, targets, FitOptions::default())
    };
    let model = fit(Huber::params().alpha(0.0).into()).expect("a model");
    let report = model.report();
    assert_eq!(report.convergence, Convergence::Converged, "{report:?}");
    assert!(report.n_iter < 5, "{} iterations", report.n_iter);
    let shortest = fit(LinearRegression::params().into()).expect("a model");
    assert_eq!(model.coef(), shortest.coef());
    assert!(report.objective < 1e-9);
}

/// With a scale that is known every solver finds the same coefficients.
#[test]
fn huber_of_a_known_scale_is_the_same_by_every_solver() {
    let y = targets();
    let huber = || Huber::params().scale(0.3).alpha(0.5);
    let expected = fit(huber(), &y, FitOptions::default());
    let coef: [f64; 4] = expected.coef()[0].try_into().expect("four");
    for solver in [Solver::NewtonCg, Solver::Lbfgs] {
        let found = fit(huber().solver(solver), &y, FitOptions::default());
        near(&found, coef, expected.intercept()[0], 1e-7);
    }
}

/// `LinearSVC(loss='hinge')` and `LinearSVR(loss='epsilon_insensitive')`.
#[test]
fn support_vector_machines_with_kinks_are_scikit_learns() {
    let device = Device::cpu();
    let svc = LinearSvc::params().c(0.7).loss(SvmLoss::Linear);
    let svc = svc
        .tolerance(1e-10)
        .fit(&device, features(), &two_classes());
    let model = Model::Classifier(svc.expect("fitted"));
    assert_eq!(model.report().convergence, Convergence::Converged);
    objective(&model, 13.60177242046507);
    let coef = [0.5300640141, -1.2330701516, -0.3141853460, 0.1628293327];
    near(&model, coef, -0.0881141988, 1e-5);
    let svr = LinearSvr::params()
        .c(0.7)
        .epsilon(0.2)
        .loss(SvmLoss::Linear);
    let model = fit(svr, &targets(), FitOptions::default());
    objective(&model, 11.527296373670996);
    let coef = [1.4249773112, -0.9732567196, 0.4516162418, 0.0631202772];
    near(&model, coef, 0.1980727911, 1e-5);
}

/// `positive=True` of `Lasso`, `ElasticNet`, `LinearRegression` and `Ridge`.
#[test]
fn coefficients_that_may_not_be_negative_are_scikit_learns() {
    let y = targets();
    let given = FitOptions::default;
    let model = fit(Lasso::params().alpha(0.01).non_negative(true), &y, given());
    near(
        &model,
        [1.7949729103, 0.0, 0.0652422288, 0.0],
        0.2331027787,
        1e-8,
    );
    assert_eq!(model.coef()[0][1], 0.0);
    let model = fit(
        ElasticNet::params().alpha(0.05).non_negative(true),
        &y,
        given(),
    );
    near(
        &model,
        [1.6830309996, 0.0, 0.0346571844, 0.0],
        0.2386608774,
        1e-8,
    );
    let model = fit(LinearRegression::params().non_negative(true), &y, given());
    near(
        &model,
        [1.8143681272, 0.0, 0.0853017207, 0.0],
        0.2294873561,
        1e-8,
    );
    let model = fit(Ridge::params().alpha(2.0).non_negative(true), &y, given());
    near(
        &model,
        [1.6554297320, 0.0, 0.0798091426, 0.0],
        0.2305623653,
        1e-6,
    );
}

#[test]
fn no_coefficient_of_any_estimator_is_negative_where_none_may_be() {
    let labels = two_classes();
    for estimator in Estimator::all() {
        let targets = match estimator.is_classifier() {
            true => Targets::Labels(&labels),
            false => Targets::Numbers(&counts()[..]),
        };
        let estimator = estimator.non_negative(true);
        let found = estimator.fit_with(&Device::cpu(), features(), targets, FitOptions::default());
        match found {
            Ok(model) => {
                assert!(model.converged(), "{estimator:?}: {:?}", model.report());
                let coef = model.coef();
                let all = coef.iter().flat_map(|coef| coef.iter());
                assert!(all.clone().all(|w| *w >= 0.0), "{estimator:?}: {coef:?}");
            }
            Err(error) => {
                let kinked = matches!(estimator, Estimator::Quantile(_));
                assert!(
                    kinked && matches!(error, FitError::Combination { .. }),
                    "{error}"
                );
            }
        }
    }
}

/// statsmodels' `GLM(..., offset=log(exposure))`.
#[test]
fn counts_with_an_exposure_are_those_of_statsmodels() {
    let offset: Vec<f64> = exposures().iter().map(|e| e.ln()).collect();
    let options = || FitOptions {
        offset: Some(&offset),
        ..FitOptions::default()
    };
    let poisson = || Glm::params().family(Family::Poisson).alpha(0.0);
    let coef = [0.2826759175, -0.0121885493, -0.1601667657, 0.0036066661];
    for solver in [Solver::Auto, Solver::NewtonCg, Solver::Lbfgs] {
        let model = fit(poisson().solver(solver), &counts(), options());
        near(&model, coef, 0.4436081460, 1e-8);
    }
}

/// Of squares an offset is taken off the targets, by every solver; of a logistic regression a column of coefficient 1.
#[test]
fn offsets_of_squares_are_taken_off_the_targets() {
    let y = targets();
    let offset: Vec<f64> = (0..ROWS).map(|i| 0.7 * noise(i + 5) - 3.0).collect();
    let less: Vec<f64> = y.iter().zip(&offset).map(|(y, o)| y - o).collect();
    let options = || FitOptions {
        offset: Some(&offset),
        ..FitOptions::default()
    };
    let all: [Estimator; 6] = [
        LinearRegression::params().into(),
        Ridge::params().into(),
        Ridge::params().solver(Solver::ConjugateGradient).into(),
        Lasso::params().alpha(0.05).into(),
        LinearSvr::params().epsilon(0.1).into(),
        Quantile::params().alpha(0.01).quantile(0.4).into(),
    ];
    for estimator in all {
        let expected = fit(estimator.clone(), &less, FitOptions::default());
        let coef: [f64; 4] = expected.coef()[0].try_into().expect("four");
        let found = fit(estimator, &y, options());
        // The quantile's optimum is known by its gap.
        near(&found, coef, expected.intercept()[0], 2e-6);
    }
}

#[test]
fn penalty_factors_weigh_columns() {
    let (y, factors) = (targets(), [1.0, 0.5, 0.0, 3.0]);
    let options = |factors| FitOptions {
        penalty_factors: Some(factors),
        ..FitOptions::default()
    };
    let model = fit(Ridge::params().alpha(2.0), &y, options(&factors));
    let coef = [1.6059333167, -1.0745268475, 0.0316579298, -0.0967879550];
    near(&model, coef, 0.3898126038, 1e-9);
    let net = ElasticNet::params().alpha(0.05).l1_ratio(0.6);
    let model = fit(net, &y, options(&factors));
    let coef = [1.6398514312, -1.0727260438, 0.0349930607, 0.0];
    near(&model, coef, 0.3601514422, 1e-8);
    // Where all are above 0, columns are scaled: every solver has them.
    let factors = [1.0, 0.5, 0.2, 3.0];
    let expected = fit(Ridge::params().alpha(2.0), &y, options(&factors));
    let coef: [f64; 4] = expected.coef()[0].try_into().expect("four");
    let by_products = Ridge::params().alpha(2.0).solver(Solver::NewtonCg);
    near(
        &fit(by_products, &y, options(&factors)),
        coef,
        expected.intercept()[0],
        1e-7,
    );
}

#[test]
fn factors_of_one_change_nothing_and_wrong_ones_are_refused() {
    let y = targets();
    let ones = [1.0; 4];
    let given = FitOptions {
        penalty_factors: Some(&ones),
        ..FitOptions::default()
    };
    let with = fit(Lasso::params().alpha(0.05), &y, given);
    let without = fit(Lasso::params().alpha(0.05), &y, FitOptions::default());
    assert_eq!(with.coef(), without.coef());
    for wrong in [vec![1.0; 3], vec![1.0, -1.0, 1.0, 1.0], vec![f64::NAN; 4]] {
        let options = FitOptions {
            penalty_factors: Some(&wrong),
            ..FitOptions::default()
        };
        let fit = Ridge::params().fit_with(&Device::cpu(), features(), &y, options);
        assert!(fit.is_err(), "{wrong:?}");
    }
    let offset = vec![f64::NEG_INFINITY; ROWS];
    let options = FitOptions {
        offset: Some(&offset),
        ..FitOptions::default()
    };
    let error = Ridge::params().fit_with(&Device::cpu(), features(), &y, options);
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("an offset must be finite")
    );
}

/// `OneVsRestClassifier(LogisticRegression(solver='newton-cholesky'))`.
#[test]
fn one_against_the_rest_is_scikit_learns() {
    let class = |score: &f64| f64::from(u8::from(*score >= -0.5) + u8::from(*score >= 0.6));
    let labels = Labels::Numbers(scores().iter().map(class).collect());
    let device = Device::cpu();
    let params = LogisticRegression::params().one_vs_rest(true);
    let model = params.tolerance(1e-11).fit(&device, features(), &labels);
    let model = model.expect("fitted");
    let expected = [
        [
            -1.5708296309,
            2.2086362586,
            0.6349809545,
            0.6929211090,
            -1.1344604872,
        ],
        [
            0.6099948193,
            -1.3780616245,
            -0.7083852068,
            -0.9504344115,
            -0.3517291184,
        ],
        [
            1.0030227124,
            -1.0102398939,
            0.3689222042,
            0.0731877759,
            -1.3797181233,
        ],
    ];
    for (c, expected) in expected.iter().enumerate() {
        let found = model.coef()[c].iter().chain([&model.intercept()[c]]);
        for (found, expected) in found.zip(expected) {
            assert!(
                (found - expected).abs() < 1e-8,
                "{found} instead of {expected}"
            );
        }
    }
    let probabilities = model.predict_proba(&device, features()).expect("predicted");
    let first = [0.3089013994, 0.3956975757, 0.2954010249];
    for (found, expected) in probabilities.row(0).iter().zip(first) {
        assert!(
            (found - expected).abs() < 1e-8,
            "{found} instead of {expected}"
        );
    }
}
