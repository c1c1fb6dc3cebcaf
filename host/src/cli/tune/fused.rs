//! `tune fused`.

use std::num::NonZeroUsize;

use anyhow::Result;
use clap::Args;

use super::{SEED, Tunable, Tuned};
use crate::cli::args::TuneRunArgs;
use crate::device::Device;
use crate::io::synth::{ColumnDistribution, DenseSpec, RowLengths, SparseSpec, SparseValues, Spec};
use crate::tune::{FusedSubject, Subject};

/// Arguments of `tune fused`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct TuneFusedArgs {
    /// Rows of X
    #[arg(long)]
    pub(in crate::cli) rows: NonZeroUsize,

    /// Columns of X
    #[arg(long)]
    pub(in crate::cli) cols: NonZeroUsize,

    /// Nonzeros of a row; X is dense if not given
    #[arg(long, value_name = "N")]
    pub(in crate::cli) per_row: Option<std::num::NonZeroU32>,

    #[command(flatten)]
    pub(in crate::cli) run: TuneRunArgs,
}

impl Tunable for TuneFusedArgs {
    fn run(&self) -> &TuneRunArgs {
        &self.run
    }

    fn subject<T: Tuned>(&self, device: &Device) -> Result<Box<dyn Subject>> {
        let (rows, cols) = (self.rows.get(), self.cols.get());
        let (noise, seed) = (0.0, SEED);
        let spec = match self.per_row {
            None => Spec::Dense(DenseSpec {
                rows,
                cols,
                noise,
                seed,
            }),
            Some(per_row) => Spec::Sparse(SparseSpec {
                rows,
                cols,
                row_lengths: RowLengths::Constant(per_row.get()),
                columns: ColumnDistribution::Uniform,
                values: SparseValues::Normal,
                noise,
                seed,
            }),
        };
        let features = spec.generate::<T>()?.dataset.features;
        Ok(Box::new(FusedSubject::new(device, features)?))
    }
}

const EXAMPLES: &str = "\
Examples:
  warpfuse tune fused --rows 4000000 --cols 1000 --per-row 20 --report tuning.html";
