//! `warpfuse completions`: a script that teaches a shell our arguments.

use anyhow::Result;
use clap::CommandFactory;

use super::args::{Arguments, CompletionsArgs};
use super::exit::Exit;
use super::output;

/// Prints the script.
pub(super) fn run(args: &CompletionsArgs) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut Arguments::command(),
        "warpfuse",
        &mut script,
    );
    output::print(script)?;
    Ok(Exit::Success)
}
