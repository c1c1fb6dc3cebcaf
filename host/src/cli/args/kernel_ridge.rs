//! Arguments of `train kernel-ridge`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::learn::{finite_positive, not_negative};
use super::{CheckpointArgs, ReadArgs, ReportArgs, SourceArgs, TableArgs};
use crate::learning::KernelSolver;
use crate::ops::KernelFunction;

/// Arguments of `train kernel-ridge`.
///
/// f(x) = Σᵢ aᵢ·k(x, xᵢ) with (K + α·I)·a = t: also the mean of a Gaussian process with covariance k and noise of
/// variance α. There is no intercept: centre the targets. Sparse features are written out.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct KernelRidgeArgs {
    #[command(flatten)]
    pub(in crate::cli) source: SourceArgs,

    /// k(x, y), of r = ‖x − y‖ and the length scale ℓ
    #[arg(long, value_enum, value_name = "KERNEL", default_value = "gaussian")]
    pub(in crate::cli) kernel: KernelName,

    /// ℓ, the bandwidth of k; √(n / 2) for n features if neither it nor --gamma is given
    #[arg(long, visible_alias = "bandwidth", value_name = "L", value_parser = finite_positive)]
    pub(in crate::cli) length_scale: Option<f64>,

    /// scikit-learn's γ instead of ℓ: exp(−γ·r²) of gaussian, exp(−γ·‖x − y‖₁) of laplace
    #[arg(long, value_name = "GAMMA", conflicts_with = "length_scale", value_parser = finite_positive)]
    pub(in crate::cli) gamma: Option<f64>,

    /// α, the weight of ‖f‖² or the variance of the noise
    #[arg(long, value_name = "ALPHA", default_value = "1", value_parser = finite_positive)]
    pub(in crate::cli) alpha: f64,

    /// Stop when ‖t − (K + α·I)·a‖, computed in f64, is at most this part of ‖t‖
    #[arg(long, value_name = "EPSILON", default_value = "1e-6", value_parser = not_negative)]
    pub(in crate::cli) tol: f64,

    /// Stop after this many conjugate-gradient iterations, each a sum over all pairs
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(in crate::cli) max_iter: NonZeroUsize,

    /// Columns of the pivoted Cholesky factor that preconditions conjugate gradients, 0 for none; 64 if not given
    #[arg(long, value_name = "R")]
    pub(in crate::cli) rank: Option<usize>,

    /// What solves it; the report says what auto has chosen, and why
    #[arg(long, value_enum, value_name = "SOLVER", default_value = "auto")]
    pub(in crate::cli) solver: KernelSolverName,

    /// Data that are not learnt from: the model is scored on them as well
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) validation: Option<PathBuf>,

    /// Targets of --validation, where that file holds features only
    #[arg(long, value_name = "FILE", requires = "validation")]
    pub(in crate::cli) validation_target: Option<PathBuf>,

    /// Save the model (safetensors)
    #[arg(short, long, value_name = "MODEL")]
    pub(in crate::cli) output: Option<PathBuf>,

    /// Print one JSON object instead of the report; it holds the dual coefficients unless -o does
    #[arg(long)]
    pub(in crate::cli) json: bool,

    /// End with exit code 3 when not converged
    #[arg(long)]
    pub(in crate::cli) strict: bool,

    #[command(flatten)]
    pub(in crate::cli) checkpoint: CheckpointArgs,

    #[command(flatten)]
    pub(in crate::cli) report: ReportArgs,

    #[command(flatten)]
    pub(in crate::cli) read: ReadArgs,

    #[command(flatten)]
    pub(in crate::cli) table: TableArgs,
}

const EXAMPLES: &str = "\
Examples:
  warpfuse train kernel-ridge data.csv --target-column y --length-scale 0.3 --alpha 0.1 -o model.safetensors
  warpfuse train kernel-ridge x.npy --target y.npy --gamma 2 --dtype f32 --device cuda:0 --json | jq .r2
  warpfuse train kernel-ridge train.svm --kernel matern32 --validation test.svm --strict
  warpfuse predict model.safetensors new.csv";

/// `--solver`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum KernelSolverName {
    /// By a factor on the CPU, up to 6,000 samples, else by iterations
    Auto,
    /// Conjugate gradients on the device; K is never formed
    ConjugateGradient,
    /// A Cholesky factor of K + α·I, on the host
    Cholesky,
}

impl From<KernelSolverName> for KernelSolver {
    fn from(name: KernelSolverName) -> Self {
        match name {
            KernelSolverName::Auto => KernelSolver::Auto,
            KernelSolverName::ConjugateGradient => KernelSolver::ConjugateGradient,
            KernelSolverName::Cholesky => KernelSolver::Cholesky,
        }
    }
}

/// `--kernel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum KernelName {
    /// exp(−r² / 2ℓ²)
    #[value(alias = "rbf")]
    Gaussian,
    /// exp(−‖x − y‖₁ / ℓ)
    #[value(alias = "laplacian")]
    Laplace,
    /// Matérn ν = 1/2: exp(−r/ℓ)
    #[value(name = "matern12")]
    Matern12,
    /// Matérn ν = 3/2: (1 + a)·exp(−a), a = √3·r/ℓ
    #[value(name = "matern32")]
    Matern32,
    /// Matérn ν = 5/2: (1 + a + a²/3)·exp(−a), a = √5·r/ℓ
    #[value(name = "matern52")]
    Matern52,
    /// 1 / (1 + r²/ℓ²)
    Cauchy,
    /// 1 / √(1 + r²/ℓ²)
    InverseMultiquadric,
}

impl From<KernelName> for KernelFunction {
    fn from(name: KernelName) -> Self {
        match name {
            KernelName::Gaussian => KernelFunction::Gaussian,
            KernelName::Laplace => KernelFunction::Laplace,
            KernelName::Matern12 => KernelFunction::Matern12,
            KernelName::Matern32 => KernelFunction::Matern32,
            KernelName::Matern52 => KernelFunction::Matern52,
            KernelName::Cauchy => KernelFunction::Cauchy,
            KernelName::InverseMultiquadric => KernelFunction::InverseMultiquadric,
        }
    }
}
