//! `svc` and `svr`.

use anyhow::Result;
use clap::Args;

use super::logreg::{ClassWeights, class_weight};
use super::{Own, Penalised};
use crate::cli::args::{not_negative, positive};
use crate::cli::targets::Task;
use crate::learning::{Classes, Estimator, LinearSvc, LinearSvr};

/// Arguments of `svc` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Minimises ½‖w‖² + ½b² + C·Σ vᵢ·max(0, 1 − yᵢ(xᵢ·w + b))² for each class against the others.

Example:
  warpfuse train svc data.svm --c 0.1 -o model.safetensors")]
pub(in crate::cli) struct SvcArgs {
    /// C, the inverse of the penalty's strength
    #[arg(long, value_name = "C", default_value = "1", value_parser = positive)]
    c: f64,

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
            .intercept_scaling(self.intercept_scaling)
            .class_weight(class_weight(self.class_weight.as_ref(), classes)?);
        Ok(params.into())
    }
}

/// Arguments of `svr` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Minimises ½‖w‖² + ½b² + C·Σ vᵢ·max(0, |tᵢ − xᵢ·w − b| − ε)².

Example:
  warpfuse train svr data.svm --c 10 --epsilon 0.1 -o model.safetensors")]
pub(in crate::cli) struct SvrArgs {
    /// C, the inverse of the penalty's strength
    #[arg(long, value_name = "C", default_value = "1", value_parser = positive)]
    c: f64,

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

    fn estimator(&self, at: Penalised, _: Option<&Classes>) -> Result<Estimator> {
        let params = LinearSvr::params().c(at.strength).epsilon(self.epsilon);
        Ok(params.intercept_scaling(self.intercept_scaling).into())
    }
}
