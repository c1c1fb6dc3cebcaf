//! Hardware, and what stands in for it on the host. Only `nvptx` knows instructions.

#[cfg(target_arch = "nvptx64")]
pub mod nvptx;

#[cfg(target_arch = "nvptx64")]
pub use nvptx::{
    decay_f32, fma_f32, fma_f64, near_recip_f32, near_rsqrt_f32, near_sqrt_f32, permute_bytes,
    recip_f32, root_f32, round_f32, round_f64, sqrt_f32, sqrt_f64,
};

#[cfg(not(target_arch = "nvptx64"))]
mod host;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::{
    decay_f32, fma_f32, fma_f64, near_recip_f32, near_rsqrt_f32, near_sqrt_f32, permute_bytes,
    recip_f32, root_f32, round_f32, round_f64, sqrt_f32, sqrt_f64,
};
