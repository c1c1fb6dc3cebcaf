//! Arguments of `train` that trainers share.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{
    CheckpointArgs, DeviceName, DtypeName, HitsArgs, KernelRidgeArgs, ModelName, PageRankArgs,
    ReadArgs, ReportArgs, StoredName, SvdArgs, TableArgs, check_for_gpu, matrix_options, summation,
};
use crate::cli::data::Reading;
use crate::cli::trainers::Trainer;
use crate::learning::Solver;
use crate::ops::MatrixOptions;

/// Arguments of `train`.
#[derive(Debug, Args)]
#[command(after_help = TRAIN_EXAMPLES)]
pub(in crate::cli) struct TrainCommand {
    #[command(subcommand)]
    pub(in crate::cli) target: TrainTarget,
}

const TRAIN_EXAMPLES: &str = "\
Examples:
  warpfuse train linreg data.svm --l2 0.1 -o model.safetensors
  warpfuse train logreg data.svm --penalty none --report report.html
  warpfuse train ridge data.svm --figures figures --json";

/// What can be trained.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum TrainTarget {
    #[command(flatten)]
    Linear(Trainer),
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

    /// Targets, one for each row: npy, or text with one per line (npy and Matrix Market files of features hold no targets).
    /// Of an array of several columns a regression learns a model for each, MODEL.0, MODEL.1, …; DATA are read and placed once
    #[arg(long, value_name = "FILE", conflicts_with = "target_column")]
    pub(in crate::cli) target: Option<PathBuf>,

    /// Several columns of a CSV file that are targets, by name or number: as several columns of --target
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        allow_hyphen_values = true,
        conflicts_with_all = ["target", "target_column"]
    )]
    pub(in crate::cli) target_columns: Vec<String>,

    /// Where to compute: auto (a GPU if there is one and it is worth its start), cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(in crate::cli) device: DeviceName,

    /// Element type; f32 is twice as fast on a GPU and takes half the memory
    #[arg(long, value_enum, default_value = "f64")]
    pub(in crate::cli) dtype: DtypeName,
}

impl SourceArgs {
    /// Refuses several targets where one model is made.
    ///
    /// # Errors
    /// When there are any.
    pub(in crate::cli) fn expect_one_target(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.target_columns.is_empty(),
            "--target-columns: expected one target, found {}; name one with --target-column",
            self.target_columns.len()
        );
        Ok(())
    }
}

/// What becomes of the fit.
#[derive(Debug, Args)]
pub(in crate::cli) struct OutcomeArgs {
    /// Save the model (safetensors); - is stdout, and the report goes to stderr
    #[arg(short, long, value_name = "MODEL")]
    pub(in crate::cli) output: Option<PathBuf>,

    /// Print one JSON object instead of the report
    #[arg(long)]
    pub(in crate::cli) json: bool,

    /// End with exit code 3 when not converged
    #[arg(long)]
    pub(in crate::cli) strict: bool,

    /// Launch model of GPU kernels, for experts: predicted if not given
    #[arg(long, value_enum, value_name = "MODEL")]
    pub(in crate::cli) model: Option<ModelName>,

    /// The same model, bit by bit, every time: always on the CPU; on a GPU at some cost of time
    #[arg(long)]
    pub(in crate::cli) reproducible: bool,

    /// On a GPU: how further forms of sparse DATA may store its values, exact if not given; where they are rounded, the
    /// result is that of the rounded matrix
    #[arg(long, value_enum, value_name = "FORM")]
    pub(in crate::cli) values: Option<StoredName>,

    /// Standard errors, tests and confidence intervals of the coefficients, of fits without a penalty, whatever they
    /// cost: X is read once for every eight columns. A report has them anyway where that is little
    #[arg(long)]
    pub(in crate::cli) standard_errors: bool,

    #[command(flatten)]
    pub(in crate::cli) report: ReportArgs,

    #[command(flatten)]
    pub(in crate::cli) read: ReadArgs,

    #[command(flatten)]
    pub(in crate::cli) table: TableArgs,
}

impl OutcomeArgs {
    /// How DATA is read.
    ///
    /// # Errors
    /// When names cannot be read.
    pub(in crate::cli) fn reading(&self) -> anyhow::Result<Reading<'_>> {
        self.table.reading(&self.read)
    }

    /// How products with the data are planned.
    pub(in crate::cli) fn matrix_options(&self) -> MatrixOptions {
        let model = self.model.unwrap_or(ModelName::Predicted);
        let values = self.values.unwrap_or(StoredName::Exact);
        matrix_options(model, summation(self.reproducible), values)
    }

    /// Refuses what only a GPU can do where the CPU was requested.
    pub(in crate::cli) fn check(&self, device: DeviceName) -> Result<(), &'static str> {
        check_for_gpu(device, self.model, self.values)
    }
}

/// What else is learnt from, and compared with.
#[derive(Debug, Args)]
pub(in crate::cli) struct SampleArgs {
    /// Weights of the rows, none negative; a row of weight 0 takes no part. npy, or text with one per line, as the others
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) sample_weight: Option<PathBuf>,

    /// Added to the linear predictor of each row before the link; predictions are without it
    #[arg(long, value_name = "FILE", conflicts_with = "exposure")]
    pub(in crate::cli) offset: Option<PathBuf>,

    /// Exposure of each row, above 0: counts are learnt per unit of it (its logarithm is an --offset; link log)
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) exposure: Option<PathBuf>,

    /// What the penalty of each column is multiplied by, 0 or more; 0 leaves a column unpenalised
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) penalty_factors: Option<PathBuf>,
}

