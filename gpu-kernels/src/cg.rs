//! The vector half of a conjugate-gradient iteration, scalars kept on the device.
//!
//! With q = A·p from the operator, an iteration is two launches: *measure* (p·q, and what is left of r·z and ‖r‖² after
//! any step along p) and *move* (w += a·p, r += a·q, p = −z + b·p, with a = r·z / p·q, z = D⁻¹·r and b the ratio of new to old
//! r·z). The new one is not added up first, which would be a launch more: with z·q and q·D⁻¹·q it is
//! `r·z + 2a·z·q + a²·q·D⁻¹·q`. Errors do not pile up, since *measure* also adds up r·z and ‖r‖² as they are. No block waits for
//! another: every block adds the partial sums of the launch before, in the same order, and so gets the same scalars. A solve
//! that begins anew is *begin* (w = 0, r = r₀, p = −z) and *move*, which then takes the first state. Short vectors take all steps of
//! an iteration, or of a beginning, in one launch of one block. A thread loads its first elements before it knows the scalars, and
//! a few at once: such launches take as long as their round trips to memory.
//!
//! Launches in a chain that overlap, without the product, µs of an H200; the three are those of an iteration that adds up p·q first and
//! the new r·z after the step:
//!
//! | elements | f32, three | two | f64, three | two |
//! |---|---|---|---|---|
//! | 47,236 | 7.2 | 5.0 | 7.6 | 5.1 |
//! | 400,000 | 15.9 | 11.5 | 17.2 | 14.4 |
//! | 3,000,000 | 94 | 61 | 128 | 115 |
//! | 30,000,000 | 591 | 407 | 850 | 753 |
//!
//! What did not help: one launch of a cluster of eight blocks takes 13.0 µs for 47,236 elements on an H100, where three took 12.3; a
//! barrier of a whole grid 1.1 to 1.3, as long as a launch. Of the two, a butterfly of each sum by itself instead of `lanes` takes 5.7.
//!
//! Elements lie in pieces, which a block adds up one by one: a partial sum is that of a piece, whoever has it. Which pieces
//! there are follows from n alone, and partial sums are added in the order of the pieces. So a launch over some pieces of
//! longer vectors, of which others have the rest, writes those partial sums that one over all would have written, and
//! zeros for the others: adding up what all have makes the partial sums of one.
//!
//! Once ‖r‖² has reached the stopping value, an iteration changes nothing: the host may run ahead of what it
//! has read back. Shared memory: seven f64 per warp.
//!
//! With a finite radius the solve is that of a trust region: the step that would leave ‖w‖_D ≤ radius, D being
//! the preconditioner, ends on its border and is the last. The norms, the slope r₀·w and the decrease of the
//! model follow from scalars that are there already. Coordinates whose D⁻¹ is 0 are held: w keeps them, and
//! ‖r‖² does not count them.
//!
//! Source: Hestenes & Stiefel 1952; preconditioned form as in Golub & Van Loan §11.5; trust region: Steihaug
//! 1983, recurrences of the norms as in Conn, Gould & Toint 2000, §7.5; scalars ahead of their vectors, and as they are in the next
//! iteration: Chen & Carson 2020, predict-and-recompute conjugate gradients.

mod lanes;
mod scalars;
mod walk;

use crate::cta::{Cache, Cta, Shared, WARP};
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::verbs::{each_of_block, each_of_grid, sum_block_each};
use lanes::{number_of_lane, of_all_lanes, state_of_lane, state_of_lanes, sum_block_by_lanes};
use scalars::first_state;
pub(crate) use scalars::is_over;
pub use scalars::{Step, Sums, is_opening, next_state, refreshed, state, step};
use walk::{each_piece, first};

/// The family of conjugate-gradient kernels.
pub struct Cg<T>(core::marker::PhantomData<T>);

