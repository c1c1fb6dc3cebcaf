//! One set of near points in few dimensions: as [`exchange::symmetric`], with distances from products of coordinates.
//!
//! Formula: `partials[i] += Σⱼ 2^(−‖xᵢ − xⱼ‖²) · wⱼ`, the Gaussian, each pair once. With nᵢ = ‖xᵢ‖²,
//!
//! `2^(−‖xᵢ − xⱼ‖²) = 2^−(nᵢ + h − 2 xᵢ·xⱼ) · eⱼ`, eⱼ = `2^(h − nⱼ)`, h = [`SHIFT`]:
//!
//! eⱼ is a factor of the weight wⱼ on the way to i, and of the sum that goes back to j. A pair of D dimensions then takes
//! D multiply-adds, an exponential and two multiply-adds; by differences it takes D subtractions more.
//!
//! Accuracy: what is rounded is as large as nᵢ + h + 2‖xᵢ‖‖xⱼ‖, which is at most 224 where ‖x‖² ≤ 64: the caller sees to
//! it. In f32 a pair is then wrong by [`PAIR_ROUNDOFFS`] unit roundoffs at most; such errors are as often up as down. What a
//! target would have in common in all its pairs, the rounding of nᵢ + h, is put right in its sum and in its weight.
//! Weights below 10⁻²⁸ may be lost, and those above 10²⁸ overflow.
//!
//! Instructions for a pair in three dimensions, counted in the machine code of 9.0: 6.4, of which one exponential, that
//! takes 8 cycles of a quarter of an SM; by differences 9.7. On an H100 at 1,980 MHz the exponentials of 10⁶ points
//! take 0.120 s. All of it takes, in the same run:
//!
//! | 16 warps of 128 registers, of an SM | seconds | cycles of exponentials, of all |
//! |---|--:|--:|
//! | 8 warps a block | 0.1493 | 82 % |
//! | the same, 8 sources together instead of 4; 2 | 0.1486; 0.1527 | |
//! | 4 warps a block; 20 warps of an SM | 0.1510; 0.1527 | 81 % |
//! | sums of a tile's stages in f64; 24 warps of an SM | 0.1597; 0.1595 | 77 % |
//! | one exponential in eight by a polynomial of degree 5, in ten instructions | 0.1604 | 66 % |
//!
//! What warps wait for is the queue of the exponentials and, for a sixth of the time, the dispatch of multiply-adds.
//! Next: distances on tensor cores, from points in two halves of 16 bits, with 3.8 instructions a pair; they truncate what f32 rounds.
//!
//! Mapping: as [`exchange`]. A group of 32 sources is staged twice over, so that the source of turn t is the
//! record `lane + t`, without a remainder.
//!
//! Shared bytes: [`shared_elements`] elements. Determinism: none: sums meet in f64 atomics, in any order.

use super::exchange::{self, Pairs};
use super::narrow::{self, HELD, Held, RECORD, coordinate, record};
use super::radial::Gaussian;
use super::{KernelSumArgs, Radial};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::verbs::{each_of_block, lane};

/// h: exponents of e lie between −32 and 32 where those of the points do not exceed [`MOST_SQUARE`].
pub const SHIFT: f64 = 32.0;
/// The largest ‖x‖² of a point, scaled and centred.
pub const MOST_SQUARE: f64 = 64.0;
/// Relative error of a pair, in unit roundoffs: three multiply-adds of numbers up to 224, times ln 2; four of the
/// exponential, ten of weights and their factors.
pub const PAIR_ROUNDOFFS: f64 = 480.0;
/// Threads of a block, at most.
pub const MOST_THREADS: u32 = 256;
/// Such blocks that an SM holds: 128 registers for a thread.
const BLOCKS: u32 = 2;

/// Sources that a block of `block` threads stages at a time.
const fn stage(block: u32) -> u32 {
    2 * block
}

/// Elements of shared memory of a block of `block` threads, for elements of `size` bytes.
pub const fn shared_elements(block: u32, dims: u32, size: u32) -> u32 {
    let ahead = stage(block) * (2 * record(dims, size) + block / WARP);
    let own = narrow::stage(block) * record(dims, size);
    if ahead > own { ahead } else { own }
}

/// See the head of the file.
#[inline(always)]
pub fn symmetric<C: Cta, T: Radial, const D: usize>(cta: &C, args: &KernelSumArgs<'_, T>) {
    cta.launch_bounds::<MOST_THREADS, BLOCKS>();
    exchange::in_tiles::<C, T, Gaussian, D>(cta, args, |held, sources| {
        let mut sums = exchange::exchange(cta, args, &Products::of(cta, args, held), sources);
        for (sum, point) in sums.iter_mut().zip(&held.points) {
            *sum *= Exponent::<T>::of(point, SHIFT).correction;
        }
        sums
    });
}

/// An exponent, as it is rounded.
struct Exponent<T> {
    rounded: T,
    /// 2 to the power of what rounding added: no more than 2⁻¹⁷ in f32, whose square does not count.
    correction: f64,
}

