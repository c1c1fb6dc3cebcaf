//! Dense X (row-major) with wide rows: a block per row, or a cluster, rows on their way in a ring of shared memory.
//!
//! Formula: as [`crate::fused::dense`], [`crate::fused::Product::Fused`]. Rows start at multiples of 16 bytes.
//!
//! Mapping: a thread owns K packs of 16 bytes of every row, `block` packs apart, with its part of w in registers and
//! of y in registers (Y packs) and in shared memory (the others). S packs per thread are under way: each goes by
//! `cp.async` to a slot that no other thread reads, so that a row costs one barrier, that of its dot product. A pack is
//! read twice from its slot, for the dot product and for w; then the slot takes the pack that comes S later.
//!
//! A row is added to w in the same walk in which the next row is multiplied by y: slots become free all the time but for
//! the barrier's, and S − K packs are on their way whenever one is waited for. The walk goes in groups of G packs: each
//! is a chain of two reads of shared memory, a copy and a wait, of some 160 cycles whether G is 1 or 4, and with G = 1
//! these chains are what bounds it (10,000 columns, K = 10: 0.26 ms for 1 GB on an H200, of which 0.22 are the reading).
//!
//! What limits the width is where a row's three lengths n fit: an SM of an H200 has 256 KB of registers and 227 KB of
//! shared memory. K = 32 with 256 threads are 32,768 columns of f32: 128 KB of w and part of y in registers, the rest of
//! y and a row and some in shared memory.
//!
//! Wider rows are shared by a cluster of N blocks, each with the columns from `rank · block · K` packs on: nothing of the
//! above changes but the sum, for which a warp tells all blocks, and whose barrier is the cluster's. Blocks that share a
//! row end with the same row, so after its barrier nobody writes to another any more. Two blocks with K = 32 hold 65,536
//! columns of f32, and with K = 16 the 32,768 that one holds with K = 32, with three times as much on its way; four hold 131,072.
//!
//! What a block has of w is added in packs at the end: element by element, two lanes of a warp came to a sector, and the
//! 2.2 million sectors of 132 blocks with 32,768 columns each took 16 µs. Asking for the first rows before y is loaded,
//! and loading y in packs, gave nothing to be seen (0 to 4 µs of 900) and made kernels of clusters spill.
//!
//! Shared memory: S + K − Y packs per thread, and the sums' scratch. Result: in w when the kernel has ended.
//! Guarantees: as [`crate::fused::dense`].
//!
//! Source: ours; the asynchronous copies follow the pipelines of matrix products.

use crate::cta::{Cta, Shared, WARP};
use crate::fused::Fused;
use crate::fused::dense::DenseArgs;
use crate::fused::dense::step::{factor, multiplier};
use crate::scalar::{Pack, Real, Words};
use crate::verbs::{lane, load_or, sum_lanes, zero_shared};

/// Slots in shared memory that belong to a thread: slot s of thread t is pack `s · threads + t`.
pub(in crate::fused) struct Slots<T> {
    pub(in crate::fused) packs: Shared<T>,
    threads: u32,
    thread: u32,
}

impl<T: Real> Slots<T> {
    #[inline(always)]
    pub(in crate::fused) fn at<C: Cta>(cta: &C, byte: u32, slots: usize) -> Slots<T> {
        let threads = cta.threads();
        Slots {
            packs: Shared::at(byte, slots as u32 * threads * T::Pack::LANES as u32),
            threads,
            thread: cta.thread(),
        }
    }

    #[inline(always)]
    pub(in crate::fused) fn element(&self, slot: usize) -> usize {
        ((slot as u32 * self.threads + self.thread) * T::Pack::LANES as u32) as usize
    }

    /// The same, to be computed again where it is used.
    #[inline(always)]
    fn fresh<C: Cta>(&self, cta: &C) -> Slots<T> {
        Slots {
            packs: self.packs,
            threads: cta.fresh(self.threads),
            thread: cta.fresh(self.thread),
        }
    }

    #[inline(always)]
    pub(in crate::fused) fn read<C: Cta>(&self, cta: &C, slot: usize) -> T::Pack {
        cta.shared_read_pack(self.packs, self.element(slot))
    }
}

/// The rows that a block walks, and where in them this thread's packs are.
struct Ring<'a, 'b, T: Real, const K: usize, const S: usize, const N: u32> {
    args: &'b DenseArgs<'a, T>,
    slots: Slots<T>,
    /// The block's number among those that share a row.
    rank: u32,
}

impl<T: Real, const K: usize, const S: usize, const N: u32> Ring<'_, '_, T, K, S, N> {
    /// The first column of pack k.
    #[inline(always)]
    fn column(&self, k: usize) -> u32 {
        self.slots.element(self.rank as usize * K + k) as u32
    }

    /// The same, to be computed again where it is used: the places of K packs take more registers than there are.
    #[inline(always)]
    fn fresh<C: Cta>(&self, cta: &C) -> Self {
        Ring {
            args: self.args,
            slots: self.slots.fresh(cta),
            rank: if N == 1 { 0 } else { cta.fresh(self.rank) },
        }
    }