/// Arguments of every conjugate-gradient kernel.
#[repr(C)]
pub struct CgArgs<'a, T> {
    /// n, or elements of the pieces that are at hand.
    pub len: u64,
    /// Elements of a piece; the last one may be shorter.
    pub piece: u64,
    /// Number of the first piece at hand.
    pub first: u32,
    /// Pieces of all elements.
    pub pieces: u32,
    /// tol: stop at ‖r‖ ≤ tol · ‖r₀‖.
    pub tolerance: f64,
    /// The radius of the trust region in the norm of the preconditioner; infinite for none.
    pub radius: f64,
    /// q = A·p; of [`CgVariant::Begin`] r₀ = −b.
    pub q: In<'a, T>,
    /// D⁻¹, the inverse diagonal used as preconditioner, 0 for coordinates to be held; optional.
    pub inverse_diagonal: In<'a, T>,
    /// Column means, whose product with p is wanted in `shift_partials`; optional.
    pub means: In<'a, T>,
    /// The solution.
    pub w: Out<'a, T>,
    /// The residual A·w − b.
    pub r: Out<'a, T>,
    /// The direction.
    pub p: Out<'a, T>,
    /// State before the iteration, [`state::LEN`] elements.
    pub before: Out<'a, f64>,
    /// State after the iteration.
    pub after: Out<'a, f64>,
    /// Partial sums of [`Sums`], one per piece: of one of them after the other.
    pub partials: Out<'a, f64>,
    /// Partial sums of means·p.
    pub shift_partials: Out<'a, f64>,
    /// means·p itself, one element, written where one block knows it; optional.
    pub shift: Out<'a, T>,
}

impl<T: Copy> Clone for CgArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for CgArgs<'_, T> {}

/// Which conjugate-gradient kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CgVariant {
    /// `w = 0; r = r₀; p = −z; shift_partials = means·p`, the partial sums r·z and ‖r‖², and the state before is
    /// [`START`](state::START): what *move* takes the first state from.
    Begin,
    /// The partial sums of p, q and r.
    Measure,
    /// `w += a·p; r += a·q; p = −z + b·p; shift_partials = means·p`, and the state moves on.
    Move,
    /// *begin* and *move* in one launch of one block, for vectors that one block walks fast.
    Opening,
    /// The two of an iteration in one launch of one block.
    Iteration,
}

impl CgVariant {
    /// Dynamic shared memory that a block of `block` threads needs.
    pub const fn shared_bytes(&self, block: u32) -> u64 {
        (Sums::COUNT as u32 * (block / WARP)) as u64 * 8
    }
}

// The bodies are inlined by force: a call would take the arguments through local memory.

/// Elements that a thread of many blocks loads at once: as many as it has of a piece of vectors that are not long.
const TOGETHER: usize = 4;
/// Elements that a thread of one large block does, which has few registers.
const ALONE: usize = 1;
/// Threads of that block, at most.
pub const LARGE: u32 = 1_024;
/// Threads of each of many blocks, at most.
pub const BLOCK: u32 = 256;

/// One f64 per warp and sum.
#[inline(always)]
fn scratch<C: Cta>(cta: &C) -> Shared<f64> {
    Shared::at(0, Sums::COUNT as u32 * (cta.threads() / WARP))
}

/// Where a sum of a piece is among the partial sums.
#[inline(always)]
fn at<T>(args: &CgArgs<'_, T>, sum: usize, piece: usize) -> usize {
    sum * args.pieces as usize + piece
}

/// Adds up the partial sums.
#[inline(always)]
fn totals<C: Cta, T>(cta: &C, args: &CgArgs<'_, T>) -> Sums {
    let mut sums = [0.0; Sums::COUNT];
    each_of_block(cta, args.pieces, |piece| {
        let read: [f64; Sums::COUNT] =
            core::array::from_fn(|k| cta.read(args.partials, at(args, k, piece)));
        sums = core::array::from_fn(|k| sums[k] + read[k]);
    });
    Sums::of(of_all_lanes(
        cta,
        sum_block_by_lanes(cta, sums, scratch(cta)),
    ))
}

