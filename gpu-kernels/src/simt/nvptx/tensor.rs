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

/// See [`Cta::halves`](crate::Cta::halves).
#[inline(always)]
pub(super) fn halves([low, high]: [f32; 2]) -> u32 {
    let word: u32;
    // SAFETY: arithmetic.
    unsafe {
        asm!("cvt.rn.f16x2.f32 {}, {}, {};", out(reg32) word, in(reg32) high, in(reg32) low,
            options(pure, nomem, nostack));
    }
    word
}

/// See [`Cta::multiply_halves`](crate::Cta::multiply_halves).
#[inline(always)]
pub(super) fn multiply_halves(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
    let (c0, c1, c2, c3): (f32, f32, f32, f32);
    // SAFETY: arithmetic on the registers of a warp, all of whose lanes call it: the caller's duty.
    unsafe {
        asm!("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{},{},{},{}}}, {{{},{},{},{}}}, {{{},{}}}, {{{},{},{},{}}};",
            out(reg32) c0, out(reg32) c1, out(reg32) c2, out(reg32) c3,
            in(reg32) a[0], in(reg32) a[1], in(reg32) a[2], in(reg32) a[3], in(reg32) b[0], in(reg32) b[1],
            in(reg32) c[0], in(reg32) c[1], in(reg32) c[2], in(reg32) c[3],
            options(pure, nomem, nostack));
    }
    [c0, c1, c2, c3]
}

/// See [`Cta::multiply_f64`](crate::Cta::multiply_f64).
#[cfg(gpu_at_least = "sm_90")]
#[inline(always)]
pub(super) fn multiply_f64(a: [f64; 8], b: [f64; 4], c: [f64; 4]) -> [f64; 4] {
    let (c0, c1, c2, c3): (f64, f64, f64, f64);
    // SAFETY: arithmetic on the registers of a warp, all of whose lanes call it: the caller's duty.
    unsafe {
        asm!("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {{{},{},{},{}}}, {{{},{},{},{},{},{},{},{}}}, {{{},{},{},{}}}, {{{},{},{},{}}};",
            out(reg64) c0, out(reg64) c1, out(reg64) c2, out(reg64) c3,
            in(reg64) a[0], in(reg64) a[1], in(reg64) a[2], in(reg64) a[3],
            in(reg64) a[4], in(reg64) a[5], in(reg64) a[6], in(reg64) a[7],
            in(reg64) b[0], in(reg64) b[1], in(reg64) b[2], in(reg64) b[3],
            in(reg64) c[0], in(reg64) c[1], in(reg64) c[2], in(reg64) c[3],
            options(pure, nomem, nostack));
    }
    [c0, c1, c2, c3]
}

/// [`Cta::multiply_f64`](crate::Cta::multiply_f64) where instructions take 8 × 4 elements of A.
#[cfg(not(gpu_at_least = "sm_90"))]
#[inline(always)]
pub(super) fn multiply_f64(a: [f64; 8], b: [f64; 4], c: [f64; 4]) -> [f64; 4] {
    let (mut upper, mut lower) = ([c[0], c[1]], [c[2], c[3]]);
    for i in 0..4 {
        upper = multiply_quarter_f64(a[2 * i], b[i], upper);
        lower = multiply_quarter_f64(a[2 * i + 1], b[i], lower);
    }
    [upper[0], upper[1], lower[0], lower[1]]
}

/// 8 × 4 times 4 × 8.
#[cfg(not(gpu_at_least = "sm_90"))]
#[inline(always)]
fn multiply_quarter_f64(a: f64, b: f64, c: [f64; 2]) -> [f64; 2] {
    let (c0, c1): (f64, f64);
    // SAFETY: as above.
    unsafe {
        asm!("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{{},{}}}, {{{}}}, {{{}}}, {{{},{}}};",
            out(reg64) c0, out(reg64) c1, in(reg64) a, in(reg64) b, in(reg64) c[0], in(reg64) c[1],
            options(pure, nomem, nostack));
    }
    [c0, c1]
}

/// See [`Cta::shared_read_matrices`](crate::Cta::shared_read_matrices).
///
/// # Safety
/// `at` is a multiple of 16 in shared memory, with 16 bytes that may be read; all lanes of the warp call it.
#[inline(always)]
pub(super) unsafe fn read_matrices(at: u32) -> [u32; 4] {
    let (a, b, c, d): (u32, u32, u32, u32);
    // SAFETY: the caller's duty.
    unsafe {
        asm!("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{},{},{},{}}}, [{}];",
            out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg32) at, options(nostack));
    }
    [a, b, c, d]
}

