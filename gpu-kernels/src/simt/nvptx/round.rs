//! Rounding to integers, and roots that are rounded correctly.

use core::arch::asm;

use super::{near_recip_f32, near_rsqrt_f32};

/// The nearest integer, ties to even.
#[inline(always)]
pub fn round_f32(value: f32) -> i64 {
    let whole: i64;
    // SAFETY: a conversion between registers.
    unsafe {
        asm!("cvt.rni.s64.f32 {}, {};", out(reg64) whole, in(reg32) value, options(pure, nomem, nostack));
    }
    whole
}

/// The nearest integer, ties to even.
#[inline(always)]
pub fn round_f64(value: f64) -> i64 {
    let whole: i64;
    // SAFETY: a conversion between registers.
    unsafe {
        asm!("cvt.rni.s64.f64 {}, {};", out(reg64) whole, in(reg64) value, options(pure, nomem, nostack));
    }
    whole
}

/// √x, correctly rounded.
#[inline(always)]
pub fn sqrt_f32(x: f32) -> f32 {
    core::intrinsics::sqrtf32(x)
}

/// √x, correctly rounded.
#[inline(always)]
pub fn sqrt_f64(x: f64) -> f64 {
    core::intrinsics::sqrtf64(x)
}

/// √x, correctly rounded, for finite x from 2⁻¹⁰⁰ on: the instructions of `sqrt.rn` without its branch for other numbers, of which
/// infinity and NaN give NaN, and 0, too.
#[inline(always)]
pub fn root_f32(x: f32) -> f32 {
    let near = near_rsqrt_f32(x);
    let (root, half) = (x * near, near * 0.5);
    let rest = fma_f32(-root, root, x);
    fma_f32(rest, half, root)
}

/// 1/x, correctly rounded, for x from 2⁻¹²⁶ to 2¹²⁵: the instructions of `rcp.rn` without its branch for other numbers.
#[inline(always)]
pub fn recip_f32(x: f32) -> f32 {
    let near = near_recip_f32(x);
    let error = fma_f32(x, near, -1.0);
    fma_f32(near, -error, near)
}

/// `a · b + c` with one rounding.
#[inline(always)]
pub fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    core::intrinsics::fmaf32(a, b, c)
}

/// `a · b + c` with one rounding.
#[inline(always)]
pub fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    core::intrinsics::fmaf64(a, b, c)
}