/// Where a fit starts, and what judges it on the way.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Start and end")]
pub(in crate::cli) struct CourseArgs {
    /// Start from the coefficients of a model of the same features and classes
    #[arg(long, value_name = "MODEL")]
    pub(in crate::cli) start: Option<PathBuf>,

    /// Data that are not learnt from: the model is scored on them as well
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) validation: Option<PathBuf>,

    /// Targets of --validation, where that file holds features only
    #[arg(long, value_name = "FILE", requires = "validation")]
    pub(in crate::cli) validation_target: Option<PathBuf>,

    /// Stop after N iterations that are no better on --validation, and keep the best coefficients
    #[arg(long, value_name = "N", requires = "validation")]
    pub(in crate::cli) patience: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(in crate::cli) checkpoint: CheckpointArgs,
}

/// When and how the solver stops.
#[derive(Debug, Args)]
pub(in crate::cli) struct SolveArgs {
    /// Stop when the gradient has shrunk to this part of what it was at the start
    #[arg(long, value_name = "EPSILON", default_value = "1e-6", value_parser = not_negative)]
    pub(in crate::cli) tol: f64,

    /// Stop after this many outer iterations
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(in crate::cli) max_iter: NonZeroUsize,

    /// What solves it; the report says what auto has chosen, and why
    #[arg(long, value_enum, value_name = "SOLVER", default_value = "auto")]
    pub(in crate::cli) solver: SolverName,

    /// Fit coefficients of 0 and more only, by coordinate descent on the host; the intercept may be anything
    #[arg(long)]
    pub(in crate::cli) non_negative: bool,

    /// Fit no intercept
    #[arg(long)]
    pub(in crate::cli) no_intercept: bool,

    /// Divide columns by their standard deviation for the fit, around the product and not in X, so that penalties mean the
    /// same for all of them; coefficients are told in the units of DATA, and the model takes DATA as they are
    #[arg(long)]
    pub(in crate::cli) standardize: bool,
}

/// `--solver`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum SolverName {
    /// Chosen by size, structure, penalty and device
    Auto,
    /// Newton's method with inner conjugate gradients, on the device
    NewtonCg,
    /// Limited-memory BFGS, on the device; not with l1
    Lbfgs,
    /// Conjugate gradients, on the device; squared errors without l1
    ConjugateGradient,
    /// Newton's method with a Cholesky factor of the Hessian, on the host; not with l1
    NewtonCholesky,
    /// Coordinate descent on the Hessian of the columns that matter, on the host
    CoordinateDescent,
    /// Orthogonal factors of X itself: squared errors without l1; on a GPU of a large dense X of up to 32 columns
    Qr,
    /// Orthogonal factors and singular values, on the host; least squares only
    Svd,
    /// Interior point, on the host: losses with kinks (quantile; hinge, epsilon-insensitive)
    InteriorPoint,
}

impl From<SolverName> for Solver {
    fn from(name: SolverName) -> Self {
        match name {
            SolverName::Auto => Solver::Auto,
            SolverName::NewtonCg => Solver::NewtonCg,
            SolverName::Lbfgs => Solver::Lbfgs,
            SolverName::ConjugateGradient => Solver::ConjugateGradient,
            SolverName::NewtonCholesky => Solver::NewtonCholesky,
            SolverName::CoordinateDescent => Solver::CoordinateDescent,
            SolverName::Qr => Solver::Qr,
            SolverName::Svd => Solver::Svd,
            SolverName::InteriorPoint => Solver::InteriorPoint,
        }
    }
}

/// Reads a number for which `holds`.
fn number(
    text: &str,
    expected: &'static str,
    holds: impl Fn(f64) -> bool,
) -> Result<f64, &'static str> {
    match text.parse() {
        Ok(number) if holds(number) => Ok(number),
        _ => Err(expected),
    }
}

/// Reads a finite number of 0 or more.
pub(in crate::cli) fn not_negative(text: &str) -> Result<f64, &'static str> {
    number(text, "expected a finite number, 0 or more", |x| {
        x >= 0.0 && x.is_finite()
    })
}

/// Reads a number above 0; `inf` is one.
pub(in crate::cli) fn positive(text: &str) -> Result<f64, &'static str> {
    number(text, "expected a number above 0", |x| x > 0.0)
}

/// Reads a finite number above 0.
pub(in crate::cli) fn finite_positive(text: &str) -> Result<f64, &'static str> {
    number(text, "expected a finite number above 0", |x| {
        x > 0.0 && x.is_finite()
    })
}

/// Reads a number from 0 to 1.
pub(in crate::cli) fn share(text: &str) -> Result<f64, &'static str> {
    number(text, "expected a number from 0 to 1", |x| {
        (0.0..=1.0).contains(&x)
    })
}

/// Reads a number between 0 and 1, neither of them.
pub(in crate::cli) fn inside(text: &str) -> Result<f64, &'static str> {
    number(text, "expected a number above 0 and below 1", |x| {
        x > 0.0 && x < 1.0
    })
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
