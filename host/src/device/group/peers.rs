//! Whether other processes of this machine live: what the operating system says of them, without a message from them.

use std::panic::{RefUnwindSafe, UnwindSafe};

use bytemuck::{Pod, Zeroable};

use super::GroupError;

/// How a member left whose process is no more.
pub(super) const PROCESS_ENDED: &str = "its process has ended";

/// Looks for a member that is known to have failed or left.
pub(super) type Departed =
    Box<dyn Fn() -> Option<GroupError> + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// What is known of the other members while they join.
pub(super) struct Others {
    pub(super) departed: Departed,
    /// Who has not come, or may not have.
    pub(super) absent: Box<dyn Fn() -> Vec<usize>>,
}

/// What ends work of others than NCCL.
pub(super) type End = Box<dyn Fn() + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// A process, and the machine on which its number means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Process {
    /// Of the machine's start, and of the processes' numbers.
    machine: [u64; 2],
    number: u64,
    /// When it started, in ticks of the machine's clock: numbers are used again.
    start: u64,
}

impl Process {
    /// This one; `None` where the system does not say.
    pub(super) fn own() -> Option<Process> {
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
    pub(super) fn is_beside(&self, other: &Process) -> bool {
        self.machine == other.machine && self.number != 0 && other.number != 0
    }

    /// Whether it is no more, though its parent may not have asked what became of it.
    pub(super) fn has_ended(&self) -> bool {
        match stat(self.number) {
            Some(stat) => stat.start != self.start || stat.is_dead,
            None => true,
        }
    }
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
