//! The program's allocator: the system's, with large pages for large blocks.
//!
//! The system gives new memory page by page, when each is first touched, and takes it back page by page. With pages of
//! 4 KiB that is what a fit on millions of rows mostly does on the host: 16 threads that write 4 GiB for the first time take
//! 0.19 s on the host of an H200, and one thread then takes 0.2 s to give them back. Linux has pages of 2 MiB for those who
//! ask (`transparent_hugepage/enabled` is `madvise` on most distributions), which are 512 times fewer.

use std::alloc::{GlobalAlloc, Layout, System};

use crate::process;

/// Blocks from this size on are worth advice: two large pages.
const LARGE: usize = 4 << 20;

/// The system's allocator, which is advised to use large pages for large blocks: for `#[global_allocator]`.
///
/// Advice is given on Linux alone, and not taken where large pages are switched off.
///
/// ```
/// use warpfuse::cli::LargePages;
///
/// #[global_allocator]
/// static ALLOCATOR: LargePages = LargePages;
///
/// fn main() {
///     let zeros = vec![0_u8; 64 << 20];
///     assert!(zeros.iter().all(|byte| *byte == 0));
/// }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct LargePages;

// SAFETY: every block is the system allocator's, under the same contract. Advice changes no contents.
unsafe impl GlobalAlloc for LargePages {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract.
        advised(unsafe { System.realloc(block, layout, size) }, size)
    }
}

/// `block`, of `size` bytes unless it is null, with advice where it is large.
#[inline]
fn advised(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        super::out_of_memory::note(size);
    } else if size >= LARGE {
        process::prefer_large_pages(block, size);
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a block, makes it larger, and gives it back.
    fn goes_through(size: usize, larger: usize) {
        let layout = Layout::from_size_align(size, 8).expect("a layout");
        // SAFETY: the layout has a size, every byte that is read was written or zeroed, and the block is given back with
        // the layout that it has then.
        unsafe {
            let block = LargePages.alloc_zeroed(layout);
            assert!(!block.is_null());
            assert_eq!((*block, *block.add(size - 1)), (0, 0));
            block.write(7);
            block.add(size - 1).write(9);
            let block = LargePages.realloc(block, layout, larger);
            assert_eq!((*block, *block.add(size - 1)), (7, 9));
            LargePages.dealloc(block, Layout::from_size_align(larger, 8).expect("a layout"));
        }
    }

    #[test]
    fn blocks_of_all_sizes_keep_what_is_in_them() {
        for (size, larger) in [(2, 5), (LARGE - 1, LARGE), (LARGE, 3 * LARGE + 5)] {
            goes_through(size, larger);
        }
    }

    /// The flags of a mapping are two letters each; `hg` is for this advice.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_large_block_is_advised() {
        let block = vec![1_u8; 8 * LARGE];
        process::prefer_large_pages(block.as_ptr().cast_mut(), block.len());
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
        let mut flags = maps.lines().filter(|line| line.starts_with("VmFlags:"));
        assert!(flags.any(|line| line.contains(" hg")), "{maps}");
    }
}
