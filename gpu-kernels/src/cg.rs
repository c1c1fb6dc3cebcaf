//! The vector half of a conjugate-gradient iteration, scalars kept on the device.
//!
//! With q = A·p from the operator, an iteration is three launches:
//! *curvature* (p·q), *step* (w += a·p, r += a·q, with a = r·z / p·q and z = D⁻¹·r), and *direction*
//! (p = −z + b·p, with b the ratio of new to old r·z). No block waits for another: every block adds the partial
//! sums of the launch before, in the same order, and so gets the same scalars. Short vectors take all three
//! steps in one launch of one block.
//!
//! Elements lie in pieces, which a block adds up one by one: a partial sum is that of a piece, whoever has it. Which pieces
//! there are follows from n alone, and partial sums are added in the order of the pieces. So a launch over some pieces of
//! longer vectors, of which others have the rest, writes those partial sums that one over all would have written, and
//! zeros for the others: adding up what all have makes the partial sums of one.
//!
//! Once ‖r‖² has reached the stopping value, an iteration changes nothing: the host may run ahead of what it
//! has read back. Shared memory: one f64 per warp.
//!
//! With a finite radius the solve is that of a trust region: the step that would leave ‖w‖_D ≤ radius, D being
//! the preconditioner, ends on its border and is the last. The norms, the slope r₀·w and the decrease of the
//! model follow from scalars that are there already. Coordinates whose D⁻¹ is 0 are held: w keeps them, and
//! ‖r‖² does not count them.
//!
//! Source: Hestenes & Stiefel 1952; preconditioned form as in Golub & Van Loan §11.5; trust region: Steihaug
//! 1983, recurrences of the norms as in Conn, Gould & Toint 2000, §7.5.

use crate::cta::{Cache, Cta, WARP};
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::vector::{scratch, sum_partials};
use crate::verbs::{each_of_grid, sum_block};

/// The family of conjugate-gradient kernels.
pub struct Cg<T>(core::marker::PhantomData<T>);

/// Places in the state vector.
pub mod state {
    /// r·z of the current residual.
    pub const RZ: usize = 0;
    /// ‖r‖² of the current residual.
    pub const RR: usize = 1;
    /// The value of ‖r‖² at which to stop.
    pub const STOP: usize = 2;
    /// Iterations done; negative before the first direction.
    pub const ITERATIONS: usize = 3;
    /// p·q of the last step, 1 before the first; not positive when the matrix is not positive definite along p.
    pub const CURVATURE: usize = 4;
    /// ‖w‖²_D.
    pub const NORM: usize = 5;
    /// wᵀ·D·p.
    pub const CROSS: usize = 6;
    /// ‖p‖²_D.
    pub const LENGTH: usize = 7;
    /// r₀·w.
    pub const SLOPE: usize = 8;
    /// −(½·wᵀ·A·w + r₀·w), by how much the quadratic model is below its value at w = 0.
    pub const DECREASE: usize = 9;
    /// 1 once a step has ended on the border of the trust region, else 0.
    pub const BORDER: usize = 10;
    /// Length of the state vector.
    pub const LEN: usize = 11;
    /// The state from which the first direction is taken.
    pub const START: [f64; LEN] = [0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
}

/// How far a step goes along p.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stride {
    /// a of w += a·p; 0 when the solve has ended.
    pub length: f64,
    /// Whether the step ends on the border of the trust region.
    pub border: bool,
}

/// The step from the state `before`, with p·q = `pq`, inside ‖w‖_D ≤ `radius`.
///
/// Without a trust region (infinite radius) a direction of no positive curvature is not followed; with one it
/// is followed to the border.
#[inline(always)]
pub fn stride(before: &[f64; state::LEN], pq: f64, radius: f64) -> Stride {
    const NONE: Stride = Stride {
        length: 0.0,
        border: false,
    };
    if before[state::RR] <= before[state::STOP] {
        return NONE;
    }
    if pq > 0.0 {
        let length = before[state::RZ] / pq;
        if norm_after(before, length) <= radius * radius {
            return Stride {
                length,
                border: false,
            };
        }
    }
    if radius.is_finite() {
        let length = to_border(before, radius);
        return Stride {
            length,
            border: true,
        };
    }
    NONE
}

/// ‖w + a·p‖²_D.
#[inline(always)]
fn norm_after(before: &[f64; state::LEN], a: f64) -> f64 {
    before[state::NORM] + a * (2.0 * before[state::CROSS] + a * before[state::LENGTH])
}

