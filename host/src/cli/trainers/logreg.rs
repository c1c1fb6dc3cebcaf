//! `logreg`, and what it shares with other classifiers.

use std::str::FromStr;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use super::{Own, Penalised};
use crate::cli::args::{not_negative, positive, share};
use crate::cli::targets::Task;
use crate::learning::{ClassWeight, Classes, Estimator, LogisticRegression, Penalty};

/// Arguments of `logreg` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Minimises C·Σ vᵢ·log-loss + r(w) (divided by C·Σ vᵢ), the intercepts unpenalised. More than two classes are fitted
together (softmax), or each against the rest (--one-vs-rest).

Examples:
  warpfuse train logreg data.svm --c 10 -o model.safetensors
  warpfuse train logreg x.npy --target labels.txt --penalty elasticnet --l1-ratio 0.5
  warpfuse train logreg data.svm --class-weight balanced --validation test.svm --json | jq .validation
  warpfuse train logreg data.svm --class-weight=-1=1,1=5")]
pub(in crate::cli) struct LogregArgs {
    /// C, the inverse of the penalty's strength
    #[arg(long, value_name = "C", default_value = "1", value_parser = positive)]
    c: f64,

    /// r(w)
    #[arg(long, value_enum, value_name = "PENALTY", default_value = "l2")]
    penalty: PenaltyName,

    /// ρ of --penalty elasticnet, the share of ‖w‖₁, from 0 to 1
    #[arg(long, value_name = "RHO", value_parser = share)]
    l1_ratio: Option<f64>,

    /// What rows of each class weigh: balanced (all classes the same), or LABEL=WEIGHT,LABEL=WEIGHT,...
    #[arg(long, value_name = "WEIGHTS")]
    class_weight: Option<ClassWeights>,

    /// Fit each of more than two classes against the rest, instead of all together
    #[arg(long)]
    one_vs_rest: bool,
}

impl Own for LogregArgs {
    fn title(&self) -> &'static str {
        "Logistic regression"
    }

    fn task(&self) -> Task {
        Task::Labels
    }

    fn strength(&self) -> (&'static str, f64) {
        ("c", self.c)
    }

    fn check(&self) -> Result<(), &'static str> {
        match (self.penalty, self.l1_ratio) {
            (PenaltyName::Elasticnet, _) | (_, None) => Ok(()),
            _ => Err("--l1-ratio does nothing without --penalty elasticnet"),
        }
    }

    fn second(&self) -> Option<&'static str> {
        (self.penalty == PenaltyName::Elasticnet).then_some("l1-ratio")
    }

    fn estimator(&self, at: Penalised, classes: Option<&Classes>) -> Result<Estimator> {
        let params = LogisticRegression::params()
            .c(at.strength)
            .penalty(penalty(
                self.penalty,
                at.second_or(self.l1_ratio.unwrap_or(0.5)),
            ))
            .one_vs_rest(self.one_vs_rest)
            .class_weight(class_weight(self.class_weight.as_ref(), classes)?);
        Ok(params.into())
    }
}

/// `--penalty`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PenaltyName {
    /// Nothing
    None,
    /// ‖w‖₁
    L1,
    /// ½‖w‖²
    L2,
    /// (1 − ρ)/2·‖w‖² + ρ‖w‖₁
    Elasticnet,
}

fn penalty(name: PenaltyName, l1_ratio: f64) -> Penalty {
    match name {
        PenaltyName::None => Penalty::None,
        PenaltyName::L1 => Penalty::L1,
        PenaltyName::L2 => Penalty::L2,
        PenaltyName::Elasticnet => Penalty::ElasticNet { l1_ratio },
    }
}

/// `--class-weight`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ClassWeights {
    /// All classes weigh the same.
    Balanced,
    /// Labels and weights.
    Given(Vec<(String, f64)>),
}

impl FromStr for ClassWeights {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str =
            "expected balanced, or LABEL=WEIGHT,LABEL=WEIGHT,... with weights of 0 or more";
        if text == "balanced" {
            return Ok(ClassWeights::Balanced);
        }
        let pair = |pair: &str| {
            // A label may hold a `=` itself.
            let (label, weight) = pair.rsplit_once('=').ok_or(EXPECTED)?;
            let weight = not_negative(weight).map_err(|_| EXPECTED)?;
            Ok((label.to_owned(), weight))
        };
        text.split(',')
            .map(pair)
            .collect::<Result<_, _>>()
            .map(ClassWeights::Given)
    }
}

/// Weights by label become weights in the order of the classes; classes that are not named weigh 1.
pub(super) fn class_weight(
    typed: Option<&ClassWeights>,
    classes: Option<&Classes>,
) -> Result<ClassWeight> {
    let (typed, classes) = match (typed, classes) {
        (None, _) | (_, None) => return Ok(ClassWeight::Uniform),
        (Some(ClassWeights::Balanced), _) => return Ok(ClassWeight::Balanced),
        (Some(ClassWeights::Given(pairs)), Some(classes)) => (pairs, classes),
    };
    let mut weights = vec![1.0; classes.len()];
    for (label, weight) in typed {
        let same_number = |class: &usize| match classes {
            Classes::Numbers(numbers) => label.parse() == Ok(numbers[*class]),
            Classes::Text(names) => *label == names[*class],
        };
        let Some(class) = (0..classes.len()).find(same_number) else {
            bail!("--class-weight: expected one of the labels {classes}, found {label}");
        };
        weights[class] = *weight;
    }
    Ok(ClassWeight::Given(weights))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_weights_are_balanced_or_listed() {
        assert_eq!("balanced".parse(), Ok(ClassWeights::Balanced));
        let given = ClassWeights::Given(vec![("-1".into(), 1.0), ("a=b".into(), 0.5)]);
        assert_eq!("-1=1,a=b=0.5".parse(), Ok(given));
        for wrong in ["", "even", "1=x", "1=-1", "1=1,", "1=nan"] {
            assert!(wrong.parse::<ClassWeights>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn class_weights_go_by_label_and_default_to_one() {
        let classes = Classes::Numbers(vec![-1.0, 0.0, 1.0]);
        let given = ClassWeights::Given(vec![("1.0".into(), 5.0), ("-1".into(), 0.5)]);
        let weights = class_weight(Some(&given), Some(&classes)).expect("labels that there are");
        assert_eq!(weights, ClassWeight::Given(vec![0.5, 1.0, 5.0]));
        let other = ClassWeights::Given(vec![("2".into(), 5.0)]);
        let error = class_weight(Some(&other), Some(&classes)).expect_err("no such label");
        assert!(
            error.to_string().contains("labels -1, 0, 1, found 2"),
            "{error}"
        );
    }
}
