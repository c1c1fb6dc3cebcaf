//! `tune conv1d`.

use std::num::NonZeroUsize;

use anyhow::Result;
use clap::Args;

use super::{Tunable, Tuned};
use crate::cli::args::TuneRunArgs;
use crate::device::Device;
use crate::ops::conv1d::Conv1dShape;
use crate::tune::{Conv1dSubject, Subject};

/// Arguments of `tune conv1d`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct TuneConv1dArgs {
    /// Elements of an input channel
    #[arg(long)]
    pub(in crate::cli) len: NonZeroUsize,

    /// Taps of a filter
    #[arg(long)]
    pub(in crate::cli) taps: NonZeroUsize,

    /// Input channels
    #[arg(long, default_value = "1")]
    pub(in crate::cli) in_channels: NonZeroUsize,

    /// Output channels
    #[arg(long, default_value = "1")]
    pub(in crate::cli) out_channels: NonZeroUsize,

    /// Groups of channels, which do not meet
    #[arg(long, default_value = "1")]
    pub(in crate::cli) groups: NonZeroUsize,

    /// From one output's input to the next
    #[arg(long, default_value = "1")]
    pub(in crate::cli) stride: NonZeroUsize,

    /// From one tap's input to the next
    #[arg(long, default_value = "1")]
    pub(in crate::cli) dilation: NonZeroUsize,

    #[command(flatten)]
    pub(in crate::cli) run: TuneRunArgs,
}

impl Tunable for TuneConv1dArgs {
    fn run(&self) -> &TuneRunArgs {
        &self.run
    }

    fn subject<T: Tuned>(&self, device: &Device) -> Result<Box<dyn Subject>> {
        let [in_channels, out_channels, groups] =
            [self.in_channels, self.out_channels, self.groups].map(NonZeroUsize::get);
        let shape = Conv1dShape {
            in_channels,
            out_channels,
            groups,
            stride: self.stride.get(),
            dilation: self.dilation.get(),
            ..Conv1dShape::single(self.len.get(), self.taps.get())
        };
        Ok(Box::new(Conv1dSubject::<T>::new(device, shape)?))
    }
}

const EXAMPLES: &str = "\
Examples:
  warpfuse tune conv1d --len 67108864 --taps 33
  warpfuse tune conv1d --len 16384 --taps 9 --in-channels 64 --out-channels 128 --log tuning.jsonl";
