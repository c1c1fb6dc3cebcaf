//! Random numbers of which every bit is ours, and the distributions made from them.

use std::f64::consts::TAU;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a stream is for; streams of different purposes are independent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Coefficients = 1,
    Entries = 2,
    Noise = 3,
}

/// A random stream.
pub(super) struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of one block. The parts are mixed one after the other, so that neighbouring
    /// seeds, purposes and blocks have nothing in common.
    pub(super) fn new(seed: u64, purpose: Purpose, block: u64) -> Self {
        let mixed = mix(mix(mix(seed) ^ purpose as u64) ^ block);
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// Uniform on [0, 1), 53 bits.
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform on 0..`end`, off by less than 2⁻³² in each probability (Lemire 2019, the
    /// multiplication without the rejection).
    pub(super) fn below(&mut self, end: u32) -> u32 {
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u32
    }

    /// Standard normal (Box and Muller 1958; the sine is thrown away).
    pub(super) fn normal(&mut self) -> f64 {
        // 1 − unit lies in (0, 1], so the logarithm is finite.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (TAU * self.unit()).cos()
    }
}

/// SplitMix64's finaliser (Steele, Lea and Flood 2014).
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Zipf's law on the ranks 1..=n: rank k with probability proportional to k^−s.
///
/// Sampling by rejection-inversion, in constant time and memory whatever n is: W. Hörmann and
/// G. Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
/// ACM TOMACS 6(3), 1996.
#[derive(Debug, Clone, Copy)]
pub(super) struct Zipf {
    ranks: f64,
    exponent: f64,
    /// The integral of the density at the two ends.
    low: f64,
    high: f64,
    /// Ranks this close below the inverted point are accepted at once.
    squeeze: f64,
}

impl Zipf {
    /// `exponent` > 0 and finite, `ranks` ≥ 1.
    pub(super) fn new(ranks: u32, exponent: f64) -> Self {
        let mut zipf = Self {
            ranks: f64::from(ranks),
            exponent,
            low: 0.0,
            high: 0.0,
            squeeze: 0.0,
        };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.ranks + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// A rank from 0, the most frequent, to n − 1.
    pub(super) fn sample(&self, stream: &mut Stream) -> u32 {
        loop {
            let area = self.high + stream.unit() * (self.low - self.high);
            let point = self.inverse(area);
            let rank = point.round().clamp(1.0, self.ranks);
            if rank - point <= self.squeeze
                || area >= self.integral(rank + 0.5) - self.density(rank)
            {
                return rank as u32 - 1;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// ∫₁ˣ t^−s dt = (x^(1−s) − 1) / (1 − s), which is ln x for s = 1.
    fn integral(&self, x: f64) -> f64 {
        let (power, log) = (1.0 - self.exponent, x.ln());
        if (power * log).abs() < 1e-8 {
            log * (1.0 + power * log / 2.0)
        } else {
            (power * log).exp_m1() / power
        }
    }

    fn inverse(&self, area: f64) -> f64 {
        let power = 1.0 - self.exponent;
        // Rounding may lead below −1, where the logarithm ends.
        let scaled = (power * area).max(-1.0);
        if scaled.abs() < 1e-8 {
            (area * (1.0 - scaled / 2.0)).exp()
        } else {
            (scaled.ln_1p() / power).exp()
        }
    }
}
