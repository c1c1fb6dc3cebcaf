//! Benchmark data: a counter-based hash, so that any element can be made by any thread.

use rayon::prelude::*;
use sprs::CsMatI;
use warpfuse::ops::Number;

/// A well-mixed 64-bit hash of a counter (the finaliser of SplitMix64).
pub fn hash(counter: u64) -> u64 {
    let mut x = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// `len` numbers, uniform in [−½, ½).
pub fn values<T: Number>(len: usize, seed: u64) -> Vec<T> {
    let number = |i: usize| {
        let bits = hash(seed.wrapping_mul(0x1000_0000_0000) ^ i as u64) >> 11;
        <T as warpfuse::matrix::Element>::from_f64(bits as f64 / (1_u64 << 53) as f64 - 0.5)
    };
    (0..len).into_par_iter().map(number).collect()
}

/// `rows` rows of `per_row` nonzeros each, one in every stratum of `cols / per_row` columns.
pub fn stratified<T: Number>(
    rows: usize,
    cols: usize,
    per_row: usize,
    seed: u64,
) -> CsMatI<T, u32, u64> {
    let stratum = (cols / per_row) as u64;
    let index = |i: usize| {
        let k = (i % per_row) as u64;
        (k * stratum + hash(seed ^ (i as u64) << 20) % stratum) as u32
    };
    let indices: Vec<u32> = (0..rows * per_row).into_par_iter().map(index).collect();
    let offsets = (0..=rows).map(|row| (row * per_row) as u64).collect();
    CsMatI::new(
        (rows, cols),
        offsets,
        indices,
        values(rows * per_row, seed + 1),
    )
}
