//! Dense X (row-major) with wide rows: a block per row, rows on their way in a ring of shared memory.
//!
//! Formula: as [`super::dense`], [`super::Product::Fused`]. Rows start at multiples of 16 bytes.
//!
//! Mapping: a thread owns K packs of 16 bytes of every row, `block` packs apart, with its part of w in registers and
//! of y in registers (Y packs) and in shared memory (the others). S packs per thread are under way: each goes by
//! `cp.async` to a slot that no other thread reads, so that a row costs one barrier, that of its dot product, and the
//! loads of the next rows go on meanwhile. A pack is read twice from its slot, for the dot product and for w; then the
//! slot takes the pack that comes S later.
//!
//! What limits the width is where a row's three lengths n fit: an SM of an H200 has 256 KB of registers and 227 KB of
//! shared memory. As ptxas compiles it, K = 16 takes 238 registers, which leaves blocks of 256 threads: 16,384 columns
//! of f32. With 128 registers blocks of 512 would hold 32,768: 128 KB of w and 64 KB of y in registers, 64 KB of y and
//! a row and a quarter in shared memory.
//!
//! Shared memory: S + K − Y packs per thread, and the sums' scratch. Result: in w when the kernel has ended.
//! Guarantees: atomics add in any order.
//!
//! Source: ours; the asynchronous copies follow the pipelines of matrix products.

use super::dense::{DenseArgs, factor, multiplier};
use super::{Fused, Team, WholeBlock};
use crate::cta::{Cta, Shared};
use crate::scalar::{Pack, Real, Words};
use crate::verbs::load_or;

/// Slots in shared memory that belong to a thread: slot s of thread t is pack `s · threads + t`.
struct Slots<T> {
    packs: Shared<T>,
    threads: usize,
    thread: usize,
}

impl<T: Real> Slots<T> {
    #[inline(always)]
    fn at<C: Cta>(cta: &C, byte: u32, slots: usize) -> Slots<T> {
        let threads = cta.threads();
        Slots {
            packs: Shared::at(byte, slots as u32 * threads * T::Pack::LANES as u32),
            threads: threads as usize,
            thread: cta.thread() as usize,
        }
    }

    #[inline(always)]
    fn element(&self, slot: usize) -> usize {
        (slot * self.threads + self.thread) * T::Pack::LANES
    }

    #[inline(always)]
    fn read<C: Cta>(&self, cta: &C, slot: usize) -> T::Pack {
        cta.shared_read_pack(self.packs, self.element(slot))
    }
}

/// The rows that a block walks, and where in them this thread's packs are.
struct Ring<'a, 'b, T: Real, const K: usize, const S: usize> {
    args: &'b DenseArgs<'a, T>,
    slots: Slots<T>,
}

impl<T: Real, const K: usize, const S: usize> Ring<'_, '_, T, K, S> {
    /// The first column of pack k.
    #[inline(always)]
    fn column(&self, k: usize) -> u32 {
        ((k * self.slots.threads + self.slots.thread) * T::Pack::LANES) as u32
    }

    /// Begins to load pack k of a row into a slot; what is not there becomes zero.
    #[inline(always)]
    fn ask<C: Cta>(&self, cta: &C, row: u64, k: usize, slot: usize) {
        let column = self.column(k);
        let left = self.args.cols.saturating_sub(column) as usize;
        let present = if row < self.args.rows as u64 {
            left.min(T::Pack::LANES)
        } else {
            0
        };
        let from = if present > 0 {
            (row * self.args.ld + column as u64) as usize
        } else {
            0
        };
        let to = self.slots.element(slot);
        cta.copy_pack(self.slots.packs, to, self.args.x, from, present);
        cta.end_copies();
    }

    /// The slot that is k after `base`.
    #[inline(always)]
    fn slot(base: usize, k: usize) -> usize {
        let slot = base + k;
        if S.is_multiple_of(K) || slot < S {
            slot
        } else {
            slot - S
        }
    }
}

/// y: packs in registers and packs in shared memory.
struct Input<T: Real, const Y: usize> {
    held: [T::Pack; Y],
    others: Slots<T>,
}

