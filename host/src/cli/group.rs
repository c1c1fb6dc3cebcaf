//! The processes that `mpirun` or `srun` started: they train together, and rank 0 speaks for all.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail, ensure};

use super::args::{Command, DeviceName, TrainTarget};
use super::output;
use super::progress::Ui;
use crate::device::Device;
use crate::device::group::{Group, GroupError, Launch};
use crate::matrix::{Element, Features};

/// The group of this process, from when it joined to its end.
static JOINED: Mutex<Option<Group>> = Mutex::new(None);

/// Joins the other processes, if there are any. Only rank 0 prints and writes from now on.
///
/// # Errors
/// As [`Group::from_environment`].
pub(super) fn join(ui: &Ui) -> Result<Group> {
    let group = Group::from_environment()?;
    if !group.is_first() {
        output::silence();
    }
    if !group.is_alone() {
        ui.remark(format_args!("{} share the rows", group.engine()));
    }
    *JOINED.lock().unwrap_or_else(PoisonError::into_inner) = Some(group.clone());
    Ok(group)
}

/// What several processes do with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Together {
    /// They share the rows.
    Share,
    /// Each does the same: nothing is computed or written that takes long.
    Repeat,
    /// They would do the same work, and write the same files at the same time.
    Refuse,
}

/// Every command has to choose.
fn together(command: &Command) -> (&'static str, Together) {
    match command {
        Command::Train(train) => match &train.target {
            TrainTarget::Linear(_) => ("train", Together::Share),
            TrainTarget::Hits(_) => ("train hits", Together::Share),
            TrainTarget::Pagerank(_) => ("train pagerank", Together::Share),
            TrainTarget::Svd(_) => ("train svd", Together::Share),
            TrainTarget::KernelRidge(_) => ("train kernel-ridge", Together::Refuse),
        },
        Command::Cv(_) => ("cv", Together::Share),
        Command::Predict(_) => ("predict", Together::Refuse),
        Command::Evaluate(_) => ("evaluate", Together::Refuse),
        Command::Convert(_) => ("convert", Together::Refuse),
        Command::Calibrate(_) => ("calibrate", Together::Refuse),
        Command::Tune(_) => ("tune", Together::Refuse),
        Command::Synth(_) => ("synth", Together::Refuse),
        Command::Emulate(_) => ("emulate", Together::Repeat),
        Command::Inspect(_) => ("inspect", Together::Repeat),
        Command::Plan(_) => ("plan", Together::Repeat),
        Command::Info(_) => ("info", Together::Repeat),
        Command::Completions(_) => ("completions", Together::Repeat),
    }
}

/// Refuses a command that several processes cannot share. Rank 0 says so; the others have nothing to do, and end well:
/// launchers kill everybody at the first failure, which could be before rank 0 has spoken. Returns whether to go on.
///
/// # Errors
/// For such a command where a launcher started several processes.
pub(super) fn check_command(command: &Command) -> Result<bool> {
    let (name, Together::Refuse) = together(command) else {
        return Ok(true);
    };
    let launch = match Launch::from_environment()? {
        Some(launch) if launch.size > 1 => launch,
        _ => return Ok(true),
    };
    if launch.rank > 0 {
        return Ok(false);
    }
    bail!(
        "{name}: expected one process, found {} that {} started; run one process, or set WARPFUSE_GROUP=alone \
         where each of them is to do all of it",
        launch.size,
        launch.launcher.name()
    )
}

/// Refuses what processes that share the rows cannot do.
///
/// # Errors
/// For data of standard input, which one process alone gets, and for several targets.
pub(super) fn check(group: &Group, data: &Path, several: bool) -> Result<()> {
    let size = group.size();
    ensure!(
        group.is_alone() || !output::is_stdout(data),
        "-: expected a file that each of the {size} processes can open, found standard input"
    );
    ensure!(
        group.is_alone() || !several,
        "expected one column of targets where {size} processes share the rows, found several; run one process"
    );
    Ok(())
}

/// The device of this process as a member of its group.
///
/// # Errors
/// For a GPU: rows are shared between CPUs only.
pub(super) fn device(group: &Group, name: DeviceName) -> Result<Device> {
    match name {
        DeviceName::Auto | DeviceName::Cpu => Ok(Device::cpu_of(group)),
        DeviceName::Cuda(_) | DeviceName::Emulator(_) => bail!(
            "--device {name}: expected `cpu` where {} processes share the rows, found `{name}`; \
             run one process for a GPU",
            group.size()
        ),
    }
}

