//! R from the products of all rows, and whether it is right: one block.
//!
//! H = D·AᵀA·D with ones on its diagonal is L·Δ·Lᵀ, R = Δ^½·Lᵀ·D⁻¹. A thread has four elements of H, and of Z = L⁻¹, which
//! the same steps make of the identity: column k is shown, and subtracted from what is behind it. tr(H⁻¹) = Σ ‖Z(k, ·)‖² / Δ(k)
//! bounds 1 / σ², σ the least singular value of A·D.
//!
//! # The verdict
//! |E(i, j)| ≤ e = s·u for H + E = RᵀR (of A·D), with u = 2⁻⁵³ and s the roundings that a sum is made of, those of L·Δ·Lᵀ and
//! of dressed rows with them: products are exact, and columns of A·D have length 1. The matrix that has RᵀR for its products and is nearest to A·D
//! differs from it by at most ‖E‖ / σ (T. Ando and J. L. van Hemmen, 1980: ‖(H + E)^½ − H^½‖ ≤ ‖E‖ / σ, by half of that in the
//! limit), and ‖E‖ ≤ n·e. R is kept where n·e·√tr(H⁻¹) ≤ 2⁻²³: then it is exact for an A whose columns differ, all together, by
//! no more than one unit in the last place of f32 from those given. For 10⁷ rows of 32 columns that is a condition of 7,000 of the
//! columns that were brought to one length; for 10⁵ rows, of 170,000.
//!
//! A column of targets is left out of the trace: its last element is of no consequence to a solution, which depends on the
//! others. A pivot of it below 0 counts as 0.

use super::super::args::{NOT_FINITE, QrArgs};
use super::super::pieces::four;
use super::super::reflector::is_finite;
use super::{GRAM_BLOCK, GRAM_COLUMNS, GRAM_ROWS, GROUP, OWN, REFUSED, SECOND, WARPS};
use crate::cta::{Cta, Shared, WARP};
use crate::math::Elementary;
use crate::scalar::Real;
use crate::verbs::{global_warps, lane, sum_lanes};

const N: u32 = GRAM_COLUMNS;
/// Elements of H of a thread: rows `warp` + 8m of column `lane`.
const EACH: usize = 4;
const _: () = assert!(EACH as u32 * WARPS == N);
/// The unit of f64, and the bound of the verdict.
const UNIT: f64 = 1.0 / (1u64 << 53) as f64;
const BOUND: f64 = 1.0 / (1u64 << 23) as f64;

/// Roundings of the factors of a product, where rows are dressed.
const DRESSED: u32 = 4;

/// Shared memory: AᵀA; its roots and their reciprocals; columns of L·Δ and rows of Z, of each step; sums of warps.
struct Arrays {
    gram: Shared<f64>,
    roots: Shared<f64>,
    shares: Shared<f64>,
    columns: Shared<f64>,
    inverse: Shared<f64>,
    traces: Shared<f64>,
}

impl Arrays {
    #[inline(always)]
    fn new() -> Arrays {
        let gram = Shared::at(0, N * (N + 1));
        let roots = Shared::at(gram.end(), N);
        let shares = Shared::at(roots.end(), N);
        let columns = Shared::at(shares.end(), N * N);
        let inverse = Shared::at(columns.end(), N * N);
        Arrays {
            gram,
            roots,
            shares,
            columns,
            inverse,
            traces: Shared::at(inverse.end(), WARPS),
        }
    }
}

/// See the head of the file; `sums` are those of all rows, as blocks have them.
#[inline(always)]
#[track_caller]
pub(super) fn triangle<C: Cta>(cta: &C, args: &QrArgs<'_, f32>, sums: &[f64; OWN]) {
    let arrays = Arrays::new();
    spread(cta, &arrays, sums);
    cta.sync();
    if cta.thread() < N {
        let square = cta.shared_read(arrays.gram, (cta.thread() * (N + 2)) as usize);
        let root = Elementary::sqrt(square);
        let share = if root > 0.0 { 1.0 / root } else { 0.0 };
        cta.shared_write(arrays.roots, cta.thread() as usize, root);
        cta.shared_write(arrays.shares, cta.thread() as usize, share);
    }
    cta.sync();
    let z = eliminate(cta, &arrays, args.cols);
    let trace = trace(cta, args, &arrays, &z);
    let own = (0..N).all(|k| is_finite(cta.shared_read(arrays.roots, k as usize)));
    let status = match own {
        false => NOT_FINITE,
        true if is_right(cta, args, trace) => 0,
        true => REFUSED,
    };
    if cta.thread() == 0 {
        cta.write(args.verdict, 0, status);
    }
    if status != REFUSED {
        write(cta, args, &arrays);
    }
}

/// The sums to where they belong in AᵀA, of each pair of columns once.
#[inline(always)]
#[track_caller]
fn spread<C: Cta>(cta: &C, arrays: &Arrays, sums: &[f64; OWN]) {
    for (m, sum) in sums.iter().enumerate() {
        let at = cta.thread() + m as u32 * GRAM_BLOCK;
        let (lane, i, tile) = (at % WARP, at / WARP % 4, at / WARP / 4);
        let second = (tile >= SECOND as u32) as u32;
        let row = 16 * second + lane / 4 + 8 * (i / 2);
        let col = 8 * (tile - second * SECOND as u32) + lane % 4 * 2 + i % 2;
        if row >= col {
            let (row, col) = (column_of(row), column_of(col));
            let at = row.max(col) * (N + 1) + row.min(col);
            cta.shared_write(arrays.gram, at as usize, *sum);
        }
    }
}

