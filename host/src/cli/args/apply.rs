//! Arguments of `predict`, `evaluate` and `convert`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{DeviceName, DtypeName, MatchArgs, ReadArgs, ReportArgs};
use crate::cli::data::Reading;
use crate::io::Columns;
use crate::learning::SavedModel;

/// A model, and data to apply it to.
#[derive(Debug, Args)]
pub(in crate::cli) struct ApplyArgs {
    /// A model that `train` saved, or a model file of LIBLINEAR
    pub(in crate::cli) model: PathBuf,

    /// Features: LIBSVM, Matrix Market, npy or a binary cache; - is stdin
    pub(in crate::cli) data: PathBuf,

    /// Targets to score the predictions with (those of a LIBSVM file are used anyway)
    #[arg(long, value_name = "FILE", conflicts_with = "target_column")]
    pub(in crate::cli) target: Option<PathBuf>,

    #[command(flatten)]
    pub(in crate::cli) like: MatchArgs,
}

impl ApplyArgs {
    /// How DATA is read: as the model's training data were.
    ///
    /// # Errors
    /// When names cannot be read.
    pub(in crate::cli) fn reading<'a>(
        &self,
        model: &SavedModel,
        read: &'a ReadArgs,
    ) -> anyhow::Result<Reading<'a>> {
        Ok(Reading {
            // A sparse file shows only columns that occur in it; the model knows how many there are.
            columns: Columns::Exactly(model.cols()),
            args: read,
            first_target: None,
            table: self.like.options(model.schema())?,
        })
    }
}

/// Where it is computed, and how it is told.
#[derive(Debug, Args)]
pub(in crate::cli) struct ComputeArgs {
    /// Where to compute: auto (a GPU if there is one and it is worth its start), cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(in crate::cli) device: DeviceName,

    /// Element type; that of the model if not given
    #[arg(long, value_enum)]
    pub(in crate::cli) dtype: Option<DtypeName>,
}

/// Arguments of `predict`.
///
/// Prints one prediction per line: a number, or the label of a classifier.
#[derive(Debug, Args)]
#[command(after_help = PREDICT_EXAMPLES)]
pub(in crate::cli) struct PredictArgs {
    #[command(flatten)]
    pub(in crate::cli) apply: ApplyArgs,

    /// Write the predictions to FILE, as npy if it ends in .npy, else one per line
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,

    /// Probabilities of the classes instead of labels: one column per class, in ascending order of the labels
    #[arg(long, conflicts_with = "decision")]
    pub(in crate::cli) proba: bool,

    /// Linear predictors instead of predictions: one column, or one per class
    #[arg(long)]
    pub(in crate::cli) decision: bool,

    #[command(flatten)]
    pub(in crate::cli) compute: ComputeArgs,

    /// Print one JSON object; it holds the predictions unless -o does
    #[arg(long)]
    pub(in crate::cli) json: bool,

    #[command(flatten)]
    pub(in crate::cli) report: ReportArgs,

    #[command(flatten)]
    pub(in crate::cli) read: ReadArgs,
}

const PREDICT_EXAMPLES: &str = "\
Examples:
  warpfuse predict model.safetensors new.svm > predictions.txt
  warpfuse predict model.safetensors x.npy -o predictions.npy
  warpfuse predict model.safetensors new.svm --proba -o probabilities.npy
  warpfuse predict model.safetensors test.svm --json | jq .r2
  warpfuse predict model.safetensors new.csv --unseen refuse --extra-columns ignore

If the data have targets, the figures of the task are printed on stderr.";

/// Arguments of `evaluate`.
///
/// Scores a model on data with known targets.
#[derive(Debug, Args)]
#[command(after_help = EVALUATE_EXAMPLES)]
pub(in crate::cli) struct EvaluateArgs {
    #[command(flatten)]
    pub(in crate::cli) apply: ApplyArgs,

    /// Weights of the rows, none negative
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) sample_weight: Option<PathBuf>,

    #[command(flatten)]
    pub(in crate::cli) compute: ComputeArgs,

    /// Print one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,

    #[command(flatten)]
    pub(in crate::cli) report: ReportArgs,

    #[command(flatten)]
    pub(in crate::cli) read: ReadArgs,
}

const EVALUATE_EXAMPLES: &str = "\
Examples:
  warpfuse evaluate model.safetensors test.svm
  warpfuse evaluate model.safetensors test.svm --report evaluation.html
  warpfuse evaluate model.safetensors x.npy --target labels.txt --json | jq .confusion";

/// Arguments of `convert`.
#[derive(Debug, Args)]
#[command(after_help = CONVERT_EXAMPLES)]
pub(in crate::cli) struct ConvertArgs {
    /// A model that `train` saved, or a model file of LIBLINEAR
    pub(in crate::cli) model: PathBuf,

    /// The file to write
    pub(in crate::cli) output: PathBuf,

    /// What to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(in crate::cli) to: ModelFormat,
}

/// `--to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ModelFormat {
    /// As `train` saves
    Safetensors,
    /// Text for LIBLINEAR's predict
    Liblinear,
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  warpfuse convert model.safetensors liblinear.model --to liblinear
  warpfuse convert liblinear.model model.safetensors --to safetensors";
