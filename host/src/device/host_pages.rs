//! Host memory that a driver may page-lock: pages of its own, all of them there.

use memmap2::MmapMut;

use crate::parallel;
use crate::process::{self, LARGE_PAGE};

/// Bytes of a small page, at least.
const SMALL_PAGE: usize = 4 << 10;

/// Zero bytes from the beginning of a large page on, in large pages where the system has them, which nobody else has.
pub(crate) struct HostPages {
    pages: MmapMut,
    first: usize,
    bytes: usize,
}

impl HostPages {
    /// `bytes` bytes that all threads have touched; `None` where the system has none.
    ///
    /// A process that is forked does not have them: its parent would go on with copies of the pages that it writes, and a
    /// device with the pages that it was given.
    pub(crate) fn touched(bytes: usize) -> Option<HostPages> {
        // Not every system begins where a large page does.
        let mut pages = process::pages(bytes.checked_add(LARGE_PAGE)?)?;
        #[cfg(target_os = "linux")]
        let _ = pages.advise(memmap2::Advice::DontFork);
        let first = pages.as_ptr().align_offset(LARGE_PAGE);
        let large = pages[first..][..bytes].chunks_mut(LARGE_PAGE);
        parallel::for_each_item(large, |_, page| {
            page.iter_mut()
                .step_by(SMALL_PAGE)
                .for_each(|byte| *byte = 0);
        });
        Some(HostPages {
            pages,
            first,
            bytes,
        })
    }

    /// The first byte.
    pub(crate) fn pointer(&mut self) -> *mut u8 {
        self.pages[self.first..][..self.bytes].as_mut_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_aligned_and_zero() {
        for bytes in [1, LARGE_PAGE, 3 * LARGE_PAGE + 5] {
            let mut memory = HostPages::touched(bytes).expect("small blocks exist");
            assert!(memory.pointer().addr().is_multiple_of(LARGE_PAGE));
            let all = &memory.pages[memory.first..];
            assert!(all.len() >= bytes && all.iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn too_much_is_none() {
        assert!(HostPages::touched(usize::MAX).is_none());
        assert!(HostPages::touched(usize::MAX / 2).is_none());
    }
}
