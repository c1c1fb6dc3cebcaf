#![doc = include_str!("../README.md")]

mod bundle;
mod gate;
mod ptx;
mod quickstart;
mod step;
mod tidy;
mod wheel;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, ensure};
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
    /// Set up what is missing, build everything, train on a data set of the repository.
    Quickstart(quickstart::Arguments),
    /// Set up what is missing, build and check everything.
    Test(gate::Arguments),
    /// Compile the kernels to PTX, check them, assemble them and print what each takes.
    BuildPtx(ptx::Arguments),
    /// Check what the compiler does not: the arrows between rooms, families, sizes.
    Tidy,
    /// Make a folder that runs tests and benchmarks on a GPU machine without Rust.
    Bundle(bundle::Arguments),
    /// Build the wheel of the Python package, check it, and fit once with it in a fresh environment.
    Wheel(wheel::Arguments),
    /// Print recorded benchmark results as Markdown tables, or write them with a figure per device.
    #[command(disable_help_flag = true)]
    BenchReport {
        /// Those of the program that does it; `--help` lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
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
        Chore::Quickstart(arguments) => quickstart::run(&arguments),
        Chore::Test(arguments) => gate::run(&arguments),
        Chore::BuildPtx(arguments) => ptx::run(&arguments),
        Chore::Tidy => tidy::run(),
        Chore::Bundle(arguments) => bundle::run(&arguments),
        Chore::Wheel(arguments) => wheel::run(&arguments),
        Chore::BenchReport { arguments } => bench_report(&arguments),
    }
}

/// The program that draws and writes tables: see `benches/report`.
fn bench_report(arguments: &[String]) -> Result<()> {
    let package = ["--package", "warpfuse-bench-report"];
    let mut report = step::cargo(&["run", "--quiet", "--release"]);
    let status = report.args(package).arg("--").args(arguments).status()?;
    ensure!(status.success(), "the report of benches: {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}
