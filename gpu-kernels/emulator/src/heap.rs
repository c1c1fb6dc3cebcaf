//! Global memory: tracked allocations at addresses that tell which allocation they belong to.
//!
//! An address holds the number of its allocation in the upper 24 bits and the byte in the lower 40, so
//! that an access finds its allocation without a search, the same run gives the same addresses, and a
//! freed buffer needs no quarantine: its number is never given out again.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use gpu_kernels::{In, Out, Word as Element};

use super::Emulator;
use super::shadow::Word;

/// Bits of an address that count bytes.
const BYTE_BITS: u32 = 40;
/// Words that share a lock: 32 bytes, so that no aligned access needs two.
pub(super) const LINE: usize = 8;
/// Bytes of a word.
pub(super) const WORD: usize = 4;

/// Words that share a lock.
pub(super) type Line = [Word; LINE];

/// A buffer of the emulated device.
#[derive(Debug)]
pub(super) struct Allocation {
    pub name: String,
    pub bytes: u64,
    lines: Box<[Mutex<Line>]>,
}

impl Allocation {
    /// None when the host has no room for it and its shadow.
    fn new(name: String, bytes: u64) -> Option<Allocation> {
        let count = usize::try_from(bytes).ok()?.div_ceil(LINE * WORD);
        let mut lines = Vec::new();
        lines.try_reserve_exact(count).ok()?;
        lines.resize_with(count, || Mutex::new([Word::POISON; LINE]));
        Some(Allocation {
            name,
            bytes,
            lines: lines.into(),
        })
    }

    /// The line that holds word number `word`.
    #[inline(always)]
    pub fn line(&self, word: usize) -> MutexGuard<'_, Line> {
        // A line is never left half-changed: nothing panics while one is held.
        self.lines[word / LINE]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an allocation number stands for.
#[derive(Debug)]
pub(super) enum Slot {
    Alive(Allocation),
    Freed(String),
}

/// All allocations, by number.
#[derive(Debug, Default)]
pub(super) struct Table(Vec<Slot>);

impl Table {
    /// The allocation that an address belongs to, and the byte in it.
    #[inline(always)]
    pub fn find(&self, address: u64) -> Option<(&Slot, u64)> {
        let number = (address >> BYTE_BITS).checked_sub(1)?;
        let byte = address & ((1 << BYTE_BITS) - 1);
        Some((self.0.get(number as usize)?, byte))
    }
}

/// The memory of one emulated device.
#[derive(Debug, Default)]
pub(super) struct Heap(RwLock<Table>);

impl Heap {
    /// The table, for as long as a launch runs.
    pub fn table(&self) -> RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, Table> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn allocate(&self, name: Option<&str>, bytes: u64) -> Result<u64, MemoryError> {
        let mut table = self.table_mut();
        let number = table.0.len() as u64 + 1;
        if bytes >> BYTE_BITS != 0 || number >> (u64::BITS - BYTE_BITS) != 0 {
            return Err(MemoryError::Exhausted { bytes });
        }
        let name = name.map_or_else(|| format!("buffer{number}"), str::to_owned);
        let allocation = Allocation::new(name, bytes).ok_or(MemoryError::NoRoom { bytes })?;
        table.0.push(Slot::Alive(allocation));
        Ok(number << BYTE_BITS)
    }

    fn free(&self, address: u64) {
        let mut table = self.table_mut();
        let number = (address >> BYTE_BITS) as usize - 1;
        if let Slot::Alive(allocation) = &mut table.0[number] {
            table.0[number] = Slot::Freed(std::mem::take(&mut allocation.name));
        }
    }
}

/// What a copy to or from emulated memory can run into.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// More memory, or more buffers, than addresses can tell apart.
    #[error(
        "allocate {bytes} bytes on the emulator: expected less than 2^40 bytes and fewer than 2^24 buffers since it was opened"
    )]
    Exhausted {
        /// Bytes requested.
        bytes: u64,
    },
    /// More memory than the host can spare.
    #[error(
        "allocate {bytes} bytes on the emulator: the host has no room for them and a shadow 24 times as large"
    )]
    NoRoom {
        /// Bytes requested.
        bytes: u64,
    },
    /// A copy beyond the buffer.
    #[error("copy bytes {start}..{end} of `{buffer}`: it has {len} bytes")]
    OutOfBounds {
        /// The buffer's name.
        buffer: String,
        /// First byte.
        start: u64,
        /// The byte after the last.
        end: u64,
        /// Bytes of the buffer.
        len: u64,
    },
    /// A copy to the host of memory that nobody has written.
    #[error("copy `{buffer}` to the host: the word at byte {byte} was never written")]
    Uninitialised {
        /// The buffer's name.
        buffer: String,
        /// First byte of the word.
        byte: u64,
    },
}

