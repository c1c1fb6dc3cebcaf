//! Running other programs, visibly and one after the other.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace;

/// A command in the workspace's root.
pub fn command(program: impl AsRef<Path>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program.as_ref());
    command.args(arguments).current_dir(workspace::root());
    command
}

/// The cargo that is running us, with arguments.
pub fn cargo(arguments: &[&str]) -> Command {
    command(workspace::cargo(), arguments)
}

/// Prints a headline, runs the command with its output on the terminal, and says how long it took.
///
/// # Errors
/// With the headline, if the command cannot be started or fails.
pub fn run(headline: &str, command: &mut Command) -> Result<Duration> {
    eprintln!("\n==> {headline}: {}", shown(command));
    let start = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("{headline}: starting {:?}", command.get_program()))?;
    if !status.success() {
        bail!("{headline}: {status}");
    }
    let elapsed = start.elapsed();
    eprintln!("==> {headline}: done in {:.0} s", elapsed.as_secs_f64());
    Ok(elapsed)
}

/// Whether a command runs and succeeds; what it prints is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// What a command prints, if it succeeds.
pub fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
}

/// The command as one would type it in the root.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
