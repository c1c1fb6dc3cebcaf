//! Device memory as bytes. All copies and fills run in the device's stream.

use std::mem::ManuallyDrop;
use std::sync::PoisonError;

use cust::error::CudaError;
use cust::memory::DeviceBuffer;
use cust_raw::{CUDA_MEMCPY2D, CUdeviceptr, CUmemorytype};

use super::CudaDevice;
use super::driver::{check, from_cust};
use super::pinned::PINNED_BYTES;
use crate::device::error::DeviceError;
use crate::device::loader::symbols::{
    cuMemcpy2DAsync_v2, cuMemcpyDtoDAsync_v2, cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2,
    cuMemsetD8Async,
};
use crate::device::usage::Held;

/// Allocations are padded to this many bytes, so that a 16-byte load never reaches beyond them.
const PAD_BYTES: usize = 16;

/// Bytes of device memory, freed when dropped.
///
/// The driver aligns allocations to 256 bytes.
pub(crate) struct CudaMemory {
    device: CudaDevice,
    allocation: ManuallyDrop<DeviceBuffer<u8>>,
    bytes: usize,
    _held: Held,
}

/// Rows copied from packed host memory to device memory with a gap after each row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PitchedRows {
    /// Number of rows.
    pub(crate) rows: usize,
    /// Bytes of a row in host memory, without a gap.
    pub(crate) row_bytes: usize,
    /// Bytes from one row to the next in device memory.
    pub(crate) pitch_bytes: usize,
}

impl CudaDevice {
    /// `bytes` bytes, uninitialised except for the padding after them, which is zero.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<CudaMemory, DeviceError> {
        self.enter()?;
        let padded =
            bytes
                .max(1)
                .checked_next_multiple_of(PAD_BYTES)
                .ok_or(DeviceError::SizeOverflow {
                    count: bytes,
                    element_bytes: 1,
                })?;
        // SAFETY: nobody reads the bytes before they are written: see `Buffer`.
        let allocation = unsafe { DeviceBuffer::<u8>::uninitialized(padded) }
            .map_err(|error| self.allocation_error(error, padded))?;
        let held = self.0.counter.hold(padded);
        let allocation = ManuallyDrop::new(allocation);
        let mut memory = CudaMemory {
            device: self.clone(),
            allocation,
            bytes: padded,
            _held: held,
        };
        memory.fill_zero(bytes, padded - bytes)?;
        memory.bytes = bytes;
        Ok(memory)
    }

    fn allocation_error(&self, error: CudaError, requested: usize) -> DeviceError {
        if error != CudaError::OutOfMemory {
            return from_cust("cuMemAlloc")(error);
        }
        let info = self.memory_info().unwrap_or_default();
        DeviceError::OutOfMemory {
            device: self.name().to_owned(),
            requested,
            free: info.free_bytes,
            total: info.total_bytes,
        }
    }
}

impl CudaMemory {
    /// The device that the memory lies on.
    pub(crate) fn device(&self) -> &CudaDevice {
        &self.device
    }

    /// The device address of the first byte.
    pub(crate) fn address(&self) -> CUdeviceptr {
        self.allocation.as_device_ptr().as_raw()
    }

