//! Arguments of the trainers with a penalty or a loss of their own: lasso, elasticnet, logreg, glm, svc, svr.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use super::learn::{not_negative, positive, share};
use super::{OutcomeArgs, SourceArgs};
use crate::learning::{Family, Link, Solver};

/// What else is learnt from, and compared with.
#[derive(Debug, Args)]
pub(in crate::cli) struct SampleArgs {
    /// Weights of the rows, none negative; a row of weight 0 takes no part
    #[arg(long, value_name = "FILE.npy")]
    pub(in crate::cli) sample_weight: Option<PathBuf>,

    /// Data that are not learnt from: the model is scored on them as well
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) validation: Option<PathBuf>,

    /// Targets of --validation, where that file holds features only
    #[arg(long, value_name = "FILE", requires = "validation")]
    pub(in crate::cli) validation_target: Option<PathBuf>,
}

/// When and how the solver stops.
#[derive(Debug, Args)]
pub(in crate::cli) struct SolveArgs {
    /// Stop when the gradient has shrunk to this part of what it was at the start
    #[arg(long, value_name = "EPSILON", default_value = "1e-6", value_parser = not_negative)]
    pub(in crate::cli) tol: f64,

    /// Stop after this many outer iterations
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(in crate::cli) max_iter: NonZeroUsize,

    /// Fit no intercept
    #[arg(long)]
    pub(in crate::cli) no_intercept: bool,

    /// Divide columns by their standard deviation for the fit, around the product and not in X
    #[arg(long)]
    pub(in crate::cli) standardize: bool,
}

/// Arguments of `train lasso`.
///
/// Minimises Σ vᵢ(tᵢ − xᵢ·w − b)² / (2·Σ vᵢ) + α‖w‖₁, the intercept b unpenalised.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  warpfuse train lasso data.svm --alpha 0.01 -o model.safetensors"
)]
pub(in crate::cli) struct LassoArgs {
    #[command(flatten)]
    pub(in crate::cli) source: SourceArgs,

    /// α, the weight of ‖w‖₁
    #[arg(long, value_name = "ALPHA", default_value = "1", value_parser = not_negative)]
    pub(in crate::cli) alpha: f64,

    #[command(flatten)]
    pub(in crate::cli) solve: SolveArgs,

    #[command(flatten)]
    pub(in crate::cli) samples: SampleArgs,

    #[command(flatten)]
    pub(in crate::cli) outcome: OutcomeArgs,
}

/// Arguments of `train elasticnet`.
///
/// Minimises Σ vᵢ(tᵢ − xᵢ·w − b)² / (2·Σ vᵢ) + α·ρ‖w‖₁ + α(1 − ρ)/2·‖w‖².
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  warpfuse train elasticnet data.svm --alpha 0.01 --l1-ratio 0.2 --json | jq .coef"
)]
pub(in crate::cli) struct ElasticNetArgs {
    #[command(flatten)]
    pub(in crate::cli) source: SourceArgs,

    /// α, the strength of the penalty
    #[arg(long, value_name = "ALPHA", default_value = "1", value_parser = not_negative)]
    pub(in crate::cli) alpha: f64,

    /// ρ, the share of ‖w‖₁, from 0 to 1
    #[arg(long, value_name = "RHO", default_value = "0.5", value_parser = share)]
    pub(in crate::cli) l1_ratio: f64,

    #[command(flatten)]
    pub(in crate::cli) solve: SolveArgs,

    #[command(flatten)]
    pub(in crate::cli) samples: SampleArgs,

    #[command(flatten)]
    pub(in crate::cli) outcome: OutcomeArgs,
}

/// Arguments of `train logreg`.
///
/// Minimises C·Σ vᵢ·log-loss + r(w) (divided by C·Σ vᵢ), the intercepts unpenalised. More than two classes are
/// fitted together (softmax).
#[derive(Debug, Args)]
#[command(after_help = LOGREG_EXAMPLES)]
pub(in crate::cli) struct LogregArgs {
    #[command(flatten)]
    pub(in crate::cli) source: SourceArgs,

    /// C, the inverse of the penalty's strength
    #[arg(long, value_name = "C", default_value = "1", value_parser = positive)]
    pub(in crate::cli) c: f64,

    /// r(w)
    #[arg(long, value_enum, value_name = "PENALTY", default_value = "l2")]
    pub(in crate::cli) penalty: PenaltyName,

