//! Numbers from an input's number.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of choices.
#[derive(Debug, Clone)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream of an input.
    pub fn new(number: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(number))
    }

    /// All 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// One of 0..`end`; 0 where `end` is.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }

    /// True with probability 1 / `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of them.
    ///
    /// # Panics
    /// Without any.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// One of these words.
    ///
    /// # Panics
    /// Without any.
    pub fn word(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_means_the_same_choices() {
        let choices = |number| {
            let mut random = Random::new(number);
            [random.below(10), random.below(1 << 40), random.below(0)]
        };
        assert_eq!(choices(7), choices(7));
        assert_ne!(choices(7), choices(8));
        assert_eq!(choices(7)[2], 0);
    }
}
