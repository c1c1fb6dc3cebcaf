//! SIMD vectors of a scalar type: one vocabulary for f32 and f64 over whatever `pulp` dispatches to.

use pulp::Simd;

/// The widest vector there is, in elements (16 × f32 with AVX-512).
pub const MAX_LANES: usize = 16;

/// Bytes that memory hands over at a time.
const LINE: usize = 64;

/// How many bytes ahead of their use are requested from the nearest cache.
const NEAR: usize = 4096;

/// How many bytes ahead of their use are requested from the second-level cache.
///
/// On a processor with 14 GB/s for each of its threads memory takes 200 ns and more, in which a thread uses 3 KB;
/// and the nearest cache has too few requests under way for that.
const FAR: usize = 12288;

/// Asks for the lines that lie ahead of the `bytes` from `address` on: some for the nearest cache and, further
/// on, for the second-level one.
#[inline(always)]
pub fn prefetch(address: *const u8, bytes: usize) {
    for line in 0..bytes / LINE {
        let address = address.wrapping_add(line * LINE);
        prefetch_near(address.wrapping_add(NEAR));
        prefetch_far(address.wrapping_add(FAR));
    }
}

/// Asks for the `N` elements from `start` on, which may lie beyond the slice; `N` of them fill whole lines.
#[inline(always)]
pub fn prefetch_elements<T, const N: usize>(values: &[T], start: usize) {
    let first = values.as_ptr().wrapping_add(start).cast::<u8>();
    for line in 0..N * size_of::<T>() / LINE {
        prefetch_near(first.wrapping_add(line * LINE));
    }
}

/// Asks for the line of `address`, which need not be valid. A hint; does nothing on processors for which the
/// standard library has none.
#[inline(always)]
fn prefetch_near(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch neither faults nor changes anything, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// As [`prefetch_near`], into the second-level cache.
#[inline(always)]
fn prefetch_far(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch neither faults nor changes anything, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// What the kernels do with vectors of `Self`. Every function inlines into the dispatched caller.
pub trait Lanes: Copy + 'static {
    /// A vector of `Self`.
    type Vector<S: Simd>: Copy;
    /// Selects lanes of a vector.
    type Mask<S: Simd>: Copy;

    /// Elements per vector.
    fn count<S: Simd>() -> usize;
    /// The whole vectors at the head of a slice; what is left over is dropped.
    fn vectors<S: Simd>(values: &[Self]) -> &[Self::Vector<S>];
    /// As [`vectors`](Self::vectors), to be written to.
    fn vectors_mut<S: Simd>(values: &mut [Self]) -> &mut [Self::Vector<S>];
    /// All lanes equal `value`.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// `a + b`.
    fn add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a·b + c`, rounded once where the processor can.
    fn mul_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// `a·b + c` of single elements, rounded once where the processor can.
    fn mul_add_one<S: Simd>(simd: S, a: Self, b: Self, c: Self) -> Self;
    /// `a + b` of single elements.
    fn add_one(a: Self, b: Self) -> Self;
    /// The sum of all lanes.
    fn sum<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
    /// Selects the first `len` lanes.
    fn first<S: Simd>(simd: S, len: usize) -> Self::Mask<S>;
    /// The selected lanes of `a`, zero elsewhere.
    fn keep<S: Simd>(simd: S, mask: Self::Mask<S>, a: Self::Vector<S>) -> Self::Vector<S>;
}

macro_rules! lanes {
    ($scalar:ty, $vector:ident, $mask:ident, $lanes:ident, $index:ty, $as_simd:ident, $as_mut_simd:ident,
     $splat:ident, $add:ident, $mul_add:ident, $sum:ident, $between:ident, $select:ident) => {
        impl Lanes for $scalar {
            type Vector<S: Simd> = S::$vector;
            type Mask<S: Simd> = S::$mask;

            #[inline(always)]
            fn count<S: Simd>() -> usize {
                S::$lanes
            }
            #[inline(always)]
            fn vectors<S: Simd>(values: &[Self]) -> &[S::$vector] {
                S::$as_simd(values).0
            }
            #[inline(always)]
            fn vectors_mut<S: Simd>(values: &mut [Self]) -> &mut [S::$vector] {
                S::$as_mut_simd(values).0
            }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> S::$vector {
                simd.$splat(value)
            }
            #[inline(always)]
            fn add<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$add(a, b)
            }
            #[inline(always)]
            fn mul_add<S: Simd>(
                simd: S,
                a: S::$vector,
                b: S::$vector,
                c: S::$vector,
            ) -> S::$vector {
                simd.$mul_add(a, b, c)
            }
            #[inline(always)]
            fn mul_add_one<S: Simd>(_: S, a: Self, b: Self, c: Self) -> Self {
                // Without an instruction for it, `mul_add` is a slow library call.
                if S::IS_SCALAR {
                    a * b + c
                } else {
                    a.mul_add(b, c)
                }
            }
            #[inline(always)]
            fn add_one(a: Self, b: Self) -> Self {
                a + b
            }
            #[inline(always)]
            fn sum<S: Simd>(simd: S, a: S::$vector) -> Self {
                simd.$sum(a)
            }
            #[inline(always)]
            fn first<S: Simd>(simd: S, len: usize) -> S::$mask {
                simd.$between(0, len.min(MAX_LANES) as $index).mask()
            }
            #[inline(always)]
            fn keep<S: Simd>(simd: S, mask: S::$mask, a: S::$vector) -> S::$vector {
                simd.$select(mask, a, simd.$splat(0.0))
            }
        }
    };
}

lanes!(
    f32,
    f32s,
    m32s,
    F32_LANES,
    u32,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    add_f32s,
    mul_add_e_f32s,
    reduce_sum_f32s,
    mask_between_m32s,
    select_f32s
);
lanes!(
    f64,
    f64s,
    m64s,
    F64_LANES,
    u64,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    add_f64s,
    mul_add_e_f64s,
    reduce_sum_f64s,
    mask_between_m64s,
    select_f64s
);
