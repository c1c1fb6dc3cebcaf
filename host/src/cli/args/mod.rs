//! The arguments as typed. What they mean is decided by the subcommands.

mod apply;
mod calibrate;
mod checkpoint;
mod common;
mod cv;
mod duration;
mod emulate;
mod inspect;
mod kernel_ridge;
mod learn;
mod plan;
mod report;
mod spectral;
mod synth;
mod table;
mod tune;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::cli::trainers::Job;
use crate::device::MemoryOptions;

pub(super) use apply::{
    ApplyArgs, ComputeArgs, ConvertArgs, EvaluateArgs, ModelFormat, PredictArgs,
};
pub(super) use calibrate::CalibrateArgs;
pub(super) use checkpoint::CheckpointArgs;
pub(super) use common::{
    DeviceName, DtypeName, ModelName, ReadArgs, StoredName, check_for_gpu, matrix_options,
    summation,
};
pub(super) use cv::{CvArgs, FoldArgs, PathName};
pub(super) use emulate::EmulateArgs;
pub(super) use inspect::InspectArgs;
pub(super) use kernel_ridge::{KernelName, KernelRidgeArgs, KernelSolverName};
pub(super) use learn::{
    CourseArgs, OutcomeArgs, SampleArgs, SolveArgs, SourceArgs, TrainCommand, TrainTarget,
    finite_positive, inside, not_negative, positive, share,
};
pub(super) use plan::{ForcedPart, GpuName, PlanArgs};
pub(super) use report::ReportArgs;
pub(super) use spectral::{HitsArgs, MatrixArgs, PageRankArgs, SvdArgs};
pub(super) use synth::{
    DenseArgs, LengthLaw, ShapeArgs, SparseArgs, SynthArgs, SynthKind, WriteArgs,
};
pub(super) use table::{MatchArgs, TableArgs};
pub(super) use tune::{GenerateArgs, TuneArgs, TuneExportArgs, TuneReplayArgs, TuneRunArgs};

/// Learning on sparse and dense data, on NVIDIA GPUs and CPUs.
///
/// The matrix is read once per iteration: X·y and Xᵀ·p are computed in one pass.
#[derive(Debug, Parser)]
#[command(name = "warpfuse", version, max_term_width = 100, propagate_version = true, after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,

    /// Say nothing but results, warnings and errors
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        display_order = 990
    )]
    quiet: bool,

    /// Say more: -v what is done, -vv every iteration (WARPFUSE_LOG takes a finer filter)
    #[arg(short, long, global = true, action = clap::ArgAction::Count, display_order = 991)]
    verbose: u8,

    /// What stderr is written in: remarks, warnings, errors and the log of -v
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        display_order = 994
    )]
    log_format: LogFormat,

    /// Threads of the CPU; all cores if not given. Results do not depend on it
    #[arg(long, global = true, value_name = "N", display_order = 992, value_parser = threads)]
    threads: Option<NonZeroUsize>,

    /// Most memory of a GPU to take, such as 8GiB: data beyond it stream. Without it WARPFUSE_GPU_MEMORY, or all that is free
    #[arg(long, global = true, value_name = "BYTES", display_order = 993)]
    gpu_memory: Option<MemoryOptions>,

    /// Launches that `warpfuse tune --table` found fastest, for plans to take; without it WARPFUSE_TUNED, or the planner's own
    #[arg(long, global = true, value_name = "FILE.json", display_order = 993)]
    tuned: Option<PathBuf>,

    /// GPUs of this machine that share the rows of the data of train and cv, from --device cuda:N on; with plan, of each machine
    #[arg(long, global = true, value_name = "N", display_order = 993, value_parser = gpus)]
    gpus: Option<NonZeroUsize>,
}

const EXAMPLES: &str = "\
Examples:
  warpfuse info
  warpfuse train linreg data.svm --l2 0.1 -o model.safetensors
  warpfuse train logreg labelled.svm --c 10 -o classifier.safetensors
  warpfuse predict model.safetensors new.svm -o predictions.txt
  warpfuse evaluate classifier.safetensors test.svm
  warpfuse plan data.svm --gpu h200

Exit codes: 0 success, 1 error, 2 usage, 3 not converged with --strict";

/// What to do.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Fit a model to data
    Train(TrainCommand),
    /// Apply a model to data
    Predict(PredictArgs),
    /// Score a model on data with known targets
    Evaluate(EvaluateArgs),
    /// Show what a model file holds, or how two models differ
    Inspect(InspectArgs),
    /// Compare penalties by cross-validation
    Cv(CvArgs),
    /// Write a model in another format
    Convert(ConvertArgs),
    /// Show how a GPU would be used for data of some shape, and why
    Plan(PlanArgs),
    /// Measure how fast a GPU is, for its plans
    Calibrate(CalibrateArgs),
    /// Time the launches that a GPU could compute a problem by, and name the fastest
    Tune(TuneArgs),
    /// Run a GPU kernel on the CPU, check its every access, and count them
    Emulate(EmulateArgs),
    /// Show devices, their limits, and what this program was built with
    Info(InfoArgs),
    /// Make synthetic data from a seed
    Synth(SynthArgs),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  warpfuse completions bash > ~/.local/share/bash-completion/completions/warpfuse"
    )]
    Completions(CompletionsArgs),
}

