//! Fused multiply-add on the host: correctly rounded, hence the GPU's bits.
//!
//! `core` has no stable `mul_add`, but every host target links a C math library.

mod c {
    unsafe extern "C" {
        pub safe fn fma(a: f64, b: f64, c: f64) -> f64;
        pub safe fn fmaf(a: f32, b: f32, c: f32) -> f32;
    }
}

/// `a · b + c` with one rounding.
pub fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    c::fmaf(a, b, c)
}

/// `a · b + c` with one rounding.
pub fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    c::fma(a, b, c)
}
