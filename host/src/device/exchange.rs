//! Work between page-locked arrays of the host, in parts: copies to the device, kernels and copies back run at the same time.

use std::ops::Range;

use bytemuck::Pod;

use super::buffer::Buffer;
use super::cuda::CudaExchange;
use super::pinned::PinnedBlock;
use super::{Device, DeviceError};

/// Two page-locked arrays: what crosses to the device, and where results come back to.
pub(crate) struct Exchange {
    // Dropped first, which waits for its copies.
    lane: Lane,
    from: PinnedBlock,
    to: PinnedBlock,
}

enum Lane {
    Cuda(CudaExchange),
    Host,
}

impl Exchange {
    /// Arrays of this many bytes there and back, zero at first, for work in `parts` parts.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] beyond what may be page-locked, [`DeviceError::Driver`] when the driver refuses.
    pub(crate) fn new(
        device: &Device,
        [there, back]: [usize; 2],
        parts: usize,
    ) -> Result<Exchange, DeviceError> {
        let zeros = |_: Range<usize>, to: &mut [u8]| to.fill(0);
        let lane = match device {
            Device::Cuda(device) => Lane::Cuda(CudaExchange::new(device, parts)?),
            Device::Cpu(_) | Device::Emulator(_) => Lane::Host,
        };
        Ok(Exchange {
            lane,
            from: device.pinned(there, &zeros)?,
            to: device.pinned(back, &zeros)?,
        })
    }

    /// What crosses to the device.
    pub(crate) fn input(&mut self) -> &mut [u8] {
        self.from.bytes_mut()
    }

    /// What came back.
    pub(crate) fn output(&self) -> &[u8] {
        self.to.bytes()
    }

    /// Has `work` submit all parts, and waits until the last one is back.
    ///
    /// # Errors
    /// What `work` returns, and [`DeviceError::Driver`] when the driver fails.
    pub(crate) fn round<E: From<DeviceError>>(
        &mut self,
        work: impl FnOnce(&mut Round<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut round = Round(self);
        work(&mut round)?;
        round.wait().map_err(E::from)
    }
}

/// Parts under way; dropping it waits for them, so that the arrays can be used again whatever went wrong.
pub(crate) struct Round<'a>(&'a mut Exchange);

impl Round<'_> {
    /// Copies a range of the input's bytes to the first bytes of a buffer.
    pub(crate) fn send<T: Pod>(
        &mut self,
        part: usize,
        bytes: Range<usize>,
        to: &mut Buffer<T>,
    ) -> Result<(), DeviceError> {
        let Exchange { lane, from, .. } = &mut *self.0;
        match lane {
            Lane::Cuda(lane) => {
                let from = &from.bytes()[bytes];
                to.exchange(from.len(), |memory| lane.send(part, from, memory))
            }
            Lane::Host => {
                let elements = bytes.len().div_ceil(size_of::<T>());
                let from = &from.bytes()[bytes];
                let mut values = vec![T::zeroed(); elements];
                bytemuck::cast_slice_mut(&mut values)[..from.len()].copy_from_slice(from);
                to.write(0, &values)
            }
        }
    }

    /// Has `work` launch what reads a part's buffer, once it has arrived.
    pub(crate) fn compute<E: From<DeviceError>>(
        &mut self,
        part: usize,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        if let Lane::Cuda(lane) = &self.0.lane {
            lane.arrive(part)?;
        }
        work()?;
        if let Lane::Cuda(lane) = &self.0.lane {
            lane.computed(part)?;
        }
        Ok(())
    }

    /// Copies a whole buffer to the output's bytes from `start` on, once it was computed.
    pub(crate) fn fetch<T: Pod>(
        &mut self,
        part: usize,
        from: &Buffer<T>,
        start: usize,
    ) -> Result<(), DeviceError> {
        let Exchange { lane, to, .. } = &mut *self.0;
        let to = &mut to.bytes_mut()[start..][..from.len() * size_of::<T>()];
        match lane {
            Lane::Cuda(lane) => from.exchanged(|memory| lane.fetch(part, memory, to)),
            Lane::Host => from.read(0, bytemuck::cast_slice_mut(to)),
        }
    }

    fn wait(&mut self) -> Result<(), DeviceError> {
        match &self.0.lane {
            Lane::Cuda(lane) => lane.wait(),
            Lane::Host => Ok(()),
        }
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        // Where waiting fails, the context is lost and so are the copies.
        let _ = self.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::EmulatorOptions;

    #[test]
    fn parts_cross_and_come_back_in_their_places() {
        for device in [Device::cpu(), Device::emulator(EmulatorOptions::default())] {
            let mut exchange = Exchange::new(&device, [6, 8], 2).unwrap();
            exchange.input().copy_from_slice(&[1, 2, 3, 4, 5, 6]);
            let mut words = [device.zeros::<u32>(1), device.zeros(1)].map(Result::unwrap);
            let round = exchange.round(|round| {
                for (part, word) in words.iter_mut().enumerate() {
                    round.send(part, 3 * part..3 * part + 3, word)?;
                    round.compute(part, || Ok::<(), DeviceError>(()))?;
                    round.fetch(part, word, 4 * part)?;
                }
                Ok::<(), DeviceError>(())
            });
            round.unwrap();
            assert_eq!(exchange.output(), [1, 2, 3, 0, 4, 5, 6, 0]);
            assert_eq!(device.usage().pinned_bytes, 14);
        }
    }
}
