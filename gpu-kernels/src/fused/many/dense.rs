//! Dense X (row-major), several right-hand sides: Xᵀ·P in one pass over the rows, everything in registers.
//!
//! Formula: `W += α · Xᵀ( V ⊙ P )` for a panel of columns of X and up to B sides; W holds β·Z (or zero) before. The fused
//! product is [`super::dense_split`]'s and, of very few columns, [`super::dense_narrow`]'s, X·Y alone [`super::dense_forward`]'s.
//!
//! Mapping: a [`Team`] owns R rows at a time. Each thread holds L columns, a pack: L · B elements of the partial W for the
//! whole kernel, and its packs of every row. The lanes share the elements of V ⊙ P out and gather them again.
//! Rows that start anywhere are loaded one element at a time, without harm where so much is done with each.
//!
//! W leaves no registers for rows that are on their way: [`PACKS_AHEAD`] packs of a thread are copied by `cp.async` to
//! slots of shared memory that no other thread reads.
//!
//! Shared memory: those slots; at the end one panel of W (aggregation over the block's warps). Result: when the kernel has
//! ended. Guarantees: atomics add to W in any order.
//!
//! Source: the single right-hand side's kernel ([`crate::fused::dense`]).

use super::dense_split::{BLOCK_THREADS, LANES_THREADS, slots_of_warp};
use super::lanes::{Among, Spread, gather};
use super::narrow_tiles::STEPS;
use super::{Ends, Sides};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::fused::dense::load::{Columns, row_of};
use crate::fused::dense::ring::{Slots, wait};
use crate::fused::team::sum_teams;
use crate::fused::{DenseArgs, Product, Team, TeamSize, Transposed};
use crate::scalar::{Real, Words};
use crate::verbs::{each_of_block, zero_shared};

/// The family of dense kernels with several right-hand sides.
pub struct DenseMany<T>(core::marker::PhantomData<T>);

/// Arguments of dense kernels with several right-hand sides.
#[repr(C)]
pub struct DenseManyArgs<'a, T> {
    /// X, and the arrays, which are matrices of [`Sides::all`] columns: input is Y or P, addend (of [`Product::Forward`]
    /// alone) Z, output W or P; shift has an element for every side.
    pub x: DenseArgs<'a, T>,
    /// The first column of the panel, a multiple of the load width.
    pub first_column: u32,
    /// Columns of the panel.
    pub columns: u32,
    /// For [`Product::Forward`], 1 if the output holds the sums of panels before this one, else 0.
    pub continues: u32,
    /// For [`Product::Forward`], 1 if this is the last panel, after which the other terms are applied, else 0.
    pub ends: u32,
    /// Which right-hand sides.
    pub sides: Sides,
}

impl<T: Copy> Clone for DenseManyArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for DenseManyArgs<'_, T> {}

/// Packs of X that a thread has on their way.
const PACKS_AHEAD: u32 = 12;
/// Bytes of a pack.
const PACK_BYTES: u32 = 16;

/// What distinguishes dense entries with several right-hand sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DenseManyVariant {
    /// What is computed.
    pub product: Product,
    /// Who shares a row.
    pub team: TeamSize,
    /// L: columns of a thread, in packs of 16 bytes.
    pub width: u32,
    /// Right-hand sides at most.
    pub sides: u32,
    /// S: neighbouring lanes that share columns, each with as many of the sides as the others.
    pub split: u32,
    /// R: rows in flight per team.
    pub rows: u32,
}

impl DenseManyVariant {
    /// Columns of a panel in blocks of `block` threads.
    pub const fn columns(&self, block: u32) -> u64 {
        (self.team.threads(block) / self.split) as u64 * self.width as u64
    }

    /// Threads of a block at most.
    pub const fn most_threads(&self) -> u32 {
        // Elements of W in a thread's registers from which there is no room for the larger block.
        let is_large = self.width * self.sides / self.split >= 32;
        match (self.product, self.team) {
            (Product::Forward, _) => 1024,
            (_, TeamSize::Lanes(_)) => LANES_THREADS,
            (Product::Fused, TeamSize::Block) if is_large => BLOCK_THREADS[1],
            (_, TeamSize::Block) => BLOCK_THREADS[0],
        }
    }

