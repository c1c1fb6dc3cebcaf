//! Sums over kernels and kernel ridge regression: `--record OUTDIR [--filter TEXT] [--budget-ms N]`.

use std::process::ExitCode;

use warpfuse_benches::{kernel_sum, suite};

fn main() -> ExitCode {
    match suite::record_family(std::env::args().skip(1), kernel_sum::record) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
