//! A plain multi-threaded sum: the rate at which this machine reads memory, which passes are measured
//! against.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::chunks;
use super::scalar::Scalar;

/// Vectors that are added up side by side.
const STREAMS: usize = 8;

/// The sum of all elements, each read once. Meant as a yardstick: f32 is added up in f32.
///
/// ```
/// assert_eq!(warpfuse::cpu::stream::sum(&[1.0f32, 2.0, 3.0]), 6.0);
/// ```
pub fn sum<T: Scalar>(values: &[T]) -> f64 {
    let arch = Arch::new();
    let chunks = chunks::count(values.len());
    if chunks == 1 {
        return arch.dispatch(Sum { values });
    }
    let len = values.len().div_ceil(chunks);
    let sums: Vec<f64> = values
        .par_chunks(len)
        .map(|values| arch.dispatch(Sum { values }))
        .collect();
    sums.into_iter().sum()
}

/// The sum of all integers, each read once, as [`sum`]; modulo 2⁶⁴.
///
/// ```
/// assert_eq!(warpfuse::cpu::stream::sum_integers(&[1, 2, u32::MAX]), 2 + (1 << 32));
/// ```
pub fn sum_integers(values: &[u32]) -> u64 {
    let arch = Arch::new();
    let add = |values: &[u32]| -> u64 {
        arch.dispatch(
            #[inline(always)]
            || values.iter().map(|&value| u64::from(value)).sum(),
        )
    };
    let len = values.len().div_ceil(chunks::count(values.len())).max(1);
    values.par_chunks(len).map(add).sum()
}

struct Sum<'a, T> {
    values: &'a [T],
}

impl<T: Scalar> WithSimd for Sum<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let vectors = T::vectors::<S>(self.values);
        let rest = &self.values[vectors.len() * T::count::<S>()..];
        let (groups, single) = vectors.as_chunks::<STREAMS>();
        let mut sums = [T::splat(simd, T::default()); STREAMS];
        for group in groups {
            for i in 0..STREAMS {
                sums[i] = T::add(simd, sums[i], group[i]);
            }
        }
        for (sum, &vector) in sums.iter_mut().zip(single) {
            *sum = T::add(simd, *sum, vector);
        }
        let mut total: f64 = rest.iter().map(|&value| value.into()).sum();
        for sum in sums {
            total += T::sum(simd, sum).into();
        }
        total
    }
}
