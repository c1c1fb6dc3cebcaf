//! Numbers as the kernels see them: machine words, real numbers, 16-byte packs of them.

/// A value of 4 or 8 bytes that fits one register (or a pair) and can be moved bit by bit.
///
/// # Safety
/// `SIZE` is `size_of::<Self>()` (4 or 8), and `from_bits(to_bits(x))` gives `x` back, bit by bit.
pub unsafe trait Word: Copy + Default + Send + Sync + 'static {
    /// Bytes: 4 or 8.
    const SIZE: u32;
    /// Letter and width of the type in the names of accesses and diagnostics, such as `f32`.
    const NAME: &'static str;
    /// The bits, in the low end of 64.
    fn to_bits(self) -> u64;
    /// The value with these bits (the low `8 · SIZE` of them).
    fn from_bits(bits: u64) -> Self;
}

macro_rules! word {
    ($($t:ident: $to:expr, $from:expr;)*) => { $(
        // SAFETY: SIZE is taken from the type; the two conversions are inverse casts of its bits.
        unsafe impl Word for $t {
            const SIZE: u32 = size_of::<$t>() as u32;
            const NAME: &'static str = stringify!($t);
            #[inline(always)]
            fn to_bits(self) -> u64 { $to(self) }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self { $from(bits) }
        }
    )* };
}

word! {
    u32: |x| x as u64, |b| b as u32;
    i32: |x| x as u32 as u64, |b| b as u32 as i32;
    u64: |x| x, |b| b;
    i64: |x| x as u64, |b| b as i64;
    f32: |x: f32| f32::to_bits(x) as u64, |b| f32::from_bits(b as u32);
    f64: f64::to_bits, f64::from_bits;
}

/// A real number type that kernels compute with: `f32` or `f64`.
pub trait Real:
    Word
    + PartialOrd
    + core::ops::Add<Output = Self>
    + core::ops::Sub<Output = Self>
    + core::ops::Mul<Output = Self>
    + core::ops::Div<Output = Self>
    + core::ops::Neg<Output = Self>
{
    /// As many of these as fill a 16-byte load.
    type Pack: Pack<Self>;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// `self · b + c` with one rounding, the same bits on every device.
    fn fma(self, b: Self, c: Self) -> Self;
    /// Widens to f64.
    fn to_f64(self) -> f64;
    /// Rounds from f64.
    fn of_f64(value: f64) -> Self;
}

impl Real for f32 {
    type Pack = [f32; 4];
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    #[inline(always)]
    fn fma(self, b: f32, c: f32) -> f32 {
        crate::simt::fma_f32(self, b, c)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self as f64
    }
    #[inline(always)]
    fn of_f64(value: f64) -> f32 {
        value as f32
    }
}

impl Real for f64 {
    type Pack = [f64; 2];
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    #[inline(always)]
    fn fma(self, b: f64, c: f64) -> f64 {
        crate::simt::fma_f64(self, b, c)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn of_f64(value: f64) -> f64 {
        value
    }
}

/// The elements that one thread loads in one access: 16 bytes of them, or a single one.
pub trait Words<T: Word>: Copy + AsRef<[T]> + AsMut<[T]> + 'static {
    /// Number of elements.
    const LANES: usize;
    /// Builds the pack from its elements' bits (the first `LANES` of them).
    fn from_words(words: [u64; 4]) -> Self;
}

impl<T: Word, const L: usize> Words<T> for [T; L] {
    const LANES: usize = L;

    #[inline(always)]
    fn from_words(words: [u64; 4]) -> Self {
        core::array::from_fn(|i| T::from_bits(words[i]))
    }
}

/// [`Words`] that are computed with.
pub trait Pack<T: Real>: Words<T> {
    /// All zero.
    const ZERO: Self;
    /// `sum + self · other`, left to right, fused.
    fn dot(&self, other: &Self, sum: T) -> T;
    /// `into += self · factor`, element by element, fused.
    fn scale_add(&self, factor: T, into: &mut Self);
}

impl<T: Real, const L: usize> Pack<T> for [T; L] {
    const ZERO: Self = [T::ZERO; L];

    #[inline(always)]
    fn dot(&self, other: &Self, mut sum: T) -> T {
        for i in 0..L {
            sum = self[i].fma(other[i], sum);
        }
        sum
    }

    #[inline(always)]
    fn scale_add(&self, factor: T, into: &mut Self) {
        for i in 0..L {
            into[i] = self[i].fma(factor, into[i]);
        }
    }
}

/// The f32 of an IEEE 754 half, exact.
#[inline(always)]
pub fn half_to_f32(half: u32) -> f32 {
    let magnitude = (half & 0x7fff) << 13;
    let sign = (half & 0x8000) << 16;
    // Exponents differ by 112. A multiplication makes normal numbers of subnormal ones.
    const SCALE: f32 = f32::from_bits((112 + 127) << 23);
    let finite = (f32::from_bits(magnitude) * SCALE).to_bits();
    let bits = if half & 0x7c00 == 0x7c00 {
        magnitude | 0x7f80_0000
    } else {
        finite
    };
    f32::from_bits(sign | bits)
}

/// The bits of the nearest IEEE 754 half, of two the even one.
#[inline(always)]
pub fn half_of_f32(x: f32) -> u32 {
    let sign = x.to_bits() >> 16 & 0x8000;
    let bits = x.to_bits() & 0x7fff_ffff;
    let magnitude = f32::from_bits(bits);
    // From the middle between the largest half and the next power of two on, and below the smallest normal half.
    const TOO_LARGE: f32 = 65_520.0;
    const NORMAL: f32 = 1.0 / 16_384.0;
    let half = if magnitude.is_nan() {
        0x7fff
    } else if magnitude >= TOO_LARGE {
        0x7c00
    } else if magnitude < NORMAL {
        // Subnormal halves count 2⁻²⁴, the distance of f32 numbers from 0.5 to 1.
        (magnitude + 0.5).to_bits() - 0.5_f32.to_bits()
    } else {
        ((bits + 0xfff + (bits >> 13 & 1)) >> 13) - (112 << 10)
    };
    sign | half
}

/// The f32 of a bfloat16, exact.
#[inline(always)]
pub fn bfloat_to_f32(bits: u32) -> f32 {
    f32::from_bits(bits << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_the_nearest() {
        for half in 0..0x7c00_u32 {
            let (x, next) = (half_to_f32(half), half_to_f32(half + 1));
            assert_eq!(half_of_f32(x), half);
            assert_eq!(half_of_f32(-x), half | 0x8000);
            if half + 1 < 0x7c00 {
                let middle = x + (next - x) / 2.0;
                assert_eq!(
                    half_of_f32(middle),
                    half + (half & 1),
                    "between {x} and {next}"
                );
                assert_eq!(half_of_f32(middle.next_down()), half);
                assert_eq!(half_of_f32(middle.next_up()), half + 1);
            }
        }
        assert_eq!(half_of_f32(65_519.99), 0x7bff);
        assert_eq!(half_of_f32(65_520.0), 0x7c00);
        assert_eq!(half_of_f32(f32::NEG_INFINITY), 0xfc00);
        assert!(half_to_f32(half_of_f32(f32::NAN)).is_nan());
    }
}
