//! The four steps of a panel that is in shared memory.

use super::super::pieces::four;
use super::{
    Columns, ROWS, SQUARE, Sums, TENSOR_COLUMNS, of_v, place, place_v, quad, read_rows, square,
    write_two,
};
use crate::cta::{Cta, WARP};
use crate::matmul::{Split, split};

/// A lane's four elements of 16 × 8 factors, whose first row and step it names.
#[inline(always)]
fn factors(row: u32, k: u32, of: impl Fn(u32, u32) -> f32) -> [f32; 4] {
    [
        of(row, k),
        of(row + 8, k),
        of(row, k + 4),
        of(row + 8, k + 4),
    ]
}

/// Step 1.
#[inline(always)]
#[track_caller]
pub fn times_v<C: Cta>(cta: &C, columns: &Columns, [from, end]: [u32; 2]) -> Sums {
    let mut sums = Sums::default();
    let (group, turn) = quad(cta);
    for (i, tile) in columns.iter().enumerate() {
        if (i as u32) < from || i as u32 >= end {
            continue;
        }
        let row = i as u32 * ROWS + 2 * turn;
        let c = tile.map(|[a, b, c, d]| split(cta, [a, c, b, d]));
        for (n, sums) in sums.iter_mut().enumerate() {
            let p = 8 * n as u32 + group;
            let of_v = split(cta, read_rows(cta, place_v(p, row)));
            *sums = multiply(cta, &c, &of_v, *sums);
        }
    }
    sums
}

/// This warp's W to shared memory.
#[inline(always)]
#[track_caller]
pub fn show<C: Cta, const WARPS: u32>(cta: &C, sums: &Sums) {
    let (to, (group, turn)) = (square::<WARPS>(cta.fresh(cta.thread()) / WARP), quad(cta));
    for (n, sums) in sums.iter().enumerate() {
        for (m, [a, b, c, d]) in sums.iter().copied().enumerate() {
            for (half, two) in [[a, b], [c, d]].into_iter().enumerate() {
                let col = 16 * m as u32 + group + 8 * half as u32;
                write_two(cta, to, place(col, 8 * n as u32 + 2 * turn), two);
            }
        }
    }
}

/// Step 2.
#[inline(always)]
#[track_caller]
pub fn sum_warps<C: Cta, const WARPS: u32>(cta: &C) {
    let (mut e, end) = (4 * cta.fresh(cta.thread()), cta.fresh(SQUARE));
    while e < end {
        let part = |warp: u32| cta.shared_read_pack(square::<WARPS>(warp), e as usize);
        let mut sum: [f32; 4] = part(0);
        for warp in 1..WARPS {
            let part = part(warp);
            sum = core::array::from_fn(|i| sum[i] + part[i]);
        }
        cta.shared_write_pack(square::<WARPS>(WARPS), e as usize, sum);
        e += 4 * WARPS * WARP;
    }
}

/// Step 3: −W·T.
#[inline(always)]
#[track_caller]
pub fn times_t<C: Cta, const WARPS: u32>(cta: &C) {
    let warp = cta.fresh(cta.thread()) / WARP;
    if warp >= 8 {
        return;
    }
    let [sums, product, t] = [0, 1, 2].map(|i| square::<WARPS>(WARPS + i));
    let (group, turn) = quad(cta);
    let (row, col) = (warp % 2 * 16 + group, warp / 2 * 8);
    let of_w = |row: u32, k: u32| cta.shared_read(sums, place(row, k));
    let of_t = |k: u32| cta.shared_read(t, place(k, col + group));
    let w: [_; 4] = four(|s| factors(row, 8 * s as u32 + turn, of_w));
    let t: [_; 4] = four(|s| [0, 4].map(|next| of_t(8 * s as u32 + turn + next)));
    let mut products = [[0.0; 4]; 3];
    for s in 0..4 {
        let (w, t) = (split(cta, w[s]), split(cta, t[s]));
        products[0] = cta.multiply_tf32(w.low, t.high, products[0]);
        products[1] = cta.multiply_tf32(w.high, t.low, products[1]);
        products[2] = cta.multiply_tf32(w.high, t.high, products[2]);
    }
    let [low, other, high] = products;
    let [a, b, c, d] = four(|e| -(high[e] + (low[e] + other[e])));
    for (half, two) in [[a, b], [c, d]].into_iter().enumerate() {
        let at = place(row + 8 * half as u32, col + 2 * turn);
        write_two(cta, product, at, two);
    }
}

/// Step 4.
#[inline(always)]
#[track_caller]
pub fn subtract<C: Cta, const WARPS: u32>(cta: &C, columns: &mut Columns, [from, end]: [u32; 2]) {
    let (v, (group, turn)) = (of_v(cta), quad(cta));
    let product = square::<WARPS>(WARPS + 1);
    let (mut k, last) = (turn, cta.fresh(TENSOR_COLUMNS));
    while k < last {
        let of_w = |col: u32, k: u32| cta.shared_read(product, place(col, k));
        let w = [0, 1].map(|m| split(cta, factors(16 * m + group, k, of_w)));
        for (i, tile) in columns.iter_mut().enumerate() {
            if (i as u32) < from || i as u32 >= end {
                continue;
            }
            let row = i as u32 * ROWS + group;
            let of_v = [k, k + 4].map(|p| cta.shared_read(v, place_v(p, row)));
            let of_v = split(cta, of_v);
            *tile = multiply(cta, &w, &of_v, *tile);
        }
        k += 8;
    }
}

/// Products of numbers of two parts each, the small ones first.
#[inline(always)]
#[track_caller]
fn multiply<C: Cta>(
    cta: &C,
    a: &[Split<4>; 2],
    b: &Split<2>,
    mut sums: [[f32; 4]; 2],
) -> [[f32; 4]; 2] {
    for m in 0..2 {
        sums[m] = cta.multiply_tf32(a[m].low, b.high, sums[m]);
    }
    for m in 0..2 {
        sums[m] = cta.multiply_tf32(a[m].high, b.low, sums[m]);
    }
    for m in 0..2 {
        sums[m] = cta.multiply_tf32(a[m].high, b.high, sums[m]);
    }
    sums
}
