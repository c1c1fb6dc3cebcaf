//! How members bring their devices together.

use std::sync::Arc;

use super::between_devices::DeviceCommunicator;
use super::error::GroupError;
use super::launch::Launch;
use super::nccl::Nccl;
use super::peers::Departed;
use super::{Group, Member};
use crate::device::{CudaDevice, Device};
use crate::parallel::locked;

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
        let joined = Nccl::join(device, id, place, (limit, departed(&self.0)));
        let nccl = self.agree(joined).map_err(own_or_others)?;
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
    use super::nccl::Processes;
    use super::peers::Process;

    let local = launch.local_rank.unwrap_or(launch.rank);
    let no_gpu = |found: String| GroupError::Launcher {
        launcher: launch.launcher.name(),
        size: launch.size,
        found,
    };
    let device = CudaDevice::open(local as u32);
    let device = device.map_err(|error| no_gpu(error.to_string()))?;
    Nccl::find()?;
    super::launch::name_meeting_point(|name| std::env::var(name).ok())?;
    let limit = super::launch::limit(|name| std::env::var(name).ok())?.unwrap_or(super::LIMIT);
    let nobody: Departed = Box::new(|| None);
    let place = (launch.rank, launch.size);
    let nccl = Nccl::join(&device, Nccl::id()?, place, (limit, nobody))?;
    let group = Group::over(Box::new(Processes(nccl.clone())));
    group.set_limit(limit);
    let own = Process::own().unwrap_or(bytemuck::Zeroable::zeroed());
    let all = group.all_gather(&[own])?;
    let others = all.into_iter().enumerate();
    let others = others.filter(|(rank, other)| *rank != launch.rank && own.is_beside(other));
    nccl.know(others.collect());
    let link = linked(&group, &device, nccl)?;
    link.set_limit(limit);
    let _ = group.0.link.set(Some(link));
    Ok(group)
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
