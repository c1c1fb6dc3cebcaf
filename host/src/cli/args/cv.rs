//! Arguments of `cv`.

use std::num::NonZeroUsize;

use clap::Args;

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
  warpfuse cv logreg data.svm --path 0.01,0.1,1,10
  warpfuse cv ridge x.npy --target y.npy --path 0.1,1,10 --folds 10 --json | jq .best
  warpfuse cv lasso data.svm --path 1,0.1,0.01 --folds 3 --seed 7";

/// How rows are held out, and what is compared.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cross-validation")]
pub(in crate::cli) struct FoldArgs {
    /// Values of the penalty (--alpha or --c) to compare; each starts from the coefficients of the one before
    #[arg(long, value_name = "VALUES", value_delimiter = ',')]
    pub(in crate::cli) path: Vec<f64>,

    /// Parts that the rows are cut into; each is held out once
    #[arg(long, value_name = "K", default_value = "5")]
    pub(in crate::cli) folds: NonZeroUsize,

    /// Seed with which rows are dealt to the folds
    #[arg(long, value_name = "SEED", default_value = "0")]
    pub(in crate::cli) seed: u64,
}