/// One function for each shape, type of sums, types of factors, and pair of lanes that have the metadata.
macro_rules! sparse_products {
    ($( $name:ident: $shape:literal, $sum:ty = $sums:literal, $factors:literal, $pair:literal; )*) => { $(
        #[inline(always)]
        fn $name(a: [u32; 4], b: [u32; 4], c: [$sum; 4], metadata: u32) -> [$sum; 4] {
            let (c0, c1, c2, c3): ($sum, $sum, $sum, $sum);
            // SAFETY: arithmetic on the registers of a warp, all of whose lanes call it: the caller's duty.
            unsafe {
                asm!(concat!("mma.sp::ordered_metadata.sync.aligned.", $shape, ".row.col.", $sums, ".", $factors, ".", $sums,
                    " {{{},{},{},{}}}, {{{},{},{},{}}}, {{{},{},{},{}}}, {{{},{},{},{}}}, {}, ", $pair, ";"),
                    out(reg32) c0, out(reg32) c1, out(reg32) c2, out(reg32) c3,
                    in(reg32) a[0], in(reg32) a[1], in(reg32) a[2], in(reg32) a[3],
                    in(reg32) b[0], in(reg32) b[1], in(reg32) b[2], in(reg32) b[3],
                    in(reg32) c[0], in(reg32) c[1], in(reg32) c[2], in(reg32) c[3],
                    in(reg32) metadata, options(pure, nomem, nostack));
            }
            [c0, c1, c2, c3]
        }
    )* };
}

sparse_products! {
    multiply_sparse_s8_s8: "m16n8k64", i32 = "s32", "s8.s8", "0x0";
    multiply_sparse_s8_u8: "m16n8k64", i32 = "s32", "s8.u8", "0x0";
    multiply_sparse_u8_s8: "m16n8k64", i32 = "s32", "u8.s8", "0x0";
    multiply_sparse_u8_u8: "m16n8k64", i32 = "s32", "u8.u8", "0x0";
    multiply_sparse_f16_first: "m16n8k32", f32 = "f32", "f16.f16", "0x0";
    multiply_sparse_f16_second: "m16n8k32", f32 = "f32", "f16.f16", "0x1";
    multiply_sparse_bf16_first: "m16n8k32", f32 = "f32", "bf16.bf16", "0x0";
    multiply_sparse_bf16_second: "m16n8k32", f32 = "f32", "bf16.bf16", "0x1";
}

/// See [`Cta::multiply_sparse_bytes`](crate::Cta::multiply_sparse_bytes).
#[inline(always)]
pub(super) fn multiply_sparse<const A: bool, const B: bool>(
    a: [u32; 4],
    b: [u32; 4],
    c: [i32; 4],
    metadata: u32,
) -> [i32; 4] {
    match (A, B) {
        (true, true) => multiply_sparse_s8_s8(a, b, c, metadata),
        (true, false) => multiply_sparse_s8_u8(a, b, c, metadata),
        (false, true) => multiply_sparse_u8_s8(a, b, c, metadata),
        (false, false) => multiply_sparse_u8_u8(a, b, c, metadata),
    }
}

/// See [`Cta::multiply_sparse_halves`](crate::Cta::multiply_sparse_halves).
#[inline(always)]
pub(super) fn multiply_sparse_halves<const BRAIN: bool, const PAIR: u32>(
    a: [u32; 4],
    b: [u32; 4],
    c: [f32; 4],
    metadata: u32,
) -> [f32; 4] {
    match (BRAIN, PAIR) {
        (false, 0) => multiply_sparse_f16_first(a, b, c, metadata),
        (false, _) => multiply_sparse_f16_second(a, b, c, metadata),
        (true, 0) => multiply_sparse_bf16_first(a, b, c, metadata),
        (true, _) => multiply_sparse_bf16_second(a, b, c, metadata),
    }
}

/// Four of the eight bytes of two words: byte i of the result is the one whose number the i-th four bits of `which` give.
#[inline(always)]
pub fn permute_bytes(low: u32, high: u32, which: u32) -> u32 {
    let bytes: u32;
    // SAFETY: arithmetic.
    unsafe {
        asm!("prmt.b32 {}, {}, {}, {};", out(reg32) bytes, in(reg32) low, in(reg32) high,
            in(reg32) which, options(pure, nomem, nostack));
    }
    bytes
}
