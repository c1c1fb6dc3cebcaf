//! Vector operations against the reference.

use super::cases::{SIZES, rng, values};
use crate::cpu::{Scalar, stream, vector};
use crate::reference::rounding::{UNIT_F32, UNIT_F64, gamma};
use crate::reference::vector as reference;

/// [`SIZES`], and lengths that go to several threads.
fn lengths() -> impl Iterator<Item = usize> {
    SIZES.into_iter().chain([65_535, 65_536, 65_537, 200_003])
}

fn dot<T: Scalar>() {
    let mut rng = rng(31);
    for len in lengths() {
        let (a, b) = (values::<T>(len, &mut rng), values::<T>(len, &mut rng));
        // Both sides add up in f64, in different orders.
        let bound = 2.0 * reference::dot_error_bound(&a, &b, UNIT_F64);
        let error = (vector::dot(&a, &b) - reference::dot(&a, &b)).abs();
        assert!(error <= bound, "{len}: {error} > {bound}");
    }
}

#[test]
fn dot_f32() {
    dot::<f32>();
}

#[test]
fn dot_f64() {
    dot::<f64>();
}

#[test]
fn dot_of_nan_is_nan() {
    for position in [0, 15, 16, 20] {
        let mut a = [1.0f32; 21];
        a[position] = f32::NAN;
        assert!(vector::dot(&a, &[0.0; 21]).is_nan());
    }
}

#[test]
fn axpby_rounds_as_kernels_do() {
    let mut rng = rng(32);
    for len in lengths() {
        let (x, y) = (values::<f32>(len, &mut rng), values::<f32>(len, &mut rng));
        let mut result = y.clone();
        vector::axpby(1.7, &x, -0.3, &mut result);
        let truth = reference::axpby(1.7, &x, -0.3, &y);
        let bound = |y: f32, t: f64| UNIT_F32 * (t.abs() + f64::from(0.3 * y.abs()));
        for ((result, y), truth) in result.iter().zip(&y).zip(&truth) {
            let error = (f64::from(*result) - truth).abs();
            assert!(error <= 1.001 * bound(*y, *truth), "{result} and {truth}");
        }
        let twice: Vec<f32> = x
            .iter()
            .zip(&y)
            .map(|(x, y)| 1.7f32.mul_add(*x, -0.3 * y))
            .collect();
        assert_eq!(result, twice);
        vector::axpy(2.0, &x, &mut result);
        vector::axpy(-2.0, &x, &mut result);
        let bound = 8.0 * UNIT_F32;
        assert!(
            result
                .iter()
                .zip(&truth)
                .all(|(&r, t)| (f64::from(r) - t).abs() <= bound)
        );
    }
}

#[test]
fn scale_copy_fill() {
    let mut rng = rng(33);
    for len in lengths() {
        let x = values::<f64>(len, &mut rng);
        let mut y = vec![f64::NAN; len];
        vector::copy(&x, &mut y);
        assert_eq!(x, y);
        vector::scale(2.0, &mut y);
        assert!(x.iter().zip(&y).all(|(x, y)| 2.0 * x == *y));
        vector::fill(-1.0, &mut y);
        assert!(y.iter().all(|&y| y == -1.0));
    }
}

#[test]
fn the_sum_adds_everything() {
    let mut rng = rng(34);
    for len in lengths() {
        let x = values::<f64>(len, &mut rng);
        let bound = 2.0 * gamma(len, UNIT_F64) * reference::norm1(&x);
        assert!((stream::sum(&x) - x.iter().sum::<f64>()).abs() <= bound);
    }
}
