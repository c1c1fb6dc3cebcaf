//! Copies between ordinary host memory and a device, by way of a few page-locked blocks.
//!
//! A driver copies from ordinary memory at the rate of one thread that copies into page-locked memory first: 7 GB/s
//! where the link carries 55. Here all cores fill small blocks, and each block crosses the link while its worker fills
//! the next. What is page-locked the host cannot use otherwise, so the blocks are few, and a device keeps them.
//!
//! This file decides who fills which block when; what a block is, and how it crosses, is the device's ([`Slot`]).

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::parallel::locked;

use rayon::prelude::*;

use super::DeviceError;

/// Bytes of a block: copies of 1 MiB cross the link at 48 GB/s, more than cores fill.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;
/// Bytes of a piece at least: shorter ones would mostly be the driver's calls.
const LEAST_BYTES: usize = 256 << 10;
/// Pieces begin with a page.
const PAGE: usize = 4096;
/// Blocks of a worker: one is filled or emptied while the other crosses.
pub(crate) const BLOCKS_PER_WORKER: usize = 2;
/// Workers at most: 16 cores fill page-locked memory at 43 GB/s, and more would wait for the link.
const MAX_WORKERS: usize = 16;
/// Shorter copies take the driver's way, which needs no blocks.
pub(crate) const STAGED_BYTES: usize = 4 << 20;

/// Writes the bytes of a range of the target; called from several threads, for ranges that do not overlap.
pub(crate) type Fill<'a> = dyn Fn(Range<usize>, &mut [u8]) + Sync + 'a;

/// A block of host memory that crosses the link in one direction.
pub(crate) trait Slot: Send {
    /// The block, of [`BLOCK_BYTES`], once whatever copy was submitted has ended.
    fn block(&mut self) -> Result<&mut [u8], DeviceError>;

    /// Submits a copy between the beginning of the block and this range of the device's bytes.
    fn submit(&mut self, range: Range<usize>) -> Result<(), DeviceError>;
}

/// Blocks that this process uses for each device.
pub(crate) fn blocks() -> usize {
    rayon::current_num_threads().clamp(1, MAX_WORKERS) * BLOCKS_PER_WORKER
}

/// Bytes that cross at a time, whole elements; `None` where an element is longer than a block.
pub(crate) fn step(element_bytes: usize) -> Option<usize> {
    let step = BLOCK_BYTES / element_bytes * element_bytes;
    (step > 0).then_some(step)
}

/// Bytes that cross at a time of `len`, where there is more to come: a piece for every worker, as far as that leaves no
/// crumbs. A block of X of 4 MB in pieces of a megabyte is made by 4 of 16 cores; in 32 pieces, of which each is a call
/// of the driver's that waits for the others, it takes as long again (H100).
pub(crate) fn even_step(len: usize) -> usize {
    let even = len.div_ceil(blocks() / BLOCKS_PER_WORKER);
    even.next_multiple_of(PAGE).clamp(LEAST_BYTES, BLOCK_BYTES)
}

/// Sends `len` bytes, `step` at a time, as `fill` writes them. Returns when everything is submitted; what `fill` reads
/// is then no longer needed.
pub(crate) fn send<S: Slot>(
    slots: &mut [S],
    (len, step): (usize, usize),
    fill: &Fill<'_>,
) -> Result<(), DeviceError> {
    let next = AtomicUsize::new(0);
    workers(slots).try_for_each(|own| {
        for at in (0..own.len()).cycle() {
            let start = next.fetch_add(1, Ordering::Relaxed).saturating_mul(step);
            if start >= len {
                break;
            }
            let range = start..len.min(start.saturating_add(step));
            fill(range.clone(), &mut own[at].block()?[..range.len()]);
            own[at].submit(range)?;
        }
        Ok(())
    })
}

/// Receives `to`, `step` bytes at a time.
pub(crate) fn receive<S: Slot>(
    slots: &mut [S],
    step: usize,
    to: &mut [u8],
) -> Result<(), DeviceError> {
    let parts = Mutex::new(to.chunks_mut(step).enumerate());
    // The iterator is sound after a panic: it was advanced, or it was not.
    let take = || locked(&parts).next();
    workers(slots).try_for_each(|own| {
        let mut crossing: Option<(usize, &mut [u8])> = None;
        for at in (0..own.len()).cycle() {
            let next = take();
            if let Some((number, part)) = &next {
                let start = number * step;
                own[at].submit(start..start + part.len())?;
            }
            if let Some((slot, part)) = crossing.take() {
                part.copy_from_slice(&own[slot].block()?[..part.len()]);
            }
            match next {
                Some((_, part)) => crossing = Some((at, part)),
                None => break,
            }
        }
        Ok(())
    })
}