/// Writes the partial sums of a piece, from those of each thread.
#[inline(always)]
fn write_sums<C: Cta, T>(
    cta: &C,
    args: &CgArgs<'_, T>,
    (piece, sums): (usize, [f64; Sums::COUNT]),
) {
    let sum = sum_block_by_lanes(cta, sums, scratch(cta));
    if cta.thread() < WARP
        && let Some(k) = number_of_lane(cta)
    {
        cta.write(args.partials, at(args, k, piece), sum);
    }
}

/// Writes the partial sum of means·p of a piece.
#[inline(always)]
fn write_shift<C: Cta, T>(cta: &C, args: &CgArgs<'_, T>, (piece, sum): (usize, f64)) {
    if args.means.is_some() {
        let [sum] = sum_block_each(cta, [sum], scratch(cta));
        if cta.thread() == 0 {
            cta.write(args.shift_partials, piece, sum);
        }
    }
}

/// Calls `clear` with the pieces that are not at hand, whose sums are zeros here.
#[inline(always)]
fn each_other<C: Cta, T>(cta: &C, args: &CgArgs<'_, T>, mut clear: impl FnMut(usize)) {
    let (first, own) = (args.first as u64, args.len.div_ceil(args.piece));
    if own < args.pieces as u64 {
        each_of_grid(cta, args.pieces as u64, |piece| {
            let is_own = (piece as u64) >= first && (piece as u64) < first + own;
            if !is_own {
                clear(piece);
            }
        });
    }
}

/// Zeros among the partial sums of the pieces that are not at hand.
#[inline(always)]
fn clear_sums<C: Cta, T>(cta: &C, args: &CgArgs<'_, T>) {
    each_other(cta, args, |piece| {
        for k in 0..Sums::COUNT {
            cta.write(args.partials, at(args, k, piece), 0.0);
        }
    });
}

/// What all have of means·p: zeros for the pieces that are not at hand, and the sum itself where one block has it.
#[inline(always)]
fn end_shift<C: Cta, T: Real>(cta: &C, args: &CgArgs<'_, T>) {
    if args.means.is_some() {
        each_other(cta, args, |piece| {
            cta.write(args.shift_partials, piece, 0.0)
        });
        if args.pieces == 1 && cta.thread() == 0 {
            let shift = cta.read(args.shift_partials, 0);
            cta.write(args.shift, 0, T::of_f64(shift));
        }
    }
}

/// The state before the iteration.
#[inline(always)]
fn state_before<C: Cta, T>(cta: &C, args: &CgArgs<'_, T>) -> [f64; state::LEN] {
    core::array::from_fn(|i| cta.read(args.before, i))
}

/// Element `i` of an optional vector that every iteration reads, or `absent`.
#[inline(always)]
fn kept_or<C: Cta, T: Real>(cta: &C, from: In<'_, T>, i: usize, absent: T) -> T {
    match from.is_some() {
        true => cta.load(from, i, Cache::Keep),
        false => absent,
    }
}

/// The element of D⁻¹, 1 without a preconditioner: z = D⁻¹·r.
#[inline(always)]
fn inverse<C: Cta, T: Real>(cta: &C, args: &CgArgs<'_, T>, i: usize) -> T {
    kept_or(cta, args.inverse_diagonal, i, T::ONE)
}

/// The element of the means, 0 without them.
#[inline(always)]
fn mean<C: Cta, T: Real>(cta: &C, args: &CgArgs<'_, T>, i: usize) -> T {
    kept_or(cta, args.means, i, T::ZERO)
}