/// [`device`] where there are other processes, else what `open` opens.
///
/// # Errors
/// As [`device`]'s and `open`'s.
pub(super) fn device_or(
    group: &Group,
    name: DeviceName,
    open: impl FnOnce() -> Result<Device>,
) -> Result<Device> {
    match group.is_alone() {
        true => open(),
        false => device(group, name),
    }
}

/// The rows of this process: as many for each, one more for the first ones where they do not come out even.
fn own_rows<T: Element>(group: &Group, features: &Features<T>) -> Features<T> {
    let (rows, rank, size) = (features.rows(), group.rank(), group.size());
    let (each, more) = (rows / size, rows % size);
    let first = |rank: usize| rank * each + rank.min(more);
    features.select_rows(first(rank)..first(rank + 1))
}

/// The rows that this process computes with: all of them where it is alone.
pub(super) fn rows_of<T: Element>(group: &Group, all: Arc<Features<T>>) -> Arc<Features<T>> {
    match group.is_alone() {
        true => all,
        false => Arc::new(own_rows(group, &all)),
    }
}

/// Leaves the others after an error: they hear of it. `tell` is told whether this process is to print it: rank 0, and
/// whoever failed while the others did not. MPI ends only then, and waits for all: a launcher kills everybody when the
/// first process has ended so, and nobody would have spoken.
pub(super) fn leave_after<R>(error: &anyhow::Error, tell: impl FnOnce(bool) -> R) -> R {
    let group = take();
    let Some(group) = group.filter(|group| !group.is_alone()) else {
        return tell(true);
    };
    let ended = group.fail(&format!("{error:#}"));
    let is_own = |ended| match ended {
        GroupError::Failed { rank, .. } => rank == group.rank(),
        GroupError::Differs { .. } => false,
        _ => true,
    };
    let speaks = group.is_first() || ended.is_some_and(is_own);
    if speaks {
        output::speak();
    }
    let told = tell(speaks);
    drop(group);
    told
}

/// Leaves the others, all of which have come to the end.
pub(super) fn leave() {
    drop(take());
}

fn take() -> Option<Group> {
    JOINED.lock().unwrap_or_else(PoisonError::into_inner).take()
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use clap::Parser;

    use super::*;
    use crate::cli::args::Arguments;
    use crate::device::group::run_threads;

    /// What needs all rows in one process, or would be done by each, is refused; a match without exceptions has every
    /// command choose.
    #[test]
    fn commands_share_the_rows_or_are_refused() {
        for (line, expected) in [
            ("warpfuse train ridge a", ("train", Together::Share)),
            ("warpfuse train quantile a", ("train", Together::Share)),
            ("warpfuse train svd a -k 2", ("train svd", Together::Share)),
            (
                "warpfuse train kernel-ridge a",
                ("train kernel-ridge", Together::Refuse),
            ),
            ("warpfuse cv ridge a", ("cv", Together::Share)),
            ("warpfuse predict m a", ("predict", Together::Refuse)),
            ("warpfuse info", ("info", Together::Repeat)),
        ] {
            let parsed = Arguments::try_parse_from(line.split(' '));
            let parsed = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(together(&parsed.command), expected, "{line}");
        }
    }

    #[test]
    fn every_row_is_one_members_and_the_first_have_one_more() {
        for (rows, size, expected) in [
            (7, 3, vec![3, 2, 2]),
            (2, 4, vec![1, 1, 0, 0]),
            (4, 1, vec![4]),
        ] {
            let x = Features::Dense(Array2::from_shape_fn((rows, 1), |(i, _)| i as f64));
            let own = run_threads(size, |group| own_rows(&group, &x));
            let counts: Vec<usize> = own.iter().map(Features::rows).collect();
            assert_eq!(counts, expected);
            let mut all = own.iter().flat_map(|own| match own {
                Features::Dense(x) => x.iter().copied().collect::<Vec<f64>>(),
                _ => panic!("dense rows"),
            });
            assert!((0..rows).all(|row| all.next() == Some(row as f64)));
        }
    }
}
