//! Vector operations: multi-threaded above some size, the same bits for every number of threads.

use pulp::Arch;
use rayon::prelude::*;

use super::scalar::Scalar;
use crate::parallel;

/// Elements that one thread takes at a time; shorter vectors stay on the calling thread.
const BLOCK: usize = 64 * 1024;

/// `Σ aᵢ·bᵢ`, added up in f64 in a fixed order.
///
/// # Panics
/// When the lengths differ.
///
/// ```
/// assert_eq!(warpfuse::cpu::vector::dot(&[1.0f32, 2.0], &[3.0, -4.0]), -5.0);
/// ```
pub fn dot<T: Scalar>(a: &[T], b: &[T]) -> f64 {
    assert_eq!(
        a.len(),
        b.len(),
        "dot product of vectors of different lengths"
    );
    let arch = Arch::new();
    let block = |a: &[T], b: &[T]| arch.dispatch(|| dot_block(a, b));
    if a.len() <= BLOCK {
        return block(a, b);
    }
    let of_block = |i| block(parallel::chunk(a, BLOCK, i), parallel::chunk(b, BLOCK, i));
    let sums = parallel::map(a.len().div_ceil(BLOCK), of_block);
    sums.into_iter().sum()
}

/// `‖a‖₂²`, as [`dot`].
pub fn norm2_squared<T: Scalar>(a: &[T]) -> f64 {
    dot(a, a)
}

/// `y = α·x + β·y`, each element computed in f64 and rounded once.
///
/// # Panics
/// When the lengths differ.
///
/// ```
/// let mut y = [1.0f32, 1.0];
/// warpfuse::cpu::vector::axpby(2.0, &[1.0, 2.0], -1.0, &mut y);
/// assert_eq!(y, [1.0, 3.0]);
/// ```
pub fn axpby<T: Scalar>(alpha: T, x: &[T], beta: T, y: &mut [T]) {
    let (alpha, beta): (f64, f64) = (alpha.into(), beta.into());
    zip_apply(x, y, |x, y| T::narrow(alpha * x.into() + beta * y.into()));
}

/// `y = α·x + y`, as [`axpby`].
///
/// # Panics
/// When the lengths differ.
pub fn axpy<T: Scalar>(alpha: T, x: &[T], y: &mut [T]) {
    axpby(alpha, x, T::ONE, y);
}

/// `x = α·x`. A NaN stays NaN when α = 0; see [`fill`].
pub fn scale<T: Scalar>(alpha: T, x: &mut [T]) {
    let alpha: f64 = alpha.into();
    let arch = Arch::new();
    for_each_block(x, |block| {
        arch.dispatch(|| {
            block
                .iter_mut()
                .for_each(|x| *x = T::narrow(alpha * (*x).into()))
        });
    });
}

/// `y = x`.
///
/// # Panics
/// When the lengths differ.
pub fn copy<T: Scalar>(x: &[T], y: &mut [T]) {
    zip_apply(x, y, |x, _| x);
}

/// Every element becomes `value`.
pub fn fill<T: Scalar>(value: T, x: &mut [T]) {
    for_each_block(x, |block| block.fill(value));
}

/// `yᵢ = f(xᵢ, yᵢ)`.
fn zip_apply<T: Scalar>(x: &[T], y: &mut [T], f: impl Fn(T, T) -> T + Send + Sync) {
    assert_eq!(x.len(), y.len(), "vectors of different lengths");
    let arch = Arch::new();
    let block = |(x, y): (&[T], &mut [T])| {
        arch.dispatch(
            #[inline(always)]
            || x.iter().zip(y).for_each(|(&x, y)| *y = f(x, *y)),
        );
    };
    if x.len() <= BLOCK {
        block((x, y));
    } else {
        let blocks = x.chunks(BLOCK).zip(y.chunks_mut(BLOCK));
        parallel::for_each_item(blocks, |_, pair| block(pair));
    }
}

fn for_each_block<T: Scalar>(x: &mut [T], block: impl Fn(&mut [T]) + Send + Sync) {
    if x.len() <= BLOCK {
        block(x);
    } else {
        x.par_chunks_mut(BLOCK).for_each(block);
    }
}

/// Sixteen sums side by side, which the compiler keeps in vector registers.
#[inline(always)]
fn dot_block<T: Scalar>(a: &[T], b: &[T]) -> f64 {
    const SUMS: usize = 16;
    let (a_groups, a_rest) = a.as_chunks::<SUMS>();
    let (b_groups, b_rest) = b.as_chunks::<SUMS>();
    let mut sums = [0.0; SUMS];
    for (a, b) in a_groups.iter().zip(b_groups) {
        for i in 0..SUMS {
            sums[i] += Into::<f64>::into(a[i]) * Into::<f64>::into(b[i]);
        }
    }
    for ((sum, &a), &b) in sums.iter_mut().zip(a_rest).zip(b_rest) {
        *sum += a.into() * b.into();
    }
    sums.into_iter().sum()
}
