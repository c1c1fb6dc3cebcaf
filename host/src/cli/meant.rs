//! Trainers as meant: an estimator with its parameters, which may depend on the classes of the data.

use anyhow::{Result, bail};

use super::args::{
    ClassWeights, ElasticNetArgs, GlmArgs, LassoArgs, LogregArgs, PenaltyName, RidgeArgs, SvcArgs,
    SvrArgs,
};
use super::targets::{Known, Task};
use crate::learning::{
    ClassWeight, Classes, ElasticNet, Estimator, Glm, Lasso, LinearSvc, LinearSvr,
    LogisticRegression, Penalty, Ridge,
};
use crate::ops::Number;

/// A trainer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Meant<'a> {
    /// `ridge`.
    Ridge(&'a RidgeArgs),
    /// `lasso`.
    Lasso(&'a LassoArgs),
    /// `elasticnet`.
    ElasticNet(&'a ElasticNetArgs),
    /// `logreg`.
    Logreg(&'a LogregArgs),
    /// `glm`.
    Glm(&'a GlmArgs),
    /// `svc`.
    Svc(&'a SvcArgs),
    /// `svr`.
    Svr(&'a SvrArgs),
}

/// Sets what all estimators have.
macro_rules! controlled {
    ($params:expr, $solve:expr, $outcome:expr) => {
        $params
            .tolerance($solve.tol)
            .max_iter($solve.max_iter.get())
            .fit_intercept(!$solve.no_intercept)
            .standardize($solve.standardize)
            .matrix_options($outcome.matrix_options())
    };
}

impl Meant<'_> {
    /// The subcommand, and `model` in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Meant::Ridge(_) => "ridge",
            Meant::Lasso(_) => "lasso",
            Meant::ElasticNet(_) => "elasticnet",
            Meant::Logreg(_) => "logreg",
            Meant::Glm(_) => "glm",
            Meant::Svc(_) => "svc",
            Meant::Svr(_) => "svr",
        }
    }

    /// The head of the report.
    pub(super) fn title(self) -> &'static str {
        match self {
            Meant::Ridge(_) => "Ridge regression",
            Meant::Lasso(_) => "Lasso",
            Meant::ElasticNet(_) => "Elastic net",
            Meant::Logreg(_) => "Logistic regression",
            Meant::Glm(_) => "Generalised linear model",
            Meant::Svc(_) => "Linear support vector classification",
            Meant::Svr(_) => "Linear support vector regression",
        }
    }

    /// Whether numbers or labels are learnt.
    pub(super) fn task(self) -> Task {
        match self {
            Meant::Logreg(_) | Meant::Svc(_) => Task::Labels,
            _ => Task::Numbers,
        }
    }

    /// The estimator.
    ///
    /// # Errors
    /// When class weights name labels that the data do not have.
    pub(super) fn estimator<T: Number>(self, known: &Known<T>) -> Result<Estimator> {
        self.with_strength(known, None)
    }

    /// The estimator with another `--alpha` or `--c`.
    ///
    /// # Errors
    /// As [`Meant::estimator`].
    pub(super) fn with_strength<T: Number>(
        self,
        known: &Known<T>,
        strength: Option<f64>,
    ) -> Result<Estimator> {
        Ok(match self {
            Meant::Ridge(args) => {
                let params = controlled!(Ridge::params(), args.solve, args.outcome);
                Estimator::Ridge(params.alpha(strength.unwrap_or(args.alpha)))
            }
            Meant::Lasso(args) => {
                let params = controlled!(Lasso::params(), args.solve, args.outcome);
                Estimator::Lasso(params.alpha(strength.unwrap_or(args.alpha)))
            }
            Meant::ElasticNet(args) => {
                let params = controlled!(ElasticNet::params(), args.solve, args.outcome);
                let params = params.alpha(strength.unwrap_or(args.alpha));
                Estimator::ElasticNet(params.l1_ratio(args.l1_ratio))
            }
            Meant::Logreg(args) => {
                let params = controlled!(LogisticRegression::params(), args.solve, args.outcome)
                    .c(strength.unwrap_or(args.c))
                    .penalty(penalty(args.penalty, args.l1_ratio))
                    .class_weight(class_weight(args.class_weight.as_ref(), known.classes())?)
                    .solver(args.solver.into());
                Estimator::LogisticRegression(params)
            }
            Meant::Glm(args) => {
                let params = controlled!(Glm::params(), args.solve, args.outcome)
                    .family(args.family.with_power(args.power.unwrap_or(0.0)))
                    .alpha(strength.unwrap_or(args.alpha))
                    .l1_ratio(args.l1_ratio)
                    .solver(args.solver.into());
                Estimator::Glm(match args.link {
                    Some(link) => params.link(link.0),
                    None => params,
                })
            }
            Meant::Svc(args) => {
                let params = controlled!(LinearSvc::params(), args.solve, args.outcome)
                    .c(strength.unwrap_or(args.c))
                    .intercept_scaling(args.intercept_scaling)
                    .class_weight(class_weight(args.class_weight.as_ref(), known.classes())?);
                Estimator::LinearSvc(params)
            }
            Meant::Svr(args) => {
                let params = controlled!(LinearSvr::params(), args.solve, args.outcome)
                    .c(strength.unwrap_or(args.c))
                    .epsilon(args.epsilon)
                    .intercept_scaling(args.intercept_scaling);
                Estimator::LinearSvr(params)
            }
        })
    }

    /// The strength that was typed: `--alpha`, or `--c`.
    pub(super) fn strength(self) -> f64 {
        match self {
            Meant::Ridge(args) => args.alpha,
            Meant::Lasso(args) => args.alpha,
            Meant::ElasticNet(args) => args.alpha,
            Meant::Logreg(args) => args.c,
            Meant::Glm(args) => args.alpha,
            Meant::Svc(args) => args.c,
            Meant::Svr(args) => args.c,
        }
    }

    /// What the strength is called.
    pub(super) fn strength_name(self) -> &'static str {
        match self {
            Meant::Logreg(_) | Meant::Svc(_) | Meant::Svr(_) => "c",
            _ => "alpha",
        }
    }
}

fn penalty(name: PenaltyName, l1_ratio: Option<f64>) -> Penalty {
    match name {
        PenaltyName::None => Penalty::None,
        PenaltyName::L1 => Penalty::L1,
        PenaltyName::L2 => Penalty::L2,
        PenaltyName::Elasticnet => Penalty::ElasticNet {
            l1_ratio: l1_ratio.unwrap_or(0.5),
        },
    }
}

/// Weights by label become weights in the order of the classes; classes that are not named weigh 1.
fn class_weight(typed: Option<&ClassWeights>, classes: Option<&Classes>) -> Result<ClassWeight> {
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
