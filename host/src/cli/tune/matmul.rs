//! `tune matmul`.

use std::num::NonZeroUsize;

use anyhow::Result;
use clap::Args;

use super::{Tunable, Tuned};
use crate::cli::args::{GenerateArgs, TuneRunArgs};
use crate::device::Device;
use crate::tune::{MatmulSubject, Subject};

/// Arguments of `tune matmul`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct TuneMatmulArgs {
    /// Rows of A and C
    #[arg(long)]
    pub(in crate::cli) rows: NonZeroUsize,

    /// Columns of B and C
    #[arg(long)]
    pub(in crate::cli) cols: NonZeroUsize,

    /// Columns of A, rows of B
    #[arg(long)]
    pub(in crate::cli) inner: NonZeroUsize,

    #[command(flatten)]
    pub(in crate::cli) generate: GenerateArgs,

    #[command(flatten)]
    pub(in crate::cli) run: TuneRunArgs,
}

impl Tunable for TuneMatmulArgs {
    fn run(&self) -> &TuneRunArgs {
        &self.run
    }

    fn subject<T: Tuned>(&self, device: &Device) -> Result<Box<dyn Subject>> {
        let size = (self.rows.get(), self.cols.get(), self.inner.get());
        let subject = MatmulSubject::<T>::new(device, size)?;
        Ok(Box::new(match self.generate.generator(device)? {
            Some(generator) => subject.with_generated(generator),
            None => subject,
        }))
    }
}

const EXAMPLES: &str = "\
Examples:
  warpfuse tune matmul --rows 4096 --cols 4096 --inner 4096 --search exhaustive
  warpfuse tune matmul --rows 4096 --cols 4096 --inner 4096 --generate warpfuse/gpu-kernels --budget 5m";
