//! Derivatives against finite differences, values by hand, and what happens at the ends.

use super::*;

const DISTRIBUTIONS: [Distribution; 8] = [
    Distribution::Gaussian,
    Distribution::Binomial,
    Distribution::Poisson,
    Distribution::Gamma,
    Distribution::InverseGaussian,
    Distribution::Tweedie { power: 1.5 },
    Distribution::Tweedie { power: 2.7 },
    Distribution::Tweedie { power: 4.0 },
];

const LINKS: [Link; 9] = [
    Link::Identity,
    Link::Logit,
    Link::Probit,
    Link::Cloglog,
    Link::Log,
    Link::Inverse,
    Link::Sqrt,
    Link::Power(-2.0),
    Link::Power(0.4),
];

const PREDICTORS: [f64; 13] = [
    -6.5, -2.1, -0.9, -0.3, -0.05, 0.04, 0.2, 0.45, 0.8, 1.3, 2.6, 4.4, 7.0,
];

/// All models, and losses that are none.
fn losses() -> impl Iterator<Item = Loss> {
    let models = DISTRIBUTIONS.into_iter().flat_map(|distribution| {
        LINKS
            .into_iter()
            .map(move |link| Loss::Glm { distribution, link })
    });
    let others = [
        Loss::Squared,
        Loss::Logistic,
        Loss::SquaredHinge,
        Loss::EpsilonInsensitive { epsilon: 0.25 },
        Loss::Huber { delta: 0.75 },
    ];
    models.chain(others)
}

fn targets(loss: Loss) -> impl Iterator<Item = f64> {
    [-1.0, 0.0, 0.3, 1.0, 2.5, 7.0]
        .into_iter()
        .filter(move |&b| loss.accepts(b))
}

/// The derivative of `f` at t by differences of fourth order.
fn derivative(f: impl Fn(f64) -> f64, t: f64) -> f64 {
    let h = 1e-4 * t.abs().max(0.05);
    let pair = |k: f64| f(t + k * h) - f(t - k * h);
    (8.0 * pair(1.0) - pair(2.0)) / (12.0 * h)
}

fn assert_near(found: f64, expected: f64, scale: f64, what: &dyn core::fmt::Debug) {
    let error = (found - expected).abs();
    assert!(
        error <= 2e-8 * (expected.abs() + scale),
        "{what:?}: {found:e}, expected {expected:e}"
    );
}

/// Neither the hinge's kink nor the end of a domain lies within the differences.
fn is_smooth(loss: Loss, t: f64, b: f64) -> bool {
    let around = [0.99, 1.0, 1.01].map(|factor| loss.at(t * factor, b));
    let same = around
        .iter()
        .all(|p| (p.curvature == 0.0) == (around[1].curvature == 0.0));
    around.iter().all(|p| p.loss.is_finite()) && same
}

#[test]
fn slopes_are_derivatives_of_losses() {
    let mut tried = 0;
    for loss in losses() {
        for b in targets(loss) {
            for t in PREDICTORS.into_iter().filter(|&t| is_smooth(loss, t, b)) {
                let expected = derivative(|t| loss.at(t, b).loss, t);
                let Point {
                    loss: value, slope, ..
                } = loss.at(t, b);
                assert_near(slope, expected, value.abs() + 1e-3, &(loss, t, b));
                tried += 1;
            }
        }
    }
    assert!(tried > 2_000, "{tried}");
}

/// At b = μ(t) Fisher's weight is the derivative of the slope, whatever the link.
#[test]
fn curvatures_are_expected_derivatives_of_slopes() {
    for loss in losses() {
        for t in PREDICTORS {
            let Loss::Glm { link, distribution } = loss else {
                continue;
            };
            let b = link.mean(t);
            if !distribution.accepts(b) || !is_smooth(loss, t, b) {
                continue;
            }
            let expected = derivative(|t| loss.at(t, b).slope, t);
            assert_near(loss.at(t, b).curvature, expected, 1e-3, &(loss, t));
        }
    }
}

#[test]
fn curvatures_of_canonical_links_are_second_derivatives() {
    let canonical = [
        Loss::Squared,
        Loss::Logistic,
        Loss::SquaredHinge,
        Loss::EpsilonInsensitive { epsilon: 0.25 },
        Loss::Glm {
            distribution: Distribution::Poisson,
            link: Link::Log,
        },
    ];
    for loss in canonical {
        for b in targets(loss) {
            for t in PREDICTORS.into_iter().filter(|&t| is_smooth(loss, t, b)) {
                let expected = derivative(|t| loss.at(t, b).slope, t);
                assert_near(loss.at(t, b).curvature, expected, 1e-3, &(loss, t, b));
            }
        }
    }
}

