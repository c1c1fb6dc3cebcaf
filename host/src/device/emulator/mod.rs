#![doc = include_str!("README.md")]

mod address;
mod block;
mod collective;
mod counting;
mod crew;
mod fault;
mod heap;
mod launch;
mod options;
mod panics;
mod profile;
pub mod self_check;
mod shadow;
mod stack;
mod thread;
mod warp;

use std::sync::{Arc, Mutex, PoisonError};

use gpu_kernels::{Entry, Family, Launch, Word};

pub use fault::{
    Action, Diagnosis, Fault, FaultKind, Kernel, Party, Place, Position, Site, Whereabouts,
};
pub use heap::{Memory, MemoryError};
pub use options::{
    BlockOrder, Checks, Counting, EmulatorOptions, LaneOrder, LaunchLimits, Preemption,
};
pub use profile::{Profile, SiteCounts, Space};
pub use thread::Thread;

use block::Running;
use heap::Heap;

/// A device that runs kernel bodies on the CPU and checks every access. Clones are the same device.
///
/// ```
/// use gpu_kernels::{Family, Launch};
/// use gpu_kernels::vector::{VectorArgs, Vectors};
/// use warpfuse::device::emulator::{Emulator, EmulatorOptions};
///
/// let emulator = Emulator::new(EmulatorOptions::default());
/// let out = emulator.allocate("out", 5 * 4)?;
/// let args = VectorArgs {
///     len: 5, alpha: 2.5f32, beta: 0.0,
///     a: gpu_kernels::In::none(), b: gpu_kernels::In::none(),
///     out: out.output(), partials: gpu_kernels::Out::none(),
/// };
/// let fill = &Vectors::<f32>::entries()[0];
/// emulator.launch(fill, &Launch { grid: 1, block: 32, shared_bytes: 0 }, &args)?;
/// assert_eq!(out.download::<f32>()?, [2.5; 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Emulator(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: EmulatorOptions,
    heap: Arc<Heap>,
    /// Launches so far. Locked while one runs: a device runs one at a time.
    launches: Mutex<u32>,
}

impl Emulator {
    /// A device with empty memory.
    pub fn new(options: EmulatorOptions) -> Emulator {
        Emulator(Arc::new(Inner {
            options,
            heap: Arc::default(),
            launches: Mutex::new(0),
        }))
    }

    /// What it was made with.
    pub fn options(&self) -> &EmulatorOptions {
        &self.0.options
    }

    /// `bytes` bytes that nobody has written, under a name for diagnostics.
    ///
    /// # Errors
    /// [`MemoryError::Exhausted`] for more than an address can tell apart.
    pub fn allocate(&self, name: &str, bytes: u64) -> Result<Memory, MemoryError> {
        Memory::new(self.0.heap.clone(), Some(name), bytes)
    }

    /// As [`Emulator::allocate`], named by its number.
    ///
    /// # Errors
    /// As [`Emulator::allocate`].
    pub fn allocate_unnamed(&self, bytes: u64) -> Result<Memory, MemoryError> {
        Memory::new(self.0.heap.clone(), None, bytes)
    }

    /// A buffer with these elements.
    ///
    /// # Errors
    /// As [`Emulator::allocate`].
    pub fn upload<T: Word + bytemuck::Pod>(
        &self,
        name: &str,
        elements: &[T],
    ) -> Result<Memory, MemoryError> {
        let memory = self.allocate(name, size_of_val(elements) as u64)?;
        memory.write_bytes(0, bytemuck::cast_slice(elements))?;
        Ok(memory)
    }

    /// Runs a kernel to its end.
    ///
    /// # Errors
    /// The first [`Fault`]: of the launch, which must keep the device's limits and the kernel's contract,
    /// or of a lane.
    pub fn launch<F: Family>(
        &self,
        entry: &Entry<F>,
        shape: &Launch,
        args: &F::Args<'_>,
    ) -> Result<Profile, Box<Fault>> {
        let kernel = Kernel {
            family: F::NAME,
            entry: entry.name,
        };
        launch::check_limits(self.options(), kernel, shape)?;
        F::check(entry, shape, args).map_err(|violation| Fault {
            kernel,
            position: None,
            kind: FaultKind::Contract(violation),
        })?;
        self.run(kernel, shape, &|thread| F::run(entry, thread, args))
    }

    /// Runs a body that belongs to no family.
    ///
    /// # Errors
    /// As [`Emulator::launch`], without a contract.
    pub fn run(
        &self,
        kernel: Kernel,
        shape: &Launch,
        body: &(dyn Fn(&Thread<'_>) + Sync),
    ) -> Result<Profile, Box<Fault>> {
        launch::check_limits(self.options(), kernel, shape)?;
        let mut launches = self
            .0
            .launches
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *launches = launches.wrapping_add(1);
        let table = self.0.heap.table();
        let running = Running {
            kernel,
            shape: *shape,
            table: &table,
            options: self.options(),
            generation: *launches,
            poison_read: Mutex::new(None),
        };
        Ok(launch::run(&running, body)?)
    }
}

#[cfg(test)]
mod tests;
