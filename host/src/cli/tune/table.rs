//! `tune export`, and tables that `--table` writes.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cli::args::TuneExportArgs;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::progress::Ui;
use crate::plan::tuned::{Entry, Key, TableFile};
use crate::tune::Log;

/// Writes the fastest launches of logs into a table.
pub(super) fn export(args: &TuneExportArgs, ui: &Ui) -> Result<Exit> {
    let mut file = read(&args.table, ui)?;
    let (mut problems, mut entries) = (0, 0);
    for log in &args.logs {
        for recording in Log::recorded(log)? {
            if !recording.names_launches() {
                ui.warn(format_args!(
                    "{}: {} was tuned by an earlier version, whose log says of no launch which it is: skipped",
                    log.display(),
                    recording.key.class
                ));
                continue;
            }
            problems += 1;
            let entry = recording.entry();
            entries += usize::from(entry.is_some());
            put(&mut file, &recording.key, entry);
        }
    }
    write(&args.table, &file)?;
    let path = args.table.display();
    output::print(format!(
        "{path}: {entries} launches of {problems} problems; the planner's own choice is the fastest of the others\n"
    ))?;
    Ok(Exit::Success)
}

/// Writes what was found into the table at `path`, beside what it has of other problems.
pub(super) fn keep(path: &Path, key: &Key, entry: Option<Entry>, ui: &Ui) -> Result<()> {
    let mut file = read(path, ui)?;
    ui.remark(match &entry {
        Some(_) => format!(
            "{} has the fastest launch now: --tuned takes it",
            path.display()
        ),
        None => {
            "the planner's own choice is as fast as any that a table can name: it needs no entry"
                .to_owned()
        }
    });
    put(&mut file, key, entry);
    write(path, &file)
}

fn put(file: &mut TableFile, key: &Key, entry: Option<Entry>) {
    match entry {
        Some(entry) => file.insert(entry),
        None => file.remove(key),
    }
}

/// The table that is there, or an empty one.
///
/// # Errors
/// When there is a file that is no table.
pub(super) fn read(path: &Path, ui: &Ui) -> Result<TableFile> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(TableFile::default()),
        text => text.with_context(|| format!("{} cannot be read", path.display()))?,
    };
    let file = TableFile::parse(&text).with_context(|| path.display().to_string())?;
    if file.damaged() > 0 {
        ui.warn(format_args!(
            "{}: {} entries were changed and are dropped",
            path.display(),
            file.damaged()
        ));
    }
    Ok(file)
}

fn write(path: &Path, file: &TableFile) -> Result<()> {
    output::write_file(path, file.to_json().as_bytes())
}
