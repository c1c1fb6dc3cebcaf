//! `tune reduce`.

use std::num::NonZeroUsize;

use anyhow::Result;
use clap::Args;

use super::{Tunable, Tuned};
use crate::cli::args::TuneRunArgs;
use crate::device::Device;
use crate::tune::{ReduceSubject, Subject};

/// Arguments of `tune reduce`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct TuneReduceArgs {
    /// Elements
    #[arg(long)]
    pub(in crate::cli) len: NonZeroUsize,

    #[command(flatten)]
    pub(in crate::cli) run: TuneRunArgs,
}

impl Tunable for TuneReduceArgs {
    fn run(&self) -> &TuneRunArgs {
        &self.run
    }

    fn subject<T: Tuned>(&self, device: &Device) -> Result<Box<dyn Subject>> {
        Ok(Box::new(ReduceSubject::<T>::new(device, self.len.get())?))
    }
}

const EXAMPLES: &str = "\
Examples:
  warpfuse tune reduce --len 16777216 --budget 20s

Launches that cut the array otherwise than the planner add in another order: what is found is for sums of which the same bits
on every device are not promised.";
