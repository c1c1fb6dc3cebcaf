//! The columns of T above those of all panels, in squares of 32 × 32, each the work of a warp, on tensor cores.
//!
//! With Vⱼ the reflectors of panel j and T(j, j) its own triangle, for i < j:
//!
//! | step | what | where |
//! |---|---|---|
//! | 1 | S(i, j) = Vᵢᵀ·Vⱼ·T(j, j) ([`pairs`]) | a warp for each pair of panels |
//! | 2 | T(i, j) = −Σ T(i, k)·S(k, j), i ≤ k < j ([`rows`]) | a warp for each i, j after j |
//!
//! All factors come from memory as packs, straight to the registers that an instruction takes them from: what it calls a step
//! of k may be any row, as long as both factors agree. A warp waits for no other one, and nothing lies in shared memory.
//! Mapping: with g = lane / 4 and t = lane mod 4, a lane has four rows (columns) of a factor, g apart by eight or four neighbours
//! from 4g on, and four of sixteen steps of each, which are one pack of f32 or two of f64.
//!
//! In f32 numbers are sums of two TF32 numbers, a product three of the tensor core, as in
//! [`matmul::tensor`](crate::matmul): errors are 2⁻²² of it. Tensor cores do not round sums of f32 to nearest: 32 steps begin with
//! zero and are added by ordinary additions. In f64 products and sums are rounded as by multiply-adds.
//!
//! Valid where all panels have 32 columns, and columns of V and rows of T begin with whole packs.
//! Guarantees: the same bits on every run and grid of one device.
//!
//! What bounds it, computed: 640 of 512 × 512 take 2 · 680 squares of 64 Kflop each. Read from L2, 5 to 8 KiB a square, they take
//! 0.4 to 0.7 ms a step; products 0.35 ms (f32, at 42 of the 64 multiply-adds a cycle that tensor cores have for split numbers, as
//! matrix products reach) and 0.43 ms (f64).
//!
//! Source: R. Schreiber and C. Van Loan, 1989, as for the family; H. Ootomo and R. Yokota, as for the product of matrices.

mod pairs;
mod product;
mod rows;
mod shared;

pub use pairs::pairs;
pub use rows::rows;
pub use shared::{shared_rows, shared_rows_bytes};

use super::args::{EVERY, QrArgs};
use super::update::WORK_WIDTH;
use crate::cta::{Cta, WARP};
use crate::scalar::Real;
use crate::table::{Launch, Violation};

/// Threads of a block.
pub const SQUARES_BLOCK: u32 = 128;
/// Threads of a block that has 32 rows of T together.
pub const SHARED_BLOCK: u32 = 256;
/// Warps of a block.
const WARPS: u32 = SQUARES_BLOCK / WARP;
/// Rows and columns of a square.
const SIDE: u32 = WORK_WIDTH;

/// Registers for 32 sums, 32 elements of factors and, in f32, as many sums of 32 steps and what elements are split into.
#[inline(always)]
fn bounds<C: Cta, T: Real>(cta: &C) {
    if T::SIZE == 4 {
        cta.launch_bounds::<SQUARES_BLOCK, 3>();
    } else {
        cta.launch_bounds::<SQUARES_BLOCK, 2>();
    }
}

/// Panels of a matrix.
const fn panels<T>(args: &QrArgs<'_, T>) -> u32 {
    let least = if args.rows < args.cols {
        args.rows
    } else {
        args.cols
    };
    least / SIDE
}

/// Pairs of panels of a matrix.
const fn pairs_of_panels(panels: u32) -> u32 {
    panels * panels.saturating_sub(1) / 2
}

/// Blocks of a launch of `pairs`.
pub const fn pairs_blocks<T>(args: &QrArgs<'_, T>) -> u64 {
    let all = args.count as u64 * pairs_of_panels(panels(args)) as u64;
    all.div_ceil(WARPS as u64)
}

/// Blocks of a matrix in a launch of [`rows`]: of the last panel's rows all columns are its own.
const fn groups(panels: u32) -> u32 {
    panels.saturating_sub(1).div_ceil(WARPS)
}

/// Blocks of a launch of `rows`.
pub const fn rows_blocks<T>(args: &QrArgs<'_, T>) -> u64 {
    args.count as u64 * groups(panels(args)) as u64
}

/// Blocks of a launch of `shared_rows`.
pub const fn shared_rows_blocks<T>(args: &QrArgs<'_, T>) -> u64 {
    args.count as u64 * panels(args).saturating_sub(1) as u64
}

/// Whether matrices of this shape consist of squares and whole packs.
pub const fn has_squares([rows, cols]: [u32; 2], bytes: u32) -> bool {
    let least = if rows < cols { rows } else { cols };
    rows.is_multiple_of(16 / bytes) && least.is_multiple_of(SIDE)
}

/// Fails unless a launch of this many blocks finds whole squares and packs.
pub(super) fn check<T: Real>(
    launch: &Launch,
    args: &QrArgs<'_, T>,
    blocks: u64,
) -> Result<(), Violation> {
    let pack = 16 / T::SIZE as u64;
    let least = args.rows.min(args.cols) as u64;
    Violation::multiple_of("reflectors", SIDE as u64, least)?;
    Violation::multiple_of("step of columns", pack, args.f_steps.col)?;
    Violation::multiple_of("step of matrices", pack, args.f_steps.each)?;
    Violation::equal("step of rows", 1, args.f_steps.row)?;
    Violation::equal("words of a table", 0, args.table.len())?;
    Violation::equal("rows of a shorter matrix", 0, args.last_rows as u64)?;
    Violation::equal("every panel", 1, args.has(EVERY) as u64)?;
    for (what, address) in [
        ("address of V", args.f.pointer().addr()),
        ("address of T", args.t.pointer().addr()),
        ("address of S", args.work.pointer().addr()),
    ] {
        Violation::multiple_of(what, 16, address as u64)?;
    }
    Violation::equal("blocks", blocks, launch.grid as u64)
}
