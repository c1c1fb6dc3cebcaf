//! Curves beside scikit-learn's, on five data sets.

use serde_json::Value;

use crate::learning::metrics::{
    brier_score, calibration_curve, precision_recall_curve, roc_auc, roc_curve,
};
use crate::learning::tests::stored::{json, numbers};

fn lists(value: &Value) -> Vec<Vec<f64>> {
    value
        .as_array()
        .expect("lists")
        .iter()
        .map(numbers)
        .collect()
}

fn close(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() <= 1e-10,
            "{what}: expected {expected}, found {found}"
        );
    }
}

/// The probability of the second class: a sigmoid of two, a softmax of more.
fn probability(coef: &[Vec<f64>], intercept: &[f64], row: &[f64]) -> f64 {
    let dot = |coef: &Vec<f64>| coef.iter().zip(row).map(|(w, x)| w * x).sum::<f64>();
    let t: Vec<f64> = coef
        .iter()
        .zip(intercept)
        .map(|(coef, b)| dot(coef) + b)
        .collect();
    if let [t] = t[..] {
        return 1.0 / (1.0 + (-t).exp());
    }
    let most = t.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (t[1] - most).exp() / t.iter().map(|t| (t - most).exp()).sum::<f64>()
}

#[test]
fn curves_are_scikit_learns() {
    let all = json("report.json");
    let cases = all["curves"].as_array().expect("cases");
    assert_eq!(cases.len(), 5);
    for case in cases {
        let name = case["data"].as_str().expect("a name");
        let data = json(&format!("{name}.json"));
        let (coef, intercept) = (lists(&case["coef"]), numbers(&case["intercept"]));
        let x = lists(&data["x"]);
        let p: Vec<f64> = x
            .iter()
            .map(|row| probability(&coef, &intercept, row))
            .collect();
        let positive: Vec<bool> = numbers(&data["y"]).iter().map(|y| *y == 1.0).collect();
        let roc = roc_curve(&positive, &p, None).expect("two classes");
        close(name, &roc.false_positive_rate, &numbers(&case["fpr"]));
        close(name, &roc.true_positive_rate, &numbers(&case["tpr"]));
        let precise = precision_recall_curve(&positive, &p, None).expect("two classes");
        close(name, &precise.precision, &numbers(&case["precision"]));
        close(name, &precise.recall, &numbers(&case["recall"]));
        let bins = calibration_curve(&positive, &p, 10, None).expect("probabilities");
        let of = |part: fn(&crate::learning::metrics::CalibrationBin) -> f64| -> Vec<f64> {
            bins.iter().map(part).collect()
        };
        close(
            name,
            &of(|bin| bin.mean_predicted),
            &numbers(&case["mean_predicted"]),
        );
        close(
            name,
            &of(|bin| bin.fraction_of_positives),
            &numbers(&case["fraction_of_positives"]),
        );
        let figures = [
            roc_auc(&positive, &p, None).expect("two classes"),
            precise.average_precision(),
            brier_score(&positive, &p, None).expect("probabilities"),
        ];
        let expected =
            ["auc", "average_precision", "brier"].map(|key| case[key].as_f64().expect("a number"));
        close(name, &figures, &expected);
    }
}
