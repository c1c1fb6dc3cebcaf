//! `tune sparse-conv`.

use std::num::NonZeroUsize;

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::{Tunable, Tuned};
use crate::cli::args::{TuneRunArgs, share};
use crate::device::Device;
use crate::ops::sparse_conv::{Bf16, ConvShape, F16, I8, I16};
use crate::tune::{SparseConvSubject, Subject};

/// Arguments of `tune sparse-conv`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct TuneSparseConvArgs {
    /// Images
    #[arg(long, default_value = "1")]
    pub(in crate::cli) batch: NonZeroUsize,

    /// Input channels
    #[arg(long)]
    pub(in crate::cli) channels: NonZeroUsize,

    /// Rows, and columns, of an input channel
    #[arg(long)]
    pub(in crate::cli) size: NonZeroUsize,

    /// Filters
    #[arg(long)]
    pub(in crate::cli) filters: NonZeroUsize,

    /// Rows, and columns, of a filter, 1 to 11
    #[arg(long, default_value = "3")]
    pub(in crate::cli) kernel: NonZeroUsize,

    /// From one output's input to the next
    #[arg(long, default_value = "1")]
    pub(in crate::cli) stride: NonZeroUsize,

    /// Zeros on every side
    #[arg(long, default_value = "0")]
    pub(in crate::cli) padding: usize,

    /// The share of the weights that are not zero
    #[arg(long, default_value = "0.1", value_parser = share)]
    pub(in crate::cli) density: f64,

    /// Numbers of maps and filters instead of those of --dtype
    #[arg(long, value_enum, conflicts_with = "dtype")]
    pub(in crate::cli) values: Option<ConvValues>,

    #[command(flatten)]
    pub(in crate::cli) run: TuneRunArgs,
}

/// Short numbers of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ConvValues {
    /// Integers of 8 bits, sums of 32
    I8,
    /// Integers of 16 bits, sums of 32
    I16,
    /// Halves, sums of f32
    F16,
    /// bfloat16, sums of f32
    Bf16,
}

impl TuneSparseConvArgs {
    fn shape(&self) -> ConvShape {
        let [size, kernel] = [self.size, self.kernel].map(|side| [side.get(); 2]);
        ConvShape {
            batch: self.batch.get(),
            stride: [self.stride.get(); 2],
            padding: [self.padding; 2],
            ..ConvShape::new(self.channels.get(), size, self.filters.get(), kernel)
        }
    }
}

impl Tunable for TuneSparseConvArgs {
    fn run(&self) -> &TuneRunArgs {
        &self.run
    }

    fn subject<T: Tuned>(&self, device: &Device) -> Result<Box<dyn Subject>> {
        let (shape, density) = (self.shape(), self.density);
        Ok(match self.values {
            None => Box::new(SparseConvSubject::<T>::new(device, shape, density)?),
            Some(ConvValues::I8) => Box::new(SparseConvSubject::<I8>::new(device, shape, density)?),
            Some(ConvValues::I16) => {
                Box::new(SparseConvSubject::<I16>::new(device, shape, density)?)
            }
            Some(ConvValues::F16) => {
                Box::new(SparseConvSubject::<F16>::new(device, shape, density)?)
            }
            Some(ConvValues::Bf16) => {
                Box::new(SparseConvSubject::<Bf16>::new(device, shape, density)?)
            }
        })
    }
}

const EXAMPLES: &str = "\
Examples:
  warpfuse tune sparse-conv --batch 16 --channels 64 --size 56 --filters 64 --padding 1 --density 0.1
  warpfuse tune sparse-conv --channels 256 --size 14 --filters 256 --padding 1 --values i8 --table tuned.json";
