//! What members do with numbers that lie on their devices: sums that never cross the host where there is a link.

use std::fmt::Debug;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use super::{Group, GroupError, GroupNumber, Shares};
use crate::device::{Buffer, DeviceError};

/// The type of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberKind {
    F32,
    F64,
    I64,
    U64,
}

impl NumberKind {
    /// Of a number.
    pub(crate) fn bytes(self) -> usize {
        match self {
            NumberKind::F32 => 4,
            NumberKind::F64 | NumberKind::I64 | NumberKind::U64 => 8,
        }
    }
}

/// Numbers in a device's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) address: u64,
    pub(crate) len: usize,
    pub(crate) kind: NumberKind,
}

/// An engine that moves what lies on devices, in the order of the stream of each member's device: nothing is waited for.
/// No member calls two functions at once.
pub(crate) trait DeviceCommunicator:
    Send + Sync + UnwindSafe + RefUnwindSafe + Debug
{
    /// The engine's name, for people.
    fn name(&self) -> String;

    /// Replaces numbers by their sums over the members: the same bits on each. Several at once are one message.
    ///
    /// # Errors
    /// [`GroupError`], of this and of what was begun before.
    fn sum(&self, numbers: &[Numbers]) -> Result<(), GroupError>;

    /// [`DeviceCommunicator::sum`] beside what is submitted to the device afterwards, until [joined](DeviceCommunicator::join).
    ///
    /// # Errors
    /// As [`DeviceCommunicator::sum`].
    fn sum_beside(&self, numbers: &[Numbers]) -> Result<(), GroupError>;

    /// Has what is submitted to the device from now on wait for what was begun beside it.
    ///
    /// # Errors
    /// As [`DeviceCommunicator::sum`].
    fn join(&self) -> Result<(), GroupError>;

    /// Adds numbers up in shares: of each array, as many as a multiple of the columns, a member gets the sums of its
    /// share in place; what the other columns have afterwards means nothing.
    ///
    /// # Errors
    /// As [`DeviceCommunicator::sum`].
    fn sum_shares(&self, numbers: &[Numbers], shares: &Shares) -> Result<(), GroupError>;

    /// Completes the bytes at `address`, of which each member has a piece of its own, one after the other.
    ///
    /// # Errors
    /// As [`DeviceCommunicator::sum`].
    fn gather(&self, address: u64, lengths: &[usize]) -> Result<(), GroupError>;

    /// What has happened to what was begun.
    ///
    /// # Errors
    /// As [`DeviceCommunicator::sum`].
    fn check(&self) -> Result<(), GroupError>;

    /// Whether sums of few bytes are one launch over the memory of the others, where the engine has that; so it is at first.
    fn set_one_launch(&self, _wanted: bool) {}

    /// How long what is begun from now on may take.
    fn set_limit(&self, limit: Duration);

    /// Lets nobody wait for this member any more, nor this one for others; `error` is why.
    fn end(&self, error: GroupError);
}

/// A buffer of numbers that are to be added together with others.
pub(crate) trait Summand {
    fn numbers(&mut self) -> Numbers;

    /// By way of the host.
    fn sum(&mut self, group: &Group) -> Result<(), DeviceError>;

    /// The same for one member's share.
    fn sum_share(&mut self, group: &Group, shares: &Shares) -> Result<(), DeviceError>;
}

impl<T: GroupNumber> Summand for Buffer<T> {
    fn numbers(&mut self) -> Numbers {
        let output = self.output();
        Numbers {
            address: output.pointer().addr() as u64,
            len: output.len() as usize,
            kind: T::KIND,
        }
    }

    fn sum(&mut self, group: &Group) -> Result<(), DeviceError> {
        let mut values = self.to_vec()?;
        group.sum(&mut values)?;
        self.copy_from_slice(&values)
    }

    fn sum_share(&mut self, group: &Group, shares: &Shares) -> Result<(), DeviceError> {
        let mut values = self.to_vec()?;
        group.sum_share(&mut values, shares)?;
        self.copy_from_slice(&values)
    }
}

/// Sums that go on beside what a device computes: see [`Group::beside`].
pub(crate) struct Beside<'g> {
    group: &'g Group,
    has_begun: bool,
}

impl Beside<'_> {
    /// [`Group::sum_together`] of one buffer, which nobody may touch before the end.
    pub(crate) fn sum(&mut self, buffer: &mut dyn Summand) -> Result<(), DeviceError> {
        let Some(link) = self.group.link()? else {
            return buffer.sum(self.group);
        };
        let numbers = there(&mut [buffer]);
        if numbers.is_empty() {
            return Ok(());
        }
        self.has_begun = true;
        Ok(link.sum_beside(&numbers)?)
    }

    fn end(&self) -> Result<(), DeviceError> {
        match self.group.0.link.get() {
            // Of a group that has failed, too: its kernels may write until they are ended.
            Some(Some(link)) if self.has_begun => Ok(link.join()?),
            _ => Ok(()),
        }
    }
}

/// Where numbers are, of buffers that have any: members who are sent nothing would not say that they have read what was before.
fn there(buffers: &mut [&mut dyn Summand]) -> Vec<Numbers> {
    let each = buffers.iter_mut().map(|buffer| buffer.numbers());
    each.filter(|numbers| numbers.len > 0).collect()
}

