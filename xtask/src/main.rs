//! The workspace's chores. `cargo xtask --help` lists them; `quickstart` and `test` are the two that a
//! newcomer needs, and both set up what is missing.

mod ptx;
mod workspace;

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
}

fn main() -> Result<()> {
    match Arguments::parse().chore {
        Chore::BuildPtx(arguments) => ptx::run(&arguments),
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
