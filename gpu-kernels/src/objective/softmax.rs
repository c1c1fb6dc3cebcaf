//! Softmax objectives: k linear predictors per row, one pass over X.
//!
//! Formula: with T = X·Y + 1·cᵀ (m × k), p the softmax of a row t of T, b the row's class, v its weight, and Y and W
//! n × k, row-major:
//!
//! - an *evaluation* has S = v·(p − e_b), and adds Σ v·(ln Σ exp t − t_b) to the sums; P is stored if wanted;
//! - a *curvature product* is given P and has S = v·p ⊙ (t − p·t), and adds ½·Σ s·t.
//!
//! Both add `W += XᵀS` and, to the sums, the columns' sums of S; W and the sums hold zeros (or what is added to)
//! before. A row of weight 0 takes no part.
//!
//! Mapping: a team of VS lanes owns a row, lane c its classes c, c + VS, …, Q of them; see [`super::softmax_sparse`]
//! and [`super::softmax_dense`] for how a row is multiplied. Sums accumulate in f64, in the lanes, then over the
//! block.
//!
//! Functions are inlined where that counts: see [`super::judge`].
//!
//! Shared memory: one f64 per thread at the end. Result: when the kernel has ended. Guarantees: none for the bits, as
//! atomics add in any order.

use crate::cta::{Cache, Cta, Shared, Shuffle, WARP};
use crate::math::{Elementary, exp, ln};
use crate::memory::{In, Out};
use crate::table::{Launch, Violation};
use crate::verbs::{FULL, lane, load_or, sum_lanes};

/// The rows of a softmax objective.
#[repr(C)]
pub struct SoftmaxRows<'a, T> {
    /// k.
    pub classes: u32,
    /// b, the number of each row's class (m elements); not read by curvature products.
    pub target: In<'a, T>,
    /// v (m elements), optional: 1.
    pub weights: In<'a, T>,
    /// c (k elements), optional: 0.
    pub constants: In<'a, T>,
    /// P (m × k, row-major) of the point whose curvature is wanted; absent in evaluations.
    pub given: In<'a, T>,
    /// P, optional.
    pub probabilities: Out<'a, T>,
    /// The loss, and the sums of the k columns of S, are added here.
    pub sums: Out<'a, f64>,
    /// The state of a conjugate-gradient solve, optional: once it has ended, nothing is computed.
    pub solve: In<'a, f64>,
}

impl<T: Copy> Clone for SoftmaxRows<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for SoftmaxRows<'_, T> {}

impl<T: Elementary> SoftmaxRows<'_, T> {
    /// The lengths for m rows.
    pub(super) fn check(&self, rows: u64, most: u32) -> Result<(), Violation> {
        let k = self.classes as u64;
        Violation::at_most("classes", most as u64, k)?;
        Violation::at_least("classes", 1, k)?;
        if !self.given.is_some() {
            Violation::at_least("length of target", rows, self.target.len())?;
        }
        crate::fused::check_optional(&self.weights, "length of weights", rows)?;
        crate::fused::check_optional(&self.constants, "length of constants", k)?;
        crate::fused::check_optional(&self.given, "length of given", rows * k)?;
        if self.probabilities.is_some() {
            Violation::at_least(
                "length of probabilities",
                rows * k,
                self.probabilities.len(),
            )?;
        }
        super::args::check_solve(&self.solve)?;
        Violation::at_least("length of sums", 1 + k, self.sums.len())
    }
}

/// Bytes of shared memory that the sums of a block of `block` threads need.
pub(super) const fn scratch_bytes(block: u32) -> u64 {
    block as u64 * 8
}

/// Block and shared memory, of which the kernel's own use is `own` bytes.
pub(super) fn check_launch(launch: &Launch, own: u64) -> Result<(), Violation> {
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    let needed = if own > scratch_bytes(launch.block) {
        own
    } else {
        scratch_bytes(launch.block)
    };
    Violation::at_least("shared bytes", needed, launch.shared_bytes as u64)
}

/// Judges rows, a team of VS lanes each, and adds up what they contribute.
pub(super) struct Teams<'a, 'b, T, const VS: u32, const Q: usize> {
    rows: &'b SoftmaxRows<'a, T>,
    /// c of this lane's classes.
    constants: [T; Q],
    loss: f64,
    slopes: [f64; Q],
}

impl<'a, 'b, T: Elementary, const VS: u32, const Q: usize> Teams<'a, 'b, T, VS, Q> {
    #[inline(always)]
    pub fn new<C: Cta>(cta: &C, rows: &'b SoftmaxRows<'a, T>) -> Self {
        let mut constants = [T::ZERO; Q];
        for (q, constant) in constants.iter_mut().enumerate() {
            let class = class::<C, VS>(cta, q);
            if class < rows.classes {
                *constant = load_or(cta, rows.constants, class as usize, T::ZERO);
            }
        }
        Teams {
            rows,
            constants,
            loss: 0.0,
            slopes: [0.0; Q],
        }
    }

    /// S of this lane's classes in a row, given its products with Y; 0 beyond the classes and for a row that is not
    /// there. One team of those that `counts` tells apart counts a row. The whole warp calls.
    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    pub fn slopes<C: Cta>(
        &mut self,
        cta: &C,
        row: Option<usize>,
        counts: bool,
        dots: [T; Q],
    ) -> [T; Q] {
        let weight = match row {
            Some(row) => load_or(cta, self.rows.weights, row, T::ONE),
            None => T::ZERO,
        };
        let mut t = dots;
        for (t, constant) in t.iter_mut().zip(self.constants) {
            *t = *t + constant;
        }
        let (loss, mut slopes) = if self.rows.given.is_some() {
            self.bend(cta, row, weight, t)
        } else {
            self.evaluate(cta, row, counts, weight, t)
        };
        if weight == T::ZERO {
            slopes = [T::ZERO; Q];
        } else if counts {
            self.loss += loss.to_f64();
            for (sum, slope) in self.slopes.iter_mut().zip(slopes) {
                *sum += slope.to_f64();
            }
        }
        slopes
    }

