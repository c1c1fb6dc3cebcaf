//! `ridge-classifier`.

use anyhow::Result;
use clap::Args;

use super::logreg::{ClassWeights, class_weight};
use super::{Own, Penalised};
use crate::cli::args::not_negative;
use crate::cli::targets::Task;
use crate::learning::{Classes, Estimator, RidgeClassifier};

/// Arguments of `ridge-classifier` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Minimises Σ vᵢ(yᵢ − xᵢ·w − b)² + α‖w‖² for each class against the others, y = ±1, the intercept b unpenalised.

Example:
  warpfuse train ridge-classifier data.svm --alpha 10 -o model.safetensors")]
pub(in crate::cli) struct RidgeClassifierArgs {
    /// α, the weight of ‖w‖²
    #[arg(long, value_name = "ALPHA", default_value = "1", value_parser = not_negative)]
    alpha: f64,

    /// What rows of each class weigh: balanced (all classes the same), or LABEL=WEIGHT,LABEL=WEIGHT,...
    #[arg(long, value_name = "WEIGHTS")]
    class_weight: Option<ClassWeights>,
}

impl Own for RidgeClassifierArgs {
    fn title(&self) -> &'static str {
        "Ridge classification"
    }

    fn task(&self) -> Task {
        Task::Labels
    }

    fn strength(&self) -> (&'static str, f64) {
        ("alpha", self.alpha)
    }

    fn estimator(&self, at: Penalised, classes: Option<&Classes>) -> Result<Estimator> {
        let params = RidgeClassifier::params()
            .alpha(at.strength)
            .class_weight(class_weight(self.class_weight.as_ref(), classes)?);
        Ok(params.into())
    }
}
