//! Report pages and figures: where they go, and the command that repeats them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::{Map, Value};

use super::args::ReportArgs;
use super::output;
use super::progress::Ui;
use crate::report::Report;

/// Fails where nothing can be written: better before the work than after.
///
/// # Errors
/// When the page is to go to stdout, or a place takes no file.
pub(super) fn check(args: &ReportArgs) -> Result<()> {
    if let Some(path) = &args.report {
        ensure!(
            !output::is_stdout(path),
            "--report -: expected the name of a file; standard output has the results"
        );
        output::check_place(path)?;
    }
    if let Some(folder) = &args.figures {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    Ok(())
}

/// Writes the page and the figures that were requested.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn write(args: &ReportArgs, report: &Report, ui: &Ui) -> Result<()> {
    if let Some(folder) = &args.figures {
        for figure in report.figures() {
            let path = folder.join(&figure.name).with_extension("svg");
            output::write_file(&path, figure.to_svg().as_bytes())?;
        }
        ui.remark(format_args!("figures: {}", folder.display()));
    }
    if let Some(path) = &args.report {
        output::write_file(path, report.to_html().as_bytes())?;
        ui.remark(format_args!("report: {}", path.display()));
    }
    Ok(())
}

/// Adds the fields of a struct to an object that is printed.
///
/// # Errors
/// When the struct cannot be written as JSON.
pub(super) fn extend(all: &mut Map<String, Value>, part: &impl Serialize) -> Result<()> {
    let part = serde_json::to_value(part).context("cannot write the result as JSON")?;
    if let Value::Object(part) = part {
        all.extend(part);
    }
    Ok(())
}

/// The name of a file as pages show it: without its folders, which mean something on one machine alone.
pub(super) fn source(path: &Path) -> String {
    path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// A command line as a shell reads it, with the program's own name first.
pub(super) fn quoted(arguments: &[String]) -> String {
    let quote = |argument: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%^~".contains(c);
        match !argument.is_empty() && argument.chars().all(is_plain) {
            true => argument.clone(),
            false => format!("'{}'", argument.replace('\'', "'\\''")),
        }
    };
    let rest: Vec<String> = arguments.iter().skip(1).map(quote).collect();
    format!("warpfuse {}", rest.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let words = [
            "/usr/bin/warpfuse",
            "train",
            "my data.svm",
            "--x",
            "it's",
            "",
        ];
        let words: Vec<String> = words.map(str::to_owned).into();
        assert_eq!(
            quoted(&words),
            "warpfuse train 'my data.svm' --x 'it'\\''s' ''"
        );
    }
}
