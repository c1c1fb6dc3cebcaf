//! Arithmetic of the GPU on the host: correctly rounded, hence the GPU's bits.
//!
//! `core` has neither on stable Rust, but every host has `std`, whose functions become single instructions where
//! the caller is compiled for a processor that has them.

extern crate std;

/// `a · b + c` with one rounding.
#[inline(always)]
pub fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    f32::mul_add(a, b, c)
}

/// `a · b + c` with one rounding.
#[inline(always)]
pub fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    f64::mul_add(a, b, c)
}

/// √x, correctly rounded.
#[inline(always)]
pub fn sqrt_f32(x: f32) -> f32 {
    f32::sqrt(x)
}

/// √x, correctly rounded.
#[inline(always)]
pub fn sqrt_f64(x: f64) -> f64 {
    f64::sqrt(x)
}
