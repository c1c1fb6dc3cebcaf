//! Products of squares, and where the factors of a lane are.

use super::super::pieces::four;
use super::super::reflector::Ranged;
use crate::cta::{Cta, WARP};
use crate::matmul::{Split, split};
use crate::memory::Out;
use crate::scalar::{Real, Words};

/// Four of 16 steps of each of four rows of a factor: `[row][step]`.
pub type Strip<T> = [[T; 4]; 4];
/// Four elements of each product of 16 × 8: `[rows][columns]`.
pub type Square<T> = [[[T; 4]; 4]; 2];

/// A lane's place in an instruction: lane / 4 and lane mod 4, computed again where they are used.
#[inline(always)]
pub fn quad<C: Cta>(cta: &C) -> (u32, u32) {
    let lane = cta.fresh(cta.thread()) % WARP;
    (lane / 4, lane % 4)
}

/// Numbers of which tensor cores make products.
pub trait Tensor: Ranged {
    /// Whether sums are rounded to nearest.
    const ROUNDS: bool;

    /// Adds the products of 16 steps.
    fn multiply<C: Cta>(cta: &C, x: &Strip<Self>, y: &Strip<Self>, sums: &mut Square<Self>);
}

impl Tensor for f32 {
    const ROUNDS: bool = false;

    #[inline(always)]
    #[track_caller]
    fn multiply<C: Cta>(cta: &C, x: &Strip<f32>, y: &Strip<f32>, sums: &mut Square<f32>) {
        for s in 0..2 {
            let half = |of: &Strip<f32>| four(|q| split(cta, [of[q][2 * s], of[q][2 * s + 1]]));
            let (x, y) = (half(x), half(y));
            each(sums, |[m, n], sums| {
                *sums = cta.multiply_tf32(of_two(&x, m, |x| x.low), y[n].high, *sums);
            });
            each(sums, |[m, n], sums| {
                *sums = cta.multiply_tf32(of_two(&x, m, |x| x.high), y[n].low, *sums);
            });
            each(sums, |[m, n], sums| {
                *sums = cta.multiply_tf32(of_two(&x, m, |x| x.high), y[n].high, *sums);
            });
        }
    }
}

/// The first factor of a product of 16 rows.
#[inline(always)]
fn of_two(x: &[Split<2>; 4], m: usize, part: impl Fn(&Split<2>) -> [f32; 2]) -> [f32; 4] {
    let [a, b] = [2 * m, 2 * m + 1].map(|q| part(&x[q]));
    [a[0], b[0], a[1], b[1]]
}

/// Calls `f` for each product.
#[inline(always)]
fn each<T>(sums: &mut Square<T>, mut f: impl FnMut([usize; 2], &mut [T; 4])) {
    for (m, sums) in sums.iter_mut().enumerate() {
        for (n, sums) in sums.iter_mut().enumerate() {
            f([m, n], sums);
        }
    }
}

impl Tensor for f64 {
    const ROUNDS: bool = true;

    #[inline(always)]
    #[track_caller]
    fn multiply<C: Cta>(cta: &C, x: &Strip<f64>, y: &Strip<f64>, sums: &mut Square<f64>) {
        each(sums, |[m, n], sums| {
            let rows = core::array::from_fn(|i| x[2 * m + i % 2][i / 2]);
            *sums = cta.multiply_f64(rows, y[n], *sums);
        });
    }
}

/// Adds the products of 32 steps, of which `strips` gives the factors of each half.
#[inline(always)]
#[track_caller]
pub fn add_square<C: Cta, T: Tensor>(
    cta: &C,
    sums: &mut Square<T>,
    strips: impl Fn(u32) -> [Strip<T>; 2],
) {
    let mut part = match T::ROUNDS {
        true => *sums,
        false => zero(),
    };
    // Unrolled, the second half's factors would take registers beside the first's.
    let (mut half, end) = (0, cta.fresh(2));
    while half < end {
        let [x, y] = strips(half);
        T::multiply(cta, &x, &y, &mut part);
        half += 1;
    }
    each(sums, |[m, n], sums| {
        *sums = match T::ROUNDS {
            true => part[m][n],
            false => four(|e| sums[e] + part[m][n][e]),
        }
    });
}

/// No products yet.
#[inline(always)]
pub fn zero<T: Real>() -> Square<T> {
    [[[T::ZERO; 4]; 4]; 2]
}

/// Of 16 elements, the one that a lane of turn `turn` takes for its step `step`.
#[inline(always)]
pub const fn place<T: Real>(turn: u32, step: u32) -> u32 {
    match T::SIZE {
        4 => 4 * turn + step,
        _ => 8 * (step / 2) + 2 * turn + step % 2,
    }
}

/// Those of a lane, of the sixteen from `at` on.
#[inline(always)]
#[track_caller]
pub fn read_steps<C: Cta, T: Real>(cta: &C, from: Out<'_, T>, at: usize, turn: u32) -> [T; 4] {
    let lanes = <T::Pack as Words<T>>::LANES;
    let mut steps = [T::ZERO; 4];
    for first in (0..4).step_by(lanes) {
        let pack = cta.read_pack(from, at + place::<T>(turn, first as u32) as usize);
        for (lane, value) in pack.as_ref().iter().enumerate() {
            steps[first + lane] = *value;
        }
    }
    steps
}

/// Writes four neighbours, from whole packs on.
#[inline(always)]
#[track_caller]
pub fn write_four<C: Cta, T: Real>(cta: &C, to: Out<'_, T>, at: usize, values: [T; 4]) {
    let lanes = <T::Pack as Words<T>>::LANES;
    for first in (0..4).step_by(lanes) {
        let words = four(|lane| match lane < lanes {
            true => values[first + lane].to_bits(),
            false => 0,
        });
        cta.write_pack(to, at + first, T::Pack::from_words(words));
    }
}