    /// Copies host bytes to `start`, and returns when they may be reused.
    pub(crate) fn write(&mut self, start: usize, from: &[u8]) -> Result<(), DeviceError> {
        let to = self.range("copy to the device", start, from.len())?;
        if from.is_empty() {
            return Ok(());
        }
        let stream = self.device.raw_stream();
        // SAFETY: the range lies inside the allocation, the source is as long; the stream is waited
        // for below, before the borrow of the source ends.
        let result = unsafe { cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), from.len(), stream) };
        check("cuMemcpyHtoDAsync", result)?;
        self.device.synchronize()
    }

    /// Copies rows to the beginning of this memory, and returns when the host's may be reused.
    pub(crate) fn write_rows(
        &mut self,
        from: &[u8],
        shape: PitchedRows,
    ) -> Result<(), DeviceError> {
        let PitchedRows {
            rows,
            row_bytes,
            pitch_bytes,
        } = shape;
        if rows == 0 || row_bytes == 0 {
            return Ok(());
        }
        let overflow = DeviceError::SizeOverflow {
            count: rows,
            element_bytes: pitch_bytes,
        };
        let device_bytes = rows.checked_mul(pitch_bytes).ok_or(overflow)?;
        let to = self.range("copy rows to the device", 0, device_bytes)?;
        if row_bytes > pitch_bytes || from.len() / row_bytes < rows {
            let (what, found) = ("copy rows to the device", from.len());
            return Err(DeviceError::LengthMismatch {
                what,
                expected: rows * row_bytes,
                found,
            });
        }
        let copy = pitched_copy(from, to, shape);
        // SAFETY: source and target hold all rows, as checked; the stream is waited for below, before
        // the borrow of the source ends.
        let result = unsafe { cuMemcpy2DAsync_v2(&raw const copy, self.device.raw_stream()) };
        check("cuMemcpy2DAsync", result)?;
        self.device.synchronize()
    }

    /// Copies bytes from `start` to the host, after everything submitted before.
    ///
    /// The caller answers for those bytes being initialised; all of [`Buffer`](crate::device::Buffer)'s
    /// are.
    pub(crate) fn read(&self, start: usize, to: &mut [u8]) -> Result<(), DeviceError> {
        let from = self.range("copy from the device", start, to.len())?;
        let stream = self.device.raw_stream();
        if to.len() <= PINNED_BYTES {
            let staging = &self.device.0.staging;
            // The block holds no state between uses, so a panic cannot have spoilt it.
            let mut staging = staging.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the range lies inside the allocation; the length was just checked.
            return unsafe { staging.read(from, to, stream) };
        }
        // SAFETY: the range lies inside the allocation, the target is as long; the stream is waited for
        // below, before the borrow of the target ends.
        let result =
            unsafe { cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), from, to.len(), stream) };
        check("cuMemcpyDtoHAsync", result)?;
        self.device.synchronize()
    }

    /// Copies all bytes of memory of the same device and length.
    pub(crate) fn copy_from(&mut self, other: &CudaMemory) -> Result<(), DeviceError> {
        let to = self.range("copy on the device", 0, other.bytes)?;
        if other.bytes == 0 {
            return Ok(());
        }
        let stream = self.device.raw_stream();
        // SAFETY: both ranges lie inside their allocations, which differ, because `self` is borrowed
        // mutably; later work on either runs after this copy, in the same stream.
        let result = unsafe { cuMemcpyDtoDAsync_v2(to, other.address(), other.bytes, stream) };
        check("cuMemcpyDtoDAsync", result)
    }

    /// Sets `len` bytes from `start` to zero.
    pub(crate) fn fill_zero(&mut self, start: usize, len: usize) -> Result<(), DeviceError> {
        let to = self.range("fill with zeros", start, len)?;
        if len == 0 {
            return Ok(());
        }
        // SAFETY: the range lies inside the allocation.
        let result = unsafe { cuMemsetD8Async(to, 0, len, self.device.raw_stream()) };
        check("cuMemsetD8Async", result)
    }

    /// The address of `start`, once `len` bytes from there are known to exist and the context is
    /// current.
    fn range(&self, what: &'static str, start: usize, len: usize) -> Result<u64, DeviceError> {
        let end = start.saturating_add(len);
        if end > self.bytes {
            return Err(DeviceError::OutOfBounds {
                what,
                start,
                end,
                len: self.bytes,
            });
        }
        self.device.enter()?;
        Ok(self.address() + start as u64)
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        // Kernels that use the memory may still be running; where waiting fails the context is lost,
        // and the driver has already reclaimed everything.
        let _ = self.device.synchronize();
        // SAFETY: taken once, here.
        let allocation = unsafe { ManuallyDrop::take(&mut self.allocation) };
        if let Err((error, allocation)) = DeviceBuffer::drop(allocation) {
            tracing::warn!(
                ?error,
                bytes = self.bytes,
                "device memory could not be freed"
            );
            std::mem::forget(allocation);
        }
    }
}

fn pitched_copy(from: &[u8], to: CUdeviceptr, shape: PitchedRows) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: from.as_ptr().cast(),
        srcDevice: 0,
        srcArray: std::ptr::null_mut(),
        srcPitch: shape.row_bytes,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: std::ptr::null_mut(),
        dstDevice: to,
        dstArray: std::ptr::null_mut(),
        dstPitch: shape.pitch_bytes,
        WidthInBytes: shape.row_bytes,
        Height: shape.rows,
    }
}