#[inline(always)]
fn begin<C: Cta, T: Real, const N: usize>(cta: &C, args: &CgArgs<'_, T>) {
    let load = |i: usize| -> [T; 3] {
        let r = cta.load(args.q, i, Cache::Once);
        [r, inverse(cta, args, i), mean(cta, args, i)]
    };
    let each = |i: usize, [r, inverse, mean]: [T; 3], [shift, sums @ ..]: &mut [f64; 8]| {
        let p = T::ZERO - r * inverse;
        cta.write(args.w, i, T::ZERO);
        cta.write(args.r, i, r);
        cta.write(args.p, i, p);
        *shift = mean.to_f64().fma(p.to_f64(), *shift);
        Sums::add([T::ZERO, T::ZERO, r, inverse], sums);
    };
    let first = first::<_, _, _, N>(cta, args, load);
    each_piece(
        cta,
        args,
        (first, load),
        each,
        |piece, [shift, sums @ ..]| {
            write_sums(cta, args, (piece, sums));
            write_shift(cta, args, (piece, shift));
        },
    );
    clear_sums(cta, args);
    end_shift(cta, args);
    if cta.block() == 0 && cta.thread() == 0 {
        for (i, value) in state::START.into_iter().enumerate() {
            cta.write(args.before, i, value);
        }
    }
}

#[inline(always)]
fn measure<C: Cta, T: Real, const N: usize>(cta: &C, args: &CgArgs<'_, T>) {
    if N > ALONE && T::SIZE == 4 {
        cta.launch_bounds::<BLOCK, 2>();
    }
    let load = |i: usize| -> [T; 4] {
        let (p, r) = (cta.read(args.p, i), cta.read(args.r, i));
        [
            p,
            cta.load(args.q, i, Cache::Keep),
            r,
            inverse(cta, args, i),
        ]
    };
    each_piece(
        cta,
        args,
        (first::<_, _, _, N>(cta, args, load), load),
        |_, of, sums| Sums::add(of, sums),
        |piece, sums| write_sums(cta, args, (piece, sums)),
    );
    clear_sums(cta, args);
}

/// What a move needs of an element.
#[derive(Clone, Copy)]
struct Moving<T> {
    w: T,
    r: T,
    p: T,
    q: T,
    inverse: T,
}

#[inline(always)]
fn advance<C: Cta, T: Real, const N: usize>(cta: &C, args: &CgArgs<'_, T>) {
    if N > ALONE && T::SIZE == 4 {
        cta.launch_bounds::<BLOCK, 2>();
    }
    let load = |i: usize| Moving {
        w: cta.read(args.w, i),
        r: cta.read(args.r, i),
        p: cta.read(args.p, i),
        q: cta.load(args.q, i, Cache::Once),
        inverse: inverse(cta, args, i),
    };
    // A large block's threads have too few registers to hold these beside the sums.
    let early = (N > ALONE).then(|| first::<_, _, _, N>(cta, args, load));
    let of_lane = state_of_lane(cta, args.before);
    let sums = totals(cta, args);
    let before = state_of_lanes(cta, of_lane);
    let step = step::<T>(&refreshed(&before, &sums), &sums, args.radius);
    if cta.block() == 0 && cta.thread() == 0 {
        // Read again: else every thread would hold all of it.
        let before = state_before(cta, args);
        write_state(
            cta,
            args,
            &next_state::<T>(&before, &sums, step, args.tolerance),
        );
    }
    // Of a beginning p and means·p are there already.
    if is_opening(&before) {
        return;
    }
    let moves = step.length > 0.0;
    let (a, b) = (T::of_f64(step.length), T::of_f64(step.turn));
    let each = |i: usize, of: Moving<T>, [shift]: &mut [f64; 1]| {
        let mut p = of.p;
        if moves {
            let r = a.fma(of.q, of.r);
            p = b.fma(of.p, -(r * of.inverse));
            cta.write(args.w, i, a.fma(of.p, of.w));
            cta.write(args.r, i, r);
            cta.write(args.p, i, p);
        }
        *shift = mean(cta, args, i).to_f64().fma(p.to_f64(), *shift);
    };
    let first = early.unwrap_or_else(|| first::<_, _, _, N>(cta, args, load));
    each_piece(cta, args, (first, load), each, |piece, [shift]| {
        write_shift(cta, args, (piece, shift));
    });
    end_shift(cta, args);
}

