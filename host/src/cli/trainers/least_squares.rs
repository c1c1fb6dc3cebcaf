//! `linreg`, `ridge`, `lasso`, `elasticnet`.

use anyhow::Result;
use clap::Args;

use super::{Own, Penalised};
use crate::cli::args::{not_negative, share};
use crate::learning::{Classes, ElasticNet, Estimator, Lasso, LinearRegression, Ridge};

/// Arguments of `linreg` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Minimises Σ vᵢ(tᵢ − xᵢ·w − b)² + λ‖w‖², the intercept b unpenalised.

Examples:
  warpfuse train linreg data.svm --l2 0.1 -o model.safetensors
  warpfuse train linreg x.npy --target y.npy --dtype f32 --device cuda:0
  zcat data.svm.gz | warpfuse train linreg - --json | jq .r2
  warpfuse train linreg large.svm --cache --tol 1e-4 --strict")]
pub(in crate::cli) struct LinregArgs {
    /// λ, the weight of ‖w‖² (scikit-learn's alpha)
    #[arg(long, value_name = "LAMBDA", default_value = "0", value_parser = not_negative)]
    l2: f64,
}

impl Own for LinregArgs {
    fn title(&self) -> &'static str {
        "Linear regression"
    }

    fn strength(&self) -> (&'static str, f64) {
        ("l2", self.l2)
    }

    fn estimator(&self, at: Penalised, _: Option<&Classes>) -> Result<Estimator> {
        Ok(LinearRegression::params().l2(at.strength).into())
    }
}

/// Arguments of `ridge` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Minimises Σ vᵢ(tᵢ − xᵢ·w − b)² + α‖w‖², the intercept b unpenalised.

Examples:
  warpfuse train ridge data.svm --alpha 0.1 -o model.safetensors
  warpfuse train ridge x.npy --target y.npy --alpha 10 --json | jq .coef")]
pub(in crate::cli) struct RidgeArgs {
    /// α, the weight of ‖w‖²
    #[arg(long, value_name = "ALPHA", default_value = "1", value_parser = not_negative)]
    alpha: f64,
}

impl Own for RidgeArgs {
    fn title(&self) -> &'static str {
        "Ridge regression"
    }

    fn strength(&self) -> (&'static str, f64) {
        ("alpha", self.alpha)
    }

    fn estimator(&self, at: Penalised, _: Option<&Classes>) -> Result<Estimator> {
        Ok(Ridge::params().alpha(at.strength).into())
    }
}

/// Arguments of `lasso` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Minimises Σ vᵢ(tᵢ − xᵢ·w − b)² / (2·Σ vᵢ) + α‖w‖₁, the intercept b unpenalised.

Example:
  warpfuse train lasso data.svm --alpha 0.01 -o model.safetensors")]
pub(in crate::cli) struct LassoArgs {
    /// α, the weight of ‖w‖₁
    #[arg(long, value_name = "ALPHA", default_value = "1", value_parser = not_negative)]
    alpha: f64,
}

impl Own for LassoArgs {
    fn title(&self) -> &'static str {
        "Lasso"
    }

    fn strength(&self) -> (&'static str, f64) {
        ("alpha", self.alpha)
    }

    fn estimator(&self, at: Penalised, _: Option<&Classes>) -> Result<Estimator> {
        Ok(Lasso::params().alpha(at.strength).into())
    }
}

/// Arguments of `elasticnet` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Minimises Σ vᵢ(tᵢ − xᵢ·w − b)² / (2·Σ vᵢ) + α·ρ‖w‖₁ + α(1 − ρ)/2·‖w‖².

Example:
  warpfuse train elasticnet data.svm --alpha 0.01 --l1-ratio 0.2 --json | jq .coef")]
pub(in crate::cli) struct ElasticNetArgs {
    /// α, the strength of the penalty
    #[arg(long, value_name = "ALPHA", default_value = "1", value_parser = not_negative)]
    alpha: f64,

    /// ρ, the share of ‖w‖₁, from 0 to 1
    #[arg(long, value_name = "RHO", default_value = "0.5", value_parser = share)]
    l1_ratio: f64,
}

impl Own for ElasticNetArgs {
    fn title(&self) -> &'static str {
        "Elastic net"
    }

    fn strength(&self) -> (&'static str, f64) {
        ("alpha", self.alpha)
    }

    fn second(&self) -> Option<&'static str> {
        Some("l1-ratio")
    }

    fn estimator(&self, at: Penalised, _: Option<&Classes>) -> Result<Estimator> {
        let params = ElasticNet::params().alpha(at.strength);
        Ok(params.l1_ratio(at.second_or(self.l1_ratio)).into())
    }
}