/// The positive root τ of ‖w + τ·p‖²_D = radius², in the form without cancellation.
#[inline(always)]
fn to_border(before: &[f64; state::LEN], radius: f64) -> f64 {
    let gap = radius * radius - before[state::NORM];
    let cross = before[state::CROSS];
    let root = crate::simt::sqrt_f64(cross * cross + before[state::LENGTH] * gap);
    gap / (cross + root)
}

/// The state after an iteration: from the state before, the sums r·z, ‖r‖² and p·q, and the step taken.
#[inline(always)]
pub fn next_state(
    before: &[f64; state::LEN],
    [rz, rr, pq]: [f64; 3],
    stride: Stride,
    tolerance: f64,
) -> [f64; state::LEN] {
    let mut after = *before;
    after[state::RZ] = rz;
    after[state::RR] = rr;
    if before[state::ITERATIONS] < 0.0 {
        after[state::STOP] = tolerance * tolerance * rr;
        after[state::ITERATIONS] = 0.0;
        after[state::CURVATURE] = 1.0;
        after[state::LENGTH] = rz;
        return after;
    }
    after[state::CURVATURE] = pq;
    let a = stride.length;
    if a > 0.0 {
        let b = rz / before[state::RZ];
        after[state::ITERATIONS] += 1.0;
        after[state::NORM] = norm_after(before, a);
        after[state::CROSS] = b * (before[state::CROSS] + a * before[state::LENGTH]);
        after[state::LENGTH] = rz + b * b * before[state::LENGTH];
        after[state::SLOPE] -= a * before[state::RZ];
        after[state::DECREASE] += a * (before[state::RZ] - 0.5 * a * pq);
    }
    if stride.border {
        after[state::STOP] = f64::INFINITY;
        after[state::BORDER] = 1.0;
    }
    after
}

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
    /// q = A·p.
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
    /// `pq_partials = p·q`.
    Curvature,
    /// `w += a·p; r += a·q; rz_partials = r·z; rr_partials = ‖r‖²`.
    Step,
    /// `p = −z + b·p; shift_partials = means·p`, and the state moves on.
    Direction,
    /// The three of them in one launch of one block, for vectors that one block walks fast.
    Iteration,
}

impl CgVariant {
    /// Dynamic shared memory that a block of `block` threads needs.
    pub const fn shared_bytes(&self, block: u32) -> u64 {
        (block / WARP) as u64 * 8
    }
}

// The bodies are inlined by force: a call would take the arguments through local memory.

/// Calls `each` with the partial sum's place and the elements of each piece that is this block's: block, block + blocks, …
#[inline(always)]
fn each_piece<C: Cta, T>(cta: &C, args: &CgArgs<'_, T>, mut each: impl FnMut(usize, [u64; 2])) {
    let mut piece = cta.block();
    loop {
        let start = piece as u64 * args.piece;
        if start >= args.len {
            break;
        }
        let end = args.len.min(start + args.piece);
        each((args.first + piece) as usize, [start, end]);
        piece += cta.blocks();
    }
}

/// Calls `each(i)` for this thread's share of the elements of a piece.
#[inline(always)]
fn each_of_piece<C: Cta>(cta: &C, [start, end]: [u64; 2], mut each: impl FnMut(usize)) {
    let mut i = start + cta.thread() as u64;
    while i < end {
        each(i as usize);
        i += cta.threads() as u64;
    }
}

