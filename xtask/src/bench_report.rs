//! `bench-report`: recorded benchmark results as Markdown tables.

mod record;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::workspace;
use record::Record;

/// What is recorded beside timings, and is none.
const NOT_TIMINGS: &str = "emulator.jsonl";

/// The arguments of `bench-report`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder with the results.
    #[arg(long, value_name = "DIR", default_value = "benches/results")]
    results: PathBuf,
}

/// Prints one table per device and family.
///
/// # Errors
/// If a file cannot be read, or a line is not a record.
pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = workspace::root().join(&arguments.results);
    let mut records = Vec::new();
    for file in result_files(&folder)? {
        records.extend(read(&file)?);
    }
    print!("{}", table::tables(&records));
    Ok(())
}

fn result_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(result_files(&path)?);
        } else if is_timings(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn is_timings(path: &Path) -> bool {
    let is_record = path
        .extension()
        .is_some_and(|extension| extension == "jsonl");
    is_record && path.file_name().is_some_and(|name| name != NOT_TIMINGS)
}

fn read(file: &Path) -> Result<Vec<Record>> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    record::parse(&text).with_context(|| format!("in {}", file.display()))
}
