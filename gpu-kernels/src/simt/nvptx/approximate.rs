//! Functions of one f32 that are one or two approximate instructions.

use core::arch::asm;

/// A function of one f32 that is one approximate instruction; subnormal numbers are flushed to zero.
macro_rules! approximate {
    ($(#[$doc:meta])* $name:ident, $instruction:literal) => {
        $(#[$doc])*
        #[inline(always)]
        pub fn $name(x: f32) -> f32 {
            let y: f32;
            // SAFETY: arithmetic on registers.
            unsafe {
                asm!(concat!($instruction, ".approx.ftz.f32 {}, {};"), out(reg32) y, in(reg32) x,
                    options(pure, nomem, nostack));
            }
            y
        }
    };
}

/// 2⁻ˣ to 2 units in the last place; results and arguments that are subnormal are flushed to zero.
#[inline(always)]
pub fn decay_f32(x: f32) -> f32 {
    let y: f32;
    // SAFETY: arithmetic on registers. The assembler makes the negation part of the second instruction; written
    // in Rust it becomes one of its own.
    unsafe {
        asm!("{{ .reg .f32 t; neg.f32 t, {}; ex2.approx.ftz.f32 {}, t; }}",
            in(reg32) x, out(reg32) y, options(pure, nomem, nostack));
    }
    y
}

approximate! {
    /// √x to 1 unit in the last place.
    near_sqrt_f32, "sqrt"
}
approximate! {
    /// 1/√x to 2 units in the last place.
    near_rsqrt_f32, "rsqrt"
}
approximate! {
    /// 1/x to 1 unit in the last place.
    near_recip_f32, "rcp"
}