    /// ρ of --penalty elasticnet, the share of ‖w‖₁, from 0 to 1
    #[arg(long, value_name = "RHO", value_parser = share, required_if_eq("penalty", "elasticnet"))]
    pub(in crate::cli) l1_ratio: Option<f64>,

    /// What rows of each class weigh: balanced (all classes the same), or LABEL=WEIGHT,LABEL=WEIGHT,...
    #[arg(long, value_name = "WEIGHTS")]
    pub(in crate::cli) class_weight: Option<ClassWeights>,

    /// How directions are found
    #[arg(long, value_enum, value_name = "SOLVER", default_value = "newton-cg")]
    pub(in crate::cli) solver: SolverName,

    #[command(flatten)]
    pub(in crate::cli) solve: SolveArgs,

    #[command(flatten)]
    pub(in crate::cli) samples: SampleArgs,

    #[command(flatten)]
    pub(in crate::cli) outcome: OutcomeArgs,
}

const LOGREG_EXAMPLES: &str = "\
Examples:
  warpfuse train logreg data.svm --c 10 -o model.safetensors
  warpfuse train logreg x.npy --target labels.txt --penalty elasticnet --l1-ratio 0.5
  warpfuse train logreg data.svm --class-weight balanced --validation test.svm --json | jq .validation
  warpfuse train logreg data.svm --class-weight=-1=1,1=5";

/// Arguments of `train glm`.
///
/// Minimises Σ vᵢ·deviance / (2·Σ vᵢ) + α((1 − ρ)/2·‖w‖² + ρ‖w‖₁), the intercept unpenalised.
#[derive(Debug, Args)]
#[command(after_help = GLM_EXAMPLES)]
pub(in crate::cli) struct GlmArgs {
    #[command(flatten)]
    pub(in crate::cli) source: SourceArgs,

    /// Distribution of the targets
    #[arg(long, value_enum, value_name = "FAMILY", default_value = "gaussian")]
    pub(in crate::cli) family: FamilyName,

    /// Power of --family tweedie: 0, or at least 1
    #[arg(long, value_name = "P", required_if_eq("family", "tweedie"))]
    pub(in crate::cli) power: Option<f64>,

    /// Link; the family's own if not given: identity, logit, probit, cloglog, log, inverse, sqrt, or
    /// power:EXPONENT
    #[arg(long, value_name = "LINK")]
    pub(in crate::cli) link: Option<LinkName>,

    /// α, the strength of the penalty
    #[arg(long, value_name = "ALPHA", default_value = "1", value_parser = not_negative)]
    pub(in crate::cli) alpha: f64,

    /// ρ, the share of ‖w‖₁ in the penalty, from 0 to 1
    #[arg(long, value_name = "RHO", default_value = "0", value_parser = share)]
    pub(in crate::cli) l1_ratio: f64,

    /// How directions are found
    #[arg(long, value_enum, value_name = "SOLVER", default_value = "newton-cg")]
    pub(in crate::cli) solver: SolverName,

    #[command(flatten)]
    pub(in crate::cli) solve: SolveArgs,

    #[command(flatten)]
    pub(in crate::cli) samples: SampleArgs,

    #[command(flatten)]
    pub(in crate::cli) outcome: OutcomeArgs,
}

const GLM_EXAMPLES: &str = "\
Examples:
  warpfuse train glm counts.svm --family poisson --alpha 0 -o model.safetensors
  warpfuse train glm costs.svm --family tweedie --power 1.5 --link log
  warpfuse train glm times.svm --family gamma --link inverse --json | jq .explained_deviance";

/// Arguments of `train svc`.
///
/// Minimises ½‖w‖² + ½b² + C·Σ vᵢ·max(0, 1 − yᵢ(xᵢ·w + b))² for each class against the others.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  warpfuse train svc data.svm --c 0.1 -o model.safetensors")]
pub(in crate::cli) struct SvcArgs {
    #[command(flatten)]
    pub(in crate::cli) source: SourceArgs,

    /// C, the inverse of the penalty's strength
    #[arg(long, value_name = "C", default_value = "1", value_parser = positive)]
    pub(in crate::cli) c: f64,

    /// The larger, the less the intercept is penalised; inf leaves it free
    #[arg(long, value_name = "S", default_value = "1", value_parser = positive)]
    pub(in crate::cli) intercept_scaling: f64,

