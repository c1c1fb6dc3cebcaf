//! The workspace's chores. `cargo xtask --help` lists them; `quickstart` and `test` are the two that a
//! newcomer needs, and both set up what is missing.

mod ptx;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The chores of the warpfuse workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Compile the kernels to PTX, check them, assemble them and print what each takes.
    BuildPtx(ptx::Arguments),
    /// Check what the compiler does not: the arrows between rooms, families, sizes.
    Tidy,
}

fn main() -> ExitCode {
    match run(Arguments::parse().chore) {
        Ok(()) => ExitCode::SUCCESS,
        // Causes on one line and no backtrace: what fails here is a tool, not this program.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: Chore) -> Result<()> {
    match chore {
        Chore::BuildPtx(arguments) => ptx::run(&arguments),
        Chore::Tidy => tidy::run(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}
