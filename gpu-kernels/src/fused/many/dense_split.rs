//! Dense X (row-major), several right-hand sides: the fused product in one pass over the rows, sides split among lanes.
//!
//! Formula: `W += α · Xᵀ( V ⊙ (X·Y − s) )` for up to S · B sides; W holds β·Z (or zero) before.
//!
//! Mapping: S neighbouring lanes share L columns, each with B sides of its own: L · B elements of Y and of the partial W
//! stay in its registers for the whole kernel. VS such groups of lanes share R rows at a time, or all warps of a block
//! do, each with L · VS columns. The R · B dot products of a lane are shared out among the VS ([`Spread`]), weighed, and
//! gathered again: R · B shuffles each way, whatever L is, for 2 · R · L · B multiply-adds. That is what the split is for:
//! many columns for few sums. With eight sides in every lane and eight columns there was a shuffle for every eight
//! multiply-adds; two lanes of four sides and 16 columns, or four of two and 32, have one for 16 or 32. On an H200 eight
//! sides of 250 million f32 take 0.34 to 0.44 ms so, of 12 to 1,000 columns, where they took 0.35 to 0.61, and one side
//! 0.22; the multiply-adds alone would be 0.12 ms. In between, latencies of shuffles and of shared memory show: two or
//! three warps of a scheduler are all that the registers leave room for (60 % of the issue slots are used).
//!
//! What did not help: P and Y in shared memory without any shuffle, as in a product of matrices (0.38 to 0.62 ms: reading
//! shared memory bounds it); one row at a time with more warps.
//!
//! Rows are on their way by `cp.async` to slots of shared memory that belong to a warp: its lanes copy what is
//! contiguous, and each reads what it needs.
//!
//! Shared memory: those slots and the sums' scratch for whole blocks; at the end W (aggregation over the block's warps).
//! Result: when the kernel has ended. Guarantees: atomics add to W in any order.
//!
//! Source: the single right-hand side's kernel ([`crate::fused::dense`]); the shared-out sums are the transposing
//! reduction known from fast Fourier transforms.

use super::dense::{DenseManyArgs, Walk, add_rows, dots};
use super::lanes::{Among, Spread, gather};
use super::{Ends, Sides};
use crate::cta::{Cta, Shared, WARP};
use crate::fused::dense::load::row_of;
use crate::fused::dense::ring::wait;
use crate::fused::team::sum_teams;
use crate::fused::{Fused, TeamSize};
use crate::scalar::{Real, Words};
use crate::verbs::{each_of_block, lane, zero_shared};

/// Threads of a block where teams are parts of a warp.
pub(super) const LANES_THREADS: u32 = 128;
/// Threads at most of a block whose warps share a row, of threads with few registers and with many.
pub(super) const BLOCK_THREADS: [u32; 2] = [512, 256];
/// Packs that a lane has on their way, about.
const PACKS_AHEAD: u32 = 16;
/// Steps on their way, at least.
const LEAST_STEPS: u32 = 3;

/// Packs of columns that a warp holds of a row, lanes of a team times packs of a lane.
const fn packs_of_warp(team_lanes: u32, split: u32, packs: u32) -> u32 {
    team_lanes / split * packs
}

/// Steps of a warp that are on their way, each of this many packs.
const fn steps(packs_of_step: u32) -> u32 {
    let steps = PACKS_AHEAD / packs_of_step.div_ceil(WARP);
    if steps > LEAST_STEPS {
        steps
    } else {
        LEAST_STEPS
    }
}

/// Packs in a warp's slots: `team_lanes` lanes of a team, `split` of which share columns, `packs` of a lane, `rows` of a
/// team.
pub(super) const fn slots_of_warp(team_lanes: u32, split: u32, packs: u32, rows: u32) -> u32 {
    let of_step = rows * (WARP / team_lanes) * packs_of_warp(team_lanes, split, packs);
    of_step * steps(of_step)
}

/// Whose columns and sides this lane has.
struct Own {
    /// The lane's number among those with the same columns.
    side: u32,
    /// Among those with the same sides.
    column: u32,
    /// The warp's first pack in a row of the panel.
    first_pack: u32,
}

