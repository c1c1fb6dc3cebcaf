#![doc = include_str!("../README.md")]

mod address;
mod block;
mod cluster;
mod collective;
mod counting;
mod crew;
mod cta;
mod fault;
mod heap;
// A fault ends a run: it is moved once, and its size does not matter.
#[allow(clippy::result_large_err)]
mod launch;
mod limits;
mod matrix;
mod options;
mod panics;
mod profile;
pub mod self_check;
mod shadow;
mod stack;
mod thread;
mod tickets;
mod warp;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpu_kernels::{Entry, Family, Launch, Word};

pub use fault::{
    Action, Diagnosis, Fault, FaultKind, Kernel, Lifetime, Party, Place, Position, Site,
    Whereabouts,
};
pub use heap::{Memory, MemoryError};
pub use limits::Limits;
pub use options::{BlockOrder, Checks, Counting, EmulatorOptions, LaneOrder, Preemption};
pub use profile::{AtomicCount, Atomics, Profile, SiteCounts, SiteKey, Space};
pub use thread::Thread;

use block::Running;
use heap::Heap;

/// What runs one thread of a family's entries: [`Family::run`], compiled for the emulator's threads.
pub type Body<F> = fn(&Entry<F>, &Thread<'_>, &<F as Family>::Args<'_>);

/// A device that runs kernel bodies on the CPU and checks every access. Clones are the same device.
///
/// ```
/// use gpu_kernels::{Family, Launch};
/// use gpu_kernels::vector::{VectorArgs, Vectors};
/// use gpu_kernels_emulator::{Emulator, EmulatorOptions};
///
/// let emulator = Emulator::new(EmulatorOptions::default());
/// let out = emulator.allocate("out", 5 * 4)?;
/// let args = VectorArgs {
///     len: 5, alpha: 2.5f32, beta: 0.0,
///     a: gpu_kernels::In::none(), b: gpu_kernels::In::none(),
///     out: out.output(), partials: gpu_kernels::Out::none(),
///     strides: [1; 2], figures: gpu_kernels::Out::none(), slots: [0; 3], counter: gpu_kernels::Out::none(),
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
    limits: Limits,
    name: String,
    heap: Heap,
    /// Launches so far. Locked while one runs: a device runs one at a time.
    launches: Mutex<u32>,
    /// By entry, where accesses are counted.
    profiles: Mutex<BTreeMap<&'static str, Profile>>,
}

impl Emulator {
    /// A device with empty memory and the limits of an H200.
    pub fn new(options: EmulatorOptions) -> Emulator {
        Emulator::with_limits(options, Limits::default())
    }

    /// A device with empty memory and the limits of any other.
    pub fn with_limits(options: EmulatorOptions, limits: Limits) -> Emulator {
        Emulator(Arc::new(Inner {
            name: format!("{}, emulated", limits.device),
            options,
            limits,
            heap: Heap::default(),
            launches: Mutex::new(0),
            profiles: Mutex::default(),
        }))
    }

    /// What it was made with.
    pub fn options(&self) -> &EmulatorOptions {
        &self.0.options
    }

    /// The name of the device that it emulates, and that it does.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether both are one device, with one memory.
    pub fn is_same_as(&self, other: &Emulator) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The sum of the profiles of all launches so far, by entry. Empty unless the options ask for
    /// [`Counting::Sites`].
    pub fn profiles(&self) -> BTreeMap<&'static str, Profile> {
        lock(&self.0.profiles).clone()
    }

    /// `bytes` bytes that nobody has written, under a name for diagnostics.
    ///
    /// # Errors
    /// [`MemoryError::Exhausted`] for more than an address can tell apart, [`MemoryError::NoRoom`] for more
    /// than the host has.
    pub fn allocate(&self, name: &str, bytes: u64) -> Result<Memory, MemoryError> {
        Memory::new(self, Some(name), bytes)
    }

    /// As [`Emulator::allocate`], named by its number.
    ///
    /// # Errors
    /// As [`Emulator::allocate`].
    pub fn allocate_unnamed(&self, bytes: u64) -> Result<Memory, MemoryError> {
        Memory::new(self, None, bytes)
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

    /// Checks a launch shape against the limits of the device.
    ///
    /// # Errors
    /// [`FaultKind::Limit`]; [`FaultKind::Contract`] for a grid that is not made of the entry's clusters.
    pub fn check_limits<F: Family>(
        &self,
        entry: &Entry<F>,
        shape: &Launch,
    ) -> Result<(), Box<Fault>> {
        let cluster = entry.description.cluster;
        launch::check_limits(&self.0.limits, kernel_of(entry), shape, cluster)?;
        Ok(())
    }

    /// Runs a kernel to its end.
    ///
    /// Compiles all bodies of the family where it is called: [`Emulator::launch_body`] does not.
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
        self.launch_body(entry, shape, args, |entry, thread, args| {
            F::run(entry, thread, args);
        })
    }

    /// As [`Emulator::launch`], by a body that was compiled elsewhere.
    ///
    /// # Errors
    /// As [`Emulator::launch`].
    pub fn launch_body<F: Family>(
        &self,
        entry: &Entry<F>,
        shape: &Launch,
        args: &F::Args<'_>,
        body: Body<F>,
    ) -> Result<Profile, Box<Fault>> {
        let kernel = kernel_of(entry);
        self.check_limits(entry, shape)?;
        F::check(entry, shape, args).map_err(|violation| Fault {
            kernel,
            position: None,
            kind: FaultKind::Contract(violation),
        })?;
        let body = |thread: &Thread<'_>| body(entry, thread, args);
        self.run_in_clusters(kernel, shape, entry.description.cluster, &body)
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
        self.run_in_clusters(kernel, shape, 1, body)
    }

    /// [`Emulator::run`] in clusters of this many blocks.
    ///
    /// # Errors
    /// As [`Emulator::run`].
    pub fn run_in_clusters(
        &self,
        kernel: Kernel,
        shape: &Launch,
        cluster: u32,
        body: &(dyn Fn(&Thread<'_>) + Sync),
    ) -> Result<Profile, Box<Fault>> {
        launch::check_limits(&self.0.limits, kernel, shape, cluster)?;
        let mut launches = lock(&self.0.launches);
        *launches = launches.wrapping_add(1);
        let table = self.0.heap.table();
        let running = Running {
            kernel,
            shape: *shape,
            cluster,
            table: &table,
            options: self.options(),
            generation: *launches,
            poison_read: Mutex::new(None),
            tickets: tickets::Tickets::default(),
        };
        let profile = launch::run(&running, body)?;
        if self.options().counting == Counting::Sites {
            let mut profiles = lock(&self.0.profiles);
            let sum = profiles.entry(kernel.entry).or_default();
            *sum = std::mem::take(sum).merge(profile.clone());
        }
        Ok(profile)
    }
}

fn kernel_of<F: Family>(entry: &Entry<F>) -> Kernel {
    Kernel {
        family: F::NAME,
        entry: entry.name,
    }
}

/// What a mutex holds. A panic elsewhere has not left it half-changed: none can be raised under the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
