//! Copies in both directions beside kernels, in streams of their own.

use cust_raw::CUstream;

use super::CudaDevice;
use super::driver::check;
use super::event::Event;
use super::memory::CudaMemory;
use super::stream::Stream;
use crate::device::error::DeviceError;
use crate::device::loader::symbols::{cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2};

/// Streams and events of work in parts. A single part needs neither: it runs in the device's own stream.
pub(crate) struct CudaExchange {
    device: CudaDevice,
    overlap: Option<Overlap>,
}

struct Overlap {
    up: Stream,
    down: Stream,
    parts: Vec<Marks>,
}

/// When a part has arrived, and when its results are there.
struct Marks {
    arrived: Event,
    computed: Event,
}

impl CudaExchange {
    pub(crate) fn new(device: &CudaDevice, parts: usize) -> Result<CudaExchange, DeviceError> {
        device.enter()?;
        let marks = |_| -> Result<Marks, DeviceError> {
            Ok(Marks {
                arrived: Event::new()?,
                computed: Event::new()?,
            })
        };
        let overlap = match parts {
            0 | 1 => None,
            _ => Some(Overlap {
                up: Stream::new()?,
                down: Stream::new()?,
                parts: (0..parts).map(marks).collect::<Result<_, _>>()?,
            }),
        };
        // What was submitted before may still write the memory of parts.
        device.synchronize()?;
        Ok(CudaExchange {
            device: device.clone(),
            overlap,
        })
    }

    /// Copies page-locked bytes, which stay as they are until [`wait`](Self::wait), to memory.
    pub(crate) fn send(
        &self,
        part: usize,
        from: &[u8],
        to: &mut CudaMemory,
    ) -> Result<(), DeviceError> {
        self.device.enter()?;
        let address = to.range("copy to the device", 0, from.len())?;
        let stream = self
            .overlap
            .as_ref()
            .map_or(self.own(), |overlap| overlap.up.raw());
        if !from.is_empty() {
            // SAFETY: the range lies inside the memory, the source is as long and stays, as the caller waits before it is
            // written or freed.
            let result =
                unsafe { cuMemcpyHtoDAsync_v2(address, from.as_ptr().cast(), from.len(), stream) };
            check("cuMemcpyHtoDAsync", result)?;
        }
        match &self.overlap {
            Some(overlap) => overlap.parts[part].arrived.record(stream),
            None => Ok(()),
        }
    }

    /// Has the device's stream wait until a part has arrived.
    pub(crate) fn arrive(&self, part: usize) -> Result<(), DeviceError> {
        self.device.enter()?;
        match &self.overlap {
            Some(overlap) => overlap.parts[part].arrived.hold_back(self.own()),
            None => Ok(()),
        }
    }

    /// Marks that everything has been launched that makes a part's results.
    pub(crate) fn computed(&self, part: usize) -> Result<(), DeviceError> {
        self.device.enter()?;
        match &self.overlap {
            Some(overlap) => overlap.parts[part].computed.record(self.own()),
            None => Ok(()),
        }
    }

    /// Copies memory to page-locked bytes, which nobody reads before [`wait`](Self::wait).
    pub(crate) fn fetch(
        &self,
        part: usize,
        from: &CudaMemory,
        to: &mut [u8],
    ) -> Result<(), DeviceError> {
        self.device.enter()?;
        let address = from.range("copy from the device", 0, to.len())?;
        let stream = match &self.overlap {
            Some(overlap) => {
                overlap.parts[part].computed.hold_back(overlap.down.raw())?;
                overlap.down.raw()
            }
            None => self.own(),
        };
        if to.is_empty() {
            return Ok(());
        }
        // SAFETY: the range lies inside the memory, the destination is as long and stays, as the caller waits before it is
        // read or freed.
        let result =
            unsafe { cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), address, to.len(), stream) };
        check("cuMemcpyDtoHAsync", result)
    }

    /// Waits for all copies.
    pub(crate) fn wait(&self) -> Result<(), DeviceError> {
        self.device.enter()?;
        if let Some(overlap) = &self.overlap {
            overlap.up.synchronize()?;
            overlap.down.synchronize()?;
        }
        self.device.synchronize()
    }

    fn own(&self) -> CUstream {
        self.device.raw_stream()
    }
}

impl Drop for CudaExchange {
    fn drop(&mut self) {
        // A round has waited already, unless its own waiting failed.
        let _ = self.wait();
    }
}
