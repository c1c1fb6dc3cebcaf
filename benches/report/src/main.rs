//! Recorded benchmark results as Markdown tables, a page, and one figure per device.
//!
//! `cargo xtask bench-report` runs this program. It is one of its own because nothing else in `xtask` draws, and whoever builds
//! `xtask` to build the library should not wait for what draws.

mod age;
mod curves;
mod figure;
mod group;
mod page;
mod plans;
mod record;
mod scaling;
mod size;
mod table;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use age::Ages;
use record::Record;
use scaling::Scaling;

/// What is recorded beside timings of kernels: lines of other shapes, which the page of the results explains.
const OTHERS: [&str; 6] = [
    "before_after.jsonl",
    "emulator.jsonl",
    "placement.jsonl",
    SCALING,
    "system.jsonl",
    "vectors.jsonl",
];
/// The folder of the tuner's logs, which `warpfuse tune replay` reads.
const TUNER: &str = "tune";
/// Times of several GPUs, which have tables and figures of their own.
const SCALING: &str = "scaling.jsonl";
/// The tables of all devices, in the folder with the results.
const TABLES: &str = "TABLES.md";
/// The page of all devices, beside them.
const PAGE: &str = "report.html";

/// Print recorded benchmark results as Markdown tables, or write them with a page and a figure per device.
#[derive(Parser)]
#[command(
    name = "cargo xtask bench-report",
    bin_name = "cargo xtask bench-report"
)]
struct Arguments {
    /// The folder with the results, from the root of the workspace.
    #[arg(long, value_name = "DIR", default_value = "benches/results")]
    results: PathBuf,

    /// Write the tables to DIR/TABLES.md, the page to DIR/report.html, and each device's figure to DIR/DEVICE.svg, instead of
    /// printing.
    #[arg(long)]
    write: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace.
fn root() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.nth(2).expect("the package lies in `benches`")
}

/// Prints or writes one table per device and family, of the newest record of every case; writes a page, and one figure per
/// device.
///
/// # Errors
/// If a file cannot be read or written, or a line is not a record.
fn run(arguments: &Arguments) -> Result<()> {
    let folder = root().join(&arguments.results);
    let mut records = Vec::new();
    for file in result_files(&folder, &is_timings)? {
        records.extend(read(&file)?);
    }
    let records = record::newest(records);
    let machines = machines(&folder)?;
    let ages = Ages::of(&records, root());
    if !arguments.write {
        print!("{}", tables(&records, &ages, &machines));
        return Ok(());
    }
    write(&folder.join(TABLES), &document(&records, &ages, &machines))?;
    let mut page = page::page(&records, &ages);
    page.sections.extend(machines.iter().map(Scaling::section));
    write(&folder.join(PAGE), &page.to_html())?;
    for (name, svg) in machines.iter().flat_map(Scaling::sheets) {
        write(&folder.join(name), &svg)?;
    }
    for device in devices(&records) {
        if let Some(svg) = figure::figure(device, &records) {
            write(&folder.join(figure_name(device)), &svg)?;
        }
    }
    Ok(())
}

/// What machines of several GPUs have recorded, by their folders.
fn machines(folder: &Path) -> Result<Vec<Scaling>> {
    let is_wanted = |path: &Path| path.file_name().is_some_and(|name| name == SCALING);
    let files = result_files(folder, &is_wanted)?.into_iter();
    let read = files.map(|file| {
        let of = || format!("in {}", file.display());
        let text = fs::read_to_string(&file).with_context(of)?;
        let parent = file.parent().and_then(Path::file_name);
        let name = parent.unwrap_or_default().to_string_lossy();
        Scaling::parse(&name, &text).with_context(of)
    });
    read.collect()
}

fn tables(records: &[Record], ages: &Ages, machines: &[Scaling]) -> String {
    let several = machines.iter().map(Scaling::to_markdown);
    table::tables(records, ages) + &several.collect::<String>()
}

/// The tables under a heading, with the figures.
fn document(records: &[Record], ages: &Ages, machines: &[Scaling]) -> String {
    let mut text = "# Results\n\nMade by `cargo xtask bench-report --write` from the newest record of every case.\n\n".to_owned();
    for device in devices(records) {
        if figure::figure(device, records).is_some() {
            text += &format!("![{device}]({})\n\n", figure_name(device));
        }
    }
    text += &table::summary(records, ages);
    text + &tables(records, ages, machines)
}

fn devices(records: &[Record]) -> BTreeSet<&str> {
    records
        .iter()
        .map(|record| record.device.as_str())
        .collect()
}

/// Such as `nvidia-h200.svg`.
fn figure_name(device: &str) -> String {
    let name = device.to_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    format!("{}.svg", words.join("-"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

fn result_files(folder: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(result_files(&path, is_wanted)?);
        } else if is_wanted(&path) {
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
    let is_log = path.parent().is_some_and(|folder| folder.ends_with(TUNER));
    is_record
        && !is_log
        && path
            .file_name()
            .is_some_and(|name| OTHERS.iter().all(|other| name != *other))
}

fn read(file: &Path) -> Result<Vec<Record>> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    record::parse(&text).with_context(|| format!("in {}", file.display()))
}
