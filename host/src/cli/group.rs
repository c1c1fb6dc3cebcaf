//! The processes that `mpirun` or `srun` started: they train together, and rank 0 speaks for all.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail, ensure};

use super::args::DeviceName;
use super::output;
use super::progress::Ui;
use crate::device::Device;
use crate::device::group::{Group, GroupError};
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

/// The rows of this process: as many for each, one more for the first ones where they do not come out even.
pub(super) fn own_rows<T: Element>(group: &Group, features: &Features<T>) -> Features<T> {
    let (rows, rank, size) = (features.rows(), group.rank(), group.size());
    let (each, more) = (rows / size, rows % size);
    let first = |rank: usize| rank * each + rank.min(more);
    features.select_rows(first(rank)..first(rank + 1))
}

/// Leaves the others after an error: they hear of it. Whether this process is to print it: rank 0, and whoever failed
/// while the others did not.
pub(super) fn leave_after(error: &anyhow::Error) -> bool {
    let group = take();
    let Some(group) = group.filter(|group| !group.is_alone()) else {
        return true;
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
    speaks
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

    use super::*;
    use crate::device::group::run_threads;

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