    /// Dynamic shared memory that a block of `block` threads needs for elements of `size` bytes.
    pub const fn shared_bytes(&self, block: u32, size: u32) -> u64 {
        let warps = block / WARP;
        let ahead = match self.product {
            Product::Forward => 0,
            Product::Transposed => PACKS_AHEAD * block,
            Product::Fused if matches!(self.team, TeamSize::Lanes(1)) => {
                block * self.rows * self.width * size / PACK_BYTES * STEPS
            }
            Product::Fused => {
                let (lanes, packs) = (self.team.threads(WARP), self.width * size / PACK_BYTES);
                warps * slots_of_warp(lanes, self.split, packs, self.rows)
            }
        };
        let ahead = (ahead * PACK_BYTES) as u64;
        match (self.team, self.product) {
            (TeamSize::Lanes(_), Product::Forward) => 0,
            (TeamSize::Lanes(_), _) => {
                let panel = self.columns(block) * (self.sides * size) as u64;
                if panel > ahead { panel } else { ahead }
            }
            (TeamSize::Block, Product::Transposed) => ahead,
            (TeamSize::Block, _) => ahead + (2 * self.rows * self.sides * warps * size) as u64,
        }
    }
}

impl<'a, T: Real> DenseManyArgs<'a, T> {
    #[inline(always)]
    pub(super) fn ends_of(&self) -> Ends<'a, T> {
        Ends {
            rows: self.x.rows as u64,
            input: self.x.input,
            weights: self.x.weights,
            shift: self.x.shift,
            addend: self.x.addend,
            output: self.x.output,
            alpha: self.x.alpha,
            beta: self.x.beta,
            sides: self.sides,
        }
    }
}

/// A thread's columns: packs from `first` of the panel on.
pub(super) struct Place {
    first: u32,
    /// From one pack to the next.
    step: u32,
    end: u32,
    /// The panel's first column in X.
    start: u32,
    in_packs: bool,
}

impl Place {
    #[inline(always)]
    pub(super) fn of<C: Cta, T: Real, G: Team>(cta: &C, args: &DenseManyArgs<'_, T>) -> Place {
        let lanes = T::Pack::LANES;
        let columns = Columns::of::<C, G>(cta, 0, lanes);
        Place {
            first: columns.at(0),
            step: columns.at(1) - columns.at(0),
            end: args.columns,
            start: args.first_column,
            in_packs: args.x.ld.is_multiple_of(lanes as u64),
        }
    }

    /// The column of one of the thread's L elements.
    #[inline(always)]
    fn column<T: Real>(&self, element: usize) -> u32 {
        let (pack, lane) = (element / T::Pack::LANES, element % T::Pack::LANES);
        self.first + pack as u32 * self.step + lane as u32
    }

    /// The thread's part of a row, zero where the row or the panel ends.
    #[inline(always)]
    pub(super) fn load<C: Cta, T: Real, const L: usize>(
        &self,
        cta: &C,
        x: &DenseArgs<'_, T>,
        row: u64,
    ) -> [T; L] {
        let mut part = [T::ZERO; L];
        if row >= x.rows as u64 {
            return part;
        }
        let at = |column: u32| (row * x.ld + (self.start + column) as u64) as usize;
        for (p, pack) in part.chunks_exact_mut(T::Pack::LANES).enumerate() {
            let first = self.column::<T>(p * T::Pack::LANES);
            if self.in_packs {
                if first < self.end {
                    let loaded: T::Pack = cta.load_pack(x.x, at(first), Cache::Once);
                    pack.copy_from_slice(loaded.as_ref());
                }
                continue;
            }
            for (lane, value) in pack.iter_mut().enumerate() {
                let column = first + lane as u32;
                if column < self.end {
                    *value = cta.load(x.x, at(column), Cache::Once);
                }
            }
        }
        part
    }

    /// Begins to copy the thread's part of a row, zero where the row or the panel ends.
    #[inline(always)]
    fn copy<C: Cta, T: Real, const L: usize>(
        &self,
        cta: &C,
        x: &DenseArgs<'_, T>,
        row: u64,
        (slots, slot): (&Slots<T>, usize),
    ) {
        let is_there = |column: u32| row < x.rows as u64 && column < self.end;
        for p in 0..L / T::Pack::LANES {
            let first = self.column::<T>(p * T::Pack::LANES);
            let at = (row * x.ld + (self.start + first) as u64) as usize;
            let to = slots.element(slot + p);
            if self.in_packs {
                cta.copy_whole_pack(slots.packs, to, x.x, at, is_there(first));
                continue;
            }
            for lane in 0..T::Pack::LANES {
                let is_there = is_there(first + lane as u32);
                cta.copy_one(slots.packs, to + lane, x.x, at + lane, is_there);
            }
        }
    }