/// A buffer in emulated memory; freed when dropped.
///
/// ```
/// use gpu_kernels_emulator::{Emulator, EmulatorOptions};
/// let emulator = Emulator::new(EmulatorOptions::default());
/// let x = emulator.upload("x", &[1.0f32, 2.0])?;
/// assert_eq!(x.download::<f32>()?, [1.0, 2.0]);
/// let y = emulator.allocate("y", 8)?;
/// assert!(y.download::<f32>().is_err(), "nobody has written y");
/// # Ok::<(), gpu_kernels_emulator::MemoryError>(())
/// ```
#[derive(Debug)]
pub struct Memory {
    emulator: Emulator,
    address: u64,
    bytes: u64,
}

impl Memory {
    pub(super) fn new(
        emulator: &Emulator,
        name: Option<&str>,
        bytes: u64,
    ) -> Result<Memory, MemoryError> {
        Ok(Memory {
            emulator: emulator.clone(),
            address: emulator.0.heap.allocate(name, bytes)?,
            bytes,
        })
    }

    /// The device.
    pub fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// Address of the first byte, in the emulator's address space: not a pointer of this process.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The memory as a read-only argument of as many elements as fit.
    pub fn input<T: Element>(&self) -> In<'_, T> {
        let pointer = std::ptr::without_provenance(self.address as usize);
        // SAFETY: the pointer is an address of the emulator, which checks at every access what the
        // constructor asks its caller to promise.
        unsafe { In::new(pointer, self.bytes / u64::from(T::SIZE)) }
    }

    /// The memory as an argument that is written, of as many elements as fit.
    pub fn output<T: Element>(&self) -> Out<'_, T> {
        let pointer = std::ptr::without_provenance_mut(self.address as usize);
        // SAFETY: as for `input`.
        unsafe { Out::new(pointer, self.bytes / u64::from(T::SIZE)) }
    }

    /// Copies `bytes` to the buffer, from its byte `start` on.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`] when they do not fit.
    pub fn write_bytes(&self, start: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.each_word(start, bytes.len(), |word, at, range| {
            let mut old = word.bits.to_le_bytes();
            old[at..at + range.len()].copy_from_slice(&bytes[range]);
            word.set(u32::from_le_bytes(old));
            true
        })
    }

    /// Sets all bytes to zero.
    pub fn write_zeros(&self) {
        self.each_word(0, self.bytes as usize, |word, _, _| {
            word.set(0);
            true
        })
        .expect("the whole of a buffer is within its bounds");
    }

    /// Copies `bytes.len()` bytes from the buffer's byte `start` on.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`] beyond the end, [`MemoryError::Uninitialised`] for words that nobody
    /// has written.
    pub fn read_bytes(&self, start: u64, bytes: &mut [u8]) -> Result<(), MemoryError> {
        self.each_word(start, bytes.len(), |word, at, range| {
            let len = range.len();
            bytes[range].copy_from_slice(&word.bits.to_le_bytes()[at..at + len]);
            word.is_initialised()
        })
    }

    /// All elements of the buffer.
    ///
    /// # Errors
    /// [`MemoryError::Uninitialised`] when a word was never written.
    pub fn download<T: Element + bytemuck::Pod>(&self) -> Result<Vec<T>, MemoryError> {
        let mut elements = vec![T::default(); (self.bytes / u64::from(T::SIZE)) as usize];
        self.read_bytes(0, bytemuck::cast_slice_mut(&mut elements))?;
        Ok(elements)
    }

    /// Calls `each(word, first byte in the word, range of the copied bytes)`, until it returns false.
    fn each_word(
        &self,
        start: u64,
        len: usize,
        mut each: impl FnMut(&mut Word, usize, std::ops::Range<usize>) -> bool,
    ) -> Result<(), MemoryError> {
        let table = self.emulator.0.heap.table();
        let Some((Slot::Alive(allocation), _)) = table.find(self.address) else {
            unreachable!("a buffer is alive until it is dropped");
        };
        let start = self.check_range(allocation, start, len)?;
        let mut done = 0;
        while done < len {
            let first = (start + done) / WORD;
            let mut line = allocation.line(first);
            for (word, shadowed) in (first..).zip(&mut line[first % LINE..]) {
                let at = (start + done) % WORD;
                let end = len.min(done + WORD - at);
                if end == done {
                    break;
                }
                if !each(shadowed, at, done..end) {
                    return Err(MemoryError::Uninitialised {
                        buffer: allocation.name.clone(),
                        byte: (word * WORD) as u64,
                    });
                }
                done = end;
            }
        }
        Ok(())
    }

    fn check_range(
        &self,
        allocation: &Allocation,
        start: u64,
        len: usize,
    ) -> Result<usize, MemoryError> {
        let end = start.saturating_add(len as u64);
        if end > self.bytes {
            return Err(MemoryError::OutOfBounds {
                buffer: allocation.name.clone(),
                start,
                end,
                len: self.bytes,
            });
        }
        Ok(start as usize)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.emulator.0.heap.free(self.address);
    }
}
