//! Agreement with scikit-learn; `scikit_learn.py` made the figures.

mod curves;

use ndarray::Array2;
use serde::Deserialize;

use super::*;

/// Both sides add in f64, in different orders.
const AGREEMENT: f64 = 1e-12;

#[derive(Deserialize)]
struct Figures {
    regression: Vec<Regression>,
    deviance: Vec<OfFamily>,
    classification: Vec<Classification>,
}

#[derive(Deserialize)]
struct Regression {
    targets: Vec<f64>,
    predictions: Vec<f64>,
    weights: Option<Vec<f64>>,
    r2: f64,
    mse: f64,
    mae: f64,
}

#[derive(Deserialize)]
struct OfFamily {
    power: f64,
    targets: Vec<f64>,
    predictions: Vec<f64>,
    weights: Option<Vec<f64>>,
    mean: f64,
    explained: Option<f64>,
}

#[derive(Deserialize)]
struct Classification {
    classes: usize,
    targets: Vec<u32>,
    predictions: Vec<u32>,
    probabilities: Vec<Vec<f64>>,
    weights: Option<Vec<f64>>,
    accuracy: f64,
    confusion: Vec<Vec<f64>>,
    log_loss: f64,
    r#macro: [f64; 3],
    weighted: [f64; 3],
    micro: [f64; 3],
    binary: Option<[f64; 3]>,
    auc: Option<f64>,
    explained: Option<f64>,
}

fn figures() -> Figures {
    serde_json::from_str(include_str!("scikit_learn.json")).expect("the figures")
}

/// Written so that NaN fails.
fn assert_close(what: &str, found: f64, expected: f64) {
    let error = (found - expected).abs();
    assert!(
        error <= AGREEMENT * expected.abs().max(1.0),
        "{what}: expected {expected}, found {found}"
    );
}

#[test]
fn regressions_agree() {
    for case in figures().regression {
        let weights = case.weights.as_deref();
        let (t, p) = (&case.targets, &case.predictions);
        assert_close("r2", r2(t, p, weights).expect("r2"), case.r2);
        let mse = mean_squared_error(t, p, weights).expect("mse");
        assert_close("mse", mse, case.mse);
        let mae = mean_absolute_error(t, p, weights).expect("mae");
        assert_close("mae", mae, case.mae);
        let summary = RegressionSummary::of(t, p, weights).expect("a summary");
        assert_close("rmse", summary.rmse, case.mse.sqrt());
    }
}

#[test]
fn deviances_agree() {
    for case in figures().deviance {
        let weights = case.weights.as_deref();
        let family = match case.power {
            3.0 => Deviance::InverseGaussian,
            power => Deviance::Tweedie(power),
        };
        let what = format!("power {}", case.power);
        let mean = family
            .mean(&case.targets, &case.predictions, weights)
            .expect(&what);
        assert_close(&what, mean, case.mean);
        if let Some(expected) = case.explained {
            let found = family.explained(&case.targets, &case.predictions, weights);
            assert_close(&what, found.expect("a share"), expected);
        }
    }
}

#[test]
fn classifications_agree() {
    for case in figures().classification {
        let (m, k) = (case.targets.len(), case.classes);
        let weights = case.weights.as_deref();
        let flat = case.probabilities.concat();
        let p = Array2::from_shape_vec((m, k), flat).expect("m × k");
        let confusion = ConfusionMatrix::of(&case.targets, &case.predictions, k, weights);
        let confusion = confusion.expect("a matrix");
        for (found, expected) in confusion.weights().iter().zip(case.confusion.concat()) {
            assert_close("confusion", *found, expected);
        }
        let right = accuracy(&case.targets, &case.predictions, weights).expect("accuracy");
        assert_close("accuracy", right, case.accuracy);
        let averages = [
            (Average::Macro, Some(case.r#macro)),
            (Average::Weighted, Some(case.weighted)),
            (Average::Micro, Some(case.micro)),
            (Average::Binary { positive: 1 }, case.binary),
        ];
        for (average, expected) in averages {
            let Some(expected) = expected else { continue };
            let found = confusion.scores(average);
            for (found, expected) in [found.precision, found.recall, found.f1]
                .iter()
                .zip(expected)
            {
                assert_close(&format!("{average:?} of {k}"), *found, expected);
            }
        }
        let scores = Scores::Probabilities(p.view());
        let all = ClassificationSummary::of(&case.targets, &case.predictions, k, scores, weights);
        let all = all.expect("a summary");
        assert_close(
            "log-loss",
            all.log_loss.expect("probabilities"),
            case.log_loss,
        );
        if let Some(auc) = case.auc {
            assert_close("auc", all.auc.expect("two classes"), auc);
        }
        if let Some(expected) = case.explained {
            let targets: Vec<f64> = case.targets.iter().copied().map(f64::from).collect();
            let clipped = p
                .column(1)
                .mapv(|p| p.clamp(f64::EPSILON, 1.0 - f64::EPSILON));
            let found = Deviance::Binomial.explained(&targets, &clipped.to_vec(), weights);
            assert_close("explained", found.expect("a share"), expected);
        }
    }
}

#[test]
fn a_class_without_samples_has_no_area() {
    let p = Array2::from_elem((2, 2), 0.5);
    let scores = Scores::Decisions(p.view());
    let one = ClassificationSummary::of(&[1, 1], &[1, 0], 2, scores, None).expect("a summary");
    assert_eq!((one.auc, one.accuracy), (None, 0.5));
    assert_eq!(roc_auc(&[true], &[0.5], None), Err(MetricError::OneClass));
}

#[test]
fn ties_and_signed_zeros_count_half() {
    let positive = [true, false, true, false];
    assert_eq!(roc_auc(&positive, &[0.0, -0.0, 0.0, 0.0], None), Ok(0.5));
    let infinite = [f64::INFINITY, f64::NEG_INFINITY, 1.0, 1.0];
    assert_eq!(roc_auc(&positive, &infinite, None), Ok(0.875));
    let nan = roc_auc(&positive, &[0.0, f64::NAN, 0.0, 0.0], None);
    assert!(matches!(nan, Err(MetricError::Domain { row: 1, .. })));
}

#[test]
fn what_a_metric_is_not_defined_for_is_named() {
    let lengths = r2(&[1.0], &[1.0, 2.0], None).expect_err("lengths differ");
    assert!(
        lengths
            .to_string()
            .contains("1 predictions, one for each target, found 2")
    );
    let class = ConfusionMatrix::of(&[0, 2], &[0, 0], 2, None).expect_err("no such class");
    assert!(matches!(
        class,
        MetricError::Class {
            row: 1,
            class: 2,
            ..
        }
    ));
    let probability = Array2::from_elem((1, 1), 1.5);
    let error = log_loss(&[0], probability.view(), None).expect_err("no probability");
    assert!(matches!(error, MetricError::Domain { .. }));
    for (family, target) in [
        (Deviance::Poisson, -1.0),
        (Deviance::Gamma, 0.0),
        (Deviance::Binomial, 2.0),
    ] {
        let error = family
            .mean(&[target], &[0.5], None)
            .expect_err("out of the domain");
        assert!(matches!(
            error,
            MetricError::Domain {
                what: "targets",
                ..
            }
        ));
    }
    assert_eq!(
        Deviance::Tweedie(0.5).mean(&[1.0], &[1.0], None),
        Err(MetricError::Power(0.5))
    );
}
