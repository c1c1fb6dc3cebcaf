//! How the program ends: exit codes, and errors as text with causes and a remedy.

use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use super::progress::Ui;
use super::remedy::remedy;

/// The exit code of an error.
const ERROR: u8 = 1;
/// The exit code of arguments that make no sense.
const USAGE: u8 = 2;
/// The exit code of `--strict` when the iteration did not converge.
const NOT_CONVERGED: u8 = 3;

/// An end without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// Everything was done.
    Success,
    /// The iteration stopped early, and the user wants that to count.
    NotConverged,
    /// What was checked is wrong, as the report says.
    CheckFailed,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        match exit {
            Exit::Success => ExitCode::SUCCESS,
            Exit::NotConverged => ExitCode::from(NOT_CONVERGED),
            Exit::CheckFailed => ExitCode::from(ERROR),
        }
    }
}

/// Prints help, the version or a complaint about the arguments.
pub(super) fn of_usage(message: &clap::Error) -> ExitCode {
    // Nobody is left to tell when the terminal is gone.
    let _ = message.print();
    if message.use_stderr() {
        ExitCode::from(USAGE)
    } else {
        ExitCode::SUCCESS
    }
}

/// Prints an error, unless another process does. A closed pipe is none: whoever read has seen enough.
pub(super) fn of_error(error: &anyhow::Error, (ui, speaks): (&Ui, bool)) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    if speaks {
        ui.error(&describe(error));
    }
    ExitCode::from(ERROR)
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes
        .into_iter()
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// `error: …`, a line for each cause that says something new, and what to do where we know.
fn describe(error: &anyhow::Error) -> String {
    let mut text = format!("error: {error}\n");
    let mut last = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !last.contains(&cause) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  because: {cause}");
            last = cause;
        }
    }
    if let Some(remedy) = error.chain().find_map(remedy) {
        let _ = writeln!(text, "  try: {remedy}");
    }
    text
}

/// Ends the process after a failed group: nothing that libraries do at a process's end is done, which a thread in one of them
/// could wait for, or be met by.
pub(super) fn at_once(end: ExitCode) {
    let _ = io::Write::flush(&mut io::stdout());
    let code = (0..=NOT_CONVERGED).find(|code| ExitCode::from(*code) == end);
    end_now(code.unwrap_or(ERROR).into());
}

#[cfg(unix)]
fn end_now(code: i32) {
    // SAFETY: nothing of the process is used any more.
    unsafe { libc::_exit(code) }
}

/// There is no NCCL.
#[cfg(not(unix))]
fn end_now(_: i32) {}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;
    use crate::device::DeviceError;
    use crate::io::ReadError;
    use crate::learning::FitError;

    #[test]
    fn causes_are_listed_once_and_the_remedy_last() {
        let source = io::Error::from(io::ErrorKind::NotFound);
        let error = ReadError::Io {
            path: "x.svm".into(),
            source,
        };
        let error = Err::<(), _>(error)
            .context("cannot train")
            .expect_err("an error");
        let text = describe(&error);
        assert!(
            text.starts_with("error: cannot train\n  because: cannot read x.svm\n"),
            "{text}"
        );
        assert!(
            text.ends_with("  try: check the path; `-` reads standard input\n"),
            "{text}"
        );
    }

    #[test]
    fn a_cause_that_the_message_quotes_is_not_repeated() {
        let error = anyhow::Error::from(FitError::from(DeviceError::NoDevice {
            ordinal: 3,
            count: 1,
        }));
        let text = describe(&error);
        assert_eq!(text.matches("CUDA device 3").count(), 1, "{text}");
        assert!(text.contains("`warpfuse info`"), "{text}");
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        let closed = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_closed_pipe(&closed.context("cannot print")));
        assert!(!is_closed_pipe(&anyhow::anyhow!("anything else")));
    }
}
