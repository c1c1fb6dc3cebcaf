//! Arguments of `train hits`, `train pagerank` and `train svd`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::learn::not_negative;
use super::{
    CheckpointArgs, DeviceName, DtypeName, ModelName, ReadArgs, ReportArgs, StoredName,
    check_for_gpu, matrix_options, summation,
};
use crate::learning::Dangling;
use crate::ops::MatrixOptions;

/// What is read, where it is computed, and how the result is told.
#[derive(Debug, Args)]
pub(in crate::cli) struct MatrixArgs {
    /// The matrix: LIBSVM (targets are ignored), Matrix Market, npy or a binary cache; - is stdin
    pub(in crate::cli) data: PathBuf,

    /// Where to compute: auto (a GPU if there is one and it is worth its start), cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(in crate::cli) device: DeviceName,

    /// Element type; f32 is twice as fast on a GPU and takes half the memory
    #[arg(long, value_enum, default_value = "f64")]
    pub(in crate::cli) dtype: DtypeName,

    /// Print one JSON object instead of the report
    #[arg(long)]
    pub(in crate::cli) json: bool,

    /// End with exit code 3 when not converged
    #[arg(long)]
    pub(in crate::cli) strict: bool,

    /// Launch model of GPU kernels, for experts: predicted if not given
    #[arg(long, value_enum, value_name = "MODEL")]
    pub(in crate::cli) model: Option<ModelName>,

    /// On a GPU: how further forms of sparse DATA may store its values, exact if not given; where they are rounded, the
    /// result is that of the rounded matrix
    #[arg(long, value_enum, value_name = "FORM")]
    pub(in crate::cli) values: Option<StoredName>,

    /// The same result, bit by bit, every time and for any number of GPUs: always on the CPU; on a GPU at some cost of time
    #[arg(long)]
    pub(in crate::cli) reproducible: bool,

    #[command(flatten)]
    pub(in crate::cli) checkpoint: CheckpointArgs,

    #[command(flatten)]
    pub(in crate::cli) report: ReportArgs,

    #[command(flatten)]
    pub(in crate::cli) read: ReadArgs,
}

impl MatrixArgs {
    /// How products with the matrix are planned.
    pub(in crate::cli) fn matrix_options(&self) -> MatrixOptions {
        let model = self.model.unwrap_or(ModelName::Predicted);
        let values = self.values.unwrap_or(StoredName::Exact);
        matrix_options(model, summation(self.reproducible), values)
    }

    /// Refuses what only a GPU can do where the CPU was requested.
    pub(in crate::cli) fn check(&self) -> Result<(), &'static str> {
        check_for_gpu(self.device, self.model, self.values)
    }
}

/// Arguments of `train hits`.
///
/// Entry (i, j) is the weight of the edge from row i to column j. Authorities are the principal right singular
/// vector, hubs the left one; both add up to 1.
#[derive(Debug, Args)]
#[command(after_help = HITS_EXAMPLES)]
pub(in crate::cli) struct HitsArgs {
    #[command(flatten)]
    pub(in crate::cli) matrix: MatrixArgs,

    /// Stop when the authorities (of 2-norm 1) change by no more than this
    #[arg(long, value_name = "EPSILON", default_value = "1e-8", value_parser = not_negative)]
    pub(in crate::cli) tol: f64,

    /// Stop after this many steps
    #[arg(long, value_name = "N", default_value = "100")]
    pub(in crate::cli) max_iter: NonZeroUsize,

    /// Write the scores of the rows, one per line, or as npy if FILE ends in .npy
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) hubs: Option<PathBuf>,

    /// Write the scores of the columns
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) authorities: Option<PathBuf>,
}

const HITS_EXAMPLES: &str = "\
Examples:
  warpfuse train hits links.mtx --hubs hubs.npy --authorities authorities.npy
  warpfuse train hits links.mtx --device cuda:0 --dtype f32 --json | jq .authorities";

/// Arguments of `train pagerank`.
///
/// Entry (i, j) is the weight of the edge from node i to node j. The scores add up to 1.
#[derive(Debug, Args)]
#[command(after_help = PAGERANK_EXAMPLES)]
pub(in crate::cli) struct PageRankArgs {
    #[command(flatten)]
    pub(in crate::cli) matrix: MatrixArgs,

    /// The chance to follow an edge, below 1; else the surfer jumps
    #[arg(long, value_name = "D", default_value = "0.85", value_parser = not_negative)]
    pub(in crate::cli) damping: f64,

    /// Weights of the nodes to jump to; all alike if not given
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) personalisation: Option<PathBuf>,

    /// Where nodes without edges lead
    #[arg(long, value_enum, default_value = "personalised")]
    pub(in crate::cli) dangling: DanglingName,

    /// Stop when the scores change by no more than this (1-norm)
    #[arg(long, value_name = "EPSILON", default_value = "1e-6", value_parser = not_negative)]
    pub(in crate::cli) tol: f64,

    /// Stop after this many steps
    #[arg(long, value_name = "N", default_value = "100")]
    pub(in crate::cli) max_iter: NonZeroUsize,

    /// Write the scores, one per line, or as npy if FILE ends in .npy
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,
}

/// `--dangling`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum DanglingName {
    /// To the nodes of --personalisation
    Personalised,
    /// To all nodes alike
    Uniform,
}

impl From<DanglingName> for Dangling {
    fn from(name: DanglingName) -> Self {
        match name {
            DanglingName::Personalised => Dangling::Personalised,
            DanglingName::Uniform => Dangling::Uniform,
        }
    }
}

const PAGERANK_EXAMPLES: &str = "\
Examples:
  warpfuse train pagerank links.mtx -o scores.npy --checkpoint links.checkpoint --every 5m
  warpfuse train pagerank links.mtx --damping 0.9 --personalisation topic.npy --tol 1e-9 --json | jq .scores";

/// Arguments of `train svd`.
///
/// The k leading singular triplets X ≈ U·diag(σ)·Vᵀ; with --centre principal components, X being neither
/// densified nor copied.
#[derive(Debug, Args)]
#[command(after_help = SVD_EXAMPLES)]
pub(in crate::cli) struct SvdArgs {
    #[command(flatten)]
    pub(in crate::cli) matrix: MatrixArgs,

    /// Triplets to find (scikit-learn's n_components)
    #[arg(short = 'k', long, value_name = "K", default_value = "2")]
    pub(in crate::cli) n_components: NonZeroUsize,

    /// Subtract the column means: principal component analysis
    #[arg(long)]
    pub(in crate::cli) centre: bool,

    /// Stop when ‖XᵀX·v − σ²v‖ is at most this part of σ² for each vector
    #[arg(long, value_name = "EPSILON", default_value = "1e-8", value_parser = not_negative)]
    pub(in crate::cli) tol: f64,

    /// Stop after about this many products with XᵀX
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(in crate::cli) max_iter: NonZeroUsize,

    /// Seed of the random start
    #[arg(long, value_name = "SEED", default_value = "0")]
    pub(in crate::cli) seed: u64,

    /// Write Vᵀ (k × n)
    #[arg(short, long, value_name = "FILE.npy")]
    pub(in crate::cli) output: Option<PathBuf>,

    /// Write the coordinates X·V (m × k)
    #[arg(long, value_name = "FILE.npy")]
    pub(in crate::cli) transformed: Option<PathBuf>,
}

const SVD_EXAMPLES: &str = "\
Examples:
  warpfuse train svd data.svm -k 50 --transformed coordinates.npy
  warpfuse train svd data.svm -k 10 --centre -o components.npy --json | jq .explained_variance_ratio";
