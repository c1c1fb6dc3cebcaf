//! Tensor cores, as instructions of a warp.

use core::arch::asm;

/// The nearest number with 10 bits after the point, of two the even one.
#[cfg(gpu_at_least = "sm_90")]
#[inline(always)]
pub(super) fn round_tf32(x: f32) -> f32 {
    let rounded: u32;
    // SAFETY: arithmetic.
    unsafe {
        asm!("cvt.rn.tf32.f32 {}, {};", out(reg32) rounded, in(reg32) x,
            options(pure, nomem, nostack));
    }
    f32::from_bits(rounded)
}

/// See [`Cta::multiply_tf32`](crate::Cta::multiply_tf32).
#[inline(always)]
pub(super) fn multiply_tf32(a: [f32; 4], b: [f32; 2], c: [f32; 4]) -> [f32; 4] {
    let (c0, c1, c2, c3): (f32, f32, f32, f32);
    let [a0, a1, a2, a3] = a.map(f32::to_bits);
    let [b0, b1] = b.map(f32::to_bits);
    // SAFETY: arithmetic on the registers of a warp, all of whose lanes call it: the caller's duty.
    unsafe {
        asm!("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{{},{},{},{}}}, {{{},{},{},{}}}, {{{},{}}}, {{{},{},{},{}}};",
            out(reg32) c0, out(reg32) c1, out(reg32) c2, out(reg32) c3,
            in(reg32) a0, in(reg32) a1, in(reg32) a2, in(reg32) a3, in(reg32) b0, in(reg32) b1,
            in(reg32) c[0], in(reg32) c[1], in(reg32) c[2], in(reg32) c[3],
            options(pure, nomem, nostack));
    }
    [c0, c1, c2, c3]
}
