//! Arguments of `inspect`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `inspect`.
///
/// Shows what a model file holds: the estimator with its parameters, the facts of the training data, how the fit ended, and
/// the largest coefficients with their names.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  warpfuse inspect model.safetensors
  warpfuse inspect model.safetensors --top 50
  warpfuse inspect model.safetensors --json | jq .feature_names
  warpfuse inspect model.safetensors --report model.html
  warpfuse inspect model.safetensors --diff other.safetensors")]
pub(in crate::cli) struct InspectArgs {
    /// A model that `train` or `cv` saved, or a model file of LIBLINEAR
    pub(in crate::cli) model: PathBuf,

    /// Show how the model of FILE differs from MODEL
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) diff: Option<PathBuf>,

    /// Coefficients that are shown, the largest first
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(in crate::cli) top: usize,

    /// Write a page for people as well: one file that needs no other
    #[arg(long, value_name = "FILE.html")]
    pub(in crate::cli) report: Option<PathBuf>,

    /// Print one JSON object, with all coefficients
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
