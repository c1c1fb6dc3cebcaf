//! The elements of a vector at 16 places: loaded one by one and put together, or gathered by one instruction.
//!
//! Both give the same elements, so that results do not depend on which is taken. One by one an element takes its load, the
//! extraction of its place and a shuffle. An Intel core does one shuffle a cycle while its registers of 512 bits are in use, for
//! both of its threads, and a gather needs none of them: on 16 threads of a Xeon of the fifth generation the fused product over
//! 1,000 columns takes 0.9 of the time by gathers, over 4,000 to 40,000 columns 0.96 to 1.05. On Zen 4 a gather takes up to 1.6
//! times as long as the loads.

use pulp::Simd;

use super::order::{INDICES, LANES};
use crate::cpu::scalar::Scalar;

/// How elements are chosen.
pub trait Choose {
    /// The elements of `from` at these places.
    fn choose<T: Scalar, S: Simd>(places: &[u16; LANES], from: &[T; INDICES]) -> [T; LANES];
}

/// As if lanes loaded them one by one.
pub struct OneByOne;

impl Choose for OneByOne {
    #[inline(always)]
    fn choose<T: Scalar, S: Simd>(places: &[u16; LANES], from: &[T; INDICES]) -> [T; LANES] {
        // Four places are read as one number: what bounds a pass is the number of loads.
        let words: [u64; LANES / 4] = bytemuck::cast(*places);
        std::array::from_fn(|lane| {
            let place = match cfg!(target_endian = "little") {
                true => lane % 4,
                false => 3 - lane % 4,
            };
            let place = (words[lane / 4] >> (16 * place)) as u16;
            let element = std::ptr::from_ref(&from[usize::from(place)]);
            // SAFETY: a reference is valid for reads. Volatile, as the compiler makes gathers of plain loads.
            unsafe { element.read_volatile() }
        })
    }
}

/// By the gathers of AVX-512; one by one where vectors are of another kind.
pub struct Gathered;

impl Choose for Gathered {
    #[inline(always)]
    fn choose<T: Scalar, S: Simd>(places: &[u16; LANES], from: &[T; INDICES]) -> [T; LANES] {
        #[cfg(target_arch = "x86_64")]
        if has_avx512::<S>() {
            // SAFETY: vectors of 16 f32 are those of AVX-512, which pulp takes only where the processor has them.
            return unsafe { gather(places, from) };
        }
        OneByOne::choose::<T, S>(places, from)
    }
}

/// Whether gathers take less time than loads one by one, of the processor at hand: Intel's cores from Sapphire Rapids on, which
/// are those with arithmetic of 16 bits. Gathers of earlier ones wait for what keeps other processes' data from them
/// (gather data sampling).
pub fn gathers_pay() -> bool {
    #[cfg(target_arch = "x86_64")]
    let they_do = std::arch::is_x86_feature_detected!("avx512fp16");
    #[cfg(not(target_arch = "x86_64"))]
    let they_do = false;
    they_do
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
const fn has_avx512<S: Simd>() -> bool {
    S::F32_LANES == LANES
}

/// # Safety
/// The processor has AVX-512 (F).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn gather<T: Scalar>(places: &[u16; LANES], from: &[T; INDICES]) -> [T; LANES] {
    use std::arch::x86_64::{
        __m256i, __m512, __m512d, _mm256_loadu_si256, _mm512_castsi512_si256,
        _mm512_cvtepu16_epi32, _mm512_extracti64x4_epi64, _mm512_i32gather_pd, _mm512_i32gather_ps,
    };
    let from = from.as_ptr();
    // SAFETY: 16 places are 32 bytes, and each is below the number of elements.
    unsafe {
        let places = _mm512_cvtepu16_epi32(_mm256_loadu_si256(places.as_ptr().cast::<__m256i>()));
        if size_of::<T>() == size_of::<f32>() {
            let chosen = _mm512_i32gather_ps::<4>(places, from.cast());
            return bytemuck::cast(std::mem::transmute::<__m512, [f32; LANES]>(chosen));
        }
        let halves = [
            _mm512_castsi512_si256(places),
            _mm512_extracti64x4_epi64::<1>(places),
        ];
        let chosen = halves.map(|half| _mm512_i32gather_pd::<8>(half, from.cast()));
        bytemuck::cast(std::mem::transmute::<[__m512d; 2], [f64; LANES]>(chosen))
    }
}

#[cfg(test)]
mod tests {
    use pulp::{Arch, WithSimd};

    use super::*;

    struct Both<'a, T>(&'a [u16; LANES], &'a [T; INDICES]);

    impl<T: Scalar> WithSimd for Both<'_, T> {
        type Output = [[T; LANES]; 2];

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> Self::Output {
            [
                OneByOne::choose::<T, S>(self.0, self.1),
                Gathered::choose::<T, S>(self.0, self.1),
            ]
        }
    }

    fn check<T: Scalar>() {
        let from: Vec<T> = (0..INDICES).map(|i| T::narrow(i as f64)).collect();
        let from = from.first_chunk().expect("as many");
        let edges = [0, 1, 32_767, 32_768, 65_534, u16::MAX];
        let places = std::array::from_fn(|lane| edges[lane % edges.len()] ^ (lane as u16 & 8));
        let expected = places.map(|place| T::narrow(place.into()));
        assert_eq!(Arch::new().dispatch(Both(&places, from)), [expected; 2]);
    }

    #[test]
    fn places_above_half_of_16_bits_are_no_negative_ones() {
        check::<f32>();
        check::<f64>();
    }
}