/// Which column of A has this number among the products.
#[inline(always)]
fn column_of(number: u32) -> u32 {
    number % 8 * 4 + number / 8
}

/// All steps; the thread's elements of Z.
#[inline(always)]
#[track_caller]
fn eliminate<C: Cta>(cta: &C, arrays: &Arrays, n: u32) -> [f64; EACH] {
    let (warp, col) = (cta.thread() / WARP, lane(cta));
    let row = |m: usize| warp + m as u32 * WARPS;
    let share = cta.shared_read(arrays.shares, col as usize);
    let mut h = four(
        #[inline(always)]
        |m| {
            let at = row(m).max(col) * (N + 1) + row(m).min(col);
            let of_row = cta.shared_read(arrays.shares, row(m) as usize);
            cta.shared_read(arrays.gram, at as usize) * of_row * share
        },
    );
    let mut z = four(|m| if row(m) == col { 1.0 } else { 0.0 });
    for k in 0..n {
        four(
            #[inline(always)]
            |m| {
                if col == k {
                    cta.shared_write(arrays.columns, (k * N + row(m)) as usize, h[m]);
                }
                if row(m) == k {
                    cta.shared_write(arrays.inverse, (k * N + col) as usize, z[m]);
                }
            },
        );
        cta.sync();
        let read = |i: u32| cta.shared_read(arrays.columns, (k * N + i) as usize);
        let share = 1.0 / read(k);
        let of_h = read(col);
        let of_z = cta.shared_read(arrays.inverse, (k * N + col) as usize);
        let factors = four(
            #[inline(always)]
            |m| match row(m) > k {
                true => -(read(row(m)) * share),
                false => 0.0,
            },
        );
        let (old_h, old_z) = (h, z);
        h = four(|m| step(row(m) > k, factors[m], of_h, old_h[m]));
        z = four(|m| step(row(m) > k, factors[m], of_z, old_z[m]));
    }
    z
}

/// What a step leaves of an element, `old` where the step is not for it.
#[inline(always)]
fn step(is_behind: bool, factor: f64, shown: f64, old: f64) -> f64 {
    if is_behind {
        factor.fma(shown, old)
    } else {
        old
    }
}

/// tr(H⁻¹) without the targets; infinite where a pivot is not above 0. The same in all threads.
#[inline(always)]
#[track_caller]
fn trace<C: Cta>(cta: &C, args: &QrArgs<'_, f32>, arrays: &Arrays, z: &[f64; EACH]) -> f64 {
    let warp = cta.thread() / WARP;
    let counted = args.cols - args.dress.targets.is_some() as u32;
    let terms = four(
        #[inline(always)]
        |m| {
            let row = warp + m as u32 * WARPS;
            if row >= counted {
                return 0.0;
            }
            let pivot = cta.shared_read(arrays.columns, (row * (N + 1)) as usize);
            match pivot > 0.0 {
                true => z[m] * z[m] / pivot,
                false => f64::INFINITY,
            }
        },
    );
    let sum = (terms[0] + terms[1]) + (terms[2] + terms[3]);
    let sum = sum_lanes::<C, f64, WARP>(cta, sum);
    if lane(cta) == 0 {
        cta.shared_write(arrays.traces, warp as usize, sum);
    }
    cta.sync();
    (0..WARPS).fold(0.0, |sum, warp| {
        sum + cta.shared_read(arrays.traces, warp as usize)
    })
}

/// The verdict, see the head of the file.
#[inline(always)]
fn is_right<C: Cta>(cta: &C, args: &QrArgs<'_, f32>, trace: f64) -> bool {
    let warps = global_warps(cta);
    let of_warp = args.rows.div_ceil(GRAM_ROWS).div_ceil(warps) * GRAM_ROWS;
    let additions = of_warp + WARPS + 2 * GROUP + cta.blocks() / GROUP + 2 * N + DRESSED;
    let error = args.cols as f64 * additions as f64 * UNIT;
    error * Elementary::sqrt(trace) <= BOUND
}

/// R with zeros below its diagonal.
#[inline(always)]
#[track_caller]
fn write<C: Cta>(cta: &C, args: &QrArgs<'_, f32>, arrays: &Arrays) {
    let col = lane(cta);
    for m in 0..EACH as u32 {
        let row = cta.thread() / WARP + m * WARPS;
        if row >= args.cols || col >= args.cols {
            continue;
        }
        let read = |i: u32| cta.shared_read(arrays.columns, (row * N + i) as usize);
        let pivot = read(row);
        let share = if pivot > 0.0 {
            1.0 / Elementary::sqrt(pivot)
        } else {
            0.0
        };
        let value = match col {
            _ if col < row => 0.0,
            _ if pivot < 0.0 => 0.0,
            _ => read(col) * share * cta.shared_read(arrays.roots, col as usize),
        };
        let at = row as u64 * args.f_steps.row + col as u64 * args.f_steps.col;
        cta.write(args.f, at as usize, value as f32);
    }
}
