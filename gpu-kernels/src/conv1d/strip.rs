//! Short filters and one input channel: a tile per block, inputs in a ring of packs in registers.
//!
//! Taps come in packs, with as many places before the first one as make inputs and outputs begin at packs of memory alike.
//! Places without a tap are skipped: zeros there would make NaN of infinite inputs.

use super::Conv1dArgs;
use super::staging::{Buffer, Taps, copy, own_place, write_outputs};
use super::work::{Tile, tile_outputs};
use crate::cta::{Cta, Shared};
use crate::scalar::{Pack, Real, Words};

/// R neighbouring outputs per thread, SLOTS - 1 packs; as many registers as leave room for `BLOCKS` blocks.
///
/// A block has one tile: what a loop over tiles would keep in registers, and make ready before the first copy, took half
/// as many instructions again as 33 taps do.
#[inline(always)]
pub fn strip<C: Cta, T: Real, const R: usize, const SLOTS: usize, const BLOCKS: u32>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
) {
    cta.launch_bounds::<{ super::BLOCK }, BLOCKS>();
    let lanes = T::Pack::LANES as u32;
    let lead = (args.before as u32).wrapping_neg() & (lanes - 1);
    let outputs = tile_outputs::<R>();
    // Twice, so that one channel needs nothing that many do: a fifth of the instructions of 33 taps.
    if args.out_channels == 1 {
        let tile = Tile::of_one(args, cta.block() as u64 * outputs, lead);
        convolve::<C, T, R, SLOTS>(cta, args, tile);
    } else {
        let tile = Tile::of(args, cta.block() as u64, outputs, lead);
        convolve::<C, T, R, SLOTS>(cta, args, tile);
    }
}

/// A block's work.
#[inline(always)]
fn convolve<C: Cta, T: Real, const R: usize, const SLOTS: usize>(
    cta: &C,
    args: &Conv1dArgs<'_, T>,
    tile: Tile,
) {
    if tile.is_there(args) {
        let end = tile.lead + args.taps;
        let at = Buffer::new::<R>(end.next_multiple_of(T::Pack::LANES as u32), 0);
        copy::<C, T, R>(cta, args, tile, at, Taps::Wanted);
        cta.end_copies();
        cta.copies_done::<0>();
        cta.sync();
        let sums = add_taps::<C, T, R, SLOTS>(cta, at, (tile.lead, end));
        write_outputs(cta, args, tile, at.inputs, sums);
    }
}

/// A thread's outputs, by the taps in the places from `first` to `end`.
#[inline(always)]
#[track_caller]
fn add_taps<C: Cta, T: Real, const R: usize, const SLOTS: usize>(
    cta: &C,
    at: Buffer<T>,
    (first, end): (u32, u32),
) -> [T; R] {
    let lanes = T::Pack::LANES as u32;
    let own = own_place::<C, T, R>(cta);
    let mut sums = [T::ZERO; R];
    let mut ring = read_ring::<C, T, SLOTS>(cta, at.inputs, own);
    add_some(cta, at.taps, (0, first, end), &ring, &mut sums);
    let mut k = lanes;
    // Adds the pack of taps from k on, if it is whole; the ring's oldest pack is then that in slot `$slot`.
    macro_rules! turn {
        ($slot:literal) => {
            if k + lanes > end {
                break;
            }
            let next = own + k as usize + (SLOTS - 1) * T::Pack::LANES;
            ring[($slot + SLOTS - 1) % SLOTS] = cta.shared_read_pack(at.inputs, next);
            let taps = cta.shared_read_pack(at.taps, k as usize);
            for (lane, tap) in taps.as_ref().iter().enumerate() {
                add_tap(*tap, ($slot, lane), &ring, &mut sums);
            }
            k += lanes;
        };
    }
    loop {
        turn!(1);
        turn!(2);
        turn!(3);
        if SLOTS > 4 {
            turn!(4);
            turn!(5);
        }
        turn!(0);
    }
    if k < end {
        let ring = read_ring::<C, T, SLOTS>(cta, at.inputs, own + k as usize);
        add_some(cta, at.taps, (k, k, end), &ring, &mut sums);
    }
    sums
}

/// The packs that a pack of taps meets, from `place` on.
#[inline(always)]
#[track_caller]
fn read_ring<C: Cta, T: Real, const SLOTS: usize>(
    cta: &C,
    inputs: Shared<T>,
    place: usize,
) -> [T::Pack; SLOTS] {
    let mut ring = [T::Pack::ZERO; SLOTS];
    for (slot, pack) in ring.iter_mut().enumerate() {
        *pack = cta.shared_read_pack(inputs, place + slot * T::Pack::LANES);
    }
    ring
}

/// Adds those taps of the pack from place `k` on that lie in the places from `first` to `end`.
#[inline(always)]
#[track_caller]
fn add_some<C: Cta, T: Real, const R: usize, const SLOTS: usize>(
    cta: &C,
    taps: Shared<T>,
    (k, first, end): (u32, u32, u32),
    ring: &[T::Pack; SLOTS],
    sums: &mut [T; R],
) {
    let taps = cta.shared_read_pack(taps, k as usize);
    for (lane, tap) in taps.as_ref().iter().enumerate() {
        let place = k + lane as u32;
        if place >= first && place < end {
            add_tap(*tap, (0, lane), ring, sums);
        }
    }
}

/// `sums[r] += tap · inputs[r + lane]`, the inputs beginning in slot `first` of the ring.
#[inline(always)]
fn add_tap<T: Real, const R: usize, const SLOTS: usize>(
    tap: T,
    (first, lane): (usize, usize),
    ring: &[T::Pack; SLOTS],
    sums: &mut [T; R],
) {
    let lanes = T::Pack::LANES;
    for (r, sum) in sums.iter_mut().enumerate() {
        let i = r + lane;
        let x = ring[(first + i / lanes) % SLOTS].as_ref()[i % lanes];
        *sum = x.fma(tap, *sum);
    }
}
