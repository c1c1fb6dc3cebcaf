//! How members bring their devices together.

use std::sync::Arc;
#[cfg(all(feature = "cuda", target_os = "linux"))]
use std::time::Duration;

use super::between_devices::DeviceCommunicator;
use super::error::GroupError;
use super::launch::Launch;
#[cfg(all(feature = "cuda", target_os = "linux"))]
use super::liveness::Liveness;
use super::nccl::Nccl;
use super::peers::{Departed, Others};
use super::{Group, Member};
use crate::device::{CudaDevice, Device};
use crate::parallel::locked;

/// How much longer than rank 0 another process waits for all to join.
#[cfg(all(feature = "cuda", target_os = "linux"))]
const PATIENCE: Duration = Duration::from_secs(2);

impl Group {
    /// Joins the devices of all members: by NCCL where they are GPUs.
    pub(in crate::device) fn join(&self, device: &Device) -> Result<(), GroupError> {
        let kinds = ["a CPU", "a GPU", "an emulator"];
        let kind = match device {
            Device::Cpu(_) => 0_u64,
            Device::Cuda(_) => 1,
            Device::Emulator(_) => 2,
        };
        let all = self.all_gather(&[kind])?;
        if let Some(rank) = all.iter().position(|kind| *kind != all[0]) {
            return Err(GroupError::Devices {
                rank,
                expected: kinds[all[0] as usize],
                found: kinds[all[rank] as usize],
            });
        }
        if self.0.link.get().is_some() {
            return Ok(());
        }
        let link: Option<Box<dyn DeviceCommunicator>> = match device {
            Device::Cuda(device) => Some(self.by_nccl(device)?),
            Device::Cpu(_) | Device::Emulator(_) => None,
        };
        let _ = self.0.link.set(link);
        Ok(())
    }

    fn by_nccl(&self, device: &CudaDevice) -> Result<Box<dyn DeviceCommunicator>, GroupError> {
        self.agree(Nccl::find()).map_err(own_or_others)?;
        let mut id = [0_u8; 128];
        let made = match self.is_first() {
            true => Nccl::id().map(|new| id = new),
            false => Ok(()),
        };
        self.agree(made).map_err(own_or_others)?;
        self.broadcast(0, &mut id)?;
        let limit = locked(&self.0.state).limit;
        let place = (self.rank(), self.size());
        let (rank, size) = place;
        let others = Others {
            departed: departed(&self.0),
            absent: Box::new(move || (0..size).filter(|other| *other != rank).collect()),
        };
        let joined = Nccl::join(device, id, place, (limit, others));
        let nccl = self.agree(joined).map_err(own_or_others)?;
        nccl.set_limit(limit);
        linked(self, device, nccl)
    }

    /// What joins the devices of members, once they are, unless it has failed.
    pub(super) fn link(&self) -> Result<Option<&dyn DeviceCommunicator>, GroupError> {
        let Some(Some(link)) = self.0.link.get() else {
            return Ok(None);
        };
        link.check()?;
        Ok(Some(&**link))
    }

    /// Whether what came from a device is what all members have computed.
    pub(in crate::device) fn check_link(&self) -> Result<(), GroupError> {
        self.link().map(drop)
    }
}

#[cfg(all(feature = "cuda", target_os = "linux"))]
fn linked(
    group: &Group,
    device: &CudaDevice,
    nccl: Nccl,
) -> Result<Box<dyn DeviceCommunicator>, GroupError> {
    let windows = super::windows::Windows::open(group, device)?;
    Ok(Box::new(super::linked::Linked::new(nccl, windows)))
}

#[cfg(not(all(feature = "cuda", target_os = "linux")))]
fn linked(
    _: &Group,
    _: &CudaDevice,
    nccl: Nccl,
) -> Result<Box<dyn DeviceCommunicator>, GroupError> {
    Ok(Box::new(nccl))
}

/// Looks whether somebody has left, for as long as there is a member.
fn departed(member: &Arc<Member>) -> Departed {
    let member = Arc::downgrade(member);
    Box::new(move || member.upgrade()?.engine.departed())
}

