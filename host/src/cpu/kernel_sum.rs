//! Sums over kernels on the CPU: targets over threads, sources in blocks that the processor's vectors walk.
//!
//! Points are coordinate by coordinate and scaled, as the GPU has them (`gpu_kernels::kernel_sum`). Sums of a block
//! are added up in f64. The same bits for every number of threads.
//!
//! What runs inside a dispatch are plain loops: the body of an iterator's `for_each` may be compiled as a function of its
//! own, without the instructions that the dispatch has found, where each fused multiply-add is a call of a library.

use std::ops::{Add, Div, Mul, Sub};

use gpu_kernels::kernel_sum::KernelFunction;
use gpu_kernels::kernel_sum::radial::decay_f64;
use pulp::Arch;
use rayon::prelude::*;

use super::dispatch::dispatch;
use super::scalar::Scalar;

/// Sources that are worked on together.
const BLOCK: usize = 256;
/// Targets that a thread takes at a time.
const TARGETS: usize = 64;
/// Targets that share each load of a source.
const TILE: usize = 4;
/// Sums side by side, which the compiler keeps in vector registers.
const SUMS: usize = 16;

/// Points, coordinate by coordinate: coordinate d of point i at `d · len + i`.
#[derive(Debug, Clone, Copy)]
pub struct Points<'a, T> {
    /// The coordinates.
    pub coordinates: &'a [T],
    /// Number of points.
    pub len: usize,
}

impl<T: Copy> Points<'_, T> {
    fn dims(&self) -> usize {
        self.coordinates.len().checked_div(self.len).unwrap_or(0)
    }

    fn coordinate(&self, d: usize, i: usize) -> T {
        self.coordinates[d * self.len + i]
    }
}

/// Arithmetic of one element type: plain operations that the compiler puts in vectors.
pub trait Exponential:
    Scalar
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// −1, 0 or 1.
    fn sign(self) -> Self;
    /// |x|.
    fn magnitude(self) -> Self;
    /// `self · b + c`, fused.
    fn fused(self, b: Self, c: Self) -> Self;
    /// √x.
    fn root(self) -> Self;
    /// 2⁻ˣ for x ≥ 0; 0 where that is subnormal.
    fn decay(self) -> Self;
}

macro_rules! exponential {
    ($t:ty, $decay:expr) => {
        impl Exponential for $t {
            #[inline(always)]
            fn sign(self) -> $t {
                if self == 0.0 { 0.0 } else { self.signum() }
            }
            #[inline(always)]
            fn magnitude(self) -> $t {
                self.abs()
            }
            #[inline(always)]
            fn fused(self, b: $t, c: $t) -> $t {
                self.mul_add(b, c)
            }
            #[inline(always)]
            fn root(self) -> $t {
                self.sqrt()
            }
            #[inline(always)]
            fn decay(self) -> $t {
                $decay(self)
            }
        }
    };
}

exponential!(f32, decay_f32);
exponential!(f64, decay_wide);

#[inline(always)]
fn decay_wide(x: f64) -> f64 {
    decay_f64(
        x,
        #[inline(always)]
        |a: f64, b: f64, c: f64| a.mul_add(b, c),
    )
}

/// As [`decay_f64`], with as many terms as f32 holds: wrong by at most 2 units in the last place.
#[inline(always)]
fn decay_f32(x: f32) -> f32 {
    /// Adding 1.5 · 2²³ rounds to a whole number, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0;
    /// (ln 2)ᵏ/k! for k = 7 … 1.
    const SERIES: [f32; 7] = [
        1.525_273_4e-5,
        1.540_353_1e-4,
        1.333_355_8e-3,
        9.618_129e-3,
        5.550_410_7e-2,
        2.402_265e-1,
        std::f32::consts::LN_2,
    ];
    let clamped = if x < 126.0 { x } else { 126.0 };
    let shifted = ROUND - clamped;
    let fraction = -clamped - (shifted - ROUND);
    let mut sum = SERIES[0];
    for coefficient in &SERIES[1..] {
        sum = sum.mul_add(fraction, *coefficient);
    }
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    let value = (sum * fraction).mul_add(power, power);
    if x < 126.0 {
        value
    } else if x >= 126.0 {
        0.0
    } else {
        x
    }
}

