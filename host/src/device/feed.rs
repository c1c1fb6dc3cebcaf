//! Blocks that cross the link while kernels read others.
//!
//! A feed has a few blocks of device memory. On a CUDA device copies to them run in a stream of their own: a copy waits for
//! the kernels that read what the block held before, kernels wait for the copy, and nobody else waits for either. Elsewhere
//! a copy has ended when it was submitted.

use std::collections::VecDeque;
use std::ops::Range;

use super::buffer::Buffer;
use super::cuda::CudaFeed;
use super::pinned::PinnedBlock;
use super::staging::Fill;
use super::{Device, DeviceError};

/// Where the contents of a block come from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// They are made on the way, by several threads at once.
    Made(&'a Fill<'a>),
    /// They lie in page-locked memory.
    Pinned(&'a PinnedBlock),
}

/// Blocks of device memory that are filled in turn. A block is filled (`send`), then read.
pub(crate) struct Feed {
    // Dropped first, which waits for the copies.
    lane: Lane,
    blocks: Vec<Buffer<u32>>,
    /// Those that nothing was sent to which is still to be read; the one that was read first comes first.
    free: VecDeque<usize>,
}

enum Lane {
    Cuda(CudaFeed),
    Host,
}

/// A block that is being filled.
#[derive(Debug)]
pub(crate) struct Sent(usize);

impl Feed {
    /// This many blocks of `words` words each.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] when they do not fit.
    pub(crate) fn new(device: &Device, words: usize, count: usize) -> Result<Feed, DeviceError> {
        let blocks = (0..count).map(|_| device.zeros(words));
        let blocks = blocks.collect::<Result<Vec<_>, _>>()?;
        let lane = match device {
            Device::Cuda(device) => Lane::Cuda(CudaFeed::new(device, count)?),
            Device::Cpu(_) | Device::Emulator(_) => Lane::Host,
        };
        Ok(Feed {
            lane,
            blocks,
            free: (0..count).collect(),
        })
    }

    /// How many blocks can be sent before one is read.
    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// Gives up what was sent and not read.
    pub(crate) fn reset(&mut self) {
        self.free = (0..self.blocks.len()).collect();
    }

    /// Gives up a block that was sent: the next one takes its place.
    pub(crate) fn cancel(&mut self, Sent(at): Sent) {
        self.free.push_front(at);
    }

    /// Begins to fill the next block with this many words, once the kernels that were launched when it was last read have
    /// ended. What a source makes is made when this returns; the copy may still be under way.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver fails.
    ///
    /// # Panics
    /// When no block is [free](Feed::free).
    pub(crate) fn send(&mut self, words: usize, source: Source<'_>) -> Result<Sent, DeviceError> {
        let at = self.free.pop_front().expect("a block that is free");
        let block = &mut self.blocks[at];
        match (&mut self.lane, source) {
            (Lane::Cuda(lane), Source::Made(fill)) => {
                block.feed(words, |memory, bytes| lane.fill((at, memory), bytes, fill))?;
            }
            (Lane::Cuda(lane), Source::Pinned(source)) => {
                let from = source.cuda().expect("pinned for this device");
                block.feed(words, |memory, bytes| {
                    lane.copy((at, memory), bytes.min(source.len()), from)
                })?;
            }
            (Lane::Host, Source::Made(fill)) => {
                block.write_bytes_with(0, words, fill)?;
            }
            (Lane::Host, Source::Pinned(source)) => {
                let copy = |range: Range<usize>, to: &mut [u8]| source.copy(range, to);
                block.write_bytes_with(0, words, &copy)?;
            }
        }
        Ok(Sent(at))
    }

    /// Has `work` launch what reads a block; it is filled again only when all of that has ended.
    ///
    /// # Errors
    /// What `work` returns, and [`DeviceError::Driver`] when the driver fails.
    pub(crate) fn read<R, E: From<DeviceError>>(
        &mut self,
        Sent(at): Sent,
        work: impl FnOnce(&Buffer<u32>) -> Result<R, E>,
    ) -> Result<R, E> {
        if let Lane::Cuda(lane) = &self.lane {
            lane.arrive(at)?;
        }
        let result = work(&self.blocks[at]);
        if let Lane::Cuda(lane) = &self.lane {
            lane.release(at)?;
        }
        self.free.push_back(at);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{EmulatorOptions, MemoryOptions};

    #[test]
    fn blocks_are_filled_in_turn_from_either_source() {
        for device in [Device::cpu(), Device::emulator(EmulatorOptions::default())] {
            let mut feed = Feed::new(&device, 8, 2).unwrap();
            let fill = |range: Range<usize>, to: &mut [u8]| {
                for (to, at) in to.iter_mut().zip(range) {
                    *to = at as u8;
                }
            };
            let pinned = device.pinned(32, &fill).unwrap();
            assert_eq!(device.usage().pinned_bytes, 32);
            let first = feed.send(8, Source::Made(&fill)).unwrap();
            let second = feed.send(4, Source::Pinned(&pinned)).unwrap();
            for sent in [first, second] {
                let word = feed.read(sent, |buffer| buffer.read_scalar(3)).unwrap();
                assert_eq!(word, 0x0f0e_0d0c);
            }
            assert_eq!(device.usage().sent_bytes, 32 + 16);
            drop((feed, pinned));
            assert_eq!(
                (device.usage().pinned_bytes, device.usage().live_bytes),
                (0, 0)
            );
        }
    }

    #[test]
    fn no_more_is_page_locked_than_allowed() {
        let device = Device::cpu();
        device.limit_memory(MemoryOptions {
            pinned_bytes: Some(100),
            ..MemoryOptions::default()
        });
        let fill = |_: Range<usize>, _: &mut [u8]| {};
        let first = device.pinned(60, &fill).unwrap();
        let error = device.pinned(41, &fill).err().expect("too much");
        assert!(error.to_string().contains("page-locked"), "{error}");
        drop(first);
        assert!(device.pinned(100, &fill).is_ok());
    }
}