    /// What rows of each class weigh: balanced (all classes the same), or LABEL=WEIGHT,LABEL=WEIGHT,...
    #[arg(long, value_name = "WEIGHTS")]
    pub(in crate::cli) class_weight: Option<ClassWeights>,

    #[command(flatten)]
    pub(in crate::cli) solve: SolveArgs,

    #[command(flatten)]
    pub(in crate::cli) samples: SampleArgs,

    #[command(flatten)]
    pub(in crate::cli) outcome: OutcomeArgs,
}

/// Arguments of `train svr`.
///
/// Minimises ½‖w‖² + ½b² + C·Σ vᵢ·max(0, |tᵢ − xᵢ·w − b| − ε)².
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  warpfuse train svr data.svm --c 10 --epsilon 0.1 -o model.safetensors"
)]
pub(in crate::cli) struct SvrArgs {
    #[command(flatten)]
    pub(in crate::cli) source: SourceArgs,

    /// C, the inverse of the penalty's strength
    #[arg(long, value_name = "C", default_value = "1", value_parser = positive)]
    pub(in crate::cli) c: f64,

    /// ε: residuals up to it cost nothing
    #[arg(long, value_name = "EPSILON", default_value = "0", value_parser = not_negative)]
    pub(in crate::cli) epsilon: f64,

    /// The larger, the less the intercept is penalised; inf leaves it free
    #[arg(long, value_name = "S", default_value = "1", value_parser = positive)]
    pub(in crate::cli) intercept_scaling: f64,

    #[command(flatten)]
    pub(in crate::cli) solve: SolveArgs,

    #[command(flatten)]
    pub(in crate::cli) samples: SampleArgs,

    #[command(flatten)]
    pub(in crate::cli) outcome: OutcomeArgs,
}

/// `--penalty`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum PenaltyName {
    /// Nothing
    None,
    /// ‖w‖₁
    L1,
    /// ½‖w‖²
    L2,
    /// (1 − ρ)/2·‖w‖² + ρ‖w‖₁
    Elasticnet,
}

/// `--solver`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum SolverName {
    /// Newton's method with inner conjugate gradients
    NewtonCg,
    /// Limited-memory BFGS; not with l1
    Lbfgs,
}

impl From<SolverName> for Solver {
    fn from(name: SolverName) -> Self {
        match name {
            SolverName::NewtonCg => Solver::NewtonCg,
            SolverName::Lbfgs => Solver::Lbfgs,
        }
    }
}

/// `--family`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum FamilyName {
    Gaussian,
    Binomial,
    Poisson,
    Gamma,
    InverseGaussian,
    Tweedie,
}

impl FamilyName {
    /// The family with the power of `--power`, which tweedie alone has.
    pub(in crate::cli) fn with_power(self, power: f64) -> Family {
        match self {
            FamilyName::Gaussian => Family::Gaussian,
            FamilyName::Binomial => Family::Binomial,
            FamilyName::Poisson => Family::Poisson,
            FamilyName::Gamma => Family::Gamma,
            FamilyName::InverseGaussian => Family::InverseGaussian,
            FamilyName::Tweedie => Family::Tweedie { power },
        }
    }
}

/// `--link`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::cli) struct LinkName(pub(in crate::cli) Link);

impl FromStr for LinkName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str =
            "expected identity, logit, probit, cloglog, log, inverse, sqrt or power:EXPONENT";
        Ok(LinkName(match text {
            "identity" => Link::Identity,
            "logit" => Link::Logit,
            "probit" => Link::Probit,
            "cloglog" => Link::Cloglog,
            "log" => Link::Log,
            "inverse" => Link::Inverse,
            "sqrt" => Link::Sqrt,
            _ => {
                let exponent = text.strip_prefix("power:").ok_or(EXPECTED)?;
                Link::Power(exponent.parse().map_err(|_| EXPECTED)?)
            }
        }))
    }
}

/// `--class-weight`.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) enum ClassWeights {
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
    fn links_have_names_and_powers_a_number() {
        assert_eq!("log".parse(), Ok(LinkName(Link::Log)));
        assert_eq!("power:-2".parse(), Ok(LinkName(Link::Power(-2.0))));
        for wrong in ["", "logarithm", "power", "power:", "power:x"] {
            assert!(wrong.parse::<LinkName>().is_err(), "{wrong}");
        }
    }
}
