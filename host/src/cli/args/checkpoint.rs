//! Where fits write how far they have got.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::duration::duration;
use crate::learning::Checkpoint;

/// `--checkpoint` and `--every`.
#[derive(Debug, Default, Args)]
pub(in crate::cli) struct CheckpointArgs {
    /// Write to FILE how far the fit has got, and go on from there if it exists: after a crash run the same command again.
    /// The result has the same bits where the fit is --reproducible, or on the CPU. FILE is removed in the end
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) checkpoint: Option<PathBuf>,

    /// Time between two checkpoints, such as 30s, 5m or 1h; 60s if not given
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "checkpoint")]
    every: Option<Duration>,
}

impl CheckpointArgs {
    /// None.
    pub(in crate::cli) const NONE: CheckpointArgs = CheckpointArgs {
        checkpoint: None,
        every: None,
    };

    /// Where, if anywhere.
    pub(in crate::cli) fn checkpoint(&self) -> Option<Checkpoint> {
        let checkpoint = Checkpoint::new(self.checkpoint.as_ref()?);
        Some(match self.every {
            Some(every) => checkpoint.every(every),
            None => checkpoint,
        })
    }
}