    /// This lane's share of the row's loss, and S.
    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn evaluate<C: Cta>(
        &self,
        cta: &C,
        row: Option<usize>,
        counts: bool,
        weight: T,
        t: [T; Q],
    ) -> (T, [T; Q]) {
        let classes = self.rows.classes;
        let mut top = -T::INFINITY;
        for (q, t) in t.iter().enumerate() {
            if class::<C, VS>(cta, q) < classes && *t > top {
                top = *t;
            }
        }
        let top = max_team::<C, T, VS>(cta, top);
        let mut powers = [T::ZERO; Q];
        let mut sum = T::ZERO;
        for q in 0..Q {
            if class::<C, VS>(cta, q) < classes {
                powers[q] = exp(t[q] - top);
                sum = sum + powers[q];
            }
        }
        let sum = sum_lanes::<C, T, VS>(cta, sum);
        let mut target = 0;
        if let Some(row) = row {
            let number: T = cta.load(self.rows.target, row, Cache::Once);
            target = number.to_f64() as u32;
        }
        let mut loss = T::ZERO;
        let mut slopes = [T::ZERO; Q];
        for q in 0..Q {
            let class = class::<C, VS>(cta, q);
            if class >= classes {
                continue;
            }
            let p = powers[q] / sum;
            slopes[q] = weight * p;
            if class == target {
                loss = weight * (ln(sum) - (t[q] - top));
                slopes[q] = weight * (p - T::ONE);
            }
            if let Some(row) = row
                && counts
                && self.rows.probabilities.is_some()
            {
                let at = row * classes as usize + class as usize;
                cta.write(self.rows.probabilities, at, p);
            }
        }
        (loss, slopes)
    }

    /// This lane's share of ½·s·t, and S of the curvature.
    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn bend<C: Cta>(&self, cta: &C, row: Option<usize>, weight: T, t: [T; Q]) -> (T, [T; Q]) {
        let classes = self.rows.classes;
        let mut p = [T::ZERO; Q];
        let mut mean = T::ZERO;
        for q in 0..Q {
            let class = class::<C, VS>(cta, q);
            if let Some(row) = row
                && class < classes
            {
                let at = row * classes as usize + class as usize;
                p[q] = cta.load(self.rows.given, at, Cache::Once);
                mean = p[q].fma(t[q], mean);
            }
        }
        let mean = sum_lanes::<C, T, VS>(cta, mean);
        let mut half = T::ZERO;
        let mut slopes = [T::ZERO; Q];
        for q in 0..Q {
            slopes[q] = weight * p[q] * (t[q] - mean);
            half = (T::HALF * slopes[q]).fma(t[q], half);
        }
        (half, slopes)
    }

    /// Adds the block's sums to the result; the block's shared memory is free for it.
    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    pub fn finish<C: Cta>(self, cta: &C) {
        let all = Shared::at(0, cta.threads());
        let loss = sum_strided(cta, all, self.loss, 1);
        if cta.thread() == 0 {
            cta.add(self.rows.sums, 0, loss);
        }
        for (q, slope) in self.slopes.into_iter().enumerate() {
            let slope = sum_strided(cta, all, slope, VS);
            let class = cta.thread() + q as u32 * VS;
            if cta.thread() < VS && class < self.rows.classes {
                cta.add(self.rows.sums, 1 + class as usize, slope);
            }
        }
    }
}

/// Class q of this lane.
#[inline(always)]
pub(super) fn class<C: Cta, const VS: u32>(cta: &C, q: usize) -> u32 {
    lane(cta) % VS + q as u32 * VS
}

/// In each thread below `stride`: the sum of what the threads hold whose number is congruent to its own.
#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
fn sum_strided<C: Cta>(cta: &C, all: Shared<f64>, value: f64, stride: u32) -> f64 {
    cta.sync();
    cta.shared_write(all, cta.thread() as usize, value);
    cta.sync();
    // Halves first, so that few are left to add one after the other.
    let mut active = cta.threads();
    while active.is_multiple_of(2) && active / 2 >= stride && (active / 2).is_multiple_of(stride) {
        active /= 2;
        if cta.thread() < active {
            let mine = cta.shared_read(all, cta.thread() as usize);
            let other = cta.shared_read(all, (cta.thread() + active) as usize);
            cta.shared_write(all, cta.thread() as usize, mine + other);
        }
        cta.sync();
    }
    let mut sum = 0.0;
    let mut i = cta.thread();
    while cta.thread() < stride && i < active {
        sum += cta.shared_read(all, i as usize);
        i += stride;
    }
    sum
}

/// The largest over a team, in every lane; NaN is passed over, as it shows in the sums.
#[inline(always)]
fn max_team<C: Cta, T: Elementary, const VS: u32>(cta: &C, mut value: T) -> T {
    let mut distance = VS / 2;
    while distance > 0 {
        let other = cta.shuffle(value, Shuffle::Xor(distance), WARP, FULL);
        if other > value {
            value = other;
        }
        distance /= 2;
    }
    value
}
