//! Buffers as kernel arguments.

use bytemuck::Pod;
use gpu_kernels::{In, Out};

use super::{Buffer, Storage};

impl<T: Pod> Buffer<T> {
    /// The device address of the first value; `None` where it means nothing to others: on the CPU and on
    /// an emulator. For libraries that are to work on the same memory, in the stream of the device or
    /// after waiting for it. When the buffer is dropped the device is waited for and the memory freed, not kept for
    /// the next buffer, which such a library could still be reading.
    pub fn device_address(&self) -> Option<u64> {
        match &self.storage {
            Storage::Cuda(memory) => Some(memory.address_for_others()),
            Storage::Cpu(_) | Storage::Emulator(_) => None,
        }
    }

    /// The address that kernels get.
    fn argument(&self) -> Option<u64> {
        match &self.storage {
            Storage::Cuda(memory) => Some(memory.address()),
            Storage::Emulator(memory) => Some(memory.address()),
            Storage::Cpu(_) => None,
        }
    }

    /// The values as a kernel's input. On the CPU, where no kernel runs, the argument is absent.
    pub fn input(&self) -> In<'_, T> {
        match self.argument() {
            // SAFETY: for as long as `self` is borrowed nobody writes the values; they are allocated on their
            // device, aligned to 256 bytes, initialised, and as many as said. Writes after the borrow, those of the
            // next buffer in the same memory too, run in the same stream, hence after the kernel. An emulator
            // checks it.
            Some(address) => unsafe {
                In::new(pointer::<T>(address).cast_const(), self.len as u64)
            },
            None => In::none(),
        }
    }

    /// The values as a kernel's output. On the CPU, where no kernel runs, the argument is absent.
    pub fn output(&mut self) -> Out<'_, T> {
        match self.argument() {
            // SAFETY: as for `input`, and the mutable borrow keeps everybody else away.
            Some(address) => unsafe { Out::new(pointer::<T>(address), self.len as u64) },
            None => Out::none(),
        }
    }
}

/// A device address as the kernels' pointer type; it is never dereferenced on the host.
fn pointer<T>(address: u64) -> *mut T {
    std::ptr::without_provenance_mut(address as usize)
}
