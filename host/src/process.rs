//! What the operating system lets this process have.

use memmap2::MmapMut;

/// The usual size of a large page.
pub(crate) const LARGE_PAGE: usize = 2 << 20;

/// At least `bytes` zero bytes, in pages that hold nothing else: large ones where the system has them. `None` where it has none.
pub(crate) fn pages(bytes: usize) -> Option<MmapMut> {
    let pages = MmapMut::map_anon(bytes.checked_next_multiple_of(LARGE_PAGE)?).ok()?;
    #[cfg(target_os = "linux")]
    // A hint; without it whoever uses them is slower.
    let _ = pages.advise(memmap2::Advice::HugePage);
    Some(pages)
}

/// Address space, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddressSpace {
    /// The most that the process may take (`ulimit -v`).
    pub(crate) limit: u64,
    /// What is left of it.
    pub(crate) left: u64,
}

/// The address space of this process, where that is limited.
pub(crate) fn address_space() -> Option<AddressSpace> {
    const PAGE: u64 = 4096;
    let limit = address_space_limit()?;
    let taken = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = taken.split_whitespace().next()?.parse().ok()?;
    let left = limit.saturating_sub(pages.saturating_mul(PAGE));
    Some(AddressSpace { limit, left })
}

/// The most address space that this process may take; allocates nothing.
#[cfg(unix)]
pub(crate) fn address_space_limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call writes to the struct, which lives as long.
    let failed = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } != 0;
    (!failed && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// The most address space that this process may take: not limited here.
#[cfg(not(unix))]
pub(crate) fn address_space_limit() -> Option<u64> {
    None
}

/// Asks the system for large pages in a block of memory that is to be used soon; where it has none, or nothing is there,
/// nothing happens.
#[cfg(target_os = "linux")]
pub(crate) fn prefer_large_pages(block: *mut u8, size: usize) {
    /// Advice is for whole pages; no system that this runs on has larger base pages.
    const BASE_PAGE: usize = 64 << 10;
    let before = block.addr().wrapping_neg() % BASE_PAGE;
    let whole = size.saturating_sub(before) / BASE_PAGE * BASE_PAGE;
    // SAFETY: this advice changes how memory is provided, not what is in it, and where nothing is mapped the call fails.
    // Whether it is taken does not matter, so the result is not looked at.
    unsafe {
        libc::madvise(
            block.wrapping_add(before).cast(),
            whole,
            libc::MADV_HUGEPAGE,
        );
    }
}

/// Nothing is advised here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn prefer_large_pages(_: *mut u8, _: usize) {}
