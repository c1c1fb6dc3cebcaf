//! `svc` and `svr`.

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::logreg::{ClassWeights, class_weight};
use super::{Own, Penalised};
use crate::cli::args::{not_negative, positive};
use crate::cli::targets::Task;
use crate::learning::{Classes, Estimator, LinearSvc, LinearSvr, SvmLoss};

/// Arguments of `svc` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Minimises ½‖w‖² + ½b² + C·Σ vᵢ·max(0, 1 − yᵢ(xᵢ·w + b))² for each class against the others; with --loss hinge without
the square.

Example:
  warpfuse train svc data.svm --c 0.1 -o model.safetensors")]
pub(in crate::cli) struct SvcArgs {
    /// C, the inverse of the penalty's strength
    #[arg(long, value_name = "C", default_value = "1", value_parser = positive)]
    c: f64,

    /// What rows on the wrong side of their margin cost
    #[arg(long, value_enum, value_name = "LOSS", default_value = "squared-hinge")]
    loss: HingeName,

    /// The larger, the less the intercept is penalised; inf leaves it free
    #[arg(long, value_name = "S", default_value = "1", value_parser = positive)]
    intercept_scaling: f64,

    /// What rows of each class weigh: balanced (all classes the same), or LABEL=WEIGHT,LABEL=WEIGHT,...
    #[arg(long, value_name = "WEIGHTS")]
    class_weight: Option<ClassWeights>,
}

impl Own for SvcArgs {
    fn title(&self) -> &'static str {
        "Linear support vector classification"
    }

    fn task(&self) -> Task {
        Task::Labels
    }

    fn strength(&self) -> (&'static str, f64) {
        ("c", self.c)
    }

    fn estimator(&self, at: Penalised, classes: Option<&Classes>) -> Result<Estimator> {
        let params = LinearSvc::params()
            .c(at.strength)
            .loss(self.loss.into())
            .intercept_scaling(self.intercept_scaling)
            .class_weight(class_weight(self.class_weight.as_ref(), classes)?);
        Ok(params.into())
    }
}

/// Arguments of `svr` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Minimises ½‖w‖² + ½b² + C·Σ vᵢ·max(0, |tᵢ − xᵢ·w − b| − ε)²; with --loss epsilon-insensitive without the square.

Example:
  warpfuse train svr data.svm --c 10 --epsilon 0.1 -o model.safetensors")]
pub(in crate::cli) struct SvrArgs {
    /// C, the inverse of the penalty's strength
    #[arg(long, value_name = "C", default_value = "1", value_parser = positive)]
    c: f64,

    /// What residuals beyond ε cost
    #[arg(
        long,
        value_enum,
        value_name = "LOSS",
        default_value = "squared-epsilon-insensitive"
    )]
    loss: TubeName,

    /// ε: residuals up to it cost nothing
    #[arg(long, value_name = "EPSILON", default_value = "0", value_parser = not_negative)]
    epsilon: f64,

    /// The larger, the less the intercept is penalised; inf leaves it free
    #[arg(long, value_name = "S", default_value = "1", value_parser = positive)]
    intercept_scaling: f64,
}

impl Own for SvrArgs {
    fn title(&self) -> &'static str {
        "Linear support vector regression"
    }

    fn strength(&self) -> (&'static str, f64) {
        ("c", self.c)
    }

    fn second(&self) -> Option<&'static str> {
        Some("epsilon")
    }

    fn estimator(&self, at: Penalised, _: Option<&Classes>) -> Result<Estimator> {
        let params = LinearSvr::params().c(at.strength);
        let params = params.epsilon(at.second_or(self.epsilon));
        let params = params.loss(self.loss.into());
        Ok(params.intercept_scaling(self.intercept_scaling).into())
    }
}

/// `--loss` of `svc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HingeName {
    /// The square of the distance to the margin
    SquaredHinge,
    /// The distance itself, by an interior-point method on the host
    Hinge,
}

impl From<HingeName> for SvmLoss {
    fn from(name: HingeName) -> Self {
        match name {
            HingeName::SquaredHinge => SvmLoss::Squared,
            HingeName::Hinge => SvmLoss::Linear,
        }
    }
}

/// `--loss` of `svr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TubeName {
    /// The square of what exceeds ε
    SquaredEpsilonInsensitive,
    /// What exceeds ε itself, by an interior-point method on the host
    EpsilonInsensitive,
}

impl From<TubeName> for SvmLoss {
    fn from(name: TubeName) -> Self {
        match name {
            TubeName::SquaredEpsilonInsensitive => SvmLoss::Squared,
            TubeName::EpsilonInsensitive => SvmLoss::Linear,
        }
    }
}