/// Writes the state after the iteration.
#[inline(always)]
fn write_state<C: Cta, T>(cta: &C, args: &CgArgs<'_, T>, after: &[f64; state::LEN]) {
    for (i, value) in after.iter().enumerate() {
        cta.write(args.after, i, *value);
    }
}

#[inline(always)]
fn opening<C: Cta, T: Real>(cta: &C, args: &CgArgs<'_, T>) {
    cta.launch_bounds::<LARGE, 1>();
    begin::<_, _, ALONE>(cta, args);
    cta.sync();
    let sums = totals(cta, args);
    if cta.thread() == 0 {
        write_state(cta, args, &first_state(&sums, args.tolerance));
    }
}

/// A barrier takes the place of the end of a launch.
#[inline(always)]
fn iteration<C: Cta, T: Real>(cta: &C, args: &CgArgs<'_, T>) {
    cta.launch_bounds::<LARGE, 1>();
    measure::<_, _, ALONE>(cta, args);
    cta.sync();
    advance::<_, _, ALONE>(cta, args);
}

fn check<T: Real>(
    variant: &CgVariant,
    launch: &Launch,
    args: &CgArgs<'_, T>,
) -> Result<(), Violation> {
    let shared = variant.shared_bytes(launch.block);
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    if matches!(variant, CgVariant::Opening | CgVariant::Iteration) {
        Violation::equal("grid", 1, launch.grid as u64)?;
    }
    Violation::at_least("elements of a piece", 1, args.piece)?;
    let end = args.first as u64 + args.len.div_ceil(args.piece);
    Violation::at_least("pieces", end.max(1), args.pieces as u64)?;
    if args.pieces == 1 {
        Violation::equal("grid of one piece", 1, launch.grid as u64)?;
    }
    Violation::at_least("length of q", args.len, args.q.len())?;
    for (what, vector) in [
        ("length of w", &args.w),
        ("length of r", &args.r),
        ("length of p", &args.p),
    ] {
        Violation::at_least(what, args.len, vector.len())?;
    }
    for optional in [&args.inverse_diagonal, &args.means] {
        if optional.is_some() {
            Violation::at_least("length of an optional vector", args.len, optional.len())?;
        }
    }
    for state in [&args.before, &args.after] {
        Violation::at_least("length of the state", state::LEN as u64, state.len())?;
    }
    let pieces = args.pieces as u64;
    for (partials, sums) in [(&args.partials, Sums::COUNT), (&args.shift_partials, 1)] {
        Violation::at_least(
            "length of partial sums",
            pieces * sums as u64,
            partials.len(),
        )?;
    }
    let shifts = if args.means.is_some() && args.pieces == 1 {
        1
    } else {
        0
    };
    Violation::at_least("length of shift", shifts, args.shift.len())
}

macro_rules! cg_family {
    ($t:ident) => {
        crate::kernels! {
            family Cg<$t>, "cg";
            args CgArgs<'a, $t>;
            variant CgVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            concat!("cg_begin_", stringify!($t)), CgVariant::Begin => begin::<_, $t, TOGETHER>;
            concat!("cg_measure_", stringify!($t)), CgVariant::Measure => measure::<_, $t, TOGETHER>;
            concat!("cg_move_", stringify!($t)), CgVariant::Move => advance::<_, $t, TOGETHER>;
            concat!("cg_opening_", stringify!($t)), CgVariant::Opening => opening::<_, $t>;
            concat!("cg_iteration_", stringify!($t)), CgVariant::Iteration => iteration::<_, $t>;
        }
    };
}

cg_family!(f32);
cg_family!(f64);
