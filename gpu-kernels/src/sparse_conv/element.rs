//! What is convolved: how values are stored, and what their products are added in.

use crate::cta::Cta;
use crate::scalar::{Real, Word, bfloat_to_f32, half_to_f32};

/// A number that products are added in.
pub trait Accumulator: Word + PartialOrd + core::fmt::Debug {
    /// 0.
    const ZERO: Self;
    /// The sum; integers wrap, which the host's bound rules out.
    fn plus(self, other: Self) -> Self;
    /// The quotient by a count; of integers it is rounded towards zero.
    fn over(self, count: u32) -> Self;
    /// The larger one; a NaN is larger than all.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        // The second comparison is true of a NaN alone.
        #[allow(clippy::eq_op)]
        if other > self || other != other {
            other
        } else {
            self
        }
    }
    /// max(0, self), NaN where it is one.
    #[inline(always)]
    fn rectified(self) -> Self {
        if self < Self::ZERO { Self::ZERO } else { self }
    }
}

macro_rules! integer_accumulator {
    ($($t:ident)*) => { $(
        impl Accumulator for $t {
            const ZERO: $t = 0;
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn over(self, count: u32) -> $t {
                self.wrapping_div(count as $t)
            }
        }
    )* };
}

macro_rules! real_accumulator {
    ($($t:ident)*) => { $(
        impl Accumulator for $t {
            const ZERO: $t = 0.0;
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                self + other
            }
            #[inline(always)]
            fn over(self, count: u32) -> $t {
                self / count as $t
            }
        }
    )* };
}

integer_accumulator!(i32 i64);
real_accumulator!(f32 f64);

/// The type of a layer: of its inputs and filters, and of its sums.
pub trait Element: Copy + core::fmt::Debug + Send + Sync + 'static {
    /// The word in which inputs are stored, one or several in each.
    type Stored: Word;
    /// Inputs of a stored word, the first in its lowest bits.
    const PER_WORD: u32;
    /// An input or a weight as it is multiplied.
    type Wide: Word + PartialEq + core::fmt::Debug;
    /// What products are added in.
    type Acc: Accumulator;
    /// The word of the packed format.
    type Packed: Word;
    /// Pieces that tensor cores multiply: bytes of an integer, a half as a whole; 0 of numbers that they do not.
    const PIECES: usize;
    /// Bytes of a piece.
    const PIECE_BYTES: u32;
    /// What tensor cores add products of pieces in.
    type Part: Copy + Default;

    /// Input number `lane` of a word.
    fn widen(word: Self::Stored, lane: u32) -> Self::Wide;
    /// `x · w + sum`; one rounding, or none.
    fn multiply_add(x: Self::Wide, w: Self::Wide, sum: Self::Acc) -> Self::Acc;
    /// The value in a packed word, above `shift` bits.
    fn unpack(word: Self::Packed, shift: u32) -> Self::Wide;
    /// The bits of input number `lane` of a word, of which pieces are the lowest.
    #[inline(always)]
    fn bits(_word: Self::Stored, _lane: u32) -> u32 {
        0
    }
    /// The sum of products of pieces: of the low ones, of one low and one high, of the high ones.
    #[inline(always)]
    fn of_pieces(_sums: [Self::Part; 3]) -> Self::Acc {
        Self::Acc::ZERO
    }
    /// `a · b + c` of a warp's matrices of pieces, with the metadata of 16 rows of 32, the first or the second; `signed`
    /// says of which factor the pieces have the sign. See [`Cta::multiply_sparse_bytes`] and
    /// [`Cta::multiply_sparse_halves`].
    #[inline(always)]
    #[track_caller]
    fn multiply_sparse<C: Cta>(
        _cta: &C,
        _factors: [[u32; 4]; 2],
        c: [Self::Part; 4],
        _metadata: ([u32; 2], usize),
        _signed: [bool; 2],
    ) -> [Self::Part; 4] {
        c
    }
    /// A number as a sum.
    fn sum_of(value: Self::Wide) -> Self::Acc;
}

macro_rules! integer {
    ($( #[$doc:meta] $name:ident: $value:ident in $acc:ident, $per_word:literal;)*) => { $(
        #[$doc]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name;

        impl Element for $name {
            type Stored = u32;
            const PER_WORD: u32 = $per_word;
            type Wide = i32;
            type Acc = $acc;
            type Packed = u32;
            const PIECES: usize = size_of::<$value>();
            const PIECE_BYTES: u32 = 1;
            type Part = i32;

            #[inline(always)]
            fn widen(word: u32, lane: u32) -> i32 {
                (word >> (lane * $value::BITS)) as $value as i32
            }
            #[inline(always)]
            fn multiply_add(x: i32, w: i32, sum: $acc) -> $acc {
                // The product of two 16-bit numbers has at most 31 bits.
                sum.wrapping_add((x * w) as $acc)
            }
            #[inline(always)]
            fn unpack(word: u32, shift: u32) -> i32 {
                (word as i32) >> shift
            }
            #[inline(always)]
            fn bits(word: u32, lane: u32) -> u32 {
                Self::widen(word, lane) as u32
            }
            #[inline(always)]
            fn of_pieces([low, mixed, high]: [i32; 3]) -> $acc {
                let (low, mixed, high) = (low as $acc, mixed as $acc, high as $acc);
                low.wrapping_add(mixed.wrapping_shl(8)).wrapping_add(high.wrapping_shl(16))
            }
            #[inline(always)]
            #[track_caller]
            fn multiply_sparse<C: Cta>(
                cta: &C,
                [a, b]: [[u32; 4]; 2],
                c: [i32; 4],
                (metadata, rows): ([u32; 2], usize),
                signed: [bool; 2],
            ) -> [i32; 4] {
                let places = metadata[rows];
                match signed {
                    [true, true] => cta.multiply_sparse_bytes::<true, true>(a, b, c, places),
                    [true, false] => cta.multiply_sparse_bytes::<true, false>(a, b, c, places),
                    [false, true] => cta.multiply_sparse_bytes::<false, true>(a, b, c, places),
                    [false, false] => cta.multiply_sparse_bytes::<false, false>(a, b, c, places),
                }
            }
            #[inline(always)]
            fn sum_of(value: i32) -> $acc {
                value as $acc
            }
        }
    )* };
}

