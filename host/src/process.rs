//! What the operating system lets this process have.

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
