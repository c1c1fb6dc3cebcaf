//! Arguments of `emulate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::plan::ProductName;
use super::{DtypeName, ReadArgs};

/// Arguments of `emulate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct EmulateArgs {
    /// Data whose product is computed; - is stdin
    #[arg(required_unless_present_any = ["self_check", "speed"], conflicts_with_all = ["self_check", "speed"])]
    pub(in crate::cli) data: Option<PathBuf>,

    /// Run kernels that are known to be wrong, and right twins, instead: are all of them told apart?
    #[arg(long)]
    pub(in crate::cli) self_check: bool,

    /// Measure instead what a lane's step and a switch between lanes take
    #[arg(long, conflicts_with = "self_check")]
    pub(in crate::cli) speed: bool,

    /// Schedules under which each kernel of the self-check runs
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 100,
        requires = "self_check",
        conflicts_with = "data"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::cli) seeds: u32,

    /// The GPU whose limits hold
    #[arg(
        long,
        value_enum,
        default_value = "h200",
        conflicts_with = "self_check"
    )]
    pub(in crate::cli) gpu: EmulatedGpu,

    /// Element type
    #[arg(long, value_enum, default_value = "f64", conflicts_with = "self_check")]
    pub(in crate::cli) dtype: DtypeName,

    /// What is computed, with vectors of ones
    #[arg(
        long,
        value_enum,
        default_value = "fused",
        conflicts_with = "self_check"
    )]
    pub(in crate::cli) product: ProductName,

    /// Order of blocks and lanes: 0 is ascending, others are drawn from this seed
    #[arg(
        long,
        value_name = "SEED",
        default_value_t = 0,
        conflicts_with = "self_check"
    )]
    pub(in crate::cli) schedule: u64,

    /// Print one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,

    #[command(flatten)]
    pub(in crate::cli) read: ReadArgs,
}

/// `--gpu`. Names that say it all have no help of their own: clap then lists them in one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum EmulatedGpu {
    H200,
    A100,
    Titan,
}

impl EmulatedGpu {
    /// The name by which the planner knows it.
    pub(in crate::cli) fn name(self) -> &'static str {
        match self {
            EmulatedGpu::H200 => "h200",
            EmulatedGpu::A100 => "a100",
            EmulatedGpu::Titan => "titan",
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  warpfuse emulate data.svm --dtype f32
  warpfuse synth sparse --rows 200 --cols 50 --nnz-per-row 10 -o small.svm && warpfuse emulate small.svm
  warpfuse emulate data.svm --product forward --schedule 7 --json | jq .kernels
  warpfuse emulate --self-check --seeds 100 --json
  warpfuse emulate --speed --json

A kernel that races, leaves its buffers or misses a barrier ends with an error and code 1.";