/// `out[i] = Σⱼ k(xᵢ, yⱼ)·wⱼ + β·z[i]`, z as long as `out`.
///
/// # Panics
/// When the lengths do not fit.
pub fn sum<T: Exponential>(
    function: KernelFunction,
    x: Points<'_, T>,
    y: Points<'_, T>,
    w: &[T],
    addend: Option<(f64, &[T])>,
    out: &mut [T],
) {
    assert_eq!(out.len(), x.len, "one sum per target");
    assert_eq!(w.len(), y.len, "one weight per source");
    let arch = Arch::new();
    out.par_chunks_mut(TARGETS)
        .enumerate()
        .for_each(|(chunk, out)| {
            arch.dispatch(
                #[inline(always)]
                || {
                    let (mut first, mut left) = (chunk * TARGETS, out);
                    while !left.is_empty() {
                        let taken = left.len().min(TILE);
                        let (tile, rest) = left.split_at_mut(taken);
                        let sums = sums_of(function, (x, first, taken), y, w);
                        for (k, out) in tile.iter_mut().enumerate() {
                            let z = addend.map_or(0.0, |(beta, z)| beta * z[first + k].into());
                            *out = T::narrow(sums[k] + z);
                        }
                        (first, left) = (first + taken, rest);
                    }
                },
            );
        });
}

/// All k(xᵢ, xⱼ) with i ≥ j, N × N column by column; 0 elsewhere.
pub fn lower_triangle<T: Exponential>(function: KernelFunction, x: Points<'_, T>) -> Vec<T> {
    let n = x.len;
    let mut out = vec![T::default(); n * n];
    let columns = out.par_chunks_mut(n.max(1)).enumerate();
    columns.for_each(|(i, column)| {
        dispatch(
            #[inline(always)]
            || column_of(function, x, i, &mut column[i..]),
        );
    });
    out
}

/// k of point i with itself and those after it.
#[inline(always)]
fn column_of<T: Exponential>(function: KernelFunction, x: Points<'_, T>, i: usize, out: &mut [T]) {
    for (block, out) in out.chunks_mut(BLOCK).enumerate() {
        let sources = (x, i + block * BLOCK, out.len());
        let mut k = [[T::default(); BLOCK]];
        separations::<T, 1>(function, (x, i), sources, &mut k);
        let k = &mut k[0][..out.len()];
        apply_value(function, k);
        out.copy_from_slice(k);
    }
}

/// `out[i, d] = α · Σⱼ wⱼ · ∂k(xᵢ, yⱼ)/∂xᵢ_d`, row-major, derivatives with respect to scaled coordinates.
///
/// # Panics
/// When the lengths do not fit.
pub fn gradient<T: Exponential>(
    function: KernelFunction,
    x: Points<'_, T>,
    y: Points<'_, T>,
    w: &[T],
    alpha: f64,
    out: &mut [T],
) {
    let dims = x.dims();
    assert_eq!(out.len(), x.len * dims, "a gradient per target");
    assert_eq!(w.len(), y.len, "one weight per source");
    if dims == 0 {
        return;
    }
    out.par_chunks_mut(dims).enumerate().for_each(|(i, out)| {
        dispatch(
            #[inline(always)]
            || gradient_of(function, (x, i), y, w, alpha, out),
        );
    });
}

