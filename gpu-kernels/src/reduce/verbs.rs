//! What the kernels of the family share: totals over a warp and a block, partial results, the last block.

use super::total::{MOST_WORDS, Total};
use crate::cta::{Cta, Shared, Shuffle, WARP};
use crate::memory::Out;
use crate::verbs::{FULL, lane};

/// Threads of a block. Fixed: the order of additions hangs on it.
pub const BLOCK: u32 = 256;
/// Warps of a block.
pub const WARPS: u32 = BLOCK / WARP;
/// Shared memory of a block: a total per warp, and the ticket drawn.
pub const SHARED_BYTES: u32 = WARPS * MOST_WORDS as u32 * 8 + 8;
/// Totals that a thread of the last block has in flight.
const IN_FLIGHT: usize = 8;

#[inline(always)]
fn of_warps() -> Shared<u64> {
    Shared::at(0, WARPS * MOST_WORDS as u32)
}

#[inline(always)]
fn drawn() -> Shared<u32> {
    Shared::at(WARPS * MOST_WORDS as u32 * 8, 1)
}

/// The total of the lane that is `distance` higher.
#[inline(always)]
#[track_caller]
fn from_higher<C: Cta, R: Total>(cta: &C, total: R, distance: u32) -> R {
    let mut words = total.to_words();
    for word in words.iter_mut().take(R::WORDS) {
        *word = cta.shuffle(*word, Shuffle::Down(distance), WARP, FULL);
    }
    R::from_words(words)
}

/// The total of every `stride`-th lane from this one on, in the lanes below `stride`: halves are combined,
/// lane i with lane i + 16, then with i + 8, ….
#[inline(always)]
#[track_caller]
pub fn total_of_lanes<C: Cta, R: Total>(cta: &C, total: R, stride: u32) -> R {
    halved(cta, total, (WARP, stride))
}

/// The total of each team of `team` neighbouring lanes, in its first lane: halves of the team are combined. `team` is a power of
/// two, and all lanes of the warp call.
#[inline(always)]
#[track_caller]
pub fn total_of_team<C: Cta, R: Total>(cta: &C, total: R, team: u32) -> R {
    halved(cta, total, (team, 1))
}

/// Halves of `lanes` lanes are combined down to `stride` of them.
#[inline(always)]
#[track_caller]
fn halved<C: Cta, R: Total>(cta: &C, mut total: R, (lanes, stride): (u32, u32)) -> R {
    let mut distance = lanes / 2;
    while distance >= stride {
        total = total.with(from_higher(cta, total, distance));
        distance /= 2;
    }
    total
}

/// The total of the block, in thread 0: lanes, then warps in their order.
#[inline(always)]
#[track_caller]
pub fn total_of_block<C: Cta, R: Total>(cta: &C, total: R) -> R {
    let mut total = total_of_lanes(cta, total, 1);
    cta.sync();
    if lane(cta) == 0 {
        share(cta, (cta.thread() / WARP) as usize, total);
    }
    cta.sync();
    if cta.thread() == 0 {
        for warp in 1..WARPS as usize {
            total = total.with(shared(cta, warp));
        }
    }
    total
}

#[inline(always)]
#[track_caller]
fn share<C: Cta, R: Total>(cta: &C, place: usize, total: R) {
    let words = total.to_words();
    for (i, word) in words.iter().enumerate().take(R::WORDS) {
        cta.shared_write(of_warps(), place * MOST_WORDS + i, *word);
    }
}

#[inline(always)]
#[track_caller]
fn shared<C: Cta, R: Total>(cta: &C, place: usize) -> R {
    let mut words = [0; MOST_WORDS];
    for (i, word) in words.iter_mut().enumerate().take(R::WORDS) {
        *word = cta.shared_read(of_warps(), place * MOST_WORDS + i);
    }
    R::from_words(words)
}

/// Writes the total of part `part`.
#[inline(always)]
#[track_caller]
pub fn write_total<C: Cta, R: Total>(cta: &C, to: Out<'_, u64>, part: u64, total: R) {
    let words = total.to_words();
    for (i, word) in words.iter().enumerate().take(R::WORDS) {
        cta.write(to, part as usize * R::WORDS + i, *word);
    }
}

/// Reads the total of part `part`.
#[inline(always)]
#[track_caller]
pub fn read_total<C: Cta, R: Total>(cta: &C, from: Out<'_, u64>, part: u64) -> R {
    let mut words = [0; MOST_WORDS];
    for (i, word) in words.iter_mut().enumerate().take(R::WORDS) {
        *word = cta.read(from, part as usize * R::WORDS + i);
    }
    R::from_words(words)
}

/// Combines `first`, `first + stride`, … below `parts`, one after the other.
#[inline(always)]
#[track_caller]
pub fn total_of_parts<C: Cta, R: Total>(
    cta: &C,
    partials: Out<'_, u64>,
    (first, stride, parts): (u64, u64, u64),
    place: impl Fn(u64) -> u64,
) -> R {
    let mut total = R::NONE;
    let mut part = first;
    while part + (IN_FLIGHT as u64 - 1) * stride < parts {
        let mut held = [R::NONE; IN_FLIGHT];
        for (k, held) in held.iter_mut().enumerate() {
            *held = read_total(cta, partials, place(part + k as u64 * stride));
        }
        for held in held {
            total = total.with(held);
        }
        part += IN_FLIGHT as u64 * stride;
    }
    while part < parts {
        total = total.with(read_total(cta, partials, place(part)));
        part += stride;
    }
    total
}

/// Draws one of `tickets` tickets for the block; true in all threads of the block that draws the last. What
/// must be visible to that block has been written by thread 0, or before a barrier.
#[inline(always)]
#[track_caller]
pub fn is_last<C: Cta>(cta: &C, counter: Out<'_, u32>, place: usize, tickets: u64) -> bool {
    let last = (tickets - 1) as u32;
    if cta.thread() == 0 {
        let ticket = cta.ticket(counter, place, last);
        cta.shared_write(drawn(), 0, ticket);
    }
    cta.sync();
    let is_last = cta.shared_read(drawn(), 0) == last;
    // Before somebody draws again.
    cta.sync();
    is_last
}
