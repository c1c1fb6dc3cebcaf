//! Device memory as bytes. All copies and fills run in the device's stream.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{MutexGuard, TryLockError};

use cust::error::CudaError;
use cust_raw::{CUDA_MEMCPY2D, CUdeviceptr, CUmemorytype, CUstream};

use super::CudaDevice;
use super::block::OwnBlock;
use super::driver::{check, from_cust};
use super::pinned::PINNED_BYTES;
use super::ring::{Ring, Way};
use crate::device::buffer::ByteRows;
use crate::device::error::DeviceError;
use crate::device::host_memory::HostMemory;
use crate::device::lent::Owner;
use crate::device::loader::symbols::{
    cuMemcpy2DAsync_v2, cuMemcpyDtoDAsync_v2, cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2,
    cuMemsetD8Async,
};
use crate::device::memory::{Fit, Held, LentHeld};
use crate::device::staging::{self, BLOCK_BYTES, Fill, STAGED_BYTES};
use crate::device::system;
use crate::parallel::locked;
use crate::plan::streaming::RENTED_BYTES;

/// Allocations are padded to this many bytes, so that a 16-byte load never reaches beyond them.
const PAD_BYTES: usize = 16;

/// Bytes of device memory: kept for the next buffers when dropped, or freed, unless somebody lent them.
///
/// The driver aligns allocations to 256 bytes.
pub(crate) struct CudaMemory {
    device: CudaDevice,
    block: Block,
    bytes: usize,
}

