//! Shuffles, votes and barriers of a warp: who takes from whom.

use std::panic::Location;

use gpu_kernels::Shuffle;
use gpu_kernels::cta::WARP;

/// What a collective does; all its members must ask for the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Xor,
    Down,
    Up,
    Index,
    Ballot,
    Barrier,
    /// A matrix instruction: what lanes bring lies in their block.
    Matrix,
}

/// A lane's part in a shuffle, vote or barrier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Collective {
    pub mode: Mode,
    pub width: u32,
    pub members: u32,
    /// The lane whose value this one takes.
    pub source: u32,
    /// The value given; for a vote, whether it holds.
    pub bits: u64,
    pub site: &'static Location<'static>,
}

impl Collective {
    /// The part of `lane` in a shuffle.
    pub fn shuffle(
        lane: u32,
        bits: u64,
        from: Shuffle,
        width: u32,
        members: u32,
        site: &'static Location<'static>,
    ) -> Collective {
        Collective {
            mode: match from {
                Shuffle::Xor(_) => Mode::Xor,
                Shuffle::Down(_) => Mode::Down,
                Shuffle::Up(_) => Mode::Up,
                Shuffle::Index(_) => Mode::Index,
            },
            width,
            members,
            source: source(lane, from, width),
            bits,
            site,
        }
    }

    /// The part of `lane` in a vote.
    pub fn ballot(
        lane: u32,
        holds: bool,
        members: u32,
        site: &'static Location<'static>,
    ) -> Collective {
        Collective {
            mode: Mode::Ballot,
            width: WARP,
            members,
            source: lane,
            bits: u64::from(holds),
            site,
        }
    }

    /// The part of `lane` in a barrier of its warp.
    pub fn barrier(lane: u32, members: u32, site: &'static Location<'static>) -> Collective {
        Collective {
            mode: Mode::Barrier,
            width: WARP,
            members,
            source: lane,
            bits: 0,
            site,
        }
    }

    /// The part of `lane` in a matrix instruction, which the whole warp executes.
    pub fn matrix(lane: u32, site: &'static Location<'static>) -> Collective {
        Collective {
            mode: Mode::Matrix,
            ..Collective::barrier(lane, u32::MAX, site)
        }
    }

    /// Whether two lanes take part in the same one.
    pub fn matches(&self, other: &Collective) -> bool {
        (self.mode, self.width, self.members) == (other.mode, other.width, other.members)
    }
}

/// The lane from which `lane` takes a value, as PTX defines `shfl.sync` (ISA 9.7.9.6): the operand counts
/// modulo 32, and a lane beyond the end of the group stands for the own one.
fn source(lane: u32, from: Shuffle, width: u32) -> u32 {
    let first = lane & !(width - 1);
    let last = first + width - 1;
    let (source, is_inside) = match from {
        Shuffle::Xor(mask) => {
            let source = lane ^ (mask % WARP);
            (source, source <= last)
        }
        Shuffle::Down(by) => {
            let source = lane + by % WARP;
            (source, source <= last)
        }
        Shuffle::Up(by) => {
            let by = by % WARP;
            (lane.wrapping_sub(by), lane >= first + by)
        }
        Shuffle::Index(index) => (first + index % width, true),
    };
    if is_inside { source } else { lane }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(from: Shuffle, width: u32) -> Vec<u32> {
        (0..WARP).map(|lane| source(lane, from, width)).collect()
    }

    #[test]
    fn groups_end_where_their_width_says() {
        let down = sources(Shuffle::Down(2), 8);
        assert_eq!(down[..9], [2, 3, 4, 5, 6, 7, 6, 7, 10]);
        let up = sources(Shuffle::Up(3), 8);
        assert_eq!(up[..12], [0, 1, 2, 0, 1, 2, 3, 4, 8, 9, 10, 8]);
    }

    #[test]
    fn an_index_wraps_within_its_group() {
        assert_eq!(sources(Shuffle::Index(5), 4)[..6], [1, 1, 1, 1, 5, 5]);
    }

    #[test]
    fn a_butterfly_may_reach_a_lower_group_but_not_a_higher_one() {
        let xor = sources(Shuffle::Xor(8), 8);
        assert_eq!((xor[0], xor[8], xor[16], xor[24]), (0, 0, 16, 16));
    }

    #[test]
    fn operands_count_modulo_the_warp() {
        assert_eq!(
            sources(Shuffle::Down(33), 32),
            sources(Shuffle::Down(1), 32)
        );
        assert_eq!(sources(Shuffle::Xor(32), 32), (0..32).collect::<Vec<_>>());
    }
}
