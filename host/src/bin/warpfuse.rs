//! The command line program; everything is in [`warpfuse::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    warpfuse::cli::main()
}