/// The blocks of each worker, all of whom run at once where there are threads.
fn workers<S: Slot>(slots: &mut [S]) -> impl IndexedParallelIterator<Item = &mut [S]> {
    debug_assert!(!slots.is_empty() && slots.len().is_multiple_of(BLOCKS_PER_WORKER));
    slots.par_chunks_mut(BLOCKS_PER_WORKER).with_max_len(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Device memory that a copy reaches, or leaves, only when somebody waits for it.
    struct Late<'a> {
        memory: &'a Mutex<Vec<u8>>,
        is_up: bool,
        block: Vec<u8>,
        submitted: Option<Range<usize>>,
    }

    impl Late<'_> {
        fn cross(&mut self) {
            let Some(range) = self.submitted.take() else {
                return;
            };
            let mut memory = self.memory.lock().unwrap();
            let (theirs, own) = (&mut memory[range.clone()], &mut self.block[..range.len()]);
            match self.is_up {
                true => theirs.copy_from_slice(own),
                false => own.copy_from_slice(theirs),
            }
        }
    }

    impl Slot for Late<'_> {
        fn block(&mut self) -> Result<&mut [u8], DeviceError> {
            self.cross();
            Ok(&mut self.block)
        }

        fn submit(&mut self, range: Range<usize>) -> Result<(), DeviceError> {
            assert!(self.submitted.is_none(), "the block is still crossing");
            self.submitted = Some(range);
            Ok(())
        }
    }

    impl Drop for Late<'_> {
        fn drop(&mut self) {
            self.cross();
        }
    }

    fn slots(memory: &Mutex<Vec<u8>>, is_up: bool, workers: usize) -> Vec<Late<'_>> {
        let slot = || Late {
            memory,
            is_up,
            block: vec![0xaa; 64],
            submitted: None,
        };
        (0..workers * BLOCKS_PER_WORKER).map(|_| slot()).collect()
    }

    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i % 251) as u8).collect()
    }

    proptest! {
        #[test]
        fn every_byte_crosses_once(len in 0_usize..5_000, step in 1_usize..64, workers in 1_usize..5) {
            let values = pattern(len);
            let memory = Mutex::new(vec![0xff; len]);
            let fill = |range: Range<usize>, to: &mut [u8]| to.copy_from_slice(&values[range]);
            send(&mut slots(&memory, true, workers), (len, step), &fill).unwrap();
            prop_assert_eq!(&*memory.lock().unwrap(), &values);
            let mut back = vec![0; len];
            receive(&mut slots(&memory, false, workers), step, &mut back).unwrap();
            prop_assert_eq!(back, values);
        }
    }

    /// A block that cannot be had.
    struct Broken;

    impl Slot for Broken {
        fn block(&mut self) -> Result<&mut [u8], DeviceError> {
            Err(DeviceError::SizeOverflow {
                count: 1,
                element_bytes: 1,
            })
        }

        fn submit(&mut self, _: Range<usize>) -> Result<(), DeviceError> {
            Ok(())
        }
    }

    #[test]
    fn a_failure_ends_the_copy() {
        let fill = |_: Range<usize>, _: &mut [u8]| {};
        assert!(send(&mut [Broken, Broken], (100, 10), &fill).is_err());
        assert!(receive(&mut [Broken, Broken], 10, &mut [0; 100]).is_err());
    }

    #[test]
    fn steps_hold_whole_elements() {
        assert_eq!(step(8), Some(BLOCK_BYTES));
        assert_eq!(step(12), Some(BLOCK_BYTES / 12 * 12));
        assert_eq!(step(BLOCK_BYTES + 1), None);
    }

    #[test]
    fn blocks_are_shared_out_to_all_workers() {
        let workers = blocks() / BLOCKS_PER_WORKER;
        assert_eq!(even_step(workers * 2 * LEAST_BYTES), 2 * LEAST_BYTES);
        assert_eq!(even_step(1), LEAST_BYTES);
        assert_eq!(even_step(usize::MAX >> 1), BLOCK_BYTES);
    }
}
