//! The vector half of a conjugate-gradient iteration, scalars kept on the device.
//!
//! With q = A·p from the operator, an iteration is three launches:
//! *curvature* (p·q), *step* (w += a·p, r += a·q, with a = r·z / p·q and z = D⁻¹·r), and *direction*
//! (p = −z + b·p, with b the ratio of new to old r·z). No block waits for another: every block adds the partial
//! sums of the launch before, in the same order, and so gets the same scalars. A solve that begins anew is *begin*
//! (w = 0, r = r₀) and *direction*. Short vectors take all steps of an iteration, or of a beginning, in one launch of one
//! block. A thread loads its first elements before it knows the scalars, and a few at once: such launches take as long as
//! their round trips to memory.
//!
//! What did not help, for 47,236 elements: one launch of a cluster of eight blocks takes 13.0 µs of an H100, the three 3.3, 4.7 and
//! 4.3, which overlap; a barrier of a whole grid takes 1.1 to 1.3, as long as a launch.
//!
//! Elements lie in pieces, which a block adds up one by one: a partial sum is that of a piece, whoever has it. Which pieces
//! there are follows from n alone, and partial sums are added in the order of the pieces. So a launch over some pieces of
//! longer vectors, of which others have the rest, writes those partial sums that one over all would have written, and
//! zeros for the others: adding up what all have makes the partial sums of one.
//!
//! Once ‖r‖² has reached the stopping value, an iteration changes nothing: the host may run ahead of what it
//! has read back. Shared memory: three f64 per warp.
//!
//! With a finite radius the solve is that of a trust region: the step that would leave ‖w‖_D ≤ radius, D being
//! the preconditioner, ends on its border and is the last. The norms, the slope r₀·w and the decrease of the
//! model follow from scalars that are there already. Coordinates whose D⁻¹ is 0 are held: w keeps them, and
//! ‖r‖² does not count them.
//!
//! Source: Hestenes & Stiefel 1952; preconditioned form as in Golub & Van Loan §11.5; trust region: Steihaug
//! 1983, recurrences of the norms as in Conn, Gould & Toint 2000, §7.5.

mod scalars;
mod walk;

use crate::cta::{Cache, Cta, Shared, WARP};
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::verbs::{each_of_block, each_of_grid, sum_block_each};
pub(crate) use scalars::is_over;
pub use scalars::{Stride, next_state, state, stride};
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
    /// Partial sums of p·q, one per piece.
    pub pq_partials: Out<'a, f64>,
    /// Partial sums of r·z.
    pub rz_partials: Out<'a, f64>,
    /// Partial sums of ‖r‖².
    pub rr_partials: Out<'a, f64>,
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
    /// `w = 0; p = 0; r = r₀; pq_partials = 0; rz_partials = r·z; rr_partials = ‖r‖²`, and the state before is
    /// [`START`](state::START): what *direction* takes the first direction from.
    Begin,
    /// `pq_partials = p·q`.
    Curvature,
    /// `w += a·p; r += a·q; rz_partials = r·z; rr_partials = ‖r‖²`.
    Step,
    /// `p = −z + b·p; shift_partials = means·p`, and the state moves on.
    Direction,
    /// *begin* and *direction* in one launch of one block, for vectors that one block walks fast.
    Opening,
    /// The three of an iteration in one launch of one block.
    Iteration,
}

impl CgVariant {
    /// Dynamic shared memory that a block of `block` threads needs.
    pub const fn shared_bytes(&self, block: u32) -> u64 {
        (SUMS * (block / WARP)) as u64 * 8
    }
}

// The bodies are inlined by force: a call would take the arguments through local memory.

/// Elements that a thread of many blocks loads at once: as many as it has of a piece of vectors that are not long.
const TOGETHER: usize = 4;
/// Elements that a thread of one large block does, which has few registers.
const ALONE: usize = 1;

/// Several sums over a block at once.
const SUMS: u32 = 3;

/// One f64 per warp and sum.
#[inline(always)]
fn scratch<C: Cta>(cta: &C) -> Shared<f64> {
    Shared::at(0, SUMS * (cta.threads() / WARP))
}

