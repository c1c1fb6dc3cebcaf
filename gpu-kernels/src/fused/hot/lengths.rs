//! How many lanes a row has, and which rows share a slice.

use crate::cta::WARP;
use crate::fused::hot::{CLASSES, HELD, HELD_COLD};

/// Hot and cold entries of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lengths {
    /// Hot ones.
    pub hot: u32,
    /// Cold ones.
    pub cold: u32,
}

/// Buckets of a class of rows that are not long: as many as they may take of hot steps and of cold ones.
const OF_CLASS: u32 = (HELD + 1) * (HELD_COLD + 1);
/// All buckets: long rows are in the first.
pub const BUCKETS: usize = 1 + (CLASSES - 1) * OF_CLASS as usize;
/// Keys of long rows: four for each power of two of their steps.
const LONG_KEYS: u32 = 4 * 28;
/// All keys.
pub const KEYS: u32 = LONG_KEYS + BUCKETS as u32 - 1;

impl Lengths {
    /// The class of rows of this many entries.
    #[inline(always)]
    pub fn class(self) -> u32 {
        let (mut class, mut lanes) = (0, WARP / 2);
        while class < CLASSES as u32 - 1
            && self.hot <= 2 * lanes * HELD
            && self.cold <= lanes * HELD_COLD
        {
            class += 1;
            lanes /= 2;
        }
        class
    }

    /// Hot and cold steps.
    #[inline(always)]
    pub fn steps(self) -> (u32, u32) {
        let lanes = WARP >> self.class();
        (self.hot.div_ceil(2 * lanes), self.cold.div_ceil(lanes))
    }

    /// Rows of a class and of as many steps are in one bucket, and buckets in the order of rows; but for long rows, which
    /// have any number of steps.
    #[inline(always)]
    pub fn bucket(self) -> usize {
        let class = self.class();
        if class == 0 {
            return 0;
        }
        let (hot, cold) = self.steps();
        let before = (HELD - hot) * (HELD_COLD + 1) + (HELD_COLD - cold);
        1 + ((class - 1) * OF_CLASS + before) as usize
    }

    /// The bucket, those of long rows by about how many steps they have, the longest first.
    #[inline(always)]
    pub fn key(self) -> u32 {
        if self.class() > 0 {
            return LONG_KEYS + self.bucket() as u32 - 1;
        }
        let (hot, cold) = self.steps();
        let steps = (hot + cold).max(1);
        let digits = 31 - steps.leading_zeros();
        // The two bits after the first.
        let behind = if digits < 2 {
            steps << (2 - digits)
        } else {
            steps >> (digits - 2)
        };
        LONG_KEYS - 1 - (4 * digits + behind % 4)
    }
}

/// The buckets of a class.
pub const fn buckets(class: usize) -> core::ops::Range<usize> {
    let of_class = OF_CLASS as usize;
    if class == 0 {
        0..1
    } else {
        1 + (class - 1) * of_class..1 + class * of_class
    }
}

/// The keys of a class.
pub const fn keys(class: usize) -> core::ops::Range<usize> {
    let (long, own) = (LONG_KEYS as usize, buckets(class));
    if class == 0 {
        0..long
    } else {
        long + own.start - 1..long + own.end - 1
    }
}

/// How many rows a slice has, as a power of two, and its first position, where classes end with these slices.
#[inline(always)]
pub fn place_of_slice(ends: [u32; CLASSES], slice: u32) -> (u32, u32) {
    let [a, b, c, d, _] = ends;
    let (of_b, of_c, of_d) = (a + 2 * (b - a), 4 * (c - b), 8 * (d - c));
    if slice < a {
        (0, slice)
    } else if slice < b {
        (1, a + 2 * (slice - a))
    } else if slice < c {
        (2, of_b + 4 * (slice - b))
    } else if slice < d {
        (3, of_b + of_c + 8 * (slice - c))
    } else {
        (4, of_b + of_c + of_d + 16 * (slice - d))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_buckets_and_the_longest_rows_come_first() {
        let mut last = KEYS;
        for hot in (0..30).map(|power| 1 << power).chain([0, 5, 700, 701]) {
            for cold in [0, 3, 70, 4_000, 1 << 29] {
                let own = Lengths { hot, cold };
                let key = own.key() as usize;
                assert!(keys(own.class() as usize).contains(&key), "{own:?}");
                if own.bucket() > 0 {
                    assert_eq!(key - keys(1).start, own.bucket() - 1);
                }
            }
            let key = Lengths { hot, cold: 0 }.key();
            assert!(hot.count_ones() != 1 || key <= last, "{hot}");
            last = if hot.count_ones() == 1 { key } else { KEYS };
        }
        assert_eq!(keys(CLASSES - 1).end, KEYS as usize);
    }

    #[test]
    fn slices_begin_behind_those_before() {
        let ends = [3, 5, 5, 9, 11];
        let mut expected = 0;
        for slice in 0..11 {
            let (bits, position) = place_of_slice(ends, slice);
            assert_eq!(position, expected, "slice {slice}");
            expected += 1 << bits;
        }
    }
}
