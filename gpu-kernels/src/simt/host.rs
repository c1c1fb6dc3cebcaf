//! Arithmetic of the GPU on the host: correctly rounded, hence the GPU's bits.
//!
//! `core` has none of it on stable Rust, but every host has `std`, whose functions become single instructions where
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

/// √x, correctly rounded: the GPU's for x from 2⁻¹⁰⁰ on that are finite.
#[inline(always)]
pub fn root_f32(x: f32) -> f32 {
    f32::sqrt(x)
}

/// 1/x, correctly rounded: the GPU's for x from 2⁻¹²⁶ to 2¹²⁵.
#[inline(always)]
pub fn recip_f32(x: f32) -> f32 {
    1.0 / x
}

/// 2⁻ˣ; the GPU's is wrong by up to 2 units in the last place.
#[inline(always)]
pub fn decay_f32(x: f32) -> f32 {
    f32::exp2(-x)
}

/// √x; the GPU's is wrong by up to 1 unit in the last place.
#[inline(always)]
pub fn near_sqrt_f32(x: f32) -> f32 {
    f32::sqrt(x)
}

/// 1/√x; the GPU's is wrong by up to 2 units in the last place.
#[inline(always)]
pub fn near_rsqrt_f32(x: f32) -> f32 {
    1.0 / f32::sqrt(x)
}

/// 1/x; the GPU's is wrong by up to 1 unit in the last place.
#[inline(always)]
pub fn near_recip_f32(x: f32) -> f32 {
    1.0 / x
}

/// The nearest integer, ties to even.
#[inline(always)]
pub fn round_f32(value: f32) -> i64 {
    f32::round_ties_even(value) as i64
}

/// The nearest integer, ties to even.
#[inline(always)]
pub fn round_f64(value: f64) -> i64 {
    f64::round_ties_even(value) as i64
}

/// Four of the eight bytes of two words: byte i of the result is the one whose number the i-th four bits of `which` give.
#[inline(always)]
pub fn permute_bytes(low: u32, high: u32, which: u32) -> u32 {
    let both = low as u64 | (high as u64) << 32;
    let byte = |i: u32| (both >> (8 * (which >> (4 * i) & 7)) & 0xff) as u32;
    byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24
}
