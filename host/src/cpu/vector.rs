//! Vector operations: multi-threaded above some size, the same bits for every number of threads.

use gpu_kernels::Real;
use pulp::Arch;
use rayon::prelude::*;

use super::dispatch::dispatch;
use super::grid;
use super::scalar::Scalar;
use crate::parallel;

/// Elements that one thread takes at a time; shorter vectors stay on the calling thread.
const BLOCK: usize = 64 * 1024;

/// `Σ aᵢ·bᵢ`, added up in f64 in the order that a GPU adds them: see [`grid`].
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
    grid::dot(a, b)
}

/// `‖a‖₂²`, as [`dot`].
pub fn norm2_squared<T: Scalar>(a: &[T]) -> f64 {
    dot(a, a)
}

/// `y = α·x + β·y`: β·y is rounded, and the sum with α·x once more, as on a GPU.
///
/// # Panics
/// When the lengths differ.
///
/// ```
/// let mut y = [1.0f32, 1.0];
/// warpfuse::cpu::vector::axpby(2.0, &[1.0, 2.0], -1.0, &mut y);
/// assert_eq!(y, [1.0, 3.0]);
/// ```
pub fn axpby<T: Scalar + Real>(alpha: T, x: &[T], beta: T, y: &mut [T]) {
    zip_apply(
        x,
        y,
        #[inline(always)]
        |x, y| alpha.fma(x, beta * y),
    );
}

/// `y = α·x + y`, as [`axpby`].
///
/// # Panics
/// When the lengths differ.
pub fn axpy<T: Scalar + Real>(alpha: T, x: &[T], y: &mut [T]) {
    axpby(alpha, x, <T as Scalar>::ONE, y);
}

/// `yᵢ = f(i, yᵢ)`.
pub fn update<T: Scalar>(y: &mut [T], f: impl Fn(usize, T) -> T + Send + Sync) {
    let block = |(number, y): (usize, &mut [T])| {
        dispatch(
            #[inline(always)]
            || {
                let each = y.iter_mut().enumerate();
                each.for_each(|(i, y)| *y = f(number * BLOCK + i, *y));
            },
        );
    };
    if y.len() <= BLOCK {
        block((0, y));
    } else {
        parallel::for_each_item(y.chunks_mut(BLOCK), |number, y| block((number, y)));
    }
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
    let block = |(x, y): (&[T], &mut [T])| {
        dispatch(
            #[inline(always)]
            || x.iter().zip(&mut *y).for_each(|(&x, y)| *y = f(x, *y)),
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