/// Whose memory it is.
enum Block {
    /// The device's own.
    Own {
        /// Until it is dropped, with its account.
        block: Option<(OwnBlock, Held)>,
        /// Whether others know the address: then they may use the memory in streams of which nothing is known here.
        exposed: AtomicBool,
    },
    /// Of memory that somebody borrows for as long.
    Window(CUdeviceptr),
    /// To be left alone, and its owner to be kept.
    Lent {
        address: CUdeviceptr,
        #[expect(dead_code, reason = "kept alive")]
        owner: Owner,
        #[expect(dead_code, reason = "counts until it is dropped")]
        held: LentHeld,
    },
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
        let claimed = self.ledger().claim::<OwnBlock>(padded, Fit::Near);
        let (held, kept) = claimed.ok_or_else(|| self.shortage(padded))?;
        let block = match kept {
            Some(kept) => kept,
            None => self.request(padded)?,
        };
        let mut memory = CudaMemory {
            device: self.clone(),
            block: Block::Own {
                block: Some((block, held)),
                exposed: AtomicBool::new(false),
            },
            bytes: padded,
        };
        memory.fill_zero(bytes, padded - bytes)?;
        memory.bytes = bytes;
        Ok(memory)
    }

    /// A block from the driver, for which others give memory back where it has no more, whatever the limit says.
    fn request(&self, bytes: usize) -> Result<OwnBlock, DeviceError> {
        loop {
            match OwnBlock::new(self, bytes) {
                Ok(block) => return Ok(block),
                Err(CudaError::OutOfMemory) if self.ledger().free_for(bytes) > 0 => {}
                Err(error) => return Err(self.allocation_error(error, bytes)),
            }
        }
    }

    /// `bytes` bytes that `owner` keeps at `address`, once [`CudaDevice::check_range`] has found them there. The caller
    /// answers for their being initialised, and for nobody's writing them meanwhile.
    pub(crate) fn borrow(
        &self,
        address: u64,
        bytes: usize,
        owner: Owner,
    ) -> Result<CudaMemory, DeviceError> {
        self.check_range(address, bytes)?;
        Ok(CudaMemory {
            device: self.clone(),
            block: Block::Lent {
                address,
                owner,
                held: self.ledger().lend(bytes),
            },
            bytes,
        })
    }

    /// The page-locked blocks for long copies, unless another copy has them.
    fn ring(&self) -> Option<MutexGuard<'_, Ring>> {
        match self.0.ring.try_lock() {
            Ok(ring) => Some(ring),
            // Every block is waited for before it is used again, whatever happened to its last user.
            Err(TryLockError::Poisoned(ring)) => Some(ring.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether a copy of this many bytes takes the driver's way: as long as there are no page-locked blocks, and all such copies
    /// together are few bytes.
    fn rents(&self, bytes: usize) -> bool {
        let mut rented = locked(&self.0.rented);
        let is_cheap = rented.saturating_add(bytes) as u64 <= RENTED_BYTES;
        let rents = is_cheap && self.ring().is_none_or(|ring| ring.is_empty());
        if rents {
            *rented += bytes;
        }
        rents
    }

    fn out_of_host_memory(&self, requested: usize) -> DeviceError {
        let info = system::memory_info().unwrap_or_default();
        DeviceError::OutOfMemory {
            device: format!("the host of {}", self.name()),
            requested,
            free: info.free_bytes,
            total: info.total_bytes,
            held: Box::default(),
        }
    }

    fn allocation_error(&self, error: CudaError, requested: usize) -> DeviceError {
        if error != CudaError::OutOfMemory {
            return from_cust("cuMemAlloc")(error);
        }
        self.ledger().refuse();
        self.shortage(requested)
    }

    fn shortage(&self, requested: usize) -> DeviceError {
        let info = self.memory_info().unwrap_or_default();
        self.ledger().shortage(self.name(), requested, info)
    }
}

impl CudaMemory {
    /// The same bytes for somebody else who reads them; `owner` keeps this memory.
    pub(crate) fn alias(&self, owner: Owner) -> CudaMemory {
        CudaMemory {
            device: self.device.clone(),
            block: Block::Lent {
                address: self.address(),
                owner,
                // They are counted already.
                held: self.device.ledger().lend(0),
            },
            bytes: self.bytes,
        }
    }

    /// Some of the bytes, for whoever borrows this memory for as long as it has them.
    pub(crate) fn window(&self, bytes: Range<usize>) -> CudaMemory {
        CudaMemory {
            device: self.device.clone(),
            block: Block::Window(self.address() + bytes.start as u64),
            bytes: bytes.len(),
        }
    }

    /// The device that the memory lies on.
    pub(crate) fn device(&self) -> &CudaDevice {
        &self.device
    }

    /// The device address of the first byte.
    pub(crate) fn address(&self) -> CUdeviceptr {
        match &self.block {
            Block::Own { block, .. } => block.as_ref().map_or(0, |(block, _)| block.address()),
            Block::Window(address) | Block::Lent { address, .. } => *address,
        }
    }

    /// [`CudaMemory::address`] for others than this device's kernels and copies.
    pub(crate) fn address_for_others(&self) -> CUdeviceptr {
        if let Block::Own { exposed, .. } = &self.block {
            exposed.store(true, Ordering::Relaxed);
        }
        self.address()
    }

    /// Copies host bytes to `start`, and returns when they may be reused.
    pub(crate) fn write(&mut self, start: usize, from: &[u8]) -> Result<(), DeviceError> {
        if from.len() >= STAGED_BYTES && !self.device.rents(from.len()) {
            let fill = |range: Range<usize>, to: &mut [u8]| to.copy_from_slice(&from[range]);
            return self.write_with(start, (from.len(), BLOCK_BYTES), &fill);
        }
        self.write_plainly(start, from)
    }

    /// Writes `len` bytes from `start` as `fill` makes them, `step` at a time, and returns when what it reads may be
    /// reused. Ranges that `fill` gets count from `start`.
    pub(crate) fn write_with(
        &mut self,
        start: usize,
        (len, step): (usize, usize),
        fill: &Fill<'_>,
    ) -> Result<(), DeviceError> {
        let to = self.range("copy to the device", start, len)?;
        let device = &self.device;
        if let Some(mut ring) = device.ring() {
            // SAFETY: ranges end at `len`, which lies inside this memory; whoever gets it next uses it in the same
            // stream.
            let mut slots = unsafe { ring.crossings((device, device.raw_stream()), to, Way::Up)? };
            return staging::send(&mut slots, (len, step), fill);
        }
        // Another copy has the blocks; waiting for it could wait for this very thread.
        let short = || self.device.out_of_host_memory(step);
        let mut block = HostMemory::zeroed(step.min(len)).ok_or_else(short)?;
        for first in (0..len).step_by(step) {
            let range = first..len.min(first + step);
            let block = &mut block.as_bytes_mut()[..range.len()];
            fill(range, block);
            self.write_plainly(start + first, block)?;
        }
        Ok(())
    }

    /// [`CudaMemory::write_with`] from the first byte on, in the stream of copies; for memory of a feed, which
    /// waits for that stream before it drops it.
    pub(super) fn write_in(
        &mut self,
        copies: CUstream,
        (len, step): (usize, usize),
        fill: &Fill<'_>,
    ) -> Result<(), DeviceError> {
        let to = self.range("copy to the device", 0, len)?;
        let device = &self.device;
        if let Some(mut ring) = device.ring() {
            // SAFETY: ranges end at `len`, which lies inside this memory; its feed waits for the stream.
            let mut slots = unsafe { ring.crossings((device, copies), to, Way::Up)? };
            return staging::send(&mut slots, (len, step), fill);
        }
        // Another copy has the blocks. What is written here waits, like kernels, for the device's stream.
        self.write_with(0, (len, step), fill)
    }

    fn write_plainly(&mut self, start: usize, from: &[u8]) -> Result<(), DeviceError> {
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
            let mut staging = locked(staging);
            // SAFETY: the range lies inside the allocation; the length was just checked.
            return unsafe { staging.read(from, to, stream) };
        }
        if to.len() >= STAGED_BYTES
            && let Some(mut ring) = self.device.ring()
        {
            // SAFETY: ranges end where `to` does, and the range lies inside this memory; every copy is waited for,
            // or, after a failure, comes before what the next owner of the memory submits to the same stream.
            let mut slots = unsafe {
                ring.crossings((&self.device, self.device.raw_stream()), from, Way::Down)?
            };
            return staging::receive(&mut slots, BLOCK_BYTES, to);
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

    /// Copies rows of `other`, memory of the same device, to rows of this one; both lie inside their memory.
    pub(crate) fn copy_rows_from(
        &mut self,
        other: &CudaMemory,
        rows: &ByteRows,
    ) -> Result<(), DeviceError> {
        let to = self.range("copy rows on the device", 0, rows.end(rows.to_pitch))?;
        let from = other.range("copy rows on the device", 0, rows.end(rows.from_pitch))?;
        if rows.count == 0 || rows.bytes == 0 {
            return Ok(());
        }
        let copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: std::ptr::null(),
            srcDevice: from,
            srcArray: std::ptr::null_mut(),
            srcPitch: rows.from_pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: std::ptr::null_mut(),
            dstDevice: to,
            dstArray: std::ptr::null_mut(),
            dstPitch: rows.to_pitch,
            WidthInBytes: rows.bytes,
            Height: rows.count,
        };
        // SAFETY: all rows lie inside their memory, which differ, because `self` is borrowed mutably; later work on
        // either runs after this copy, in the same stream.
        let result = unsafe { cuMemcpy2DAsync_v2(&raw const copy, self.device.raw_stream()) };
        check("cuMemcpy2DAsync", result)
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
    pub(super) fn range(
        &self,
        what: &'static str,
        start: usize,
        len: usize,
    ) -> Result<u64, DeviceError> {
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
        match &mut self.block {
            Block::Own { block, exposed } => {
                let Some((block, held)) = block.take() else {
                    return;
                };
                if *exposed.get_mut() {
                    // Freed, which waits for all streams, before it is counted so.
                    drop(block);
                } else {
                    // Kernels that use the memory may still be running. Whoever gets it uses it after them, in the same
                    // stream.
                    held.keep(block);
                }
            }
            // Whose memory it is keeps it.
            Block::Window(_) => {}
            // The owner is told that nobody uses it any more. Where waiting fails the context is lost.
            Block::Lent { .. } => drop(self.device.synchronize()),
        }
    }
}