impl Group {
    /// Replaces numbers on the members' devices by their sums: over the devices' link where they have one, else by way of
    /// the host.
    pub(crate) fn sum_together(&self, buffers: &mut [&mut dyn Summand]) -> Result<(), DeviceError> {
        if let Some(link) = self.link()? {
            return Ok(link.sum(&there(buffers))?);
        }
        let mut each = buffers.iter_mut();
        each.try_for_each(|buffer| buffer.sum(self))
    }

    /// Has `work` compute and begin sums, which go on beside what it submits afterwards where devices have a link. They have
    /// ended before whatever is submitted after this. All members begin the same sums in one order.
    pub(crate) fn beside<R, E: From<DeviceError>>(
        &self,
        work: impl FnOnce(&mut Beside<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut beside = Beside {
            group: self,
            has_begun: false,
        };
        let done = work(&mut beside);
        // Whatever went wrong: buffers that are added up may be freed afterwards.
        let ended = beside.end();
        let done = done?;
        ended?;
        Ok(done)
    }

    /// Adds up a member's share of buffers of as many numbers as a multiple of the columns; what the other columns have
    /// afterwards means nothing.
    pub(crate) fn sum_shares(
        &self,
        buffers: &mut [&mut dyn Summand],
        shares: &Shares,
    ) -> Result<(), DeviceError> {
        if let Some(link) = self.link()? {
            return Ok(link.sum_shares(&there(buffers), shares)?);
        }
        let mut each = buffers.iter_mut();
        each.try_for_each(|buffer| buffer.sum_share(self, shares))
    }

    /// Completes a buffer of which each member has its share.
    pub(crate) fn gather_shares<T: bytemuck::Pod>(
        &self,
        buffer: &mut Buffer<T>,
        shares: &Shares,
    ) -> Result<(), DeviceError> {
        self.gather_on_devices(buffer, &shares.lengths())
    }

    /// [`Group::sum`] of numbers on the devices of the members, which have [joined](crate::device::Device::in_group) them:
    /// nothing crosses the host where they have a link, and nothing is waited for. GPUs add floats in an order of their
    /// link's; every member gets the same bits.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::device::group::run_threads;
    /// let sums = run_threads(2, |group| {
    ///     let device = Device::cpu().in_group(&group)?;
    ///     let mut own = device.upload(&[1.0, group.rank() as f64])?;
    ///     group.sum_on_devices(&mut own)?;
    ///     own.to_vec()
    /// });
    /// assert!(sums.into_iter().all(|sum| sum == Ok(vec![2.0, 1.0])));
    /// ```
    ///
    /// # Errors
    /// [`DeviceError::Group`] as every collective, and when a device fails.
    pub fn sum_on_devices<T: GroupNumber>(
        &self,
        buffer: &mut Buffer<T>,
    ) -> Result<(), DeviceError> {
        self.sum_together(&mut [buffer])
    }

    /// Whether [`Group::sum_on_devices`] of up to 256 KiB is one launch over the memory of the others, as it is at first, or goes
    /// by the devices' link like larger ones: to compare both. Without such a link nothing changes. Collective: all members
    /// have to say the same.
    ///
    /// ```
    /// use warpfuse::device::group::{GroupError, run_threads};
    /// let said = run_threads(2, |group| group.set_one_launch(false));
    /// assert_eq!(said, [Ok(()), Ok(())]);
    /// let said = run_threads(2, |group| group.set_one_launch(group.rank() == 0));
    /// assert!(said.iter().all(|said| matches!(said, Err(GroupError::Differs { rank: 1, .. }))));
    /// ```
    ///
    /// # Errors
    /// [`GroupError::Differs`] where members say different things; as every collective.
    pub fn set_one_launch(&self, wanted: bool) -> Result<(), GroupError> {
        let said = self.all_gather(&[u8::from(wanted)])?;
        if let Some(rank) = said.iter().position(|one| *one != said[0]) {
            let name = |one: u8| match one {
                0 => "sums by the link alone".to_owned(),
                _ => "sums in one launch".to_owned(),
            };
            return Err(GroupError::Differs {
                rank,
                expected: name(said[0]),
                found: name(said[rank]),
            });
        }
        if let Some(link) = self.link()? {
            link.set_one_launch(wanted);
        }
        Ok(())
    }

    /// Completes a buffer of which each member has `lengths` elements, one after the other in the order of the ranks.
    pub(crate) fn gather_on_devices<T: bytemuck::Pod>(
        &self,
        buffer: &mut Buffer<T>,
        lengths: &[usize],
    ) -> Result<(), DeviceError> {
        // A link moves what lies on devices: members that have them compute on their hosts, too.
        if let Some(link) = self.link()?.filter(|_| !buffer.device().is_cpu()) {
            let bytes: Vec<usize> = lengths.iter().map(|len| len * size_of::<T>()).collect();
            let address = buffer.output().pointer().addr() as u64;
            return Ok(link.gather(address, &bytes)?);
        }
        let first: usize = lengths[..self.rank()].iter().sum();
        let mut own = vec![T::zeroed(); lengths[self.rank()]];
        buffer.read(first, &mut own)?;
        let all = self.all_gather(&own)?;
        buffer.copy_from_slice(&all)
    }
}

#[cfg(test)]
mod tests;
