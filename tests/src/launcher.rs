//! Launching one compiled entry by itself, whatever the planner would choose.
//!
//! Checks of entries are generic over [`Launcher`], so that another device that runs the same entries
//! runs the same checks.

use anyhow::{Result, bail, ensure};
use bytemuck::Pod;
use gpu_kernels::{Entry, Family, In, Launch, Out, Word};
use warpfuse::device::{Buffer, Device};

use crate::tape;

/// Values behind the end of every array, where no kernel may read or write.
pub const GUARD: usize = 37;

/// A device that launches entries.
pub trait Launcher {
    /// Its arrays.
    type Array<T: Pod + Word>: Array<T>;

    /// Its name in reports.
    fn name(&self) -> String;

    /// A copy of `values` on the device.
    ///
    /// # Errors
    /// When the device has too little memory.
    fn upload<T: Pod + Word>(&self, values: &[T]) -> Result<Self::Array<T>>;

    /// Launches `entry` once.
    ///
    /// # Errors
    /// When the launch breaks the entry's contract, or the device fails.
    fn launch<F: Family>(
        &self,
        entry: &'static Entry<F>,
        shape: Launch,
        args: F::Args<'_>,
    ) -> Result<()>;

    /// The most threads that a block of `entry` may have.
    ///
    /// # Errors
    /// When the device lacks the entry.
    fn most_threads<F: Family>(&self, entry: &'static Entry<F>) -> Result<u32>;

    /// The most bytes of shared memory that a block may have.
    fn most_shared_bytes(&self) -> u64;

    /// Whether blocks may be launched in clusters.
    fn has_clusters(&self) -> bool;
}

/// An array on a [`Launcher`].
pub trait Array<T> {
    /// As an argument that is only read.
    fn input(&self) -> In<'_, T>;
    /// As an argument that is written.
    fn output(&mut self) -> Out<'_, T>;
    /// The values, after everything that was launched before.
    ///
    /// # Errors
    /// When something launched before has failed.
    fn values(&self) -> Result<Vec<T>>;
}

impl<T: Pod + Word> Array<T> for Buffer<T> {
    fn input(&self) -> In<'_, T> {
        Buffer::input(self)
    }

    fn output(&mut self) -> Out<'_, T> {
        Buffer::output(self)
    }

    fn values(&self) -> Result<Vec<T>> {
        let values = self.to_vec()?;
        tape::note_values(&values);
        Ok(values)
    }
}

impl Launcher for Device {
    type Array<T: Pod + Word> = Buffer<T>;

    fn name(&self) -> String {
        self.to_string()
    }

    fn upload<T: Pod + Word>(&self, values: &[T]) -> Result<Buffer<T>> {
        Ok(Device::upload(self, values)?)
    }

    fn launch<F: Family>(
        &self,
        entry: &'static Entry<F>,
        shape: Launch,
        args: F::Args<'_>,
    ) -> Result<()> {
        self.prepare(entry, shape)?.launch(args)?;
        tape::note_launch(entry.name, shape);
        Ok(())
    }

    fn most_threads<F: Family>(&self, entry: &'static Entry<F>) -> Result<u32> {
        match (self, self.limits()) {
            (Device::Cuda(cuda), _) => Ok(cuda.attributes(entry.name)?.max_threads_per_block),
            (_, Some(limits)) => Ok(limits.max_threads_per_block),
            (_, None) => bail!("{self} launches no entries"),
        }
    }

    fn most_shared_bytes(&self) -> u64 {
        self.limits()
            .map_or(0, |limits| u64::from(limits.shared_per_block))
    }

    fn has_clusters(&self) -> bool {
        Device::has_clusters(self)
    }
}

/// A copy of `values` with [`GUARD`] times `guard` behind it.
///
/// # Errors
/// When the device has too little memory.
pub fn guarded<L: Launcher, T: Pod + Word>(
    launcher: &L,
    values: &[T],
    guard: T,
) -> Result<L::Array<T>> {
    let guards = std::iter::repeat_n(guard, GUARD);
    let all: Vec<T> = values.iter().copied().chain(guards).collect();
    launcher.upload(&all)
}

/// The values of an array from [`guarded`].
///
/// # Errors
/// When a kernel wrote behind the end.
pub fn unguarded<T: Word>(array: &impl Array<T>, guard: T) -> Result<Vec<T>> {
    let mut values = array.values()?;
    let len = values.len() - GUARD;
    let changed = values[len..]
        .iter()
        .position(|value| value.to_bits() != guard.to_bits());
    ensure!(
        changed.is_none(),
        "element {} of {len} was written",
        len + changed.unwrap_or(0)
    );
    values.truncate(len);
    Ok(values)
}
