//! Memory that passes borrow, in large pages where the system has them.
//!
//! What is accessed in random order is found through the processor's table of pages, which has no room for
//! all 4-KB pages of a vector as large as the second-level cache.

use std::sync::Mutex;

use crate::parallel::locked;
use crate::process;

use memmap2::MmapMut;

/// Below this, the pages at hand do.
const MIN_LARGE: usize = 256 << 10;

/// A piece of memory, aligned to a page.
#[derive(Debug)]
pub struct Memory(MmapMut);

impl Memory {
    /// At least `bytes` bytes; `None` when the system has none.
    fn new(bytes: usize) -> Option<Self> {
        if bytes < MIN_LARGE {
            return MmapMut::map_anon(bytes.max(1)).ok().map(Memory);
        }
        process::pages(bytes).map(Memory)
    }

    /// What it holds: zeros when it is new, anything later.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// Pieces that are kept from pass to pass; as many as threads at most.
#[derive(Debug, Default)]
pub struct Pool(Mutex<Vec<Memory>>);

impl Pool {
    /// A piece of at least `bytes` bytes; `None` when the system has none.
    pub fn take(&self, bytes: usize) -> Option<Memory> {
        let kept = locked(&self.0).pop();
        // One that is too small is freed: matrices of several sizes rarely take turns.
        kept.filter(|memory| memory.0.len() >= bytes)
            .or_else(|| Memory::new(bytes))
    }

    /// Takes a piece back.
    pub fn give_back(&self, memory: Memory) {
        locked(&self.0).push(memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::LARGE_PAGE;

    #[test]
    fn pieces_are_long_enough_and_used_again() {
        let pool = Pool::default();
        for bytes in [1, 4096, MIN_LARGE, LARGE_PAGE + 1] {
            let mut memory = pool.take(bytes).expect("memory");
            assert!(memory.bytes().len() >= bytes);
            memory.bytes()[bytes - 1] = 1;
            pool.give_back(memory);
        }
        assert_eq!(pool.take(1).expect("memory").bytes()[LARGE_PAGE], 1);
        assert!(pool.take(usize::MAX).is_none());
    }
}
