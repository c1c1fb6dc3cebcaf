//! Arguments of `calibrate`.

use clap::Args;

use super::{DeviceName, ReportArgs};

/// Arguments of `calibrate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct CalibrateArgs {
    /// The GPU: auto, cuda or cuda:N
    #[arg(long, default_value = "auto")]
    pub(in crate::cli) device: DeviceName,

    /// Measure again, even if there is a calibration for this device and driver
    #[arg(long)]
    pub(in crate::cli) force: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,

    #[command(flatten)]
    pub(in crate::cli) report: ReportArgs,
}

const EXAMPLES: &str = "\
Examples:
  warpfuse calibrate
  warpfuse calibrate --report rates.html
  warpfuse calibrate --device cuda:1 --force --json

The result is kept in $XDG_CACHE_HOME/warpfuse, or ~/.cache/warpfuse, for this device and driver.";
