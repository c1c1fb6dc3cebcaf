//! Plans: `--record OUTDIR [--filter TEXT]`. Filter `/choose` for the time of choosing alone, which needs no GPU;
//! `--drawn SEED [--seconds N]` for shapes that a seed draws instead of the family's.

use std::process::ExitCode;

use warpfuse_benches::suite;

fn main() -> ExitCode {
    match suite::record_plans(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