impl<T: Radial> Exponent<T> {
    /// n + `added` of a point.
    #[inline(always)]
    fn of<const D: usize>(point: &[T; D], added: f64) -> Self {
        let mut exact = added;
        for d in 0..D {
            let x = point[d].to_f64();
            exact += x * x;
        }
        let rounded = T::of_f64(exact);
        Exponent {
            rounded,
            correction: 1.0 + core::f64::consts::LN_2 * (rounded.to_f64() - exact),
        }
    }
}

/// e.
#[inline(always)]
fn factor<T: Radial, const D: usize>(point: &[T; D]) -> f64 {
    let exponent = Exponent::<T>::of(point, -SHIFT);
    exponent.rounded.decay().to_f64() * exponent.correction
}

/// Source `j`.
#[inline(always)]
fn source<C: Cta, T: Radial, const D: usize>(
    cta: &C,
    args: &KernelSumArgs<'_, T>,
    j: u32,
) -> [T; D] {
    core::array::from_fn(|d| coordinate(cta, args, args.y, args.sources, d, j))
}

/// [`Pairs`] by products.
struct Products<T, const D: usize> {
    twice: Twice<T, D>,
    points: [[T; D]; HELD],
    /// nᵢ + h.
    exponents: [T; HELD],
    /// Those of targets beyond the last are zero.
    weights: [T; HELD],
}

impl<T: Radial, const D: usize> Products<T, D> {
    #[inline(always)]
    fn of<C: Cta>(cta: &C, args: &KernelSumArgs<'_, T>, held: &Held<T, D>) -> Self {
        let weights = held.weights(cta, args);
        let of = |r: usize| Exponent::<T>::of(&held.points[r], SHIFT);
        Products {
            twice: Twice::new(cta),
            points: held.points,
            exponents: core::array::from_fn(|r| of(r).rounded),
            weights: core::array::from_fn(|r| T::of_f64(weights[r].to_f64() * of(r).correction)),
        }
    }
}

impl<C: Cta, T: Radial, const D: usize> Pairs<C, T, D> for Products<T, D> {
    #[inline(always)]
    fn staged(&self) -> (u32, u32) {
        (self.twice.len, self.twice.records.end())
    }

    #[inline(always)]
    fn fill(&self, cta: &C, args: &KernelSumArgs<'_, T>, at: u32, end: u32) {
        self.twice.fill(cta, args, at, end);
    }

    /// −2xⱼ and eⱼ·wⱼ.
    #[inline(always)]
    fn source(&self, cta: &C, group: u32, turn: u32) -> ([T; D], T) {
        self.twice.read(cta, 2 * group + lane(cta) + turn)
    }

    /// `2^−(nᵢ + h − 2 xᵢ·xⱼ)`.
    #[inline(always)]
    fn value(&self, r: usize, point: &[T; D]) -> T {
        let mut s = self.exponents[r];
        for d in 0..D {
            s = self.points[r][d].fma(point[d], s);
        }
        s.decay()
    }

    #[inline(always)]
    fn weight(&self, r: usize) -> T {
        self.weights[r]
    }

    #[inline(always)]
    fn returned(&self, cta: &C, args: &KernelSumArgs<'_, T>, j: u32, sum: f64) -> f64 {
        let point: [T; D] = source(cta, args, j);
        sum * factor(&point)
    }
}

/// Sources in shared memory, each group of 32 twice over: records of −2x and e·w.
struct Twice<T, const D: usize> {
    records: Shared<T>,
    /// Sources.
    len: u32,
}

impl<T: Radial, const D: usize> Twice<T, D> {
    /// Elements of a record.
    const EACH: u32 = record(D as u32, T::SIZE);

    #[inline(always)]
    fn new<C: Cta>(cta: &C) -> Self {
        let len = stage(cta.threads());
        let records = Shared::at(0, 2 * len * Self::EACH);
        Twice { records, len }
    }

    /// Loads the sources from `at` on, between two barriers; behind `end` there are points without weight.
    #[inline(always)]
    fn fill<C: Cta>(&self, cta: &C, args: &KernelSumArgs<'_, T>, at: u32, end: u32) {
        cta.sync();
        each_of_block(cta, self.len, |k| {
            let j = at + k as u32;
            let mut record = [T::ZERO; RECORD];
            if j < end {
                let point: [T; D] = source(cta, args, j);
                for d in 0..D {
                    record[d] = -(point[d] + point[d]);
                }
                let weight: T = cta.load(args.w, j as usize, Cache::Keep);
                record[D] = T::of_f64(weight.to_f64() * factor(&point));
            }
            let (group, place) = (k / WARP as usize, k % WARP as usize);
            for copy in 0..2 {
                let first = (2 * group + copy) * WARP as usize + place;
                for e in 0..Self::EACH as usize {
                    cta.shared_write(self.records, first * Self::EACH as usize + e, record[e]);
                }
            }
        });
        cta.sync();
    }

    /// A record: its point and its weight.
    #[inline(always)]
    fn read<C: Cta>(&self, cta: &C, place: u32) -> ([T; D], T) {
        narrow::read_record(cta, self.records, place)
    }
}