integer! {
    /// 8-bit integers in 32-bit sums.
    I8: i8 in i32, 4;
    /// 8-bit integers in 64-bit sums.
    I8Wide: i8 in i64, 4;
    /// 16-bit integers in 32-bit sums.
    I16: i16 in i32, 2;
    /// 16-bit integers in 64-bit sums.
    I16Wide: i16 in i64, 2;
}

macro_rules! short_float {
    ($( #[$doc:meta] $name:ident by $decode:ident, brain $brain:literal;)*) => { $(
        #[$doc]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name;

        impl Element for $name {
            type Stored = u32;
            const PER_WORD: u32 = 2;
            type Wide = f32;
            type Acc = f32;
            type Packed = u32;
            const PIECES: usize = 1;
            const PIECE_BYTES: u32 = 2;
            type Part = f32;

            #[inline(always)]
            fn widen(word: u32, lane: u32) -> f32 {
                $decode(word >> (lane * 16) & 0xffff)
            }
            #[inline(always)]
            fn multiply_add(x: f32, w: f32, sum: f32) -> f32 {
                x.fma(w, sum)
            }
            #[inline(always)]
            fn unpack(word: u32, shift: u32) -> f32 {
                $decode(word >> shift & 0xffff)
            }
            #[inline(always)]
            fn bits(word: u32, lane: u32) -> u32 {
                word >> (lane * 16) & 0xffff
            }
            #[inline(always)]
            fn of_pieces([sum, ..]: [f32; 3]) -> f32 {
                sum
            }
            #[inline(always)]
            #[track_caller]
            fn multiply_sparse<C: Cta>(
                cta: &C,
                [a, b]: [[u32; 4]; 2],
                c: [f32; 4],
                ([places, _], rows): ([u32; 2], usize),
                _signed: [bool; 2],
            ) -> [f32; 4] {
                match rows {
                    0 => cta.multiply_sparse_halves::<$brain, 0>(a, b, c, places),
                    _ => cta.multiply_sparse_halves::<$brain, 1>(a, b, c, places),
                }
            }
            #[inline(always)]
            fn sum_of(value: f32) -> f32 {
                value
            }
        }
    )* };
}

short_float! {
    /// IEEE 754 halves in f32 sums.
    F16 by half_to_f32, brain false;
    /// bfloat16 in f32 sums.
    Bf16 by bfloat_to_f32, brain true;
}

macro_rules! float {
    ($($t:ident)*) => { $(
        impl Element for $t {
            type Stored = $t;
            const PER_WORD: u32 = 1;
            type Wide = $t;
            type Acc = $t;
            type Packed = u64;
            const PIECES: usize = 0;
            const PIECE_BYTES: u32 = size_of::<$t>() as u32;
            type Part = $t;

            #[inline(always)]
            fn widen(word: $t, _: u32) -> $t {
                word
            }
            #[inline(always)]
            fn multiply_add(x: $t, w: $t, sum: $t) -> $t {
                x.fma(w, sum)
            }
            #[inline(always)]
            fn unpack(word: u64, shift: u32) -> $t {
                f32::from_bits((word >> shift) as u32) as $t
            }
            #[inline(always)]
            fn sum_of(value: $t) -> $t {
                value
            }
        }
    )* };
}

float!(f32 f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_those_of_ieee_754() {
        for (bits, value) in [
            (0x0000, 0.0_f32),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65_504.0),
            (0x0001, 5.960_464_5e-8),
            (0x0400, 6.103_515_6e-5),
            (0x7c00, f32::INFINITY),
            (0xfc00, f32::NEG_INFINITY),
        ] {
            assert_eq!(half_to_f32(bits), value, "{bits:#x}");
        }
        assert!(half_to_f32(0x7e00).is_nan());
        assert!(half_to_f32(0x8000).is_sign_negative());
        assert_eq!(bfloat_to_f32(0x3fc0), 1.5);
    }

    #[test]
    fn pieces_make_the_product() {
        for (x, w) in [(-32_768, -32_768), (32_767, -32_768), (-1, 255), (300, -7)] {
            let (xl, xh, wl, wh) = (x & 255, x >> 8, w & 255, w >> 8);
            let sums = [xl * wl, xl * wh + xh * wl, xh * wh];
            assert_eq!(I16::of_pieces(sums), x * w);
            assert_eq!(I16Wide::of_pieces(sums), i64::from(x) * i64::from(w));
        }
    }

    #[test]
    fn a_nan_is_the_largest() {
        assert!(f32::NAN.larger(1.0).is_nan());
        assert!(1.0_f32.larger(f32::NAN).is_nan());
        assert!(f32::NAN.rectified().is_nan());
        assert_eq!((-7_i32).over(2), -3);
    }
}