/// Half the deviance of scikit-learn 1.5's losses, up to what depends on b alone.
#[test]
fn values_by_hand() {
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{a} {b}");
    let model = |distribution, link| Loss::Glm { distribution, link };
    near(Loss::Logistic.at(0.0, 1.0).loss, core::f64::consts::LN_2);
    near(Loss::SquaredHinge.at(0.5, 1.0).loss, 0.25);
    near(Loss::SquaredHinge.at(0.5, -1.0).slope, 3.0);
    near(
        Loss::EpsilonInsensitive { epsilon: 0.5 }.at(2.0, 1.0).loss,
        0.25,
    );
    near(
        Loss::EpsilonInsensitive { epsilon: 0.5 }
            .at(-2.0, -1.0)
            .slope,
        -1.0,
    );
    near(
        model(Distribution::Poisson, Link::Identity)
            .at(1.0, 3.0)
            .loss,
        1.0,
    );
    near(
        model(Distribution::Gamma, Link::Inverse).at(2.0, 3.0).loss,
        6.0 - core::f64::consts::LN_2,
    );
    near(
        model(Distribution::InverseGaussian, Link::Identity)
            .at(2.0, 4.0)
            .loss,
        0.0,
    );
    near(
        model(Distribution::Tweedie { power: 1.5 }, Link::Log)
            .at(0.0, 2.0)
            .loss,
        2.0 + 4.0,
    );
    near(
        model(Distribution::Binomial, Link::Probit)
            .at(0.0, 0.25)
            .loss,
        core::f64::consts::LN_2,
    );
}

#[test]
fn models_that_have_a_simpler_form() {
    let tweedie = |power, link| Loss::Glm {
        distribution: Distribution::Tweedie { power },
        link,
    };
    assert_eq!(tweedie(0.0, Link::Identity).simplified(), Loss::Squared);
    for power in [1.0, 2.0, 3.0] {
        for t in [-1.0, 0.4, 2.0] {
            let exact: f64 = tweedie(power, Link::Log).at(t, 1.5).slope;
            let near = tweedie(power + 1e-9, Link::Log).at(t, 1.5).slope;
            assert!((exact - near).abs() < 1e-7, "{power} {t}: {exact} {near}");
        }
    }
}

fn never_nan_inside<T: Elementary + core::fmt::Debug>(far: &[f64]) {
    for loss in losses() {
        for b in targets(loss) {
            for &t in far {
                let point = loss.at(T::of_f64(t), T::of_f64(b));
                let what = (loss, t, b, point);
                assert!(!point.loss.to_f64().is_nan(), "{what:?}");
                let outside = point.loss == T::INFINITY && point.curvature.to_f64().is_nan();
                assert!(outside || !point.slope.to_f64().is_nan(), "{what:?}");
            }
        }
    }
}

#[test]
fn far_from_zero_nothing_is_nan() {
    never_nan_inside::<f64>(&[-700.0, -300.0, -40.0, 0.0, 40.0, 300.0, 700.0]);
    never_nan_inside::<f32>(&[-80.0, -30.0, 0.0, 30.0, 80.0]);
}

#[test]
fn tails_do_not_cancel() {
    let right = Loss::Logistic.at(700.0, 1.0);
    assert!(
        right.loss > 0.0 && right.loss < 1e-300 && right.slope < 0.0,
        "{right:?}"
    );
    assert_eq!(Loss::Logistic.at(-700.0, 1.0).loss, 700.0);
    let probit = Loss::Glm {
        distribution: Distribution::Binomial,
        link: Link::Probit,
    };
    assert!((probit.at(-30.0f64, 1.0).slope + 30.033_259_667_433_67).abs() < 1e-12);
}

#[test]
fn outside_the_domain_the_loss_is_infinite_and_without_weight_nothing() {
    let poisson = Loss::Glm {
        distribution: Distribution::Poisson,
        link: Link::Identity,
    };
    let point = poisson.at(-1.0, 2.0);
    assert!(point.loss == f64::INFINITY && point.slope.is_nan());
    let zero = Point {
        loss: 0.0,
        slope: 0.0,
        curvature: 0.0,
    };
    assert_eq!(point.weighted(0.0), zero);
    assert_eq!(poisson.at(f64::NAN, 2.0).weighted(0.0), zero);
}

#[test]
fn a_predictor_that_is_not_a_number_shows() {
    for loss in losses() {
        for b in targets(loss) {
            let point = loss.at(f64::NAN, b);
            assert!(
                point.loss.is_nan() && point.slope.is_nan(),
                "{loss:?}: {point:?}"
            );
        }
    }
}
