//! Benchmark data: a counter-based hash, so that any thread can make any element.

use ndarray::Array2;
use rayon::prelude::*;
use warpfuse::matrix::{CsrError, CsrMatrix, Element, csr_from_parts};

/// A well-mixed 64-bit hash of a counter (the finaliser of SplitMix64: Steele, Lea and Flood 2014).
pub fn hash(counter: u64) -> u64 {
    let mut x = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Number `index` of the sequence that `seed` names, uniform in [0, 1).
pub fn uniform(seed: u64, index: usize) -> f64 {
    // Indices stay below 2⁴⁴, so that sequences of different seeds share no counter.
    let bits = hash((seed << 44) ^ index as u64) >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

/// `len` numbers, uniform in [−½, ½).
pub fn values<T: Element>(len: usize, seed: u64) -> Vec<T> {
    let number = |index| T::from_f64(uniform(seed, index) - 0.5);
    (0..len).into_par_iter().map(number).collect()
}

/// A row-major matrix of [`values`].
pub fn dense<T: Element>(rows: usize, cols: usize, seed: u64) -> Array2<T> {
    let values = values(rows * cols, seed);
    Array2::from_shape_vec((rows, cols), values).expect("as many values as places")
}

/// `rows` rows of `per_row` nonzeros each, one at a uniform place of every stratum of `cols / per_row`
/// columns.
///
/// # Errors
/// [`CsrError`] when there are fewer columns than nonzeros in a row.
pub fn stratified<T: Element>(
    rows: usize,
    cols: usize,
    per_row: usize,
    seed: u64,
) -> Result<CsrMatrix<T>, CsrError> {
    let stratum = (cols / per_row) as u64;
    let index = |entry: usize| {
        let start = (entry % per_row) as u64 * stratum;
        (start + (uniform(seed + 1, entry) * stratum as f64) as u64) as u32
    };
    let indices = (0..rows * per_row).into_par_iter().map(index).collect();
    let offsets = (0..=rows).map(|row| (row * per_row) as u64).collect();
    csr_from_parts((rows, cols), offsets, indices, values(rows * per_row, seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_spread_and_differ_by_seed() {
        let (a, b) = (values::<f64>(10_000, 1), values::<f64>(10_000, 2));
        let mean = a.iter().sum::<f64>() / a.len() as f64;
        assert!(mean.abs() < 0.02 && a.iter().all(|x| (-0.5..0.5).contains(x)));
        assert!(a.iter().zip(&b).all(|(a, b)| a != b));
    }

    #[test]
    fn a_stratified_row_has_one_nonzero_in_each_stratum() {
        let x = stratified::<f32>(50, 103, 10, 3).expect("a valid matrix");
        for row in x.outer_iterator() {
            let strata: Vec<u32> = row.indices().iter().map(|j| j / 10).collect();
            assert_eq!(strata, (0..10).collect::<Vec<u32>>());
        }
    }

    #[test]
    fn too_many_nonzeros_are_refused() {
        assert!(stratified::<f32>(2, 3, 5, 1).is_err());
    }
}
