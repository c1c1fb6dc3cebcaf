//! Arguments of `train`: those that trainers share, and of linreg and ridge.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{
    DeviceName, DtypeName, ElasticNetArgs, GlmArgs, HitsArgs, KernelRidgeArgs, LassoArgs,
    LogregArgs, ModelName, PageRankArgs, ReadArgs, SampleArgs, SolveArgs, StoredName, SvcArgs,
    SvdArgs, SvrArgs, matrix_options, summation,
};
use crate::ops::MatrixOptions;

/// Arguments of `train`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  warpfuse train linreg data.svm --l2 0.1 -o model.safetensors")]
pub(in crate::cli) struct TrainArgs {
    #[command(subcommand)]
    pub(in crate::cli) trainer: Trainer,
}

/// The models that can be trained.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Trainer {
    /// Linear and ridge regression, by conjugate gradients
    Linreg(LinregArgs),
    /// Ridge regression with scikit-learn's names and defaults
    Ridge(RidgeArgs),
    /// Least squares with an l1 penalty
    Lasso(LassoArgs),
    /// Least squares with an l1 and an l2 penalty
    #[command(name = "elasticnet")]
    ElasticNet(ElasticNetArgs),
    /// Logistic regression, of two classes or more
    Logreg(LogregArgs),
    /// Generalised linear models: Poisson, gamma, Tweedie and other targets
    Glm(GlmArgs),
    /// Linear support vector classification
    Svc(SvcArgs),
    /// Linear support vector regression
    Svr(SvrArgs),
    /// Kernel ridge regression, the mean of a Gaussian process
    KernelRidge(KernelRidgeArgs),
    /// Hubs and authorities of a graph
    Hits(HitsArgs),
    /// PageRank of a graph
    Pagerank(PageRankArgs),
    /// Truncated singular value decomposition, principal components
    Svd(SvdArgs),
}

/// What is learnt from, and where.
#[derive(Debug, Args)]
pub(in crate::cli) struct SourceArgs {
    /// Features, with targets in LIBSVM files: LIBSVM, Matrix Market, npy or a binary cache; - is stdin
    pub(in crate::cli) data: PathBuf,

    /// Targets, one for each row (npy and Matrix Market files hold features only)
    #[arg(long, value_name = "FILE.npy")]
    pub(in crate::cli) target: Option<PathBuf>,

    /// Where to compute: auto, cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(in crate::cli) device: DeviceName,

    /// Element type; f32 is twice as quick on a GPU and takes half the memory
    #[arg(long, value_enum, default_value = "f64")]
    pub(in crate::cli) dtype: DtypeName,
}

/// What becomes of the fit.
#[derive(Debug, Args)]
pub(in crate::cli) struct OutcomeArgs {
    /// Save the model (safetensors)
    #[arg(short, long, value_name = "MODEL")]
    pub(in crate::cli) output: Option<PathBuf>,

    /// Print one JSON object in place of the report
    #[arg(long)]
    pub(in crate::cli) json: bool,

    /// End with exit code 3 when not converged
    #[arg(long)]
    pub(in crate::cli) strict: bool,

    /// Launch model of GPU kernels, for experts
    #[arg(long, value_enum, value_name = "MODEL", default_value = "predicted")]
    pub(in crate::cli) model: ModelName,

    /// The same model, bit by bit, every time: always on the CPU; on a GPU at some cost of time
    #[arg(long)]
    pub(in crate::cli) reproducible: bool,

    /// On a GPU: how further forms of sparse DATA may store its values; where they are rounded, the result is that of
    /// the rounded matrix
    #[arg(long, value_enum, value_name = "FORM", default_value = "exact")]
    pub(in crate::cli) values: StoredName,

    #[command(flatten)]
    pub(in crate::cli) read: ReadArgs,
}

impl OutcomeArgs {
    /// How products with the data are planned.
    pub(in crate::cli) fn matrix_options(&self) -> MatrixOptions {
        matrix_options(self.model, summation(self.reproducible), self.values)
    }
}

