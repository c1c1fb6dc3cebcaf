//! The emulator of `gpu-kernels-emulator` as a device: its memory is counted, and launches are planned for the GPU
//! whose limits it keeps.
//!
//! It is there in builds with the feature `emulator`: every kernel is compiled for it, which a program that trains has no use
//! for. Without the feature nobody can make an [`Emulator`].
//!
//! What it checks, what it does not, and how a kernel author uses it, says the page of [`gpu_kernels_emulator`].
//!
//! ```
//! use warpfuse::device::Device;
//! use warpfuse::device::emulator::{Emulator, EmulatorOptions};
//! use warpfuse::plan::limits::DeviceLimits;
//!
//! let a100 = DeviceLimits::known("a100").expect("it is in the list");
//! let emulator = Emulator::of(a100, EmulatorOptions::schedule(3));
//! let x = Device::Emulator(emulator.clone()).upload(&[1.0f32, 2.0])?;
//! assert_eq!(emulator.usage().live_bytes, 8);
//! # Ok::<(), warpfuse::device::DeviceError>(())
//! ```

use std::ops::{Deref, Range};
use std::sync::Arc;

use gpu_kernels::{Entry, Family, Launch};

use gpu_kernels_emulator as engine;
pub use gpu_kernels_emulator::{
    Action, AtomicCount, Atomics, BlockOrder, Checks, Counting, Diagnosis, EmulatorOptions, Fault,
    FaultKind, Kernel, LaneOrder, Limits, Memory, MemoryError, Party, Place, Position, Preemption,
    Profile, Site, SiteCounts, SiteKey, Space, Thread, Whereabouts, self_check,
};

use super::MemoryInfo;
use super::error::DeviceError;
use super::group::Group;
use super::lent::Owner;
use super::memory::{Counted, Fit, Ledger, Token};
use super::tuned::Tuned;
use super::usage::Usage;
use crate::plan::limits::DeviceLimits;

/// A device that runs kernel bodies on the CPU and checks every access. Clones are the same device.
///
/// Whatever [`gpu_kernels_emulator::Emulator`] does, it does.
#[derive(Debug, Clone)]
pub struct Emulator {
    engine: engine::Emulator,
    limits: Arc<DeviceLimits>,
    ledger: Ledger,
    group: Option<Group>,
    tuned: Tuned,
}

impl Emulator {
    /// The device of these options, for callers that exist in builds without emulators too.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] where this build lacks the feature `emulator`.
    pub(crate) fn open(
        limits: Option<DeviceLimits>,
        options: EmulatorOptions,
    ) -> Result<Emulator, DeviceError> {
        #[cfg(feature = "emulator")]
        return Ok(match limits {
            Some(limits) => Emulator::of(limits, options),
            None => Emulator::new(options),
        });
        #[cfg(not(feature = "emulator"))]
        {
            let _ = (limits, options);
            Err(DeviceError::Unsupported {
                what: "run kernels",
                device: "the emulator".to_owned(),
                why: "this program was built without the feature `emulator`; build it with `--features emulator`",
            })
        }
    }

    /// A device with empty memory and the limits of an H200.
    #[cfg(feature = "emulator")]
    pub fn new(options: EmulatorOptions) -> Emulator {
        let h200 = DeviceLimits::known("h200").expect("h200 is in the list of known devices");
        Emulator::of(h200, options)
    }

    /// A device with empty memory and these limits, for which launches are planned.
    #[cfg(feature = "emulator")]
    pub fn of(limits: DeviceLimits, options: EmulatorOptions) -> Emulator {
        let kept = Limits {
            device: limits.name.clone(),
            max_threads_per_block: limits.max_threads_per_block,
            shared_per_block: limits.shared_per_block,
        };
        Emulator {
            engine: engine::Emulator::with_limits(options, kept),
            limits: Arc::new(limits),
            ledger: Ledger::default(),
            group: None,
            tuned: Tuned::default(),
        }
    }

    /// This emulator with this many multiprocessors. What a launch has more blocks than work for costs an emulator as much as
    /// work does, so that with few of them small problems take less time.
    ///
    /// ```
    /// # #[cfg(feature = "emulator")] {
    /// use warpfuse::device::emulator::{Emulator, EmulatorOptions};
    /// let emulator = Emulator::new(EmulatorOptions::default()).with_multiprocessors(4);
    /// assert_eq!(emulator.limits().sms, 4);
    /// # }
    /// ```
    pub fn with_multiprocessors(self, sms: u32) -> Emulator {
        let limits = DeviceLimits {
            sms,
            ..self.limits().clone()
        };
        Emulator {
            limits: Arc::new(limits),
            ..self
        }
    }

