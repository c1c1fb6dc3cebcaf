//! Host storage of a buffer: zeroed on allocation, aligned to a cache line, failing without a panic.

use std::alloc::{Layout, alloc_zeroed};

use rayon::prelude::*;

use super::staging::Fill;

/// Alignment of the storage: one cache line, and the widest vector register.
pub(crate) const ALIGNMENT: usize = 64;

/// Below this many bytes a copy by one thread is faster than waking others.
const PARALLEL_BYTES: usize = 4 << 20;

/// Bytes that one thread copies at a time.
const CHUNK_BYTES: usize = 1 << 20;

const WORD: usize = size_of::<u64>();

/// A negative number of 10²⁰⁰ as f64, of 10¹³ as f32, and far beyond any array as an index.
const POISON: u64 = 0xe9a5_d5a5_d5a5_d5a5;

/// Bytes of host memory, aligned to [`ALIGNMENT`].
///
/// The pages come from the operating system already zero, and are first touched by whoever writes them.
#[derive(Default)]
pub(crate) struct HostMemory {
    words: Box<[u64]>,
    first: usize,
    bytes: usize,
}

impl HostMemory {
    /// `bytes` zero bytes, or `None` when the allocator has no such block.
    pub(crate) fn zeroed(bytes: usize) -> Option<HostMemory> {
        let words = bytes.checked_add(ALIGNMENT)?.div_ceil(WORD);
        let words = zeroed_words(words)?;
        let first = words.as_ptr().align_offset(ALIGNMENT);
        Some(HostMemory {
            words,
            first,
            bytes,
        })
    }

    /// The first `bytes` bytes, which it was made with at least.
    pub(crate) fn shortened(mut self, bytes: usize) -> HostMemory {
        debug_assert!(bytes <= (self.words.len() - self.first) * WORD);
        self.bytes = bytes;
        self
    }

    /// Writes what nobody takes for values over all of it, so that tests see who reads what was there before.
    pub(crate) fn poison(&mut self) {
        self.words[self.first..].fill(POISON);
    }

    /// The bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words[self.first..])[..self.bytes]
    }

    /// The bytes, to be written.
    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words[self.first..])[..self.bytes]
    }
}

/// `count` zero words straight from the allocator: `vec![0; count]` would abort where there is no memory.
fn zeroed_words(count: usize) -> Option<Box<[u64]>> {
    let layout = Layout::array::<u64>(count)
        .ok()
        .filter(|layout| layout.size() > 0)?;
    // SAFETY: the layout's size is not zero.
    let block = unsafe { alloc_zeroed(layout) }.cast::<u64>();
    if block.is_null() {
        return None;
    }
    // SAFETY: the block holds `count` zeroed words, was allocated by the global allocator with the
    // layout of `[u64]` of that length, and is owned by nobody else.
    Some(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(block, count)) })
}

/// Copies bytes of equal length, in parallel where there are many.
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    debug_assert_eq!(to.len(), from.len());
    if to.len() < PARALLEL_BYTES {
        return to.copy_from_slice(from);
    }
    to.par_chunks_mut(CHUNK_BYTES)
        .zip(from.par_chunks(CHUNK_BYTES))
        .for_each(|(to, from)| to.copy_from_slice(from));
}

/// Has `fill` write all bytes, `step` at a time, in parallel where there are many.
pub(crate) fn fill(bytes: &mut [u8], step: usize, fill: &Fill<'_>) {
    if bytes.len() < PARALLEL_BYTES {
        if !bytes.is_empty() {
            fill(0..bytes.len(), bytes);
        }
        return;
    }
    let parts = bytes.par_chunks_mut(step).enumerate();
    parts.for_each(|(number, part)| fill(number * step..number * step + part.len(), part));
}

/// Sets bytes to zero, in parallel where there are many.
pub(crate) fn fill_zero(bytes: &mut [u8]) {
    if bytes.len() < PARALLEL_BYTES {
        return bytes.fill(0);
    }
    bytes
        .par_chunks_mut(CHUNK_BYTES)
        .for_each(|chunk| chunk.fill(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_is_aligned_and_zero() {
        for bytes in [0, 1, 7, 8, 63, 64, 65, 4096, 1_000_003] {
            let memory = HostMemory::zeroed(bytes).expect("small blocks exist");
            assert_eq!(memory.as_bytes().len(), bytes);
            assert_eq!(memory.as_bytes().as_ptr() as usize % ALIGNMENT, 0);
            assert!(memory.as_bytes().iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn too_much_is_none() {
        assert!(HostMemory::zeroed(usize::MAX).is_none());
        assert!(HostMemory::zeroed(usize::MAX / 2).is_none());
    }

    #[test]
    fn a_parallel_copy_copies_every_byte() {
        let from: Vec<u8> = (0..PARALLEL_BYTES + 12_345)
            .map(|i| (i % 251) as u8)
            .collect();
        let mut to = vec![0; from.len()];
        copy(&mut to, &from);
        assert!(to == from);
        fill_zero(&mut to);
        assert!(to.iter().all(|&byte| byte == 0));
    }
}
