//! QR factorisations: `--record OUTDIR [--filter TEXT] [--budget-ms N]`.

use std::process::ExitCode;

use warpfuse_benches::{qr, suite};

fn main() -> ExitCode {
    match suite::record_family(std::env::args().skip(1), qr::record) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
