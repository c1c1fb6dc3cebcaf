//! The checkpoint of a command: what is said of it, and its end.

use super::args::CheckpointArgs;
use super::output;
use super::progress::Ui;
use crate::learning::Checkpoint;

/// Where the fit writes how far it has got, if it does.
pub(super) fn of(args: &CheckpointArgs, ui: &Ui) -> Option<Checkpoint> {
    let checkpoint = args.checkpoint()?;
    if checkpoint.path().exists() {
        let file = checkpoint.path().display();
        ui.remark(format_args!("goes on from checkpoint {file}"));
    }
    Some(checkpoint)
}

/// The result is safe: nothing has to go on. One process of several removes the file.
pub(super) fn remove(args: &CheckpointArgs, ui: &Ui) {
    let written = args.checkpoint().filter(|_| !output::is_silent());
    if let Some(Err(error)) = written.map(|checkpoint| checkpoint.remove()) {
        ui.warn(format_args!("{error}"));
    }
}
