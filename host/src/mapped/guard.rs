//! Pages that a mapped file no longer has read as zeros instead of ending the program.
//!
//! The handler of SIGBUS puts zero pages where the address belongs to a mapping that is guarded, notes it there, and returns,
//! so that the access is made again. Any other address is passed on to the handler that was there before. What runs in the
//! handler is safe in a signal: atomic loads and stores, and mmap.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// A mapping whose lost pages are noted, for as long as this exists.
pub(super) struct Guard(&'static Entry);

impl Guard {
    pub(super) fn new(bytes: &[u8]) -> Guard {
        install();
        let (entry, range) = (free_entry(), bytes.as_ptr_range());
        entry.has_lost_pages.store(false, Ordering::Relaxed);
        entry.end.store(range.end as usize, Ordering::Relaxed);
        // From here on the handler finds it.
        entry.start.store(range.start as usize, Ordering::Release);
        Guard(entry)
    }

    pub(super) fn has_lost_pages(&self) -> bool {
        self.0.has_lost_pages.load(Ordering::Acquire)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.start.store(FREE, Ordering::Release);
    }
}

/// A place in the list of mappings, which only grows: places are used again, so that there are as many as mappings were at
/// once.
struct Entry {
    /// The first address, or one of the two values below, which no mapping begins at.
    start: AtomicUsize,
    end: AtomicUsize,
    has_lost_pages: AtomicBool,
    next: AtomicPtr<Entry>,
}

const FREE: usize = 0;
const TAKEN: usize = 1;

static FIRST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

fn entries() -> impl Iterator<Item = &'static Entry> {
    let at = |pointer: &AtomicPtr<Entry>| -> Option<&'static Entry> {
        // SAFETY: what is in the list was leaked, so that it lives as long as the program, and is never written through
        // a mutable reference again.
        unsafe { pointer.load(Ordering::Acquire).as_ref() }
    };
    std::iter::successors(at(&FIRST), move |entry| at(&entry.next))
}

/// A place that nobody else has.
fn free_entry() -> &'static Entry {
    let take = |entry: &&Entry| {
        let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        let taken = entry.start.compare_exchange(FREE, TAKEN, order, failed);
        taken.is_ok()
    };
    entries().find(take).unwrap_or_else(|| {
        let entry: &'static Entry = Box::leak(Box::new(Entry {
            start: AtomicUsize::new(TAKEN),
            end: AtomicUsize::new(0),
            has_lost_pages: AtomicBool::new(false),
            next: AtomicPtr::new(ptr::null_mut()),
        }));
        let link = |first: *mut Entry| {
            entry.next.store(first, Ordering::Relaxed);
            Some(ptr::from_ref(entry).cast_mut())
        };
        // It never refuses.
        let _ = FIRST.fetch_update(Ordering::AcqRel, Ordering::Acquire, link);
        entry
    })
}

impl Entry {
    fn covers(&self, address: usize) -> bool {
        let start = self.start.load(Ordering::Acquire);
        start > TAKEN && (start..self.end.load(Ordering::Relaxed)).contains(&address)
    }

    /// Puts zero pages from that of `address` to the end; whether that was possible.
    fn fill(&self, address: usize) -> bool {
        self.has_lost_pages.store(true, Ordering::Release);
        let page = PAGE.load(Ordering::Relaxed);
        let from = address / page * page;
        let len = self.end.load(Ordering::Relaxed) - from;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: the range is the end of a mapping that its owner still has, readable and never written to, as the new
        // pages are. Mapping is a system call that touches no state of this program.
        let mapped = unsafe { libc::mmap(from as *mut c_void, len, libc::PROT_READ, flags, -1, 0) };
        mapped != libc::MAP_FAILED
    }
}

/// Bytes of a page.
static PAGE: AtomicUsize = AtomicUsize::new(4096);
/// What handled the signal before.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Handles SIGBUS from now on.
fn install() {
    PREVIOUS.get_or_init(|| {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        PAGE.store(page.max(4096) as usize, Ordering::Relaxed);
        // SAFETY: zeros are a valid value of this struct of integers; the handler has the signature that SA_SIGINFO
        // asks for and calls nothing that a signal may not interrupt.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            let mut previous: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGBUS, &raw const action, &raw mut previous);
            previous
        }
    });
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system hands over what has happened.
    let address = unsafe { (*info).si_addr() } as usize;
    let entry = entries().find(|entry| entry.covers(address));
    if !entry.is_some_and(|entry| entry.fill(address)) {
        pass_on(signal, info, context);
    }
}

/// What would have happened without this file.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let known = PREVIOUS.get().copied();
    let of_others = known.filter(|p| ![libc::SIG_DFL, libc::SIG_IGN].contains(&p.sa_sigaction));
    // SAFETY: the previous handler has the signature that its flags state, and is called as the system would have. Where
    // there is none, the access that is made again ends the program.
    unsafe {
        match of_others {
            Some(previous) if previous.sa_flags & libc::SA_SIGINFO != 0 => {
                type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
                let handler: Handler = std::mem::transmute(previous.sa_sigaction);
                handler(signal, info, context);
            }
            Some(previous) => {
                let handler: extern "C" fn(c_int) = std::mem::transmute(previous.sa_sigaction);
                handler(signal);
            }
            None => {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
