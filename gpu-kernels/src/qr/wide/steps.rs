//! The four steps of reflectors that are in shared memory.

use super::{
    Columns, GROUPS, OF_W, PITCH_SUMS, PITCH_T, PITCH_V, REFLECTORS, ROWS, Sums, of_t, of_v, of_w,
    quad, sums, warp,
};
use crate::cta::{Cta, Shared, WARP};
use crate::qr::pieces::{four, read_chunk, write_piece};

/// Step 1.
#[inline(always)]
#[track_caller]
pub fn times_v<C: Cta>(cta: &C, columns: &Columns, groups: [bool; GROUPS]) -> Sums {
    let mut sums = Sums::default();
    let ((group, turn), v) = (quad(cta), of_v(cta));
    for (i, tiles) in columns.iter().enumerate() {
        if !groups[i] {
            continue;
        }
        // Step t + 4s of k is row 2t + s mod 2 of tile s / 2.
        let c = core::array::from_fn(|e| tiles[e / 4][e % 2 * 2 + e / 2 % 2]);
        for (n, sums) in sums.iter_mut().enumerate() {
            let row = i as u32 * ROWS + 2 * turn;
            let at = ((2 * group + n as u32) * PITCH_V + row) as usize;
            let [a, b]: [[f64; 2]; 2] = [0, 8].map(|down| read_chunk(cta, v, at + down));
            *sums = cta.multiply_f64(c, [a[0], a[1], b[0], b[1]], *sums);
        }
    }
    sums
}

/// This warp's W to shared memory: a lane has reflectors 4t to 4t + 3 of two columns.
#[inline(always)]
#[track_caller]
pub fn show<C: Cta, const WARPS: u32>(cta: &C, sums: &Sums) {
    let (to, (group, turn)) = (of_w::<WARPS>(warp(cta)), quad(cta));
    for half in 0..2 {
        let at = (group + 8 * half as u32) * REFLECTORS + 4 * turn;
        let own = four(|p| sums[p % 2][2 * half + p / 2]);
        write_piece(cta, to, at as usize, &own);
    }
}

/// Step 2.
#[inline(always)]
#[track_caller]
pub fn sum_warps<C: Cta, const WARPS: u32>(cta: &C) {
    let (mut e, end) = (cta.fresh(cta.thread()), cta.fresh(OF_W));
    while e < end {
        let part = |warp: u32| cta.shared_read(of_w::<WARPS>(warp), e as usize);
        let mut sum = part(0);
        for warp in 1..WARPS {
            sum += part(warp);
        }
        let at = e / REFLECTORS * PITCH_SUMS + e % REFLECTORS;
        cta.shared_write(sums::<WARPS>(), at as usize, sum);
        e += WARPS * WARP;
    }
}

/// Step 3, as the factor that step 4 takes.
#[inline(always)]
#[track_caller]
pub fn times_t<C: Cta, const WARPS: u32>(cta: &C, panel: u32) -> [f64; 8] {
    let (group, turn) = quad(cta);
    let t: Shared<f64> = of_t::<WARPS>(panel);
    // Step t + 4s of k is reflector 4t + s.
    let w: [[f64; 4]; 2] = [0, 8].map(|half| {
        let at = (group + half) * PITCH_SUMS + 4 * turn;
        read_chunk(cta, sums::<WARPS>(), at as usize)
    });
    let w = core::array::from_fn(|e| w[e % 2][e / 2]);
    let products = [0, 1].map(|n| {
        let col = group / 2 + 4 * (2 * n + group % 2);
        let of_t = four(|s| {
            let at = (4 * turn + s as u32) * PITCH_T + col;
            cta.shared_read(t, at as usize)
        });
        cta.multiply_f64(w, of_t, [0.0; 4])
    });
    core::array::from_fn(|e| -products[e / 4][e % 2 * 2 + e / 2 % 2])
}

/// Step 4.
#[inline(always)]
#[track_caller]
pub fn add<C: Cta>(cta: &C, columns: &mut Columns, (groups, product): ([bool; GROUPS], &[f64; 8])) {
    let ((group, turn), v) = (quad(cta), of_v(cta));
    for (i, tiles) in columns.iter_mut().enumerate() {
        if !groups[i] {
            continue;
        }
        for (half, tile) in tiles.iter_mut().enumerate() {
            let row = i as u32 * ROWS + 8 * half as u32 + group;
            let of_v = four(|s| {
                let at = (turn + 4 * s as u32) * PITCH_V + row;
                cta.shared_read(v, at as usize)
            });
            *tile = cta.multiply_f64(*product, of_v, *tile);
        }
    }
}