    /// Begins to load pack k of a row into a slot; what is not there becomes zero. A group of copies is the caller's to
    /// end.
    #[inline(always)]
    fn ask<C: Cta>(&self, cta: &C, row: u64, k: usize, slot: usize) {
        let column = self.column(k);
        let is_there = column < self.args.cols && row < self.args.rows as u64;
        let from = (row * self.args.ld + column as u64) as usize;
        let to = self.slots.element(slot);
        cta.copy_whole_pack(self.slots.packs, to, self.args.x, from, is_there);
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

    /// The slot of the next row's first pack.
    #[inline(always)]
    fn after_row(base: usize) -> usize {
        let next = base + K;
        if next >= S { next - S } else { next }
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
            self.others.fresh(cta).read(cta, k - Y)
        }
    }
}

/// Sums over the warps of a block, whose scratch has two halves of this many numbers for each block that shares a row.
const MOST_WARPS: u32 = THREADS / WARP;

/// The sum over N blocks of what each thread has for each lane of a pack, in every thread, and in all of them the same
/// bits. `turn` alternates between calls, so that one barrier per call is enough; scratch of warps that are not there is
/// zero.
#[inline(always)]
fn sum<C: Cta, T: Real<Pack: Sums<T>>, const N: u32>(
    cta: &C,
    parts: T::Pack,
    scratch: Shared<T>,
    turn: u32,
) -> T {
    let of_warp = sum_lanes::<C, T, WARP>(cta, parts.sum());
    let half = (turn % 2 * N * MOST_WARPS) as usize;
    if N == 1 {
        if lane(cta) == 0 {
            let warp = (cta.thread() / WARP) as usize;
            cta.shared_write(scratch, half + warp, of_warp);
        }
    } else {
        let (thread, rank) = (cta.fresh(cta.thread()), cta.fresh(cta.cluster_rank()));
        let warp = (rank * MOST_WARPS + thread / WARP) as usize;
        if thread % WARP < N {
            cta.shared_write_to(thread % WARP, scratch, half + warp, of_warp);
        }
    }
    sync::<C, N>(cta);
    let mut sums = <T::Pack as Pack<T>>::ZERO;
    for first in (0..(N * MOST_WARPS) as usize).step_by(T::Pack::LANES) {
        let of_warps = cta.shared_read_pack(scratch, half + first);
        of_warps.scale_add(T::ONE, &mut sums);
    }
    sums.sum()
}

/// Waits for all threads that share a row.
#[inline(always)]
fn sync<C: Cta, const N: u32>(cta: &C) {
    if N == 1 {
        cta.sync();
    } else {
        cta.sync_cluster();
    }
}

/// Waits for all but the last `pending` packs. A constant in every call, so one arm is left of each.
#[inline(always)]
pub(in crate::fused) fn wait<C: Cta>(cta: &C, pending: usize) {
    macro_rules! arms {
        ($($count:literal)*) => {
            match pending {
                $( $count => cta.copies_done::<$count>(), )*
                _ => cta.copies_done::<0>(),
            }
        };
    }
    arms!(1 2 3 4 5 6 7 8 9 10 11 12);
}

/// Sums of packs.
pub(crate) trait Sums<T: Real>: Pack<T> {
    /// `into += self ⊙ other`, element by element, fused.
    fn multiply_add(&self, other: &Self, into: &mut Self);
    /// The sum of its elements, left to right.
    fn sum(&self) -> T;
}

impl<T: Real, const L: usize> Sums<T> for [T; L] {
    #[inline(always)]
    fn multiply_add(&self, other: &Self, into: &mut Self) {
        for i in 0..L {
            into[i] = self[i].fma(other[i], into[i]);
        }
    }

    #[inline(always)]
    fn sum(&self) -> T {
        let mut sum = T::ZERO;
        for value in self {
            sum = sum + *value;
        }
        sum
    }
}

/// A row that is added to w, and the next, which is multiplied by y.
struct RowTurn<T> {
    row: u64,
    /// To the block's next row.
    step: u64,
    /// The slot of the row's first pack.
    base: usize,
    /// The same of the next row.
    next: usize,
    /// What the row is multiplied by.
    p: T,
}

impl<T: Real<Pack: Sums<T>>> RowTurn<T> {
    /// Works on the packs from `from` on that `w` belongs to, in groups of G.
    #[inline(always)]
    fn walk<
        C: Cta,
        const K: usize,
        const Y: usize,
        const S: usize,
        const G: usize,
        const N: u32,
    >(
        &self,
        cta: &C,
        (ring, y): (&Ring<'_, '_, T, K, S, N>, &Input<T, Y>),
        (from, w): (usize, &mut [T::Pack]),
        dots: &mut T::Pack,
    ) {
        for (i, w) in w.iter_mut().enumerate() {
            let (ring, k) = (ring.fresh(cta), from + i);
            let slot = Ring::<T, K, S, N>::slot(self.base, k);
            ring.slots.read(cta, slot).scale_add(self.p, w);
            let row = self.row + ((k + S) / K) as u64 * self.step;
            ring.ask(cta, row, (k + S) % K, slot);
            if !(k + 1).is_multiple_of(G) {
                continue;
            }
            cta.end_copies();
            // The packs that were requested S − K packs ago.
            wait(cta, (S - K) / G);
            for k in k + 1 - G..k + 1 {
                let x = ring.slots.read(cta, Ring::<T, K, S, N>::slot(self.next, k));
                x.multiply_add(&y.pack(cta, k), dots);
            }
        }
    }
}