    /// The thread's rows of Y.
    #[inline(always)]
    pub(super) fn load_input<C: Cta, T: Real, const L: usize, const B: usize>(
        &self,
        cta: &C,
        ends: &Ends<'_, T>,
    ) -> [[T; B]; L] {
        core::array::from_fn(|lane| {
            let column = self.column::<T>(lane);
            if column < self.end {
                ends.input_of(cta, (self.start + column) as u64)
            } else {
                [T::ZERO; B]
            }
        })
    }
}

/// The rows that a group walks.
#[derive(Clone, Copy)]
pub(super) struct Walk {
    pub first: u64,
    pub stride: u64,
    rows: u64,
}

impl Walk {
    #[inline(always)]
    pub(super) fn of<C: Cta, G: Team, const R: usize>(cta: &C, rows: u32) -> Walk {
        let group_rows = (R as u32 * G::TEAMS) as u64;
        let group = cta.block() as u64 * G::groups(cta) as u64 + G::group(cta) as u64;
        Walk {
            first: group * group_rows,
            stride: cta.blocks() as u64 * G::groups(cta) as u64 * group_rows,
            rows: rows as u64,
        }
    }

    /// Calls `each` with the first row of every step.
    #[inline(always)]
    pub(super) fn each(self, mut each: impl FnMut(u64)) {
        let mut first = self.first;
        while first < self.rows {
            each(first);
            first += self.stride;
        }
    }
}

/// The rows that a thread has on their way, R for each of the next steps.
struct Ahead<'a, 'b, T, const L: usize, const R: usize> {
    x: &'b DenseArgs<'a, T>,
    place: &'b Place,
    slots: Slots<T>,
}

impl<T: Real, const L: usize, const R: usize> Ahead<'_, '_, T, L, R> {
    /// Packs of a row.
    const PACKS: usize = L / T::Pack::LANES;
    const STEPS: usize = PACKS_AHEAD as usize / (R * Self::PACKS);

    /// Asks for the rows of a step.
    #[inline(always)]
    fn ask<C: Cta, G: Team>(&self, cta: &C, first: u64, turn: usize) {
        for i in 0..R {
            let row = row_of::<C, G>(cta, first, i);
            let to = (&self.slots, (turn * R + i) * Self::PACKS);
            self.place.copy::<C, T, L>(cta, self.x, row, to);
        }
        cta.end_copies();
    }

    /// The rows of a step that was requested, when they are there.
    #[inline(always)]
    fn take<C: Cta>(&self, cta: &C, turn: usize) -> [[T; L]; R] {
        wait(cta, Self::STEPS - 1);
        let mut rows = [[T::ZERO; L]; R];
        for (i, row) in rows.iter_mut().enumerate() {
            for (p, part) in row.chunks_exact_mut(T::Pack::LANES).enumerate() {
                let pack = self.slots.read(cta, (turn * R + i) * Self::PACKS + p);
                part.copy_from_slice(pack.as_ref());
            }
        }
        rows
    }
}

/// The dot products of R rows with the sides of Y: value i · B + j is that of row i and side j.
#[inline(always)]
pub(super) fn dots<T: Real, const L: usize, const B: usize, const R: usize, const V: usize>(
    rows: &[[T; L]; R],
    y: &[[T; B]; L],
) -> [T; V] {
    let mut values = [T::ZERO; V];
    for (i, row) in rows.iter().enumerate() {
        for (x, y) in row.iter().zip(y) {
            for (j, y) in y.iter().enumerate() {
                values[i * B + j] = x.fma(*y, values[i * B + j]);
            }
        }
    }
    values
}

/// What the rows of X are multiplied by, as far as this lane holds it.
#[inline(always)]
fn multipliers<C, T, G, const B: usize, const V: usize>(
    cta: &C,
    ends: &Ends<'_, T>,
    (among, first): (Among, u64),
) -> [T; V]
where
    C: Cta,
    T: Real,
    G: Spread,
{
    let base = among.first_held(cta, V);
    let mut own = [T::ZERO; V];
    for (s, factor) in own.iter_mut().enumerate().take(among.held(V)) {
        let value = base + s as u32;
        let row = row_of::<C, G>(cta, first, value as usize / B);
        *factor = ends.multiplier::<C, Transposed>(cta, row, value % B as u32);
    }
    own
}

