//! `bench-report`: recorded benchmark results as Markdown tables.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::workspace;

/// The arguments of `bench-report`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder with the results.
    #[arg(long, value_name = "DIR", default_value = "benches/results")]
    results: PathBuf,
}

/// One measured case; a line of `<gpu>/<family>.jsonl`.
#[derive(Deserialize)]
struct Record {
    family: String,
    case: Value,
    dtype: String,
    #[serde(default)]
    variant: Value,
    median_us: f64,
    #[serde(default)]
    fraction_of_ceiling: Option<f64>,
    #[serde(default)]
    peers: BTreeMap<String, Option<f64>>,
    #[serde(default)]
    error: Option<f64>,
    #[serde(default)]
    device: String,
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
    print!("{}", tables(&records));
    Ok(())
}

fn result_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(result_files(&path)?);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> Result<Vec<Record>> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    parse(&text).with_context(|| format!("in {}", file.display()))
}

fn parse(text: &str) -> Result<Vec<Record>> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            serde_json::from_str(line).with_context(|| format!("line {}", index + 1))
        })
        .collect()
}

fn tables(records: &[Record]) -> String {
    let mut groups = BTreeMap::<(&str, &str), Vec<&Record>>::new();
    for record in records {
        let group = (record.device.as_str(), record.family.as_str());
        groups.entry(group).or_default().push(record);
    }
    let mut text = String::new();
    for ((device, family), records) in groups {
        let _ = writeln!(text, "### {family} on {device}\n");
        let _ = writeln!(
            text,
            "| case | type | variant | median µs | of the ceiling | error | peers, µs |"
        );
        let _ = writeln!(text, "|---|---|---|--:|--:|--:|---|");
        for record in records {
            let _ = writeln!(text, "{}", row(record));
        }
        text.push('\n');
    }
    text
}

fn row(record: &Record) -> String {
    let percent = |fraction: f64| format!("{:.1} %", 100.0 * fraction);
    format!(
        "| {} | {} | {} | {:.1} | {} | {} | {} |",
        words(&record.case),
        record.dtype,
        words(&record.variant),
        record.median_us,
        record.fraction_of_ceiling.map(percent).unwrap_or_default(),
        record
            .error
            .map(|error| format!("{error:.1e}"))
            .unwrap_or_default(),
        peers(&record.peers),
    )
}

/// A case may be text, or an object of shape and seed.
fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{name} {}", words(value)))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}

fn peers(peers: &BTreeMap<String, Option<f64>>) -> String {
    peers
        .iter()
        .filter_map(|(name, median)| median.map(|us| format!("{name} {us:.1}")))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"family":"fused","case":{"cols":28,"rows":11000000},"dtype":"f32","variant":"vs8",
        "median_us":301.25,"fraction_of_ceiling":0.914,"peers":{"cublas":640.0,"cusparse":null},"error":3e-7,"device":"H200"}"#;

    #[test]
    fn a_record_becomes_a_row_under_its_device() {
        let records = parse(&LINE.replace('\n', " ")).expect("a record");
        let text = tables(&records);
        assert!(text.contains("### fused on H200"), "{text}");
        let row = "| cols 28, rows 11000000 | f32 | vs8 | 301.2 | 91.4 % | 3.0e-7 | cublas 640.0 |";
        assert!(text.contains(row), "{text}");
    }

    #[test]
    fn a_broken_line_is_named() {
        let broken = parse("\n{").map(|_| ()).expect_err("not a record");
        assert!(format!("{broken:#}").starts_with("line 2"), "{broken:#}");
    }
}
