//! The processes that `mpirun`, `srun` or `torchrun` started, or the threads of `--gpus`: they train together, and rank 0
//! speaks for all.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Error, Result, bail, ensure};

use super::args::{Command, DeviceName, TrainTarget};
use super::data::Rows;
use super::exit::Exit;
use super::output;
use super::progress::Ui;
use crate::device::group::{Group, GroupError, Launch, Seat, run_threads};
use crate::device::{Device, DeviceError};
use crate::io::Portion;
use crate::matrix::{Element, Features};
use crate::ops::OpError;

/// The group of this process, from when it joined to its end.
static JOINED: Mutex<Option<Group>> = Mutex::new(None);

thread_local! {
    /// The group of a thread that has a GPU of its own.
    static MEMBER: RefCell<Option<Group>> = const { RefCell::new(None) };
}

/// Has `count` threads do the same, each with a GPU of its own. The error is that of whoever failed first.
///
/// # Errors
/// As `run`'s.
pub(super) fn on_gpus(count: usize, run: impl Fn() -> Result<Exit> + Sync) -> Result<Exit> {
    let ends = run_threads(count, |group| {
        MEMBER.set(Some(group.clone()));
        output::speak_as_thread(group.is_first());
        let end = run();
        MEMBER.set(None);
        output::speak_as_thread(true);
        if let Err(error) = &end {
            group.fail(&format!("{error:#}"));
        }
        end
    });
    let heard = |end: &Result<Exit>| {
        let error = end.as_ref().err()?;
        let mut causes = error.chain();
        Some(causes.any(is_of_others))
    };
    let own = ends.iter().position(|end| heard(end) == Some(false));
    let any = ends.iter().position(Result::is_err);
    let mut ends = ends.into_iter();
    ends.nth(own.or(any).unwrap_or(0))
        .expect("one member at least")
}

/// Whether an error is that of a group, which every member gets.
fn is_of_others(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.downcast_ref::<GroupError>().is_some()
        || matches!(
            cause.downcast_ref(),
            Some(OpError::Group(_) | OpError::Device(DeviceError::Group(_)))
        )
        || matches!(cause.downcast_ref(), Some(DeviceError::Group(_)))
}

