//! Launching one compiled entry by itself, whatever the planner would choose, over arrays with guards.

use anyhow::{Result, bail, ensure};
use bytemuck::Pod;
use gpu_kernels::{Entry, Family, In, Launch, Out, Word};
use warpfuse::device::{Buffer, Device};

use crate::tape;

/// Values behind the end of every guarded array, where no kernel may read or write.
pub const GUARD: usize = 37;

/// An array on a device with [`GUARD`] times the same value behind its end.
pub struct Guarded<T> {
    all: Buffer<T>,
    guard: T,
}

impl<T: Pod + Word> Guarded<T> {
    /// A copy of `values`, with `guard` behind it.
    ///
    /// # Errors
    /// When the device has too little memory.
    pub fn new(device: &Device, values: &[T], guard: T) -> Result<Self> {
        let guards = std::iter::repeat_n(guard, GUARD);
        let all: Vec<T> = values.iter().copied().chain(guards).collect();
        let all = device.upload(&all)?;
        Ok(Guarded { all, guard })
    }

    /// As an argument that is only read.
    pub fn input(&self) -> In<'_, T> {
        self.all.input()
    }

    /// As an argument that is written.
    pub fn output(&mut self) -> Out<'_, T> {
        self.all.output()
    }

    /// The values, after everything that was launched before.
    ///
    /// # Errors
    /// When a kernel wrote behind the end, or something launched before has failed.
    pub fn values(&self) -> Result<Vec<T>> {
        let mut values = self.all.to_vec()?;
        tape::note_values(&values);
        let len = values.len() - GUARD;
        let changed = values[len..]
            .iter()
            .position(|value| value.to_bits() != self.guard.to_bits());
        ensure!(
            changed.is_none(),
            "element {} of {len} was written",
            len + changed.unwrap_or(0)
        );
        values.truncate(len);
        Ok(values)
    }
}

/// Launches `entry` once.
///
/// # Errors
/// When the launch breaks the entry's contract, or the device fails.
pub fn launch<F: Family>(
    device: &Device,
    entry: &'static Entry<F>,
    shape: Launch,
    args: F::Args<'_>,
) -> Result<()> {
    device.prepare(entry, shape)?.launch(args)?;
    tape::note_launch(entry.name, shape);
    Ok(())
}

/// The most threads that a block of `entry` may have.
///
/// # Errors
/// When the device lacks the entry.
pub fn most_threads<F: Family>(device: &Device, entry: &'static Entry<F>) -> Result<u32> {
    match (device, device.limits()) {
        (Device::Cuda(cuda), _) => Ok(cuda.attributes(entry.name)?.max_threads_per_block),
        (_, Some(limits)) => Ok(limits.max_threads_per_block),
        (_, None) => bail!("{device} launches no entries"),
    }
}

/// The most bytes of shared memory that a block may have.
pub fn most_shared_bytes(device: &Device) -> u64 {
    device
        .limits()
        .map_or(0, |limits| u64::from(limits.shared_per_block))
}
