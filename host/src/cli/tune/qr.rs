//! `tune qr`.

use std::num::NonZeroUsize;

use anyhow::Result;
use clap::Args;

use super::{Tunable, Tuned};
use crate::cli::args::{GenerateArgs, TuneRunArgs};
use crate::device::Device;
use crate::plan::qr::QrShape;
use crate::tune::{QrSubject, Subject};

/// Arguments of `tune qr`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct TuneQrArgs {
    /// Matrices
    #[arg(long)]
    pub(in crate::cli) count: NonZeroUsize,

    /// Rows of each, at most 4096
    #[arg(long)]
    pub(in crate::cli) rows: NonZeroUsize,

    /// Columns of each, at most 4096; as many as rows if not given
    #[arg(long)]
    pub(in crate::cli) cols: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(in crate::cli) generate: GenerateArgs,

    #[command(flatten)]
    pub(in crate::cli) run: TuneRunArgs,
}

impl Tunable for TuneQrArgs {
    fn run(&self) -> &TuneRunArgs {
        &self.run
    }

    fn subject<T: Tuned>(&self, device: &Device) -> Result<Box<dyn Subject>> {
        let rows = self.rows.get();
        let cols = self.cols.map_or(rows, NonZeroUsize::get);
        let (count, shape) = (self.count.get(), QrShape { rows, cols });
        let subject = QrSubject::<T>::new(device, count, shape)?;
        Ok(Box::new(match self.generate.generator(device)? {
            Some(generator) => subject.with_generated(generator),
            None => subject,
        }))
    }
}

const EXAMPLES: &str = "\
Examples:
  warpfuse tune qr --count 640 --rows 512 --budget 60s --log tuning.jsonl
  warpfuse tune qr --count 640 --rows 300 --generate warpfuse/gpu-kernels --budget 10m --log tuning.jsonl";