/// Arguments of `info`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  warpfuse info\n  warpfuse info --json | jq '.cuda.devices[].limits'"
)]
pub(super) struct InfoArgs {
    /// Look for cuBLAS and cuSPARSE too, which benchmarks compare with and nothing else needs: opening them takes a tenth
    /// of a second
    #[arg(long)]
    pub(super) libraries: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

/// `--log-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LogFormat {
    /// Lines for people, with bars on a terminal
    Text,
    /// One JSON object a line, for programs; no bars
    Json,
}

/// How much to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verbosity {
    /// Results, warnings and errors.
    Quiet,
    /// Remarks and progress as well.
    Normal,
    /// What is done.
    Verbose,
    /// Every iteration.
    Debug,
}

impl Command {
    /// The element type that was requested, where one can be.
    pub(super) fn dtype(&self) -> Option<DtypeName> {
        match self {
            Command::Train(TrainCommand { target }) => Some(match target {
                TrainTarget::Linear(trainer) => trainer.job().source.dtype,
                TrainTarget::KernelRidge(args) => args.source.dtype,
                TrainTarget::Hits(args) => args.matrix.dtype,
                TrainTarget::Pagerank(args) => args.matrix.dtype,
                TrainTarget::Svd(args) => args.matrix.dtype,
            }),
            Command::Cv(arguments) => Some(arguments.trainer.job().0.source.dtype),
            Command::Predict(arguments) => arguments.compute.dtype,
            Command::Evaluate(arguments) => arguments.compute.dtype,
            _ => None,
        }
    }

    /// Refuses options that would do nothing beside the others.
    ///
    /// # Errors
    /// Which one, and why.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        match self {
            Command::Train(TrainCommand { target }) => match target {
                TrainTarget::Linear(trainer) => check_job(&trainer.job()),
                TrainTarget::Hits(args) => args.matrix.check(),
                TrainTarget::Pagerank(args) => args.matrix.check(),
                TrainTarget::Svd(args) => args.matrix.check(),
                TrainTarget::KernelRidge(_) => Ok(()),
            },
            Command::Cv(arguments) => check_job(&arguments.trainer.job().0),
            _ => Ok(()),
        }
    }
}

fn check_job(job: &Job<'_>) -> Result<(), &'static str> {
    job.own.check()?;
    job.outcome.check(job.source.device)
}

impl Arguments {
    /// What a GPU's buffers may take, if that was said.
    pub(super) fn gpu_memory(&self) -> Option<MemoryOptions> {
        self.gpu_memory
    }

    /// A table of tuned launches, if one was named.
    pub(super) fn tuned(&self) -> Option<PathBuf> {
        self.tuned.clone()
    }

    /// GPUs that share the rows, if that was said.
    pub(super) fn gpus(&self) -> Option<usize> {
        self.gpus.map(NonZeroUsize::get)
    }

    pub(super) fn threads(&self) -> Option<usize> {
        self.threads.map(NonZeroUsize::get)
    }

    pub(super) fn log_format(&self) -> LogFormat {
        self.log_format
    }

    pub(super) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1) => Verbosity::Verbose,
            (false, _) => Verbosity::Debug,
        }
    }
}

/// Reads how many GPUs there are to be.
fn gpus(text: &str) -> Result<NonZeroUsize, &'static str> {
    let expected = "expected a number of GPUs, 1 or more";
    text.parse().map_err(|_| expected)
}

/// Reads how many threads there are to be.
fn threads(text: &str) -> Result<NonZeroUsize, &'static str> {
    let expected = "expected a number of threads, 1 or more";
    text.parse().map_err(|_| expected)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn verbosity_may_be_said_before_and_after_the_subcommand() {
        let parse =
            |words: &[&str]| Arguments::try_parse_from(words).map(|parsed| parsed.verbosity());
        assert_eq!(
            parse(&["warpfuse", "-v", "info"]).ok(),
            Some(Verbosity::Verbose)
        );
        assert_eq!(
            parse(&["warpfuse", "info", "-vv"]).ok(),
            Some(Verbosity::Debug)
        );
        assert_eq!(
            parse(&["warpfuse", "info", "-q"]).ok(),
            Some(Verbosity::Quiet)
        );
        assert!(parse(&["warpfuse", "-q", "-v", "info"]).is_err());
    }
}
