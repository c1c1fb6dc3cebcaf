//! The lecture's ladder: six ways to add up f32 numbers, each a step faster than the one before.
//!
//! Formula: `out[block] = Σ x[i]` over the block's elements, in f32; launched again over `out` until one number
//! is left. Shapes: n elements in, ⌈n / elements of a block⌉ out. Mapping: a thread loads one element (two
//! from the third step on). Shared memory: one f32 per thread (per warp in the last step). Blocks are powers of
//! two from 64 to 1,024. The order of additions hangs on the block size alone.
//!
//! | step | what changes | what it cures |
//! |---|---|---|
//! | v0 | interleaved pairs, threads picked with a remainder | – |
//! | v1 | the same pairs, taken by neighbouring threads | half-empty warps and the remainder |
//! | v2 | partners half the block away | bank conflicts |
//! | v3 | the first addition while loading | half of the threads that only load |
//! | v4 | the last warp without barriers, in registers | barriers, and instructions of the loop |
//! | v5 | shuffles from the start, one exchange between warps | nearly all of shared memory |
//!
//! What a block of 256 threads does to shared memory, as the emulator counts it (requests of warps, passes over
//! the banks beyond one each, requests with idle lanes, barriers; a test holds these relations), and what 2²⁵
//! numbers take on an H200:
//!
//! | step | requests | conflicts | divergent | barriers | µs | of a plain read |
//! |---|--:|--:|--:|--:|--:|--:|
//! | v0 | 150 | 0 | 142 | 9 | 167 | 20 % |
//! | v1 | 45 | 105 | 16 | 9 | 205 | 16 % |
//! | v2 | 45 | 0 | 16 | 9 | 160 | 21 % |
//! | v3 | 45 | 0 | 16 | 9 | 86 | 39 % |
//! | v4 | 28 | 0 | 0 | 3 | 63 | 54 % |
//! | v5 | 9 | 0 | 9 | 1 | 61 | 56 % |
//! | [`whole`](super::whole) | | | | | 35 | 96 % |
//!
//! v1 is slower than v0 on this GPU: it trades idle lanes, which are cheap by now, for bank conflicts, which are
//! not. From v3 on a block does the same for twice the numbers. What is missing after v5 is bytes in flight: each
//! thread loads 8 bytes and ends; the kernel of [`whole`](super::whole) loads 64 bytes at a time, again and again.
//!
//! The lecture's last warp of v4 stays in shared memory and trusts that a warp runs in step. Since Volta it
//! does not; here its values move through registers.
//!
//! Source: M. Harris, "Optimizing Parallel Reduction in CUDA" (2007), with the sixth step from J. Luitjens,
//! "Faster Parallel Reductions on Kepler" (2014).

use crate::cta::{Cache, Cta, Shared, WARP};
use crate::memory::{In, Out};
use crate::table::{Launch, Violation};
use crate::verbs::{lane, sum_lanes};

/// The family of the ladder.
pub struct Ladder;

/// `x` to be added up, `out` one element per block.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LadderArgs<'a> {
    /// What is added up.
    pub x: In<'a, f32>,
    /// Elements of x.
    pub len: u64,
    /// One sum per block.
    pub out: Out<'a, f32>,
}

/// A step of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// v0: interleaved pairs with a remainder.
    InterleavedModulo,
    /// v1: interleaved pairs without.
    Interleaved,
    /// v2: sequential addressing.
    Sequential,
    /// v3: first addition on load.
    FirstAdd,
    /// v4: last warp unrolled.
    LastWarp,
    /// v5: warp shuffles.
    Shuffles,
}

impl Step {
    /// Elements that each thread loads.
    pub const fn per_thread(&self) -> u64 {
        match self {
            Step::InterleavedModulo | Step::Interleaved | Step::Sequential => 1,
            _ => 2,
        }
    }

    /// Dynamic shared memory of a block of `block` threads.
    pub const fn shared_bytes(&self, block: u32) -> u32 {
        match self {
            Step::Shuffles => block / WARP * 4,
            _ => block * 4,
        }
    }
}

#[inline(always)]
fn tile<C: Cta>(cta: &C) -> Shared<f32> {
    Shared::at(0, cta.threads())
}

#[inline(always)]
fn load_or_zero<C: Cta>(cta: &C, args: &LadderArgs<'_>, i: u64) -> f32 {
    if i < args.len {
        cta.load(args.x, i as usize, Cache::Once)
    } else {
        0.0
    }
}

/// One element per thread.
#[inline(always)]
fn load_one<C: Cta>(cta: &C, args: &LadderArgs<'_>) -> f32 {
    let i = cta.block() as u64 * cta.threads() as u64 + cta.thread() as u64;
    load_or_zero(cta, args, i)
}

/// Two elements per thread, a block apart, added.
#[inline(always)]
fn load_two<C: Cta>(cta: &C, args: &LadderArgs<'_>) -> f32 {
    let i = 2 * cta.block() as u64 * cta.threads() as u64 + cta.thread() as u64;
    load_or_zero(cta, args, i) + load_or_zero(cta, args, i + cta.threads() as u64)
}

