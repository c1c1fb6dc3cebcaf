//! `w = β·z`, written beside the walk over hot columns: see [`hot`](crate::fused::hot).
//!
//! Nobody wants w before the walk has ended, and what bounds that are instructions and gathers, not bytes: with slice i a
//! warp writes the i-th 32 packs, while the slice's entries are on their way, and what slices leave over in the end. By
//! itself it would be 29 µs for 30 million columns of f32 on an H200.

use crate::cta::{Cache, Cta, WARP};
use crate::fused::hot::HotArgs;
use crate::scalar::{Pack, Real, Words};
use crate::verbs::{global_thread, global_threads, lane, load_or};

/// What belongs to a slice.
#[inline(always)]
pub(crate) fn write_of_slice<C: Cta, T: Real>(cta: &C, args: &HotArgs<'_, T>, slice: u32) {
    let pack = slice as u64 * WARP as u64 + lane(cta) as u64;
    if pack < packs(args) {
        write_pack(cta, args, pack);
    }
}

/// What is left over by this many slices.
#[inline(always)]
pub(crate) fn write_rest<C: Cta, T: Real>(cta: &C, args: &HotArgs<'_, T>, slices: u32) {
    let mut pack = slices as u64 * WARP as u64 + global_thread(cta);
    while pack < packs(args) {
        write_pack(cta, args, pack);
        pack += global_threads(cta);
    }
    let last = packs(args) * T::Pack::LANES as u64 + global_thread(cta);
    if last < args.cols as u64 {
        let z = load_or(cta, args.addend, last as usize, T::ZERO);
        cta.write(args.output, last as usize, args.beta * z);
    }
}

/// Whole packs of w.
#[inline(always)]
fn packs<T: Real>(args: &HotArgs<'_, T>) -> u64 {
    args.cols as u64 / T::Pack::LANES as u64
}

#[inline(always)]
fn write_pack<C: Cta, T: Real>(cta: &C, args: &HotArgs<'_, T>, pack: u64) {
    let at = pack as usize * T::Pack::LANES;
    let mut pack = T::Pack::ZERO;
    if args.addend.is_some() {
        pack = cta.load_pack(args.addend, at, Cache::Once);
    }
    for z in pack.as_mut() {
        *z = args.beta * *z;
    }
    cta.write_pack(args.output, at, pack);
}