fn own_or_others(error: Result<GroupError, GroupError>) -> GroupError {
    error.unwrap_or_else(|others| others)
}

/// The processes that `torchrun`, or what sets the same variables, has started: each with the GPU of its number among those
/// of its machine.
#[cfg(all(feature = "cuda", target_os = "linux"))]
pub(super) fn of_torchrun(launch: &Launch) -> Result<Group, GroupError> {
    // First of all: a process that ends before it is heard of is missed by the limit alone.
    let liveness = liveness(launch);
    let joined = processes(launch, liveness.clone());
    if let (Err(error), Some(liveness)) = (&joined, &liveness) {
        liveness.report(&error.to_string());
    }
    joined
}

/// By which this process hears of others that end; without it they are waited for.
#[cfg(all(feature = "cuda", target_os = "linux"))]
fn liveness(launch: &Launch) -> Option<Arc<Liveness>> {
    let read = |name: &str| std::env::var(name).ok();
    let place = super::launch::meeting_point(read, super::launch::LIVENESS_PORT);
    let begun = place.and_then(|place| Liveness::begin(&place, (launch.rank, launch.size)));
    match begun {
        Ok(liveness) => Some(Arc::new(liveness)),
        Err(error) => {
            tracing::warn!(%error, "processes that end before all have joined are noticed by the limit alone");
            None
        }
    }
}

#[cfg(all(feature = "cuda", target_os = "linux"))]
fn processes(launch: &Launch, liveness: Option<Arc<Liveness>>) -> Result<Group, GroupError> {
    use super::nccl::Processes;
    use crate::process::Process;

    let (rank, size) = (launch.rank, launch.size);
    let no_gpu = |found: String| GroupError::Launcher {
        launcher: launch.launcher.name(),
        size,
        found,
    };
    let device = CudaDevice::open(launch.local_rank.unwrap_or(rank) as u32);
    let device = device.map_err(|error| no_gpu(error.to_string()))?;
    Nccl::find()?;
    super::launch::name_meeting_point(|name| std::env::var(name).ok())?;
    let limit = super::launch::limit(|name| std::env::var(name).ok())?.unwrap_or(super::LIMIT);
    // Rank 0 knows who has not come, and says so.
    let patience = limit + if rank > 0 { PATIENCE } else { Duration::ZERO };
    let joined = Nccl::join(
        &device,
        Nccl::id()?,
        (rank, size),
        (patience, others(&liveness, (rank, size))),
    );
    let nccl = joined?;
    nccl.set_limit(limit);
    let group = Group::over(Box::new(Processes::new(nccl.clone(), liveness)));
    group.set_limit(limit);
    let own = Process::own().unwrap_or(bytemuck::Zeroable::zeroed());
    let all = group.all_gather(&[own])?;
    let others = all.into_iter().enumerate();
    let others = others.filter(|(other, process)| *other != rank && own.is_beside(process));
    nccl.know(others.collect());
    let link = linked(&group, &device, nccl)?;
    let _ = group.0.link.set(Some(link));
    Ok(group)
}

/// What is known of the other processes, for as long as the group has its member.
#[cfg(all(feature = "cuda", target_os = "linux"))]
fn others(liveness: &Option<Arc<Liveness>>, (rank, size): (usize, usize)) -> Others {
    let known = liveness.as_ref().map(Arc::downgrade).unwrap_or_default();
    let also = known.clone();
    Others {
        departed: Box::new(move || known.upgrade()?.lost()),
        absent: Box::new(move || match also.upgrade() {
            Some(liveness) => liveness.absent(),
            None => (0..size).filter(|other| *other != rank).collect(),
        }),
    }
}

/// Without GPUs there is nothing that they could talk through.
#[cfg(not(all(feature = "cuda", target_os = "linux")))]
pub(super) fn of_torchrun(launch: &Launch) -> Result<Group, GroupError> {
    Err(GroupError::Launcher {
        launcher: launch.launcher.name(),
        size: launch.size,
        found: "this program was built without the feature `cuda`, or not for Linux".to_owned(),
    })
}