/// `W += Xᵀ·P` of R rows.
#[inline(always)]
pub(super) fn add_rows<T: Real, const L: usize, const B: usize, const R: usize, const V: usize>(
    rows: &[[T; L]; R],
    p: &[T; V],
    w: &mut [[T; B]; L],
) {
    for (i, row) in rows.iter().enumerate() {
        for (x, w) in row.iter().zip(w.iter_mut()) {
            for (j, w) in w.iter_mut().enumerate() {
                *w = x.fma(p[i * B + j], *w);
            }
        }
    }
}

/// [`Product::Transposed`] of one panel. V is R · B.
#[inline(always)]
pub(super) fn accumulate<C, T, G, const L: usize, const B: usize, const R: usize, const V: usize>(
    cta: &C,
    args: &DenseManyArgs<'_, T>,
) where
    C: Cta,
    T: Real,
    G: Spread,
{
    match G::SIZE {
        TeamSize::Lanes(_) => cta.launch_bounds::<LANES_THREADS, 3>(),
        TeamSize::Block => cta.launch_bounds::<{ BLOCK_THREADS[0] }, 1>(),
    }
    let ends = args.ends_of();
    let place = Place::of::<C, T, G>(cta, args);
    let ahead = Ahead::<T, L, R> {
        x: &args.x,
        place: &place,
        slots: Slots::at(cta, 0, PACKS_AHEAD as usize),
    };
    let walk = Walk::of::<C, G, R>(cta, args.x.rows);
    let steps = Ahead::<T, L, R>::STEPS;
    for turn in 0..steps {
        ahead.ask::<C, G>(cta, walk.first + turn as u64 * walk.stride, turn);
    }
    let among = Among::apart(G::LANES, 1);
    let mut w = [[T::ZERO; B]; L];
    let mut turn = 0;
    let mut own = multipliers::<C, T, G, B, V>(cta, &ends, (among, walk.first));
    walk.each(|first| {
        let rows = ahead.take(cta, turn % steps);
        ahead.ask::<C, G>(cta, first + steps as u64 * walk.stride, turn % steps);
        // Early: the latency of the next step's multipliers does not stand alone.
        let next = multipliers::<C, T, G, B, V>(cta, &ends, (among, first + walk.stride));
        turn += 1;
        let p = gather(cta, among, &own);
        own = next;
        add_rows::<T, L, B, R, V>(&rows, &p, &mut w);
    });
    // w takes the place of the rows.
    wait(cta, 0);
    cta.sync();
    flush::<C, T, G, L, B>(cta, &ends, &place, &w);
}

/// Adds the partial results of all threads, times α, to W.
#[inline(always)]
fn flush<C: Cta, T: Real, G: Team, const L: usize, const B: usize>(
    cta: &C,
    ends: &Ends<'_, T>,
    place: &Place,
    w: &[[T; B]; L],
) {
    let add = |column: u32, side: u32, value: T| {
        if column < place.end && side < ends.sides.count {
            let at = ends.sides.at((place.start + column) as u64, side);
            cta.add(ends.output, at, ends.alpha * value);
        }
    };
    let TeamSize::Lanes(vs) = G::SIZE else {
        return each_of(w, |lane, side, value| {
            add(place.column::<T>(lane), side, value)
        });
    };
    let panel = Shared::at(0, vs * (L * B) as u32);
    zero_shared(cta, panel);
    cta.sync();
    let sums = w.map(|sides| sides.map(|value| sum_teams::<C, T, G>(cta, value)));
    if G::team(cta) == 0 {
        each_of(&sums, |lane, side, value| {
            let at = place.column::<T>(lane) as usize * B + side as usize;
            cta.shared_add(panel, at, value);
        });
    }
    cta.sync();
    each_of_block(cta, panel.len(), |i| {
        let (column, side) = (i / B, i % B);
        add(column as u32, side as u32, cta.shared_read(panel, i));
    });
}

#[inline(always)]
fn each_of<T: Real, const L: usize, const B: usize>(
    w: &[[T; B]; L],
    mut each: impl FnMut(usize, u32, T),
) {
    for (lane, sides) in w.iter().enumerate() {
        for (side, value) in sides.iter().enumerate() {
            each(lane, side as u32, *value);
        }
    }
}