/// A warp's rows on their way, R for each team and step.
struct Ring<'a, 'b, T, G, const S: u32, const L: usize, const R: usize> {
    args: &'b DenseManyArgs<'a, T>,
    slots: Shared<T>,
    own: Own,
    in_packs: bool,
    team: core::marker::PhantomData<G>,
}

impl<'a, 'b, T: Real, G: Spread, const S: u32, const L: usize, const R: usize>
    Ring<'a, 'b, T, G, S, L, R>
{
    /// Packs of a lane.
    const PACKS: u32 = (L / T::Pack::LANES) as u32;
    /// Lanes with columns of their own.
    const VS: u32 = G::LANES / S;
    const PACKS_OF_ROW: u32 = packs_of_warp(G::LANES, S, Self::PACKS);
    const ROWS: u32 = R as u32 * (WARP / G::LANES);
    const PACKS_OF_STEP: u32 = Self::ROWS * Self::PACKS_OF_ROW;
    const STEPS: u32 = steps(Self::PACKS_OF_STEP);

    #[inline(always)]
    fn new<C: Cta>(cta: &C, args: &'b DenseManyArgs<'a, T>) -> Self {
        let warp = cta.thread() / WARP;
        let elements = Self::PACKS_OF_STEP * Self::STEPS * T::Pack::LANES as u32;
        let first_pack = match G::SIZE {
            TeamSize::Lanes(_) => 0,
            TeamSize::Block => warp * Self::PACKS_OF_ROW,
        };
        Ring {
            args,
            slots: Shared::at(warp * elements * T::SIZE, elements),
            own: Own {
                side: lane(cta) % S,
                column: lane(cta) / S % Self::VS,
                first_pack,
            },
            in_packs: args.x.ld.is_multiple_of(T::Pack::LANES as u64),
            team: core::marker::PhantomData,
        }
    }

    /// The byte after all warps' slots.
    #[inline(always)]
    fn end<C: Cta>(&self, cta: &C) -> u32 {
        cta.threads() / WARP * self.slots.len() * T::SIZE
    }

    /// The column in the panel of one of the lane's L elements.
    #[inline(always)]
    fn column(&self, element: usize) -> u32 {
        let (pack, lane) = (element / T::Pack::LANES, element % T::Pack::LANES);
        let pack = self.own.first_pack + pack as u32 * Self::VS + self.own.column;
        pack * T::Pack::LANES as u32 + lane as u32
    }

    /// Begins to copy the rows of a step; what is not there becomes zero.
    #[inline(always)]
    fn ask<C: Cta>(&self, cta: &C, first: u64, turn: u32) {
        let x = &self.args.x;
        let lanes = T::Pack::LANES as u32;
        // Where the lane copies is computed again for every step: that takes fewer registers.
        let lane = cta.fresh(lane(cta));
        let left = (x.rows as u64).saturating_sub(first).min(Self::ROWS as u64) as u32;
        let start = self.own.first_pack * lanes;
        let base = first * x.ld + (self.args.first_column + start) as u64;
        let columns = self.args.columns.saturating_sub(start);
        let slot = turn * Self::PACKS_OF_STEP;
        // Element or pack `i` of the step's rows, which have `width` of `size`.
        let place = |i: u32, width: u32, size: u32| {
            let (row, column) = (i / width, i % width * size);
            let is_there = row < left && column < columns;
            (
                (slot * lanes + i * size) as usize,
                (base + row as u64 * x.ld + column as u64) as usize,
                is_there,
            )
        };
        if self.in_packs {
            for j in 0..Self::PACKS_OF_STEP.div_ceil(WARP) {
                let i = j * WARP + lane;
                if Self::PACKS_OF_STEP.is_multiple_of(WARP) || i < Self::PACKS_OF_STEP {
                    let (to, from, is_there) = place(i, Self::PACKS_OF_ROW, lanes);
                    cta.copy_whole_pack(self.slots, to, x.x, from, is_there);
                }
            }
        } else {
            let mut i = lane;
            while i < Self::PACKS_OF_STEP * lanes {
                let (to, from, is_there) = place(i, Self::PACKS_OF_ROW * lanes, 1);
                cta.copy_one(self.slots, to, x.x, from, is_there);
                i += WARP;
            }
        }
        cta.end_copies();
    }

    /// The rows of a step that was requested, when they are there.
    #[inline(always)]
    fn take<C: Cta>(&self, cta: &C, turn: u32) -> [[T; L]; R] {
        wait(cta, Self::STEPS as usize - 2);
        cta.sync_warp();
        let mut rows = [[T::ZERO; L]; R];
        for (i, row) in rows.iter_mut().enumerate() {
            let row_of_step = i as u32 * G::TEAMS + G::team(cta);
            let slot = turn * Self::PACKS_OF_STEP + row_of_step * Self::PACKS_OF_ROW;
            for (k, part) in row.chunks_exact_mut(T::Pack::LANES).enumerate() {
                let at = slot + k as u32 * Self::VS + self.own.column;
                let pack = cta.shared_read_pack(self.slots, at as usize * T::Pack::LANES);
                part.copy_from_slice(pack.as_ref());
            }
        }
        rows
    }

    /// The lane's sides of its rows of Y.
    #[inline(always)]
    fn input<C: Cta, const B: usize>(&self, cta: &C, ends: &Ends<'_, T>) -> [[T; B]; L] {
        core::array::from_fn(|element| {
            let column = self.column(element);
            if column < self.args.columns {
                ends.input_of(cta, (self.args.first_column + column) as u64)
            } else {
                [T::ZERO; B]
            }
        })
    }
}