    /// Runs a kernel to its end, by the body that was compiled with all others.
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
        #[cfg(feature = "emulator")]
        return self
            .engine
            .launch_body(entry, shape, args, gpu_kernels_emulated::body());
        #[cfg(not(feature = "emulator"))]
        {
            let _ = (entry, shape, args);
            unreachable!("without the feature `emulator` nobody can make an emulator")
        }
    }

    /// The same device as a member of a group, or of none.
    pub(super) fn member(&self, group: Option<Group>) -> Emulator {
        Emulator {
            group,
            ..self.clone()
        }
    }

    /// Who shares the rows of matrices.
    pub(super) fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// Those of the device that it emulates.
    pub fn limits(&self) -> &DeviceLimits {
        &self.limits
    }

    /// Bytes that buffers hold, and that were copied.
    pub fn usage(&self) -> Usage {
        self.ledger.usage()
    }

    /// Where its planners find measured launches.
    pub(super) fn tuned(&self) -> &Tuned {
        &self.tuned
    }

    /// The account of this device's bytes.
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// `bytes` bytes that nobody has written, counted, also where the account is one that was kept.
    pub(super) fn storage(&self, bytes: usize) -> Result<EmulatorMemory, DeviceError> {
        let unknown = MemoryInfo::default();
        let shortage = || self.ledger.shortage(self.name(), bytes, unknown);
        let claimed = self.ledger.claim::<()>(bytes, Fit::Exact);
        let (held, _) = claimed.ok_or_else(shortage)?;
        let memory = self.allocate_unnamed(bytes as u64)?;
        Ok(EmulatorMemory {
            memory: Arc::new(memory),
            start: 0,
            bytes: bytes as u64,
            emulator: self.clone(),
            _counted: Arc::new(Counted::Own(Token::of(held))),
            _owner: None,
        })
    }

    /// The emulator's image of `bytes`: it has no memory that another library could write, and what is lent to it lies in
    /// this process.
    pub(super) fn image(&self, bytes: &[u8], owner: Owner) -> Result<EmulatorMemory, DeviceError> {
        let memory = self.allocate_unnamed(bytes.len() as u64)?;
        memory.write_bytes(0, bytes)?;
        Ok(EmulatorMemory {
            memory: Arc::new(memory),
            start: 0,
            bytes: bytes.len() as u64,
            emulator: self.clone(),
            _counted: Arc::new(Counted::Lent(self.ledger.lend(bytes.len()))),
            _owner: Some(owner),
        })
    }
}

impl Deref for Emulator {
    type Target = engine::Emulator;

    fn deref(&self) -> &engine::Emulator {
        &self.engine
    }
}

/// What a buffer on an emulator holds.
pub(super) struct EmulatorMemory {
    memory: Arc<engine::Memory>,
    /// The first byte and how many there are: a buffer may be a window of another one.
    start: u64,
    bytes: u64,
    emulator: Emulator,
    _counted: Arc<Counted>,
    /// Of what is lent, kept as on a GPU.
    _owner: Option<Owner>,
}

impl EmulatorMemory {
    /// The same bytes for somebody else who reads them.
    pub fn alias(&self) -> EmulatorMemory {
        EmulatorMemory {
            memory: self.memory.clone(),
            start: self.start,
            bytes: self.bytes,
            emulator: self.emulator.clone(),
            _counted: self._counted.clone(),
            _owner: self._owner.clone(),
        }
    }

    /// Some of the bytes.
    pub fn window(&self, bytes: Range<usize>) -> EmulatorMemory {
        EmulatorMemory {
            start: self.start + bytes.start as u64,
            bytes: bytes.len() as u64,
            ..self.alias()
        }
    }

    /// The address of the first byte.
    pub fn address(&self) -> u64 {
        self.memory.address() + self.start
    }

    /// Copies the bytes from `start` on.
    ///
    /// # Errors
    /// As [`Memory::read_bytes`].
    pub fn read_bytes(&self, start: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        self.memory.read_bytes(self.start + start, to)
    }

    /// Replaces the bytes from `start` on.
    ///
    /// # Errors
    /// As [`Memory::write_bytes`].
    pub fn write_bytes(&self, start: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.memory.write_bytes(self.start + start, from)
    }

    /// Sets all bytes to zero.
    pub fn write_zeros(&self) {
        if self.bytes == self.memory.bytes() {
            return self.memory.write_zeros();
        }
        let zeros = vec![0; self.bytes as usize];
        let written = self.memory.write_bytes(self.start, &zeros);
        written.expect("a window lies inside its memory");
    }

    /// The device.
    pub fn emulator(&self) -> &Emulator {
        &self.emulator
    }
}

#[cfg(test)]
mod tests;
