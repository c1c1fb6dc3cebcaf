//! `glm`.

use std::str::FromStr;

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::{Own, Penalised};
use crate::cli::args::{not_negative, share};
use crate::learning::{Classes, Estimator, Family, Glm, Link};

/// Arguments of `glm` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Minimises Σ vᵢ·deviance / (2·Σ vᵢ) + α((1 − ρ)/2·‖w‖² + ρ‖w‖₁), the intercept unpenalised.

Examples:
  warpfuse train glm counts.svm --family poisson --alpha 0 -o model.safetensors
  warpfuse train glm claims.svm --family poisson --exposure years.npy --alpha 0
  warpfuse train glm costs.svm --family tweedie --power 1.5 --link log
  warpfuse train glm times.svm --family gamma --link inverse --json | jq .explained_deviance")]
pub(in crate::cli) struct GlmArgs {
    /// Distribution of the targets
    #[arg(long, value_enum, value_name = "FAMILY", default_value = "gaussian")]
    family: FamilyName,

    /// Power of --family tweedie: 0, or at least 1
    #[arg(long, value_name = "P", required_if_eq("family", "tweedie"))]
    power: Option<f64>,

    /// Link; the family's own if not given: identity, logit, probit, cloglog, log, inverse, sqrt, or
    /// power:EXPONENT
    #[arg(long, value_name = "LINK")]
    link: Option<LinkName>,

    /// α, the strength of the penalty
    #[arg(long, value_name = "ALPHA", default_value = "1", value_parser = not_negative)]
    alpha: f64,

    /// ρ, the share of ‖w‖₁ in the penalty, from 0 to 1
    #[arg(long, value_name = "RHO", default_value = "0", value_parser = share)]
    l1_ratio: f64,
}

impl Own for GlmArgs {
    fn title(&self) -> &'static str {
        "Generalised linear model"
    }

    fn strength(&self) -> (&'static str, f64) {
        ("alpha", self.alpha)
    }

    fn check(&self) -> Result<(), &'static str> {
        match (self.family, self.power) {
            (FamilyName::Tweedie, _) | (_, None) => Ok(()),
            _ => Err("--power does nothing without --family tweedie"),
        }
    }

    fn second(&self) -> Option<&'static str> {
        Some("l1-ratio")
    }

    fn has_link_log(&self) -> bool {
        let family = self.family.with_power(self.power.unwrap_or(0.0));
        let typed = self.link.map(|LinkName(link)| link);
        typed.unwrap_or(family.default_link()) == Link::Log
    }

    fn estimator(&self, at: Penalised, _: Option<&Classes>) -> Result<Estimator> {
        let params = Glm::params()
            .family(self.family.with_power(self.power.unwrap_or(0.0)))
            .alpha(at.strength)
            .l1_ratio(at.second_or(self.l1_ratio));
        let params = match self.link {
            Some(LinkName(link)) => params.link(link),
            None => params,
        };
        Ok(params.into())
    }
}

/// `--family`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FamilyName {
    Gaussian,
    Binomial,
    Poisson,
    Gamma,
    InverseGaussian,
    Tweedie,
}

impl FamilyName {
    /// The family with the power of `--power`, which tweedie alone has.
    fn with_power(self, power: f64) -> Family {
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
struct LinkName(Link);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_names_and_powers_a_number() {
        assert_eq!("log".parse(), Ok(LinkName(Link::Log)));
        assert_eq!("power:-2".parse(), Ok(LinkName(Link::Power(-2.0))));
        for wrong in ["", "logarithm", "power", "power:", "power:x"] {
            assert!(wrong.parse::<LinkName>().is_err(), "{wrong}");
        }
    }
}