/// Says how many registers a thread may have, whose Y, W, rows and sums are this many words.
#[inline(always)]
fn bound_registers<C: Cta, G: Spread>(cta: &C, words: usize) {
    match (G::SIZE, words) {
        (TeamSize::Lanes(_), ..=90) => cta.launch_bounds::<LANES_THREADS, 4>(),
        (TeamSize::Lanes(_), ..=128) => cta.launch_bounds::<LANES_THREADS, 3>(),
        (TeamSize::Lanes(_), _) => cta.launch_bounds::<LANES_THREADS, 2>(),
        (TeamSize::Block, ..=112) => cta.launch_bounds::<{ BLOCK_THREADS[0] }, 1>(),
        (TeamSize::Block, _) => cta.launch_bounds::<{ BLOCK_THREADS[1] }, 1>(),
    }
}

/// The sums that a lane holds once they are shared out, and what becomes of them.
struct Held<'a, T, const B: usize, const V: usize> {
    ends: Ends<'a, T>,
    among: Among,
    base: u32,
    shifts: [T; V],
}

impl<'a, T: Real, const B: usize, const V: usize> Held<'a, T, B, V> {
    #[inline(always)]
    fn new<C: Cta>(cta: &C, ends: Ends<'a, T>, among: Among) -> Self {
        let base = among.first_held(cta, V);
        let mut shifts = [T::ZERO; V];
        for (s, shift) in shifts.iter_mut().enumerate().take(among.held(V)) {
            *shift = ends.shift::<C, Fused>(cta, (base + s as u32) % B as u32);
        }
        Held {
            ends,
            among,
            base,
            shifts,
        }
    }

    /// What the sums of a step are multiplied by.
    #[inline(always)]
    fn multipliers<C: Cta, G: Spread>(&self, cta: &C, first: u64) -> [T; V] {
        let (base, ends) = (cta.fresh(self.base), self.ends.fresh(cta));
        let mut own = [T::ZERO; V];
        for (s, factor) in own.iter_mut().enumerate().take(self.among.held(V)) {
            let value = base + s as u32;
            let row = row_of::<C, G>(cta, first, value as usize / B);
            *factor = ends.multiplier::<C, Fused>(cta, row, value % B as u32);
        }
        own
    }
}

/// The product of one panel. V is R · B.
#[inline(always)]
pub(super) fn accumulate<
    C,
    T,
    G,
    const S: u32,
    const L: usize,
    const B: usize,
    const R: usize,
    const V: usize,
