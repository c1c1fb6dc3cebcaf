//! What the operating system lets this process have, and what it says of other processes.

use std::path::{Path, PathBuf};

use bytemuck::{Pod, Zeroable};
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

/// The most memory that control groups let this process take: its own group, and all that this one is a part of. A file in
/// [mapped memory](crate::mapped) counts as far as its pages are there, and gives them back.
pub(crate) fn container_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let limit =
        |file: PathBuf| -> Option<u64> { std::fs::read_to_string(file).ok()?.trim().parse().ok() };
    limit_files(&groups).into_iter().filter_map(limit).min()
}

/// Where control groups of either version say what they are limited to (`max` is no limit), from `/proc/self/cgroup`. In a
/// container the files of its own group may be at the root.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let files = groups.lines().filter_map(|line| {
        let (_, group) = line.split_once(':')?;
        let (controllers, path) = group.split_once(':')?;
        let (root, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        Some(groups.map(move |group| Path::new(root).join(group).join(name)))
    });
    files.flatten().collect()
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

/// A process, and the machine on which its number means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Process {
    /// Of the machine's start, and of the processes' numbers.
    machine: [u64; 2],
    number: u64,
    /// When it started, in ticks of the machine's clock: numbers are used again.
    start: u64,
}

#[cfg_attr(
    not(feature = "cuda"),
    allow(
        dead_code,
        reason = "members of a group with GPUs look for one another"
    )
)]
impl Process {
    /// This one; `None` where the system does not say.
    pub(crate) fn own() -> Option<Process> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let names = std::fs::read_link("/proc/self/ns/pid").ok()?;
        let number = std::process::id().into();
        Some(Process {
            machine: [hash(boot.trim()), hash(&names.to_string_lossy())],
            number,
            start: stat(number)?.start,
        })
    }

    /// Whether the other process runs where this one's number means the same.
    pub(crate) fn is_beside(&self, other: &Process) -> bool {
        self.machine == other.machine && self.number != 0 && other.number != 0
    }

    /// Whether it is no more, though its parent may not have asked what became of it.
    pub(crate) fn has_ended(&self) -> bool {
        match stat(self.number) {
            Some(stat) => stat.start != self.start || stat.is_dead,
            None => true,
        }
    }
}

/// When a process started, in ticks of the machine's clock: with its number, who it is until the machine starts anew. `None`
/// where there is no such process, or the system does not say.
pub(crate) fn started(number: u32) -> Option<u64> {
    let stat = stat(number.into())?;
    (!stat.is_dead).then_some(stat.start)
}

struct Stat {
    is_dead: bool,
    start: u64,
}

/// Of `/proc/N/stat`: the state and the start, behind a name that may hold anything.
fn stat(number: u64) -> Option<Stat> {
    parsed(&std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?)
}

fn parsed(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        is_dead: matches!(*fields.first()?, "Z" | "X" | "x"),
        start: fields.get(19)?.parse().ok()?,
    })
}

/// FNV-1a.
#[cfg_attr(
    not(feature = "cuda"),
    allow(
        dead_code,
        reason = "members of a group with GPUs look for one another"
    )
)]
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_behind_any_name() {
        let text = "7 (a) b (c)) Z 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let stat = parsed(text).expect("a line of the kernel");
        assert!(stat.is_dead);
        assert_eq!(stat.start, 4711);
    }

    #[test]
    fn limits_of_all_groups_around_a_process_are_looked_for() {
        let files = limit_files("8:pids:/a\n4:cpu,memory:/a/b\n0::/c\nnonsense\n");
        let expected = [
            "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/c/memory.max",
            "/sys/fs/cgroup/memory.max",
        ];
        assert_eq!(files, expected.map(PathBuf::from));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_has_ended_is_known_before_its_parent_asks() {
        let own = Process::own().expect("Linux says so");
        assert!(!own.has_ended());
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let number = u64::from(child.id());
        let start = stat(number).map_or(0, |stat| stat.start);
        let other = Process {
            number,
            start,
            ..own
        };
        assert!(own.is_beside(&other));
        while stat(number).is_some_and(|stat| !stat.is_dead) {
            std::thread::yield_now();
        }
        assert!(other.has_ended());
        child.wait().expect("it has ended");
        assert!(other.has_ended());
    }
}