/// Sums `sum` over the block and writes it to a place.
#[inline(always)]
fn write_sum<C: Cta>(cta: &C, partials: Out<'_, f64>, place: usize, sum: f64) {
    let sum = sum_block(cta, sum, scratch(cta));
    if cta.thread() == 0 {
        cta.write(partials, place, sum);
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
fn curvature<C: Cta, T: Real>(cta: &C, args: &CgArgs<'_, T>) {
    each_piece(cta, args, |place, elements| {
        let mut sum = 0.0;
        each_of_piece(cta, elements, |i| {
            let q: T = cta.load(args.q, i, Cache::Keep);
            sum = cta.read(args.p, i).to_f64().fma(q.to_f64(), sum);
        });
        write_sum(cta, args.pq_partials, place, sum);
    });
    clear_others(cta, args, args.pq_partials);
}

/// The state before the iteration.
#[inline(always)]
fn state_before<C: Cta, T>(cta: &C, args: &CgArgs<'_, T>) -> [f64; state::LEN] {
    core::array::from_fn(|i| cta.read(args.before, i))
}

/// z = D⁻¹·r, element by element.
#[inline(always)]
fn precondition<C: Cta, T: Real>(cta: &C, args: &CgArgs<'_, T>, i: usize, r: T) -> T {
    if args.inverse_diagonal.is_some() {
        r * cta.load(args.inverse_diagonal, i, Cache::Keep)
    } else {
        r
    }
}

#[inline(always)]
fn step<C: Cta, T: Real>(cta: &C, args: &CgArgs<'_, T>) {
    let pq = sum_partials(cta, args.pq_partials, args.pieces);
    let stride = stride(&state_before(cta, args), pq, args.radius);
    let moves = stride.length > 0.0;
    let a = T::of_f64(stride.length);
    each_piece(cta, args, |place, elements| {
        let (mut rz, mut rr) = (0.0, 0.0);
        each_of_piece(cta, elements, |i| {
            let mut r = cta.read(args.r, i);
            if moves {
                cta.write(args.w, i, a.fma(cta.read(args.p, i), cta.read(args.w, i)));
                r = a.fma(cta.load(args.q, i, Cache::Once), r);
                cta.write(args.r, i, r);
            }
            let z = precondition(cta, args, i, r);
            rz = r.to_f64().fma(z.to_f64(), rz);
            let is_held = z == T::ZERO && r != T::ZERO;
            let counted = if is_held { 0.0 } else { r.to_f64() };
            rr = counted.fma(counted, rr);
        });
        write_sum(cta, args.rz_partials, place, rz);
        write_sum(cta, args.rr_partials, place, rr);
    });
    clear_others(cta, args, args.rz_partials);
    clear_others(cta, args, args.rr_partials);
}

#[inline(always)]
fn direction<C: Cta, T: Real>(cta: &C, args: &CgArgs<'_, T>) {
    let rz = sum_partials(cta, args.rz_partials, args.pieces);
    let rr = sum_partials(cta, args.rr_partials, args.pieces);
    let pq = sum_partials(cta, args.pq_partials, args.pieces);
    let before = state_before(cta, args);
    let is_first = before[state::ITERATIONS] < 0.0;
    let stride = stride(&before, pq, args.radius);
    let b = if is_first {
        0.0
    } else {
        rz / before[state::RZ]
    };
    let moves = is_first || stride.length > 0.0;
    each_piece(cta, args, |place, elements| {
        let mut shift = 0.0;
        each_of_piece(cta, elements, |i| {
            let mut p = cta.read(args.p, i);
            if moves {
                let z = precondition(cta, args, i, cta.read(args.r, i));
                p = T::of_f64(b).fma(p, -z);
                cta.write(args.p, i, p);
            }
            if args.means.is_some() {
                let mean: T = cta.load(args.means, i, Cache::Keep);
                shift = mean.to_f64().fma(p.to_f64(), shift);
            }
        });
        if args.means.is_some() {
            write_sum(cta, args.shift_partials, place, shift);
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
        let after = next_state(&before, [rz, rr, pq], stride, args.tolerance);
        for (i, value) in after.into_iter().enumerate() {
            cta.write(args.after, i, value);
        }
    }
}

/// Barriers take the place of the ends of launches.
#[inline(always)]
fn iteration<C: Cta, T: Real>(cta: &C, args: &CgArgs<'_, T>) {
    curvature(cta, args);
    cta.sync();
    step(cta, args);
    cta.sync();
    direction(cta, args);
}

fn check<T: Real>(
    variant: &CgVariant,
    launch: &Launch,
    args: &CgArgs<'_, T>,
) -> Result<(), Violation> {
    let shared = variant.shared_bytes(launch.block);
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    if *variant == CgVariant::Iteration {
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
            concat!("cg_curvature_", stringify!($t)), CgVariant::Curvature => curvature::<_, $t>;
            concat!("cg_step_", stringify!($t)), CgVariant::Step => step::<_, $t>;
            concat!("cg_direction_", stringify!($t)), CgVariant::Direction => direction::<_, $t>;
            concat!("cg_iteration_", stringify!($t)), CgVariant::Iteration => iteration::<_, $t>;
        }
    };
}

cg_family!(f32);
cg_family!(f64);