/// Arguments of `train linreg`.
///
/// Minimises Σ (tᵢ − xᵢ·w − b)² + λ‖w‖², the intercept b unpenalised.
#[derive(Debug, Args)]
#[command(after_help = LINREG_EXAMPLES)]
pub(in crate::cli) struct LinregArgs {
    #[command(flatten)]
    pub(in crate::cli) source: SourceArgs,

    /// λ, the weight of ‖w‖² (scikit-learn's alpha)
    #[arg(long, value_name = "LAMBDA", default_value = "0", value_parser = not_negative)]
    pub(in crate::cli) l2: f64,

    /// Stop when the gradient has shrunk to this part of what it was at w = 0
    #[arg(long, value_name = "EPSILON", default_value = "1e-6", value_parser = not_negative)]
    pub(in crate::cli) tol: f64,

    /// Stop after this many iterations
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(in crate::cli) max_iter: NonZeroUsize,

    /// Fit no intercept
    #[arg(long)]
    pub(in crate::cli) no_intercept: bool,

    #[command(flatten)]
    pub(in crate::cli) outcome: OutcomeArgs,
}

const LINREG_EXAMPLES: &str = "\
Examples:
  warpfuse train linreg data.svm --l2 0.1 -o model.safetensors
  warpfuse train linreg x.npy --target y.npy --dtype f32 --device cuda:0
  zcat data.svm.gz | warpfuse train linreg - --json | jq .r2
  warpfuse train linreg large.svm --cache --tol 1e-4 --strict";

/// Arguments of `train ridge`.
///
/// Minimises Σ vᵢ(tᵢ − xᵢ·w − b)² + α‖w‖², the intercept b unpenalised.
#[derive(Debug, Args)]
#[command(after_help = RIDGE_EXAMPLES)]
pub(in crate::cli) struct RidgeArgs {
    #[command(flatten)]
    pub(in crate::cli) source: SourceArgs,

    /// α, the weight of ‖w‖²
    #[arg(long, value_name = "ALPHA", default_value = "1", value_parser = not_negative)]
    pub(in crate::cli) alpha: f64,

    #[command(flatten)]
    pub(in crate::cli) solve: SolveArgs,

    #[command(flatten)]
    pub(in crate::cli) samples: SampleArgs,

    #[command(flatten)]
    pub(in crate::cli) outcome: OutcomeArgs,
}

const RIDGE_EXAMPLES: &str = "\
Examples:
  warpfuse train ridge data.svm --alpha 0.1 -o model.safetensors
  warpfuse train ridge x.npy --target y.npy --alpha 10 --json | jq .coef";

/// Reads a finite number of 0 or more.
pub(super) fn not_negative(text: &str) -> Result<f64, &'static str> {
    const EXPECTED: &str = "expected a finite number, 0 or more";
    let number: f64 = text.parse().map_err(|_| EXPECTED)?;
    if number >= 0.0 && number.is_finite() {
        Ok(number)
    } else {
        Err(EXPECTED)
    }
}

/// Reads a number above 0; `inf` is one.
pub(super) fn positive(text: &str) -> Result<f64, &'static str> {
    const EXPECTED: &str = "expected a number above 0";
    let number: f64 = text.parse().map_err(|_| EXPECTED)?;
    if number > 0.0 {
        Ok(number)
    } else {
        Err(EXPECTED)
    }
}

/// Reads a finite number above 0.
pub(super) fn finite_positive(text: &str) -> Result<f64, &'static str> {
    const EXPECTED: &str = "expected a finite number above 0";
    let number = positive(text).map_err(|_| EXPECTED)?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err(EXPECTED)
    }
}

/// Reads a number from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, &'static str> {
    const EXPECTED: &str = "expected a number from 0 to 1";
    let number: f64 = text.parse().map_err(|_| EXPECTED)?;
    if (0.0..=1.0).contains(&number) {
        Ok(number)
    } else {
        Err(EXPECTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_and_tolerances_are_finite_and_not_negative() {
        assert_eq!(not_negative("1e-6"), Ok(1e-6));
        for wrong in ["-1", "nan", "inf", "x", ""] {
            assert!(not_negative(wrong).is_err(), "{wrong}");
        }
    }
}
