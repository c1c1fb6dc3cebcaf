//! A campaign of a given number of inputs, recorded.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::json;
use warpfuse_fuzz::campaign::{self, Outcome};
use warpfuse_fuzz::memory::Counting;
use warpfuse_fuzz::processor;
use warpfuse_fuzz::subject::{Subject, Workshop};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Gives seeded inputs to readers, model files and the command line.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many inputs
    #[arg(long, default_value_t = 100_000)]
    inputs: u64,

    /// The number of the first
    #[arg(long, default_value_t = 0)]
    first: u64,

    /// Give all of them to this one
    #[arg(long, value_enum)]
    subject: Option<Subject>,

    /// Print the first input instead
    #[arg(long)]
    show: bool,

    /// Append the outcome to a file, as one line of JSON
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let record = arguments
        .record
        .as_deref()
        .map(std::path::absolute)
        .transpose()?;
    let numbers = arguments.first..arguments.first + arguments.inputs;
    if arguments.show {
        let folder = tempfile::tempdir()?;
        let subject = arguments
            .subject
            .unwrap_or_else(|| Subject::of(arguments.first));
        println!(
            "{}",
            Workshop::new(folder.path())?
                .input(subject, arguments.first)
                .shown()
        );
        return Ok(ExitCode::SUCCESS);
    }
    let (date, start) = (
        told_by("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
        Instant::now(),
    );
    // Where the program runs without its repository, the variable says what it is.
    let commit = std::env::var("WARPFUSE_COMMIT")
        .unwrap_or_else(|_| told_by("git", &["describe", "--always", "--dirty", "--abbrev=12"]));
    let outcome = campaign::run(numbers, arguments.subject)?;
    let line = json!({
        "commit": commit,
        "date": date,
        "first": arguments.first,
        "inputs": arguments.inputs,
        "seconds": start.elapsed().as_secs_f64(),
        "processor_seconds": processor::seconds(),
        "failures": outcome.failures.len(),
        "subjects": outcome.counts,
    });
    println!("{line}");
    if let Some(path) = record {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| writeln!(file, "{line}"));
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(judged(&outcome))
}

fn judged(outcome: &Outcome) -> ExitCode {
    for failure in &outcome.failures {
        eprintln!(
            "{} {}: {}\n  {}",
            failure.subject, failure.number, failure.what, failure.input
        );
    }
    if outcome.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What a program prints; empty where it is not there.
fn told_by(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
