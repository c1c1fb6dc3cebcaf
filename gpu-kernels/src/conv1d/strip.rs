//! Short filters and one input channel: a tile per block, inputs in a ring of packs in registers.
//!
//! Taps come in whole packs. Where there are other than whole packs of them, the first pack has places before the first
//! tap, which are skipped: zeros there would make NaN of infinite inputs.

use super::Conv1dArgs;
use super::staging::{Buffer, Taps, copy, own_place, write_outputs};
use super::work::{Work, tile_outputs};
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
    let places = args.taps.next_multiple_of(T::Pack::LANES as u32);
    let (at, lead) = (Buffer::new::<R>(places, 0), places - args.taps);
    let work = Work::of(args, cta.block() as u64, tile_outputs::<R>(), lead);
    if work.is_there(args) {
        copy::<C, T, R>(cta, args, work.tile, at, Taps::Wanted);
        cta.end_copies();
        cta.copies_done::<0>();
        cta.sync();
        let sums = convolve::<C, T, R, SLOTS>(cta, at, lead);
        write_outputs(cta, args, work.tile, at.inputs, sums);
    }
}

/// A thread's outputs.
#[inline(always)]
#[track_caller]
fn convolve<C: Cta, T: Real, const R: usize, const SLOTS: usize>(
    cta: &C,
    at: Buffer<T>,
    lead: u32,
) -> [T; R] {
    let lanes = T::Pack::LANES;
    let mut place = own_place::<C, T, R>(cta);
    let mut ring = [T::Pack::ZERO; SLOTS];
    for pack in &mut ring {
        *pack = cta.shared_read_pack(at.inputs, place);
        place += lanes;
    }
    let mut sums = [T::ZERO; R];
    add_first(cta, at.taps, lead, &ring, &mut sums);
    let mut k = lanes;
    // Adds the taps from k on, the ring's oldest pack being that in slot `$slot`, if there are any.
    macro_rules! turn {
        ($slot:literal) => {
            if k >= at.taps.len() as usize {
                return sums;
            }
            ring[($slot + SLOTS - 1) % SLOTS] = cta.shared_read_pack(at.inputs, place);
            let taps = cta.shared_read_pack(at.taps, k);
            for (lane, tap) in taps.as_ref().iter().enumerate() {
                add_tap(*tap, ($slot, lane), &ring, &mut sums);
            }
            k += lanes;
            place += lanes;
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
}

/// Adds the taps of the first pack, but for `lead` places.
#[inline(always)]
#[track_caller]
fn add_first<C: Cta, T: Real, const R: usize, const SLOTS: usize>(
    cta: &C,
    taps: Shared<T>,
    lead: u32,
    ring: &[T::Pack; SLOTS],
    sums: &mut [T; R],
) {
    let taps = cta.shared_read_pack(taps, 0);
    for (lane, tap) in taps.as_ref().iter().enumerate() {
        if lane as u32 >= lead {
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
