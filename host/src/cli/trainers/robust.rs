//! `huber` and `quantile`.

use anyhow::Result;
use clap::Args;

use super::{Own, Penalised};
use crate::cli::args::{finite_positive, inside, not_negative};
use crate::learning::{Classes, Estimator, Huber, Quantile};

/// Arguments of `huber` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Minimises Σ vᵢ·(σ + σ·H((tᵢ − xᵢ·w − b)/σ)) + α‖w‖² over w, b and the scale σ of the residuals, H(z) = z² up to ε and
2ε|z| − ε² beyond.

Example:
  warpfuse train huber data.svm --epsilon 1.5 -o model.safetensors")]
pub(in crate::cli) struct HuberArgs {
    /// α, the weight of ‖w‖²
    #[arg(long, value_name = "ALPHA", default_value = "1e-4", value_parser = not_negative)]
    alpha: f64,

    /// ε, at least 1: rows further off than ε scales count linearly
    #[arg(long, value_name = "EPSILON", default_value = "1.35", value_parser = finite_positive)]
    epsilon: f64,

    /// σ, where it is known; estimated along with the coefficients if not given
    #[arg(long, value_name = "SIGMA", value_parser = finite_positive)]
    scale: Option<f64>,
}

impl Own for HuberArgs {
    fn title(&self) -> &'static str {
        "Huber regression"
    }

    fn strength(&self) -> (&'static str, f64) {
        ("alpha", self.alpha)
    }

    fn second(&self) -> Option<&'static str> {
        Some("epsilon")
    }

    fn estimator(&self, at: Penalised, _: Option<&Classes>) -> Result<Estimator> {
        let params = Huber::params().alpha(at.strength);
        let params = params.epsilon(at.second_or(self.epsilon));
        Ok(match self.scale {
            Some(scale) => params.scale(scale).into(),
            None => params.into(),
        })
    }
}

/// Arguments of `quantile` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Minimises Σ vᵢ·ρ(tᵢ − xᵢ·w − b) / Σ vᵢ + α‖w‖₁, ρ(r) = max(τ·r, (τ − 1)·r), the intercept b unpenalised.

Example:
  warpfuse train quantile data.svm --quantile 0.9 --alpha 0 -o model.safetensors")]
pub(in crate::cli) struct QuantileArgs {
    /// τ, above 0 and below 1: 0.5 is the median
    #[arg(long, value_name = "TAU", default_value = "0.5", value_parser = inside)]
    quantile: f64,

    /// α, the weight of ‖w‖₁
    #[arg(long, value_name = "ALPHA", default_value = "1", value_parser = not_negative)]
    alpha: f64,
}

impl Own for QuantileArgs {
    fn title(&self) -> &'static str {
        "Quantile regression"
    }

    fn strength(&self) -> (&'static str, f64) {
        ("alpha", self.alpha)
    }

    fn estimator(&self, at: Penalised, _: Option<&Classes>) -> Result<Estimator> {
        let params = Quantile::params().quantile(self.quantile);
        Ok(params.alpha(at.strength).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_0_and_1() {
        assert_eq!(inside("0.9"), Ok(0.9));
        for wrong in ["0", "1", "nan", "-1", "x"] {
            assert!(inside(wrong).is_err(), "{wrong}");
        }
    }
}