>(
    cta: &C,
    args: &DenseManyArgs<'_, T>,
) where
    C: Cta,
    T: Real,
    G: Spread,
{
    bound_registers::<C, G>(cta, (2 * L * B + R * L + 2 * V) * T::SIZE as usize / 4);
    let ring = Ring::<T, G, S, L, R>::new(cta, args);
    let steps = Ring::<T, G, S, L, R>::STEPS;
    let walk = Walk::of::<C, G, R>(cta, args.x.rows);
    let mut asked = walk.first;
    for turn in 0..steps - 1 {
        ring.ask(cta, asked, turn);
        asked += walk.stride;
    }
    let mut ends = args.ends_of();
    ends.sides = args.sides.group(ring.own.side, B as u32);
    let scratch = Shared::at(
        ring.end(cta),
        G::spread_scratch(cta.threads(), V as u32 * S),
    );
    let y: [[T; B]; L] = ring.input(cta, &ends);
    let mut w = [[T::ZERO; B]; L];
    let among = Among::apart(G::LANES, S);
    let held = Held::<T, B, V>::new(cta, ends, among);
    let mut own = held.multipliers::<C, G>(cta, walk.first);
    let (mut turn, mut slot) = (0, 0);
    walk.each(|first| {
        let rows = ring.take(cta, slot);
        // The slots of the step before: every lane has read them, since it is past the warp's barrier.
        ring.ask(cta, asked, if slot == 0 { steps - 1 } else { slot - 1 });
        asked += walk.stride;
        slot = if slot + 1 == steps { 0 } else { slot + 1 };
        // Early: the latency of the next step's multipliers does not stand alone.
        let next = held.multipliers::<C, G>(cta, first + walk.stride);
        let values = dots::<T, L, B, R, V>(&rows, &y);
        let sums = G::spread::<C, T, S, V>(cta, values, scratch, turn);
        turn += 1;
        for (s, factor) in own.iter_mut().enumerate().take(among.held(V)) {
            *factor = *factor * (sums[s] - held.shifts[s]);
        }
        let p = gather(cta, among, &own);
        own = next;
        add_rows::<T, L, B, R, V>(&rows, &p, &mut w);
    });
    // W takes the place of the rows.
    wait(cta, 0);
    cta.sync();
    flush::<C, T, G, S, L, B>(cta, args, |element| ring.column(element), &w);
}

/// Adds the partial results of all threads, times α, to W; `column_of` an element is its column in the panel.
#[inline(always)]
pub(super) fn flush<C: Cta, T: Real, G: Spread, const S: u32, const L: usize, const B: usize>(
    cta: &C,
    args: &DenseManyArgs<'_, T>,
    column_of: impl Fn(usize) -> u32,
    w: &[[T; B]; L],
) {
    let add = |sides: &Sides, (column, side): (u32, u32), value: T| {
        if column < args.columns && side < sides.count {
            let at = sides.at((args.first_column + column) as u64, side);
            cta.add(args.x.output, at, args.x.alpha * value);
        }
    };
    let sides = S * B as u32;
    let number = lane(cta) % S;
    let own = args.sides.group(number, B as u32);
    let panel = Shared::at(0, G::LANES / S * L as u32 * sides);
    if G::SIZE != TeamSize::Block {
        zero_shared(cta, panel);
        cta.sync();
    }
    for (element, of_column) in w.iter().enumerate() {
        let column = column_of(element);
        for (side, value) in of_column.iter().enumerate() {
            if G::SIZE == TeamSize::Block {
                add(&own, (column, side as u32), *value);
                continue;
            }
            let sum = sum_teams::<C, T, G>(cta, *value);
            if G::team(cta) == 0 {
                let at = column * sides + number * B as u32 + side as u32;
                cta.shared_add(panel, at as usize, sum);
            }
        }
    }
    if G::SIZE != TeamSize::Block {
        cta.sync();
        each_of_block(cta, panel.len(), |i| {
            let (column, side) = (i as u32 / sides, i as u32 % sides);
            add(&args.sides, (column, side), cta.shared_read(panel, i));
        });
    }
}
