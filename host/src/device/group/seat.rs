//! Which device is whose.

use super::{Launch, Launcher};

/// The place of a member of a group among those of its machine, by which it has a device of its own.
///
/// ```
/// use warpfuse::device::group::Seat;
/// // The third process that `torchrun` started on a machine, and one of `mpirun`.
/// let (with_gpu, without) = (Seat::new(2, true), Seat::new(2, false));
/// assert_eq!(with_gpu.device("auto").as_deref(), Some("cuda:2"));
/// assert_eq!(without.device("auto").as_deref(), Some("cpu"));
/// assert_eq!(without.device("cuda:4").as_deref(), Some("cuda:6"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    number: usize,
    has_gpu: bool,
}

impl Seat {
    /// Member `number` of a machine, counted from 0, of members that have a GPU each or have none unless they are named.
    pub fn new(number: usize, has_gpu: bool) -> Seat {
        Seat { number, has_gpu }
    }

    /// That of a process: those of `torchrun` have a GPU each.
    pub fn of(launch: &Launch) -> Seat {
        Seat {
            number: launch.local_rank.unwrap_or(launch.rank),
            has_gpu: launch.launcher == Launcher::Torchrun,
        }
    }

    /// The name of this member's device where all members were told `name`: `auto` is a GPU of its own for members that have one
    /// each, and the processor for others; `cuda:N` is the GPU of the first member, the next one has that after it, and so for
    /// `emulator:N`. `None` where members that have a GPU each are to have the processor. What is no such name stays what it is,
    /// and is refused where it is opened.
    pub fn device(self, name: &str) -> Option<String> {
        let (kind, first) = match (name, self.has_gpu) {
            ("cpu", true) => return None,
            ("auto", true) => ("cuda", "0"),
            ("auto" | "cpu", false) => return Some("cpu".to_owned()),
            _ => name.split_once(':').unwrap_or((name, "0")),
        };
        match (kind, first.parse::<usize>()) {
            ("cuda" | "emulator", Ok(first)) => {
                let own = first.saturating_add(self.number);
                Some(format!("{kind}:{own}"))
            }
            _ => Some(name.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_has_a_device_of_its_own() {
        for (number, has_gpu, name, expected) in [
            (1, true, "auto", Some("cuda:1")),
            (1, true, "cuda", Some("cuda:1")),
            (1, true, "cpu", None),
            (1, false, "auto", Some("cpu")),
            (1, false, "cpu", Some("cpu")),
            (3, false, "cuda:2", Some("cuda:5")),
            (3, false, "emulator", Some("emulator:3")),
            (0, true, "emulator:7", Some("emulator:7")),
            (3, false, "cuda:x", Some("cuda:x")),
            (3, true, "tpu", Some("tpu")),
        ] {
            let found = Seat::new(number, has_gpu).device(name);
            assert_eq!(found.as_deref(), expected, "{name} of member {number}");
        }
    }

    #[test]
    fn processes_are_counted_on_their_machine() {
        let of = |launcher, local_rank| Launch {
            launcher,
            rank: 5,
            size: 8,
            local_rank,
        };
        assert_eq!(
            Seat::of(&of(Launcher::Torchrun, Some(1))),
            Seat::new(1, true)
        );
        assert_eq!(Seat::of(&of(Launcher::Slurm, None)), Seat::new(5, false));
    }
}
