//! Arguments of `cv`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::{CheckpointArgs, not_negative, positive, share};
use crate::cli::scoring::ScoringName;
use crate::cli::trainers::CvTrainer;

/// Arguments of `cv`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct CvArgs {
    #[command(subcommand)]
    pub(in crate::cli) trainer: CvTrainer,
}

const EXAMPLES: &str = "\
Examples:
  warpfuse cv logreg data.svm --path auto -o model.safetensors
  warpfuse cv logreg data.svm --path 0.01,0.1,1,10 --scoring roc-auc
  warpfuse cv elasticnet data.svm --path auto:30 --l1-ratios 0.2,0.5,0.9
  warpfuse cv svr data.svm --path 0.1,1,10 --epsilons 0,0.1,1
  warpfuse cv svr x.npy --target y.npy --groups patients.npy --scoring neg-mean-absolute-error
  warpfuse cv ridge x.npy --target y.npy --path 0.1,1,10 --folds 10 --json | jq .best
  warpfuse cv lasso data.svm --path 1,0.1,0.01 --folds 3 --seed 7";

/// How rows are held out, and what is compared.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cross-validation")]
pub(in crate::cli) struct FoldArgs {
    /// Values of the penalty (--alpha or --c) to compare; each starts from the coefficients of the one before. `auto`:
    /// 20 of them, `auto:N` N of them, from the strongest that the data give reason for
    #[arg(long, value_name = "VALUES")]
    pub(in crate::cli) path: Option<PathName>,

    /// Shares of ‖w‖₁ to compare, each with all of --path
    #[arg(long, value_name = "RHOS", value_delimiter = ',', value_parser = share)]
    pub(in crate::cli) l1_ratios: Vec<f64>,

    /// Values of --epsilon of svr and huber to compare, each with all of --path
    #[arg(long, value_name = "EPSILONS", value_delimiter = ',', value_parser = not_negative)]
    pub(in crate::cli) epsilons: Vec<f64>,

    /// What is compared; the estimator's own score if not given: R², explained deviance of glm, accuracy
    #[arg(long, value_enum, value_name = "FIGURE")]
    pub(in crate::cli) scoring: Option<ScoringName>,

    /// A number for each row; rows of one number are held out together
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) groups: Option<PathBuf>,

    /// Parts that the rows are cut into; each is held out once
    #[arg(long, value_name = "K", default_value = "5")]
    pub(in crate::cli) folds: NonZeroUsize,

    /// Seed with which rows are dealt to the folds
    #[arg(long, value_name = "SEED", default_value = "0")]
    pub(in crate::cli) seed: u64,

    #[command(flatten)]
    pub(in crate::cli) checkpoint: CheckpointArgs,
}

/// `--path`.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) enum PathName {
    /// This many, chosen by the data.
    Auto(usize),
    /// As typed.
    Given(Vec<f64>),
}

/// Points of `--path auto`.
const POINTS: usize = 20;

impl FromStr for PathName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected auto, auto:N with N of 2 or more, or numbers, none negative, with commas between";
        let number = |text: &str| match positive(text) {
            Ok(number) => Ok(number),
            Err(_) if text.parse() == Ok(0.0) => Ok(0.0),
            Err(_) => Err(EXPECTED),
        };
        match text.split_once(':') {
            None if text == "auto" => Ok(PathName::Auto(POINTS)),
            Some(("auto", count)) => match count.parse() {
                Ok(count) if count >= 2 => Ok(PathName::Auto(count)),
                _ => Err(EXPECTED),
            },
            _ => {
                let numbers = text.split(',').map(number);
                numbers.collect::<Result<_, _>>().map(PathName::Given)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_typed_or_automatic() {
        assert_eq!("auto".parse(), Ok(PathName::Auto(POINTS)));
        assert_eq!("auto:7".parse(), Ok(PathName::Auto(7)));
        assert_eq!(
            "1,0,1e-3".parse(),
            Ok(PathName::Given(vec![1.0, 0.0, 1e-3]))
        );
        for wrong in ["", "auto:1", "auto:x", "1,,2", "-1", "nan", "automatic"] {
            assert!(wrong.parse::<PathName>().is_err(), "{wrong}");
        }
    }
}