/// `tile[into] += tile[from]`.
#[inline(always)]
#[track_caller]
fn add<C: Cta>(cta: &C, into: u32, from: u32) {
    let sum = cta.shared_read(tile(cta), into as usize) + cta.shared_read(tile(cta), from as usize);
    cta.shared_write(tile(cta), into as usize, sum);
}

#[inline(always)]
fn fill<C: Cta>(cta: &C, value: f32) {
    cta.shared_write(tile(cta), cta.thread() as usize, value);
    cta.sync();
}

#[inline(always)]
fn write_first<C: Cta>(cta: &C, args: &LadderArgs<'_>) {
    if cta.thread() == 0 {
        let sum = cta.shared_read(tile(cta), 0);
        cta.write(args.out, cta.block() as usize, sum);
    }
}

fn interleaved_modulo<C: Cta>(cta: &C, args: &LadderArgs<'_>) {
    fill(cta, load_one(cta, args));
    let mut distance = 1;
    while distance < cta.threads() {
        if cta.thread().is_multiple_of(2 * distance) {
            add(cta, cta.thread(), cta.thread() + distance);
        }
        cta.sync();
        distance *= 2;
    }
    write_first(cta, args);
}

fn interleaved<C: Cta>(cta: &C, args: &LadderArgs<'_>) {
    fill(cta, load_one(cta, args));
    let mut distance = 1;
    while distance < cta.threads() {
        let into = 2 * distance * cta.thread();
        if into < cta.threads() {
            add(cta, into, into + distance);
        }
        cta.sync();
        distance *= 2;
    }
    write_first(cta, args);
}

/// Halves the tile until `last` sums are left.
#[inline(always)]
fn halve<C: Cta>(cta: &C, last: u32) {
    let mut distance = cta.threads() / 2;
    while distance >= last {
        if cta.thread() < distance {
            add(cta, cta.thread(), cta.thread() + distance);
        }
        cta.sync();
        distance /= 2;
    }
}

fn sequential<C: Cta>(cta: &C, args: &LadderArgs<'_>) {
    fill(cta, load_one(cta, args));
    halve(cta, 1);
    write_first(cta, args);
}

fn first_add<C: Cta>(cta: &C, args: &LadderArgs<'_>) {
    fill(cta, load_two(cta, args));
    halve(cta, 1);
    write_first(cta, args);
}

fn last_warp<C: Cta>(cta: &C, args: &LadderArgs<'_>) {
    fill(cta, load_two(cta, args));
    halve(cta, 2 * WARP);
    if cta.thread() < WARP {
        let own = cta.shared_read(tile(cta), cta.thread() as usize);
        let sum = own + cta.shared_read(tile(cta), (cta.thread() + WARP) as usize);
        let sum = sum_lanes::<C, f32, WARP>(cta, sum);
        if lane(cta) == 0 {
            cta.write(args.out, cta.block() as usize, sum);
        }
    }
}

fn shuffles<C: Cta>(cta: &C, args: &LadderArgs<'_>) {
    let warps = cta.threads() / WARP;
    let of_warps: Shared<f32> = Shared::at(0, warps);
    let sum = sum_lanes::<C, f32, WARP>(cta, load_two(cta, args));
    if lane(cta) == 0 {
        cta.shared_write(of_warps, (cta.thread() / WARP) as usize, sum);
    }
    cta.sync();
    if cta.thread() < WARP {
        let mut sum = 0.0;
        if lane(cta) < warps {
            sum = cta.shared_read(of_warps, lane(cta) as usize);
        }
        let sum = sum_lanes::<C, f32, WARP>(cta, sum);
        if lane(cta) == 0 {
            cta.write(args.out, cta.block() as usize, sum);
        }
    }
}

fn check(step: &Step, launch: &Launch, args: &LadderArgs<'_>) -> Result<(), Violation> {
    Violation::at_least("block", 2 * WARP as u64, launch.block as u64)?;
    let power = launch.block.next_power_of_two() as u64;
    Violation::equal("block, a power of two,", power, launch.block as u64)?;
    let shared = step.shared_bytes(launch.block) as u64;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    let blocks = args.len.div_ceil(launch.block as u64 * step.per_thread());
    Violation::equal("grid", blocks, launch.grid as u64)?;
    Violation::at_least("length of x", args.len, args.x.len())?;
    Violation::at_least("length of out", blocks, args.out.len())
}

crate::kernels! {
    family Ladder, "reduce";
    args LadderArgs<'a>;
    variant Step;
    check check;
    describe crate::describe::unplanned;
    "reduce_ladder_v0_f32", Step::InterleavedModulo => interleaved_modulo;
    "reduce_ladder_v1_f32", Step::Interleaved => interleaved;
    "reduce_ladder_v2_f32", Step::Sequential => sequential;
    "reduce_ladder_v3_f32", Step::FirstAdd => first_add;
    "reduce_ladder_v4_f32", Step::LastWarp => last_warp;
    "reduce_ladder_v5_f32", Step::Shuffles => shuffles;
}
