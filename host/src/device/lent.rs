//! Memory of a device that another library owns, such as an array of CuPy or PyTorch.

use std::any::Any;
use std::sync::Arc;

use bytemuck::Pod;

use super::{Device, DeviceError, SharedBuffer};

/// Whoever owns lent memory, kept for as long as it is needed.
pub(crate) type Owner = Arc<dyn Any + Send + Sync>;

/// Bytes that kernels load at once.
const ALIGNMENT: u64 = 16;

impl Device {
    /// `len` values at `address` in this device's memory, which somebody else owns: nothing is copied, and `owner` is kept
    /// until nobody needs them. They count as [lent](super::Usage::lent_bytes), against no limit, and are never freed here.
    ///
    /// CUDA devices share the primary context with CUDA's runtime and everything built on it: its pointers are addresses
    /// here. What was submitted to other streams before has to be waited for, see [`Device::wait_for`]. An emulator takes the
    /// address for one of this process, and makes an image of the values as they are.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use warpfuse::device::{Device, EmulatorOptions};
    /// # fn main() -> Result<(), warpfuse::device::DeviceError> {
    /// # #[cfg(feature = "emulator")] {
    /// let (device, values) = (Device::emulator(EmulatorOptions::default()), Arc::new([1.0_f32, 2.0]));
    /// let address = values.as_ptr().expose_provenance() as u64;
    /// // SAFETY: two values are there, and nobody changes them.
    /// let lent = unsafe { device.borrow::<f32>(address, 2, values.clone()) }?;
    /// assert_eq!((lent.to_vec()?, device.usage().lent_bytes), (vec![1.0, 2.0], 8));
    /// # } Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`DeviceError::WrongDevice`] for memory of the host or of another GPU, [`DeviceError::OutOfBounds`] where the values
    /// reach beyond the allocation at `address`, [`DeviceError::Alignment`] for an address that is no multiple of 16, [`DeviceError::Unsupported`] on the CPU, whose arrays are slices.
    ///
    /// # Safety
    /// From the call until the last clone of the result is dropped there are `len` initialised values of type T at
    /// `address`, which nobody writes, and `owner` keeps the memory. On an emulator the address is one of this process whose
    /// provenance is exposed.
    pub unsafe fn borrow<T: Pod>(
        &self,
        address: u64,
        len: usize,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Result<SharedBuffer<T>, DeviceError> {
        if len > 0 && !address.is_multiple_of(ALIGNMENT) {
            return Err(DeviceError::Alignment { address });
        }
        self.lent(address, len, owner).map(SharedBuffer::from)
    }

    /// Has this device's work from now on wait for what was submitted to `stream` so far; nothing to do where there are no
    /// streams.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when earlier work failed.
    ///
    /// # Safety
    /// `stream` is a stream of this device's primary context (a `CUstream`), or 1 for the legacy default stream, or 2 for
    /// that of the calling thread.
    pub unsafe fn wait_for(&self, stream: u64) -> Result<(), DeviceError> {
        match self {
            Device::Cuda(device) => device.wait_for(stream),
            Device::Cpu(_) | Device::Emulator(_) => Ok(()),
        }
    }

    /// The handle of the stream that this device's work runs in, for libraries that are to make it wait for theirs; `None`
    /// where there are no streams.
    pub fn stream_handle(&self) -> Option<u64> {
        match self {
            Device::Cuda(device) => Some(device.stream_address()),
            Device::Cpu(_) | Device::Emulator(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::EmulatorOptions;

    /// Values at an address that kernels can load 16 bytes from.
    #[repr(align(16))]
    struct Aligned([f32; 8]);

    fn lent(device: &Device, owner: &Arc<Aligned>, skip: usize) -> Result<Vec<f32>, DeviceError> {
        let address = owner.0[skip..].as_ptr().expose_provenance() as u64;
        // SAFETY: this many values are there, which nobody changes, and the owner is kept.
        let lent = unsafe { device.borrow::<f32>(address, 8 - skip, owner.clone()) }?;
        assert_eq!(device.usage().lent_bytes, 4 * (8 - skip));
        assert_eq!(
            (device.usage().live_bytes, Arc::strong_count(owner)),
            (0, 2)
        );
        let clone = lent.clone();
        drop(lent);
        clone.to_vec()
    }

    #[test]
    fn lent_memory_is_counted_apart_and_its_owner_kept_until_the_last_clone_is_gone() {
        let (device, owner) = (
            Device::emulator(EmulatorOptions::default()),
            Arc::new(Aligned([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])),
        );
        assert_eq!(lent(&device, &owner, 0).unwrap(), owner.0);
        assert_eq!(lent(&device, &owner, 4).unwrap(), owner.0[4..]);
        assert_eq!(
            (device.usage().lent_bytes, Arc::strong_count(&owner)),
            (0, 1)
        );
    }

    #[test]
    fn what_cannot_be_borrowed_is_refused() {
        let owner = Arc::new(Aligned([0.0; 8]));
        let emulator = Device::emulator(EmulatorOptions::default());
        let error = lent(&emulator, &owner, 1).unwrap_err();
        assert!(matches!(error, DeviceError::Alignment { .. }), "{error}");
        let error = lent(&Device::cpu(), &owner, 0).unwrap_err();
        assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
        assert_eq!(Arc::strong_count(&owner), 1);
    }
}
