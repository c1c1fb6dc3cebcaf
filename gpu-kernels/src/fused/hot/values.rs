//! How the values of hot entries are stored, as types: a body is compiled for one of them.
//!
//! Entries come in pairs, as their places do: two to a word of 32 bits. What is stored was brought below 1 by a power
//! of two, so that f32 and bfloat16 have room for the exponents of any f64.

use crate::cta::{Cache, Cta, WARP};
use crate::fused::hot::HotArgs;
use crate::scalar::Real;
use crate::verbs::lane;

/// [`HotValues`] as a type.
pub(crate) trait Load<T: Real>: 'static {
    /// Whether all values of a row are equal: then what is loaded is 1.
    const IS_CONSTANT: bool;

    /// This lane's pair of step number `k` from some step on.
    fn load<C: Cta>(cta: &C, args: &HotArgs<'_, T>, step: (usize, usize), cache: Cache) -> [T; 2];
}

/// Where this lane's element is in the `row`-th 32 of a step and those after it, when steps have `rows` times 32 of them.
///
/// One address and constant distances from it: computed for each step, addresses were a tenth of all instructions.
#[inline(always)]
pub(crate) fn element<C: Cta>(cta: &C, step: usize, rows: usize, row: usize) -> usize {
    let first = step * rows * WARP as usize + lane(cta) as usize;
    first + row * WARP as usize
}

/// [`HotValues::Whole`].
pub(crate) struct Whole;
/// [`HotValues::Single`].
pub(crate) struct Single;
/// [`HotValues::Bf16`].
pub(crate) struct Bf16;
/// [`HotValues::Constant`].
pub(crate) struct Constant;

impl<T: Real> Load<T> for Whole {
    const IS_CONSTANT: bool = false;

    #[inline(always)]
    fn load<C: Cta>(
        cta: &C,
        args: &HotArgs<'_, T>,
        (step, k): (usize, usize),
        cache: Cache,
    ) -> [T; 2] {
        [
            cta.load(args.values, element(cta, step, 2, 2 * k), cache),
            cta.load(args.values, element(cta, step, 2, 2 * k + 1), cache),
        ]
    }
}

impl<T: Real> Load<T> for Single {
    const IS_CONSTANT: bool = false;

    #[inline(always)]
    fn load<C: Cta>(
        cta: &C,
        args: &HotArgs<'_, T>,
        (step, k): (usize, usize),
        cache: Cache,
    ) -> [T; 2] {
        let first: u32 = cta.load(args.packed, element(cta, step, 2, 2 * k), cache);
        let second: u32 = cta.load(args.packed, element(cta, step, 2, 2 * k + 1), cache);
        [widen(first), widen(second)]
    }
}

impl<T: Real> Load<T> for Bf16 {
    const IS_CONSTANT: bool = false;

    #[inline(always)]
    fn load<C: Cta>(
        cta: &C,
        args: &HotArgs<'_, T>,
        (step, k): (usize, usize),
        cache: Cache,
    ) -> [T; 2] {
        let word: u32 = cta.load(args.packed, element(cta, step, 1, k), cache);
        [widen(word << 16), widen(word & 0xffff_0000)]
    }
}

impl<T: Real> Load<T> for Constant {
    const IS_CONSTANT: bool = true;

    #[inline(always)]
    fn load<C: Cta>(_: &C, _: &HotArgs<'_, T>, _: (usize, usize), _: Cache) -> [T; 2] {
        [T::ONE; 2]
    }
}

/// The element with the bits of an f32.
#[inline(always)]
fn widen<T: Real>(bits: u32) -> T {
    T::of_f64(f32::from_bits(bits) as f64)
}