impl<T: Real, const Y: usize> Input<T, Y> {
    /// Loads y; `column(k)` is the first of pack k.
    #[inline(always)]
    fn open<C: Cta>(
        cta: &C,
        args: &DenseArgs<'_, T>,
        (byte, packs): (u32, usize),
        column: impl Fn(usize) -> u32,
    ) -> Self {
        let load = |k: usize| {
            let mut pack = <T::Pack as Pack<T>>::ZERO;
            for (lane, value) in pack.as_mut().iter_mut().enumerate() {
                let column = column(k) + lane as u32;
                if column < args.cols {
                    *value = cta.load(args.input, column as usize, crate::Cache::Keep);
                }
            }
            pack
        };
        let others = Slots::at(cta, byte, packs.saturating_sub(Y));
        for k in Y..packs {
            for (lane, value) in load(k).as_ref().iter().enumerate() {
                cta.shared_write(others.packs, others.element(k - Y) + lane, *value);
            }
        }
        let held = core::array::from_fn(load);
        Input { held, others }
    }

    #[inline(always)]
    fn pack<C: Cta>(&self, cta: &C, k: usize) -> T::Pack {
        if k < Y {
            self.held[k]
        } else {
            self.others.read(cta, k - Y)
        }
    }
}

/// Waits for all but the last `pending` packs. A constant in every call, so one arm is left of each.
#[inline(always)]
fn wait<C: Cta>(cta: &C, pending: usize) {
    macro_rules! arms {
        ($($count:literal)*) => {
            match pending {
                $( $count => cta.copies_done::<$count>(), )*
                _ => cta.copies_done::<0>(),
            }
        };
    }
    arms!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27);
}

/// [`super::Product::Fused`], n ≤ threads · K packs.
#[inline(always)]
pub(super) fn accumulate<C, T, const K: usize, const Y: usize, const S: usize>(
    cta: &C,
    args: &DenseArgs<'_, T>,
) where
    C: Cta,
    T: Real,
{
    let ring = Ring::<'_, '_, T, K, S> {
        args,
        slots: Slots::at(cta, 0, S),
    };
    let y = Input::<T, Y>::open(cta, args, (ring.slots.packs.end(), K), |k| ring.column(k));
    let scratch = Shared::at(y.others.packs.end(), WholeBlock::scratch(cta.threads(), 1));
    let step = cta.blocks() as u64;
    let mut row = cta.block() as u64;
    for s in 0..S {
        ring.ask(cta, row + (s / K) as u64 * step, s % K, s);
    }
    let shift = load_or(cta, args.shift, 0, T::ZERO);
    let mut w = [<T::Pack as Pack<T>>::ZERO; K];
    let mut weight = multiplier::<C, T, Fused>(cta, args, row);
    let (mut base, mut turn) = (0, 0);
    while row < args.rows as u64 {
        let next_weight = multiplier::<C, T, Fused>(cta, args, row + step);
        let mut dot = T::ZERO;
        for k in 0..K {
            wait(cta, S - 1 - k);
            let x = ring.slots.read(cta, Ring::<T, K, S>::slot(base, k));
            dot = x.dot(&y.pack(cta, k), dot);
        }
        let [dot] = WholeBlock::sum(cta, [dot], scratch, turn);
        let p = factor::<T, Fused>(dot, shift, weight);
        for (k, w) in w.iter_mut().enumerate() {
            let slot = Ring::<T, K, S>::slot(base, k);
            ring.slots.read(cta, slot).scale_add(p, w);
            ring.ask(cta, row + ((k + S) / K) as u64 * step, (k + S) % K, slot);
        }
        base = Ring::<T, K, S>::slot(base, K);
        if base >= S {
            base -= S;
        }
        turn += 1;
        weight = next_weight;
        row += step;
    }
    wait(cta, 0);
    for (k, pack) in w.iter().enumerate() {
        for (lane, value) in pack.as_ref().iter().enumerate() {
            let column = ring.column(k) + lane as u32;
            if column < args.cols {
                cta.add(args.output, column as usize, args.alpha * *value);
            }
        }
    }
}
