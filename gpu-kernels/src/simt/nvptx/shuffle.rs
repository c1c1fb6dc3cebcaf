//! Exchanges and votes of the lanes of a warp.

use core::arch::asm;

use crate::cta::Shuffle;

macro_rules! shuffle_word {
    ($mode:literal, $bits:expr, $lane:expr, $clamp:expr, $members:expr) => {{
        let out: u32;
        asm!(concat!("shfl.sync.", $mode, ".b32 {}, {}, {}, {}, {};"),
            out(reg32) out, in(reg32) $bits, in(reg32) $lane, in(reg32) $clamp, in(reg32) $members,
            options(nostack));
        out
    }};
}

/// 4 bytes of another lane.
#[inline(always)]
pub fn shuffle_bits(bits: u32, from: Shuffle, width: u32, members: u32) -> u32 {
    let segment = (32 - width) << 8;
    // SAFETY: a shuffle touches registers only; that the members are there is the caller's duty, as
    // for every collective of `Cta`.
    unsafe {
        match from {
            Shuffle::Xor(mask) => shuffle_word!("bfly", bits, mask, segment | 31, members),
            Shuffle::Down(by) => shuffle_word!("down", bits, by, segment | 31, members),
            Shuffle::Up(by) => shuffle_word!("up", bits, by, segment, members),
            Shuffle::Index(lane) => shuffle_word!("idx", bits, lane, segment | 31, members),
        }
    }
}

/// The lanes among `members` for which `holds` is true, one bit each.
#[inline(always)]
pub(super) fn ballot(holds: bool, members: u32) -> u32 {
    let lanes: u32;
    // SAFETY: a vote touches registers only.
    unsafe {
        asm!("{{ .reg .pred p; setp.ne.u32 p, {}, 0; vote.sync.ballot.b32 {}, p, {}; }}",
            in(reg32) holds as u32, out(reg32) lanes, in(reg32) members, options(nostack));
    }
    lanes
}
