//! The emulator of `gpu-kernels-emulator` as a device: its memory is counted, and launches are planned for the GPU
//! whose limits it keeps.
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

use std::ops::Deref;
use std::sync::Arc;

use gpu_kernels_emulator as engine;
pub use gpu_kernels_emulator::{
    Action, AtomicCount, Atomics, BlockOrder, Checks, Counting, Diagnosis, EmulatorOptions, Fault,
    FaultKind, Kernel, LaneOrder, Limits, Memory, MemoryError, Party, Place, Position, Preemption,
    Profile, Site, SiteCounts, SiteKey, Space, Thread, Whereabouts, self_check,
};

use super::usage::{Counter, Held, Usage};
use crate::plan::limits::DeviceLimits;

/// A device that runs kernel bodies on the CPU and checks every access. Clones are the same device.
///
/// Whatever [`gpu_kernels_emulator::Emulator`] does, it does.
#[derive(Debug, Clone)]
pub struct Emulator {
    engine: engine::Emulator,
    limits: Arc<DeviceLimits>,
    usage: Counter,
}

impl Emulator {
    /// A device with empty memory and the limits of an H200.
    pub fn new(options: EmulatorOptions) -> Emulator {
        let h200 = DeviceLimits::known("h200").expect("h200 is in the list of known devices");
        Emulator::of(h200, options)
    }

    /// A device with empty memory and these limits, for which launches are planned.
    pub fn of(limits: DeviceLimits, options: EmulatorOptions) -> Emulator {
        let kept = Limits {
            device: limits.name.clone(),
            max_threads_per_block: limits.max_threads_per_block,
            shared_per_block: limits.shared_per_block,
        };
        Emulator {
            engine: engine::Emulator::with_limits(options, kept),
            limits: Arc::new(limits),
            usage: Counter::default(),
        }
    }

    /// Those of the device that it emulates.
    pub fn limits(&self) -> &DeviceLimits {
        &self.limits
    }

    /// Bytes that buffers hold, and that were copied.
    pub fn usage(&self) -> Usage {
        self.usage.usage()
    }

    /// What counts this device's bytes.
    pub(super) fn counter(&self) -> &Counter {
        &self.usage
    }

    /// `bytes` bytes that nobody has written, counted.
    pub(super) fn storage(&self, bytes: usize) -> Result<EmulatorMemory, MemoryError> {
        Ok(EmulatorMemory {
            memory: self.allocate_unnamed(bytes as u64)?,
            emulator: self.clone(),
            _held: self.usage.hold(bytes),
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
#[derive(Debug)]
pub(super) struct EmulatorMemory {
    memory: engine::Memory,
    emulator: Emulator,
    _held: Held,
}

impl EmulatorMemory {
    /// The device.
    pub fn emulator(&self) -> &Emulator {
        &self.emulator
    }
}

impl Deref for EmulatorMemory {
    type Target = engine::Memory;

    fn deref(&self) -> &engine::Memory {
        &self.memory
    }
}

#[cfg(test)]
mod tests;