/// Threads of a block at most.
pub(crate) const THREADS: u32 = 256;

/// [`crate::fused::Product::Fused`], n ≤ N · threads · K packs; K and S are multiples of G, an SM is to hold B blocks, and N
/// blocks share a row.
#[inline(always)]
pub(crate) fn accumulate<
    C: Cta,
    T: Real<Pack: Sums<T>>,
    const K: usize,
    const Y: usize,
    const S: usize,
    const G: usize,
    const B: u32,
    const N: u32,
>(
    cta: &C,
    args: &DenseArgs<'_, T>,
) {
    if N > 1 && !C::CLUSTERS {
        return;
    }
    cta.launch_bounds::<THREADS, B>();
    let rank = if N == 1 { 0 } else { cta.cluster_rank() };
    let ring = Ring::<'_, '_, T, K, S, N> {
        args,
        slots: Slots::at(cta, 0, S),
        rank,
    };
    let y = Input::<T, Y>::open(cta, args, (ring.slots.packs.end(), K), |k| {
        ring.fresh(cta).column(k)
    });
    let scratch = Shared::at(y.others.packs.end(), 2 * N * MOST_WARPS);
    zero_shared(cta, scratch);
    sync::<C, N>(cta);
    let teams = cta.blocks() / N;
    let slices = args.slices(teams);
    let (mut slice, mut turn) = (cta.block() / N, 0);
    while slice < slices {
        let parts = (slice, slices);
        let w = add_slice::<C, T, K, Y, S, G, N>(cta, (&ring, &y), scratch, parts, &mut turn);
        keep(cta, &ring, slice, &w);
        slice += teams;
    }
}

/// What the rows of a slice come to in this thread's columns.
#[inline(always)]
fn add_slice<
    C: Cta,
    T: Real<Pack: Sums<T>>,
    const K: usize,
    const Y: usize,
    const S: usize,
    const G: usize,
    const N: u32,
>(
    cta: &C,
    (ring, y): (&Ring<'_, '_, T, K, S, N>, &Input<T, Y>),
    scratch: Shared<T>,
    (slice, slices): (u32, u32),
    turn: &mut u32,
) -> [T::Pack; K] {
    let args = ring.args;
    let step = slices as u64;
    let mut row = slice as u64;
    for s in 0..S {
        ring.fresh(cta)
            .ask(cta, row + (s / K) as u64 * step, s % K, s);
        if (s + 1).is_multiple_of(G) {
            cta.end_copies();
        }
    }
    let shift = load_or(cta, args.shift, 0, T::ZERO);
    let mut w = [<T::Pack as Pack<T>>::ZERO; K];
    let mut weight = multiplier::<C, T, Fused>(cta, args, row);
    let mut dots = <T::Pack as Pack<T>>::ZERO;
    wait(cta, (S - K) / G);
    for k in 0..K {
        ring.slots
            .read(cta, k)
            .multiply_add(&y.pack(cta, k), &mut dots);
    }
    let mut base = 0;
    while row < args.rows as u64 {
        let next_weight = multiplier::<C, T, Fused>(cta, args, row + step);
        let sum = sum::<C, T, N>(cta, dots, scratch, *turn);
        let p = factor::<T, Fused>(sum, shift, weight);
        let next = Ring::<T, K, S, N>::after_row(base);
        dots = <T::Pack as Pack<T>>::ZERO;
        let turn_of_row = RowTurn {
            row,
            step,
            base,
            next,
            p,
        };
        // In two loops, which the compiler unrolls where it leaves one of K = 32.
        let (low, high) = w.split_at_mut(K / 2);
        turn_of_row.walk::<C, K, Y, S, G, N>(cta, (ring, y), (0, low), &mut dots);
        turn_of_row.walk::<C, K, Y, S, G, N>(cta, (ring, y), (K / 2, high), &mut dots);
        base = next;
        *turn += 1;
        weight = next_weight;
        row += step;
    }
    wait(cta, 0);
    w
}

/// Keeps what a thread has of a slice, as [`DenseArgs::keep`].
#[inline(always)]
fn keep<C: Cta, T: Real, const K: usize, const S: usize, const N: u32>(
    cta: &C,
    ring: &Ring<'_, '_, T, K, S, N>,
    slice: u32,
    w: &[T::Pack; K],
) {
    for (k, pack) in w.iter().enumerate() {
        ring.args
            .keep_pack(cta, slice, ring.fresh(cta).column(k), pack);
    }
}
