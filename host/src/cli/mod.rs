//! The command line: arguments as typed → as meant → run → report → exit code.
//!
//! Nothing is computed here. Each subcommand turns its arguments into calls of the library and prints what
//! comes back: results on stdout, progress, remarks and warnings on stderr.
//!
//! | file | what |
//! |---|---|
//! | `args` | the arguments as typed, with the help that users read |
//! | `train`, `predict`, `evaluate`, `inspect`, `cv`, `convert`, `plan`, `calibrate`, `tune`, `emulate`, `info`, `synth`, `completions` | one subcommand each |
//! | `beside` | options that do nothing beside others |
//! | `trainers` | the list of trainers of linear models: own arguments and the estimators that they mean |
//! | `data`, `targets`, `device` | what other arguments mean: data in memory, an open device |
//! | `group` | several processes that train together |
//! | `report`, `fitted`, `json`, `output` | the printout for people, the JSON for programs, and stdout |
//! | `pages`, `applied` | report pages and figures; those of a model that is applied |
//! | `progress`, `time_left`, `exit` | bars and remarks; exit codes and error messages |
//!
//! Exit codes: 0 success, 1 error, 2 usage, 3 not converged with `--strict`. A reader that closes the pipe
//! early is no error.

mod allocator;
mod applied;
mod args;
mod beside;
mod calibrate;
mod checkpoints;
mod completions;
mod convert;
mod cv;
mod data;
mod device;
mod emulate;
mod evaluate;
mod exit;
mod fits;
mod fitted;
mod forms;
mod group;
mod info;
mod inspect;
mod json;
mod measure;
mod memory;
mod out_of_memory;
mod output;
mod pages;
mod plan;
mod plan_gpus;
mod portions;
mod predict;
mod progress;
mod remedy;
mod report;
mod scoring;
mod synth;
mod targets;
mod time_left;
mod train;
mod trainers;
mod tune;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

pub use allocator::LargePages;
use args::{Arguments, Command, DtypeName};
use exit::Exit;
use progress::Ui;

/// Runs the program on the process's arguments and says how it should end.
pub fn main() -> ExitCode {
    out_of_memory::end_with_exit_code();
    main_on(std::env::args_os())
}

/// [`main`] on other arguments, the first of which is the program's name. After a failed group the process ends here.
pub fn main_on<A>(arguments: impl IntoIterator<Item = A>) -> ExitCode
where
    A: Into<OsString> + Clone,
{
    let end = run_on(arguments);
    if crate::device::group::is_given_up() {
        exit::at_once(end);
    }
    end
}

fn run_on<A>(arguments: impl IntoIterator<Item = A>) -> ExitCode
where
    A: Into<OsString> + Clone,
{
    let typed: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let words: Vec<String> = typed
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let arguments = match parsed(typed) {
        Ok(arguments) => arguments,
        Err(message) => return exit::of_usage(&message),
    };
    if let Err(message) = arguments.command.check() {
        return exit::of_usage(&conflict(message));
    }
    let said = (arguments.verbosity(), arguments.log_format());
    let ui = Ui::start(said, pages::quoted(&words));
    limit_threads(arguments.threads(), &ui);
    if arguments.command.dtype() == Some(DtypeName::F32) {
        remedy::note_halved();
    }
    if let Some(options) = arguments.gpu_memory() {
        options.apply_to_gpus();
    }
    if let Some(path) = arguments.tuned() {
        crate::device::tuned::apply_to_gpus(path);
    }
    let gpus = arguments.gpus();
    match run(arguments.command, gpus, &ui) {
        Ok(exit) => {
            group::leave();
            exit.into()
        }
        Err(error) => group::leave_after(&error, |speaks| exit::of_error(&error, (&ui, speaks))),
    }
}

/// Whether the program would take these arguments, the first of which is its name; nothing is run.
pub fn understands<A>(arguments: impl IntoIterator<Item = A>) -> bool
where
    A: Into<OsString> + Clone,
{
    parsed(arguments).is_ok_and(|parsed| parsed.command.check().is_ok())
}

/// What the arguments say. A negative number is a value wherever one is expected, so that the option itself says what is
/// wrong with it.
fn parsed<A>(arguments: impl IntoIterator<Item = A>) -> Result<Arguments, clap::Error>
where
    A: Into<OsString> + Clone,
{
    let command = with_negative_numbers(command());
    let mut matches = command
        .clone()
        .try_get_matches_from(arguments)
        .map_err(without_escape)?;
    beside::check(&matches).map_err(conflict)?;
    Arguments::from_arg_matches_mut(&mut matches)
        .map_err(|error| error.format(&mut command.clone()))
}

/// Options that do not go together.
fn conflict(message: impl std::fmt::Display) -> clap::Error {
    let kind = clap::error::ErrorKind::ArgumentConflict;
    clap::Error::raw(kind, format!("{message}\n"))
}

/// The message without the advice to pass an unknown option as a value behind `--`: no command takes a value that begins so.
fn without_escape(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().contains("as a value"));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    error
}

fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command
        .mut_args(|argument| {
            let takes = argument.get_action().takes_values() && !argument.is_positional();
            argument.allow_negative_numbers(takes)
        })
        .mut_subcommands(with_negative_numbers)
}

/// The commands and options, for programs that list them.
#[doc(hidden)]
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Has the CPU compute with this many threads.
fn limit_threads(threads: Option<usize>, ui: &Ui) {
    let Some(threads) = threads else { return };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    if let Err(reason) = pool.build_global() {
        ui.warn(format_args!("--threads {threads} has no effect: {reason}"));
    }
}

fn run(command: Command, gpus: Option<usize>, ui: &Ui) -> anyhow::Result<Exit> {
    if !group::check_command(&command, gpus)? {
        return Ok(Exit::Success);
    }
    match gpus {
        Some(count) if group::shares(&command) => {
            group::on_gpus(count, || obey(&command, gpus, ui))
        }
        _ => obey(&command, gpus, ui),
    }
}

fn obey(command: &Command, gpus: Option<usize>, ui: &Ui) -> anyhow::Result<Exit> {
    match command {
        Command::Train(arguments) => train::run(arguments, ui),
        Command::Predict(arguments) => predict::run(arguments, ui),
        Command::Evaluate(arguments) => evaluate::run(arguments, ui),
        Command::Inspect(arguments) => inspect::run(arguments),
        Command::Cv(arguments) => cv::run(arguments, ui),
        Command::Convert(arguments) => convert::run(arguments, ui),
        Command::Plan(arguments) => plan::run(arguments, gpus, ui),
        Command::Calibrate(arguments) => calibrate::run(arguments, ui),
        Command::Tune(arguments) => tune::run(arguments, ui),
        Command::Emulate(arguments) => emulate::run(arguments, ui),
        Command::Info(arguments) => info::run(arguments),
        Command::Synth(arguments) => synth::run(arguments, ui),
        Command::Completions(arguments) => completions::run(arguments),
    }
}