/// Adds up the partial sums of each of these.
#[inline(always)]
fn totals<C: Cta, const N: usize>(cta: &C, of: [Out<'_, f64>; N], pieces: u32) -> [f64; N] {
    let mut sums = [0.0; N];
    each_of_block(cta, pieces, |piece| {
        let read = of.map(|partials| cta.read(partials, piece));
        sums = core::array::from_fn(|k| sums[k] + read[k]);
    });
    sum_block_each(cta, sums, scratch(cta))
}

/// Sums over the block, written to a place of each of these.
#[inline(always)]
fn write_sums<C: Cta, const N: usize>(
    cta: &C,
    to: [Out<'_, f64>; N],
    (place, sums): (usize, [f64; N]),
) {
    let sums = sum_block_each(cta, sums, scratch(cta));
    if cta.thread() == 0 {
        for (partials, sum) in to.into_iter().zip(sums) {
            cta.write(partials, place, sum);
        }
    }
}

/// Zeros for the pieces that are not at hand.
#[inline(always)]
fn clear_others<C: Cta, T>(cta: &C, args: &CgArgs<'_, T>, partials: Out<'_, f64>) {
    let (first, own) = (args.first as u64, args.len.div_ceil(args.piece));
    if own < args.pieces as u64 {
        each_of_grid(cta, args.pieces as u64, |piece| {
            let is_own = (piece as u64) >= first && (piece as u64) < first + own;
            if !is_own {
                cta.write(partials, piece, 0.0);
            }
        });
    }
}

#[inline(always)]
fn curvature<C: Cta, T: Real, const N: usize>(cta: &C, args: &CgArgs<'_, T>) {
    let load = |i: usize| -> [T; 2] { [cta.read(args.p, i), cta.load(args.q, i, Cache::Keep)] };
    each_piece(
        cta,
        args,
        (first::<_, _, _, N>(cta, args, load), load),
        |_, [p, q], [sum]: &mut [f64; 1]| *sum = p.to_f64().fma(q.to_f64(), *sum),
        |place, sum| write_sums(cta, [args.pq_partials], (place, sum)),
    );
    clear_others(cta, args, args.pq_partials);
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

/// What a step needs of an element.
#[derive(Clone, Copy)]
struct Stepping<T> {
    w: T,
    r: T,
    p: T,
    q: T,
    inverse: T,
}

/// Adds r·z and r² of an element with this part of D⁻¹; of one that is held r² does not count.
#[inline(always)]
fn add_squares<T: Real>((r, inverse): (T, T), [rz, rr]: [&mut f64; 2]) {
    let z = r * inverse;
    *rz = r.to_f64().fma(z.to_f64(), *rz);
    let is_held = z == T::ZERO && r != T::ZERO;
    let counted = if is_held { 0.0 } else { r.to_f64() };
    *rr = counted.fma(counted, *rr);
}

#[inline(always)]
fn begin<C: Cta, T: Real, const N: usize>(cta: &C, args: &CgArgs<'_, T>) {
    let load = |i: usize| -> [T; 2] { [cta.load(args.q, i, Cache::Once), inverse(cta, args, i)] };
    let each = |i: usize, [r, inverse]: [T; 2], [rz, rr]: &mut [f64; 2]| {
        cta.write(args.w, i, T::ZERO);
        cta.write(args.p, i, T::ZERO);
        cta.write(args.r, i, r);
        add_squares((r, inverse), [rz, rr]);
    };
    let first = first::<_, _, _, N>(cta, args, load);
    each_piece(cta, args, (first, load), each, |place, sums| {
        write_sums(cta, [args.rz_partials, args.rr_partials], (place, sums));
        if cta.thread() == 0 {
            cta.write(args.pq_partials, place, 0.0);
        }
    });
    for partials in [args.pq_partials, args.rz_partials, args.rr_partials] {
        clear_others(cta, args, partials);
    }
    if cta.block() == 0 && cta.thread() == 0 {
        for (i, value) in state::START.into_iter().enumerate() {
            cta.write(args.before, i, value);
        }
    }
}

#[inline(always)]
fn step<C: Cta, T: Real, const N: usize>(cta: &C, args: &CgArgs<'_, T>) {
    let load = |i: usize| Stepping {
        w: cta.read(args.w, i),
        r: cta.read(args.r, i),
        p: cta.read(args.p, i),
        q: cta.load(args.q, i, Cache::Once),
        inverse: inverse(cta, args, i),
    };
    let first = first::<_, _, _, N>(cta, args, load);
    let before = state_before(cta, args);
    let [pq] = totals(cta, [args.pq_partials], args.pieces);
    let stride = stride(&before, pq, args.radius);
    let moves = stride.length > 0.0;
    let a = T::of_f64(stride.length);
    let each = |i: usize, of: Stepping<T>, [rz, rr]: &mut [f64; 2]| {
        let mut r = of.r;
        if moves {
            cta.write(args.w, i, a.fma(of.p, of.w));
            r = a.fma(of.q, r);
            cta.write(args.r, i, r);
        }
        add_squares((r, of.inverse), [rz, rr]);
    };
    each_piece(cta, args, (first, load), each, |place, sums| {
        write_sums(cta, [args.rz_partials, args.rr_partials], (place, sums));
    });
    clear_others(cta, args, args.rz_partials);
    clear_others(cta, args, args.rr_partials);
}

/// What a direction needs of an element.
#[derive(Clone, Copy)]
struct Turning<T> {
    p: T,
    r: T,
    inverse: T,
    mean: T,
}

#[inline(always)]
fn direction<C: Cta, T: Real, const N: usize>(cta: &C, args: &CgArgs<'_, T>) {
    let load = |i: usize| Turning {
        p: cta.read(args.p, i),
        r: cta.read(args.r, i),
        inverse: inverse(cta, args, i),
        mean: kept_or(cta, args.means, i, T::ZERO),
    };
    let first = first::<_, _, _, N>(cta, args, load);
    let before = state_before(cta, args);
    let partials = [args.rz_partials, args.rr_partials, args.pq_partials];
    let [rz, rr, pq] = totals(cta, partials, args.pieces);
    let is_first = before[state::ITERATIONS] < 0.0;
    let stride = stride(&before, pq, args.radius);
    let b = if is_first {
        0.0
    } else {
        rz / before[state::RZ]
    };
    let moves = is_first || stride.length > 0.0;
    let each = |i: usize, of: Turning<T>, [shift]: &mut [f64; 1]| {
        let mut p = of.p;
        if moves {
            let z = of.r * of.inverse;
            p = T::of_f64(b).fma(p, -z);
            cta.write(args.p, i, p);
        }
        *shift = of.mean.to_f64().fma(p.to_f64(), *shift);
    };
    each_piece(cta, args, (first, load), each, |place, shift| {
        if args.means.is_some() {
            write_sums(cta, [args.shift_partials], (place, shift));
        }
    });
    if args.means.is_some() {
        clear_others(cta, args, args.shift_partials);
        if args.pieces == 1 && cta.thread() == 0 {
            let shift = cta.read(args.shift_partials, 0);
            cta.write(args.shift, 0, T::of_f64(shift));
        }
    }
    if cta.block() == 0 && cta.thread() == 0 {
        // Read again: else every thread would hold all of it.
        let before = state_before(cta, args);
        let after = next_state(&before, [rz, rr, pq], stride, args.tolerance);
        for (i, value) in after.into_iter().enumerate() {
            cta.write(args.after, i, value);
        }
    }
}

#[inline(always)]
fn opening<C: Cta, T: Real>(cta: &C, args: &CgArgs<'_, T>) {
    begin::<_, _, ALONE>(cta, args);
    cta.sync();
    direction::<_, _, ALONE>(cta, args);
}

/// Barriers take the place of the ends of launches.
#[inline(always)]
fn iteration<C: Cta, T: Real>(cta: &C, args: &CgArgs<'_, T>) {
    curvature::<_, _, ALONE>(cta, args);
    cta.sync();
    step::<_, _, ALONE>(cta, args);
    cta.sync();
    direction::<_, _, ALONE>(cta, args);
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
    for partials in [
        &args.pq_partials,
        &args.rz_partials,
        &args.rr_partials,
        &args.shift_partials,
    ] {
        Violation::at_least("length of partial sums", args.pieces as u64, partials.len())?;
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
            concat!("cg_curvature_", stringify!($t)), CgVariant::Curvature => curvature::<_, $t, TOGETHER>;
            concat!("cg_step_", stringify!($t)), CgVariant::Step => step::<_, $t, TOGETHER>;
            concat!("cg_direction_", stringify!($t)), CgVariant::Direction => direction::<_, $t, TOGETHER>;
            concat!("cg_opening_", stringify!($t)), CgVariant::Opening => opening::<_, $t>;
            concat!("cg_iteration_", stringify!($t)), CgVariant::Iteration => iteration::<_, $t>;
        }
    };
}

cg_family!(f32);
cg_family!(f64);
