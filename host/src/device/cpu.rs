//! The CPU as a device.

use std::fmt;
use std::sync::OnceLock;

use super::error::DeviceError;
use super::group::Group;
use super::host_memory::HostMemory;
use super::memory::{Fit, Held, Ledger};
use super::usage::Usage;
use super::{MemoryInfo, host_memory, system};

/// The processor of this machine, with the threads of rayon's pool.
///
/// Clones share one account of memory; each [`CpuDevice::new`] starts its own.
#[derive(Clone)]
pub struct CpuDevice {
    ledger: Ledger,
    group: Group,
}

impl CpuDevice {
    /// The CPU, with a fresh account of memory.
    pub fn new() -> CpuDevice {
        CpuDevice::of(Group::alone())
    }

    /// The CPU as a member of a group: see [`group`](super::group).
    pub fn of(group: Group) -> CpuDevice {
        CpuDevice {
            ledger: Ledger::default(),
            group,
        }
    }

    /// Who shares the rows of matrices.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The processor's name as the operating system gives it, or `CPU`.
    pub fn name(&self) -> &str {
        static NAME: OnceLock<String> = OnceLock::new();
        NAME.get_or_init(|| system::processor_name().unwrap_or_else(|| "CPU".to_owned()))
    }

    /// Threads that parallel work uses.
    pub fn threads(&self) -> usize {
        rayon::current_num_threads()
    }

    /// Bytes that buffers hold, and that were copied.
    pub fn usage(&self) -> Usage {
        self.ledger.usage()
    }

    /// The account of this device's bytes.
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Free and total memory, where the operating system says.
    pub fn memory_info(&self) -> Option<MemoryInfo> {
        system::memory_info()
    }

    /// `bytes` bytes, fresh ones zero.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<CpuMemory, DeviceError> {
        let shortage = || {
            let info = self.memory_info().unwrap_or_default();
            self.ledger.shortage(self.name(), bytes, info)
        };
        let claimed = self.ledger.claim::<HostMemory>(bytes, Fit::Near);
        let (held, kept) = claimed.ok_or_else(shortage)?;
        let is_zero = kept.is_none();
        let memory = match kept {
            Some(kept) => kept.shortened(bytes),
            None => self.fresh(bytes).ok_or_else(|| {
                self.ledger.refuse();
                shortage()
            })?,
        };
        Ok(CpuMemory {
            device: self.clone(),
            memory,
            is_zero,
            held: Some(held),
        })
    }

    /// Memory from the allocator, once what is kept was freed where it has no other.
    fn fresh(&self, bytes: usize) -> Option<HostMemory> {
        let memory = HostMemory::zeroed(bytes);
        if memory.is_some() || self.ledger.trim(usize::MAX) == 0 {
            return memory;
        }
        HostMemory::zeroed(bytes)
    }
}

impl Default for CpuDevice {
    fn default() -> CpuDevice {
        CpuDevice::new()
    }
}

impl fmt::Debug for CpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuDevice({}, {} threads)", self.name(), self.threads())
    }
}

/// Host memory that counts as the CPU device's.
pub(crate) struct CpuMemory {
    /// The device that it was allocated on.
    pub(crate) device: CpuDevice,
    /// The bytes.
    pub(crate) memory: HostMemory,
    /// Whether they are zero as they came.
    is_zero: bool,
    held: Option<Held>,
}

impl CpuMemory {
    /// Sets bytes to zero that are not as they came.
    pub(crate) fn begin_with_zeros(&mut self) {
        if !self.is_zero {
            host_memory::fill_zero(self.memory.as_bytes_mut());
        }
    }
}

impl Drop for CpuMemory {
    fn drop(&mut self) {
        let mut memory = std::mem::take(&mut self.memory);
        if cfg!(debug_assertions) {
            memory.poison();
        }
        if let Some(held) = self.held.take() {
            held.keep(memory);
        }
    }
}
