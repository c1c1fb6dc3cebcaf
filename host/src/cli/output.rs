//! Results: on stdout, or in a file that is replaced as a whole.

use std::cell::Cell;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::learning::Model;
use crate::matrix::Element;
use crate::whole::write_whole;

/// Whether another process speaks for this one.
static SILENT: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether another thread speaks for this one.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread, which is not the only member of its process, prints and writes from now on.
pub(super) fn speak_as_thread(speaks: bool) {
    QUIET.set(!speaks);
}

/// Prints nothing from now on, and writes no files.
pub(super) fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Prints again.
pub(super) fn speak() {
    SILENT.store(false, Ordering::Relaxed);
}

/// Whether another process or thread prints and writes.
pub(super) fn is_silent() -> bool {
    SILENT.load(Ordering::Relaxed) || QUIET.get()
}

/// Writes to stdout.
///
/// # Errors
/// When it cannot be written; a closed pipe among them, which [`super::exit`] takes for success.
pub(super) fn print(text: impl AsRef<[u8]>) -> Result<()> {
    if is_silent() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref())
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}

/// Writes one JSON value and a line end to stdout. Numbers that are not finite become `null`.
///
/// # Errors
/// As [`print`].
pub(super) fn print_json(value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string(value).context("cannot write the result as JSON")?;
    text.push('\n');
    print(text)
}

/// What `-o` names for a model: `-` is stdout.
pub(super) fn place(path: &Path) -> &Path {
    match is_stdout(path) {
        true => Path::new("/dev/stdout"),
        false => path,
    }
}

/// Whether `-o` names stdout.
pub(super) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Writes `bytes` to `path`: as a whole, or not at all; `-` is stdout.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    if is_stdout(path) || is_silent() {
        return print(bytes);
    }
    write_whole(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Saves a model, unless another process does; `-` is stdout.
///
/// # Errors
/// As [`Model::save`].
pub(super) fn save(model: &Model, path: &Path) -> Result<()> {
    match is_silent() {
        true => Ok(()),
        false => Ok(model.save(place(path))?),
    }
}

/// Writes numbers to `path`, as npy if it ends in `.npy`, else one per line.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write_numbers<T: Element>(path: &Path, numbers: &[T]) -> Result<()> {
    match extension(path).as_str() {
        _ if is_silent() => Ok(()),
        "npy" => Ok(crate::io::write_vector(path, numbers)?),
        _ => write_file(path, &lines(numbers)),
    }
}

/// One number per line, the shortest decimals that read back as the same numbers.
pub(super) fn lines<T: Element>(numbers: &[T]) -> Vec<u8> {
    let mut text = Vec::with_capacity(numbers.len() * 12);
    for number in numbers {
        number.write_decimal(&mut text);
        text.push(b'\n');
    }
    text
}

/// Fails where nothing can be written to `path`: better before the work than after.
///
/// # Errors
/// When the folder is missing or takes no files, or `path` is a folder.
pub(super) fn check_place(path: &Path) -> Result<()> {
    if is_stdout(path) {
        return Ok(());
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let missing = folder.filter(|folder| !folder.is_dir());
    ensure!(
        missing.is_none(),
        "cannot write {}: expected a folder {}, found none; create it first",
        path.display(),
        missing.unwrap_or(path).display()
    );
    crate::whole::check_place(path).with_context(|| format!("cannot write {}", path.display()))
}

/// The extension of a file name in lower case; empty without one.
pub(super) fn extension(path: &Path) -> String {
    path.extension()
        .map(|extension| extension.to_string_lossy().to_ascii_lowercase())
        .unwrap_or_default()
}