/// Joins the other processes, if there are any. Only rank 0 prints and writes from now on.
///
/// # Errors
/// As [`Group::from_environment`].
pub(super) fn join(ui: &Ui) -> Result<Group> {
    if let Some(group) = MEMBER.with_borrow(Clone::clone) {
        return Ok(group);
    }
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
            TrainTarget::KernelRidge(_) => ("train kernel-ridge", Together::Share),
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

/// Whether members share the rows of a command's data.
pub(super) fn shares(command: &Command) -> bool {
    together(command).1 == Together::Share
}

/// Refuses a command that several processes cannot share. Rank 0 says so; the others have nothing to do, and end well:
/// launchers kill everybody at the first failure, which could be before rank 0 has spoken. Returns whether to go on.
///
/// # Errors
/// For such a command where a launcher started several processes.
pub(super) fn check_command(command: &Command, gpus: Option<usize>) -> Result<bool> {
    let (name, together) = together(command);
    ensure!(
        gpus.is_none() || together == Together::Share || matches!(command, Command::Plan(_)),
        "--gpus: expected a command whose data have rows to share, train or cv, found {name}"
    );
    let launch = match Launch::from_environment()? {
        Some(launch) if launch.size > 1 => launch,
        _ => return Ok(true),
    };
    ensure!(
        gpus.is_none(),
        "--gpus: expected one process, found {} that {} started, each with a GPU of its own",
        launch.size,
        launch.launcher.name()
    );
    if together != Together::Refuse {
        return Ok(true);
    }
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

/// The device of this member of its group: of processes that `torchrun` started, and of the threads of `--gpus`, a GPU of its
/// own; of other processes the CPU, unless GPUs are named. `cuda:N` is the GPU of the first of a machine's members, the next
/// one has that after it.
///
/// # Errors
/// When a GPU cannot be used, or members cannot be joined.
pub(super) fn device(group: &Group, name: DeviceName, ui: &Ui) -> Result<Device> {
    own_device(group, name)?.join(group, ui)
}

/// Which device is this member's.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnDevice(Option<DeviceName>);

/// [`device`], not yet opened: to be called by the member's own thread.
///
/// # Errors
/// When members of GPUs are to have the processor.
pub(super) fn own_device(group: &Group, name: DeviceName) -> Result<OwnDevice> {
    let launch = Launch::from_environment()?;
    let is_thread = MEMBER.with_borrow(Option::is_some);
    let seat = match launch {
        Some(launch) if !is_thread => Seat::of(&launch),
        _ => Seat::new(group.rank(), is_thread),
    };
    let Some(own) = seat.device(&name.to_string()) else {
        bail!(
            "--device cpu: expected a GPU for each of {}, found the processor; start processes by mpirun or srun",
            group.engine()
        );
    };
    let own: DeviceName = own.parse().map_err(Error::msg)?;
    Ok(OwnDevice((own != DeviceName::Cpu).then_some(own)))
}

impl OwnDevice {
    /// Opens it, and joins the others.
    ///
    /// # Errors
    /// When it cannot be used, or members cannot be joined.
    pub(super) fn join(self, group: &Group, ui: &Ui) -> Result<Device> {
        let Some(own) = self.0 else {
            return Ok(Device::cpu_of(group));
        };
        let opened = group.agree(super::device::open(own, ui));
        let opened = opened.map_err(|error| error.unwrap_or_else(anyhow::Error::from))?;
        Ok(opened.in_group(group)?)
    }
}

/// Does `work` while this member's device is opened and joins the others. Drivers and NCCL take as long to start as gigabytes
/// take to read; `work` has nothing to do with the others.
///
/// # Errors
/// As [`device`], and as `work`.
pub(super) fn device_beside<R>(
    (group, name, ui): (&Group, DeviceName, &Ui),
    work: impl FnOnce() -> Result<R>,
) -> Result<(Device, R)> {
    let own = own_device(group, name)?;
    let (device, done) = thread::scope(|scope| {
        let joining = scope.spawn(|| own.join(group, ui));
        let done = work();
        let joined = joining.join();
        (joined.unwrap_or_else(|panic| resume_unwind(panic)), done)
    });
    Ok((device?, done?))
}

/// [`device`] where there are other processes, else what `open` opens.
///
/// # Errors
/// As [`device`]'s and `open`'s.
pub(super) fn device_or(
    group: &Group,
    (name, ui): (DeviceName, &Ui),
    open: impl FnOnce() -> Result<Device>,
) -> Result<Device> {
    match group.is_alone() {
        true => open(),
        false => device(group, name, ui),
    }
}

/// Which of the readers of a file this member is.
pub(super) fn portion(group: &Group) -> Portion {
    Portion::new(group.rank(), group.size())
}

/// The rows of `data` that this member computes with on `device`: all of them where it is alone.
pub(super) fn rows_of<T: Element>(
    (group, device): (&Group, &Device),
    data: (Arc<Features<T>>, Rows),
) -> Arc<Features<T>> {
    match data {
        (all, Rows::All) if !group.is_alone() => {
            Arc::new(all.share_rows(portion(group).rows(all.rows(), device.row_step())))
        }
        (own, _) => own,
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
    if let Some(group) = take() {
        // Nobody goes while what it sent is on its way. What fails now has no result that it could spoil.
        let _ = group.barrier();
    }
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
                ("train kernel-ridge", Together::Share),
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
            let x = Array2::from_shape_fn((rows, 1), |(i, _)| i as f64);
            let x = Arc::new(Features::Dense(x));
            let own = run_threads(size, |group| {
                rows_of((&group, &Device::cpu()), (x.clone(), Rows::All))
            });
            let counts: Vec<usize> = own.iter().map(|own| own.rows()).collect();
            assert_eq!(counts, expected);
            let mut all = own.iter().flat_map(|own| {
                let own = own.to_dense().expect("small");
                own.into_iter().collect::<Vec<f64>>()
            });
            assert!((0..rows).all(|row| all.next() == Some(row as f64)));
        }
    }
}
