//! Convolutional layers with sparse filters: `--record OUTDIR [--filter TEXT] [--budget-ms N] [--peers FILE]`.

use std::process::ExitCode;

use warpfuse_benches::{sparse_conv, suite};

fn main() -> ExitCode {
    match suite::record_family(std::env::args().skip(1), sparse_conv::record) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
