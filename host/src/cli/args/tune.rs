//! Arguments of `tune`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::duration::some_time;
use super::{DeviceName, DtypeName, ReportArgs};
use crate::cli::tune::TuneFamily;
use crate::device::Device;
use crate::tune::{Generator, SearchKind, TuneError};

/// Arguments of `tune`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct TuneArgs {
    #[command(subcommand)]
    pub(in crate::cli) family: TuneFamily,
}

/// What all families take.
#[derive(Debug, Args)]
pub(in crate::cli) struct TuneRunArgs {
    /// The GPU: auto, cuda or cuda:N
    #[arg(long, default_value = "auto")]
    pub(in crate::cli) device: DeviceName,

    /// Numbers of 4 or 8 bytes
    #[arg(long, value_enum, default_value = "f32")]
    pub(in crate::cli) dtype: DtypeName,

    /// Stop after this time, such as 60s or 5m; the launch that runs then ends
    #[arg(long, default_value = "60s", value_parser = some_time)]
    pub(in crate::cli) budget: Duration,

    /// Stop after this many launches, in each process; those that the log knows do not count
    #[arg(long, value_name = "N")]
    pub(in crate::cli) trials: Option<NonZeroUsize>,

    /// Which launch is tried next
    #[arg(long, value_enum, default_value = "guided")]
    pub(in crate::cli) search: SearchName,

    /// The seed of a search that draws
    #[arg(long, default_value_t = 1)]
    pub(in crate::cli) seed: u64,

    /// Keep every trial in this file, and go on where it ends: one line of JSON each. Trials of another GPU, driver or
    /// version in it do not count. Several processes may share it, each with a GPU of its own
    #[arg(long, value_name = "FILE.jsonl")]
    pub(in crate::cli) log: Option<PathBuf>,

    /// Write the fastest launch into this table, beside what it has of other problems; --tuned has plans take it. Where the
    /// planner's own choice is as fast, the table gets no entry
    #[arg(long, value_name = "FILE.json")]
    pub(in crate::cli) table: Option<PathBuf>,

    /// This many processes at once, each with a GPU of its own from cuda:0 on; they share the log
    #[arg(long, value_name = "N", conflicts_with = "device")]
    pub(in crate::cli) processes: Option<NonZeroUsize>,

    /// Stop a launch that takes longer, such as 10s, and remember it as failed: launches then run in a process of their own,
    /// which goes on when one of them ends it
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(in crate::cli) launch_limit: Option<Duration>,

    /// A process that others watch, on this device
    #[arg(long, value_name = "DEVICE", hide = true)]
    pub(in crate::cli) worker: Option<DeviceName>,

    /// What is left of the budget
    #[arg(long, value_name = "TIME", hide = true, value_parser = some_time)]
    pub(in crate::cli) left: Option<Duration>,

    /// Print one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,

    #[command(flatten)]
    pub(in crate::cli) report: ReportArgs,
}

/// Instances of kernels that the program does not have.
#[derive(Debug, Args)]
pub(in crate::cli) struct GenerateArgs {
    /// Try kernels that this program does not have too: each is compiled from the kernels' source in this folder (gpu-kernels of
    /// the source of warpfuse), some seconds, by a Rust compiler that has the source of its library. A --launch-limit includes it
    #[arg(long, value_name = "DIR")]
    generate: Option<PathBuf>,
}

impl GenerateArgs {
    /// Their compiler, where they are wanted.
    ///
    /// # Errors
    /// As [`Generator::new`].
    pub(in crate::cli) fn generator(
        &self,
        device: &Device,
    ) -> Result<Option<Generator>, TuneError> {
        let source = self.generate.as_deref();
        source
            .map(|source| Generator::new(source, device))
            .transpose()
    }
}

/// Arguments of `tune replay`.
#[derive(Debug, Args)]
#[command(after_help = REPLAY_EXAMPLES)]
pub(in crate::cli) struct TuneReplayArgs {
    /// The log of earlier runs
    #[arg(value_name = "FILE.jsonl")]
    pub(in crate::cli) log: PathBuf,

    /// The seed of the random search
    #[arg(long, default_value_t = 1)]
    pub(in crate::cli) seed: u64,

    /// Print one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// Arguments of `tune export`.
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(in crate::cli) struct TuneExportArgs {
    /// Logs of earlier runs
    #[arg(value_name = "FILE.jsonl", required = true)]
    pub(in crate::cli) logs: Vec<PathBuf>,

    /// The table: entries of the logs' problems are replaced, others stay
    #[arg(long, value_name = "FILE.json")]
    pub(in crate::cli) table: PathBuf,
}

/// A search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum SearchName {
    /// The fastest by prediction first, predictions corrected by what was measured nearby
    Guided,
    /// In an order drawn from --seed
    Random,
    /// Children of the fastest so far, drawn from --seed
    Evolutionary,
    /// One after the other
    Exhaustive,
}

impl From<SearchName> for SearchKind {
    fn from(name: SearchName) -> SearchKind {
        match name {
            SearchName::Guided => SearchKind::Guided,
            SearchName::Random => SearchKind::Random,
            SearchName::Evolutionary => SearchKind::Evolutionary,
            SearchName::Exhaustive => SearchKind::Exhaustive,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  warpfuse tune qr --count 640 --rows 512 --budget 60s --log tuning.jsonl
  warpfuse tune matmul --rows 4096 --cols 4096 --inner 4096 --search exhaustive
  warpfuse tune fused --rows 4000000 --cols 1000 --per-row 20 --report tuning.html
  warpfuse tune reduce --len 16777216 --search evolutionary
  warpfuse tune kernel-sum --sources 1000000
  warpfuse tune sparse-conv --channels 64 --size 56 --filters 64 --padding 1 --values i8
  warpfuse tune qr --count 640 --rows 512 --processes 4 --launch-limit 10s --log tuning.jsonl
  warpfuse tune fused --rows 4000000 --cols 1000 --per-row 20 --table tuned.json
  warpfuse --tuned tuned.json train logreg data.svm -o model.safetensors

`warpfuse tune export tuning.jsonl --table tuned.json` writes the fastest launches of a log into a table.
`warpfuse tune replay tuning.jsonl` says how each search would have gone over the trials of a log.

The planner's own choice is measured first: the result is never slower than it. Every launch is run and its result compared
with the reference before it is timed; what is wrong is never taken, and with --log never tried again.";

const REPLAY_EXAMPLES: &str = "\
Examples:
  warpfuse tune replay tuning.jsonl
  warpfuse tune replay tuning.jsonl --json";

const EXPORT_EXAMPLES: &str = "\
Examples:
  warpfuse tune export tuning.jsonl --table tuned.json
  warpfuse plan --rows 4000000 --cols 1000 --nnz 80000000 --dtype f32 --tuned tuned.json

An entry is for one GPU, driver and version of warpfuse and for one problem. Plans take an entry that is for theirs; every
other plan is the planner's own choice.";
