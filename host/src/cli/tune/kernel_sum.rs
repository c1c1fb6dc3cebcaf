//! `tune kernel-sum`.

use std::num::NonZeroUsize;

use anyhow::Result;
use clap::Args;

use super::{Tunable, Tuned};
use crate::cli::args::{KernelName, TuneRunArgs};
use crate::device::Device;
use crate::tune::{KernelSumSize, KernelSumSubject, Subject};

/// Arguments of `tune kernel-sum`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct TuneKernelSumArgs {
    /// Points that are summed over
    #[arg(long)]
    pub(in crate::cli) sources: NonZeroUsize,

    /// Points at which sums are taken; the sources themselves if not given
    #[arg(long)]
    pub(in crate::cli) targets: Option<NonZeroUsize>,

    /// Dimensions of the points
    #[arg(long, default_value = "3")]
    pub(in crate::cli) dims: NonZeroUsize,

    /// The kernel
    #[arg(long, value_enum, default_value = "gaussian")]
    pub(in crate::cli) kernel: KernelName,

    #[command(flatten)]
    pub(in crate::cli) run: TuneRunArgs,
}

impl Tunable for TuneKernelSumArgs {
    fn run(&self) -> &TuneRunArgs {
        &self.run
    }

    fn subject<T: Tuned>(&self, device: &Device) -> Result<Box<dyn Subject>> {
        let size = KernelSumSize {
            targets: self.targets.map(NonZeroUsize::get),
            sources: self.sources.get(),
            dims: self.dims.get(),
        };
        let subject = KernelSumSubject::<T>::new(device, self.kernel.into(), size)?;
        Ok(Box::new(subject))
    }
}

const EXAMPLES: &str = "\
Examples:
  warpfuse tune kernel-sum --sources 1000000 --kernel gaussian
  warpfuse tune kernel-sum --sources 200000 --targets 5000 --dims 10 --kernel matern52 --table tuned.json";