/// The sums of up to [`TILE`] targets from `first` on.
#[inline(always)]
fn sums_of<T: Exponential>(
    function: KernelFunction,
    (x, first, taken): (Points<'_, T>, usize, usize),
    y: Points<'_, T>,
    w: &[T],
) -> [f64; TILE] {
    let mut totals = [0.0; TILE];
    let mut k = [[T::default(); BLOCK]; TILE];
    for (block, w) in w.chunks(BLOCK).enumerate() {
        let from = block * BLOCK;
        if taken == TILE {
            separations::<T, TILE>(function, (x, first), (y, from, w.len()), &mut k);
        } else {
            for (a, k) in k[..taken].iter_mut().enumerate() {
                let own = std::array::from_mut(k);
                separations::<T, 1>(function, (x, first + a), (y, from, w.len()), own);
            }
        }
        for (total, k) in totals.iter_mut().zip(&mut k).take(taken) {
            let k = &mut k[..w.len()];
            apply_value(function, k);
            *total += dot(k, w);
        }
    }
    totals
}

#[inline(always)]
fn gradient_of<T: Exponential>(
    function: KernelFunction,
    (x, i): (Points<'_, T>, usize),
    y: Points<'_, T>,
    w: &[T],
    alpha: f64,
    out: &mut [T],
) {
    let mut totals = vec![0.0; out.len()];
    for (block, w) in w.chunks(BLOCK).enumerate() {
        let from = block * BLOCK;
        let mut slope = [[T::default(); BLOCK]];
        let mut along = [T::default(); BLOCK];
        separations::<T, 1>(function, (x, i), (y, from, w.len()), &mut slope);
        let (slope, along) = (&mut slope[0][..w.len()], &mut along[..w.len()]);
        apply_slope(function, slope);
        for (s, &w) in slope.iter_mut().zip(w) {
            *s = *s * w;
        }
        for (d, total) in totals.iter_mut().enumerate() {
            let own = x.coordinate(d, i);
            let others = &y.coordinates[d * y.len + from..][..w.len()];
            for (along, &other) in along.iter_mut().zip(others) {
                let difference = own - other;
                *along = match function {
                    KernelFunction::Laplace => difference.sign(),
                    _ => difference,
                };
            }
            *total += dot(slope, along);
        }
    }
    for (out, total) in out.iter_mut().zip(totals) {
        *out = T::narrow(alpha * total);
    }
}

/// s of the targets from `first` on and `len` sources from `from` on.
#[inline(always)]
fn separations<T: Exponential, const A: usize>(
    function: KernelFunction,
    (x, first): (Points<'_, T>, usize),
    (y, from, len): (Points<'_, T>, usize, usize),
    s: &mut [[T; BLOCK]; A],
) {
    let sources = (y, from, len);
    match function {
        KernelFunction::Laplace => {
            accumulate(x, first, sources, s, |difference, s| {
                s + difference.magnitude()
            });
        }
        _ => accumulate(x, first, sources, s, |difference, s| {
            difference.fused(difference, s)
        }),
    }
}

/// Σ over the coordinates, [`SUMS`] sources at a time: their sums stay in registers.
#[inline(always)]
fn accumulate<T: Exponential, const A: usize>(
    x: Points<'_, T>,
    first: usize,
    (y, from, len): (Points<'_, T>, usize, usize),
    s: &mut [[T; BLOCK]; A],
    add: impl Fn(T, T) -> T,
) {
    let dims = x.dims();
    for (group, start) in (0..len).step_by(SUMS).enumerate() {
        let count = (len - start).min(SUMS);
        let mut sums = [[T::default(); SUMS]; A];
        for d in 0..dims {
            let others = &y.coordinates[d * y.len + from + start..][..count];
            let others = match others.first_chunk::<SUMS>() {
                Some(others) => *others,
                None => padded(others),
            };
            for (a, sums) in sums.iter_mut().enumerate() {
                let own = x.coordinate(d, first + a);
                for (sum, other) in sums.iter_mut().zip(others) {
                    *sum = add(own - other, *sum);
                }
            }
        }
        for a in 0..A {
            s[a].as_chunks_mut::<SUMS>().0[group] = sums[a];
        }
    }
}

/// The last sources, and zeros.
#[inline(never)]
fn padded<T: Exponential>(others: &[T]) -> [T; SUMS] {
    let mut all = [T::default(); SUMS];
    all[..others.len()].copy_from_slice(others);
    all
}

#[inline(always)]
fn dot<T: Exponential>(a: &[T], b: &[T]) -> f64 {
    let (a_groups, a_rest) = a.as_chunks::<SUMS>();
    let (b_groups, b_rest) = b.as_chunks::<SUMS>();
    let mut sums = [T::default(); SUMS];
    for (a, b) in a_groups.iter().zip(b_groups) {
        for i in 0..SUMS {
            sums[i] = a[i].fused(b[i], sums[i]);
        }
    }
    let mut total: f64 = sums.into_iter().map(Into::into).sum();
    for (&a, &b) in a_rest.iter().zip(b_rest) {
        total += a.into() * b.into();
    }
    total
}

#[inline(always)]
fn each<T: Exponential>(s: &mut [T], f: impl Fn(T) -> T) {
    for s in s {
        *s = f(*s);
    }
}

/// s → k; the formulas are those of `gpu_kernels::kernel_sum::radial`.
#[inline(always)]
fn apply_value<T: Exponential>(function: KernelFunction, s: &mut [T]) {
    let (one, ln2, third) = constants();
    match function {
        KernelFunction::Gaussian | KernelFunction::Laplace => each(s, |s| s.decay()),
        KernelFunction::Matern12 => each(s, |s| s.root().decay()),
        KernelFunction::Matern32 => each(s, |s| {
            let t = s.root();
            t.fused(ln2, one) * t.decay()
        }),
        KernelFunction::Matern52 => each(s, |s| {
            let t = s.root();
            t.fused(t.fused(third, ln2), one) * t.decay()
        }),
        KernelFunction::Cauchy => each(s, |s| one / (one + s)),
        KernelFunction::InverseMultiquadric => each(s, |s| one / (one + s).root()),
    }
}

/// s → the factor of the gradient.
#[inline(always)]
fn apply_slope<T: Exponential>(function: KernelFunction, s: &mut [T]) {
    let (one, ln2, third) = constants::<T>();
    let zero = T::default();
    match function {
        KernelFunction::Gaussian => each(s, |s| zero - (ln2 + ln2) * s.decay()),
        KernelFunction::Laplace => each(s, |s| zero - ln2 * s.decay()),
        KernelFunction::Matern12 => each(s, |s| {
            let t = s.root();
            if s == zero {
                zero
            } else {
                zero - ln2 * t.decay() / t
            }
        }),
        KernelFunction::Matern32 => each(s, |s| zero - ln2 * ln2 * s.root().decay()),
        KernelFunction::Matern52 => each(s, |s| {
            let t = s.root();
            zero - third * t.fused(ln2, one) * t.decay()
        }),
        KernelFunction::Cauchy => each(s, |s| {
            let k = one / (one + s);
            zero - (k + k) * k
        }),
        KernelFunction::InverseMultiquadric => each(s, |s| {
            let k = one / (one + s).root();
            zero - k * k * k
        }),
    }
}

/// 1, ln 2 and (ln 2)²/3.
#[inline(always)]
fn constants<T: Exponential>() -> (T, T, T) {
    use std::f64::consts::LN_2;
    (T::ONE, T::narrow(LN_2), T::narrow(LN_2 * LN_2 / 3.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decay_is_two_to_the_minus_x() {
        for i in 0..12_000 {
            let x = i as f32 * 0.01;
            let exact = f64::exp2(-f64::from(x));
            assert!(
                (f64::from(decay_f32(x)) / exact - 1.0).abs() < 2.4e-7,
                "{x}"
            );
        }
        assert_eq!(
            [decay_f32(0.0), decay_f32(126.0), decay_f32(f32::INFINITY)],
            [1.0, 0.0, 0.0]
        );
        assert!(decay_f32(f32::NAN).is_nan());
    }
}
