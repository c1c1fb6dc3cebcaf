//! What work takes over several GPUs, of what it took one and two.
//!
//! Amdahl's law (1967) for as many rows in all, Gustafson's (1988) for as many rows of each GPU, with sums besides, whose
//! times follow from the link: nothing is known of more than two GPUs.

use serde::Serialize;

use super::Link;

impl Link {
    /// The link through two sums over two GPUs, each of (bytes, microseconds): as many bytes leave either GPU as are added up,
    /// in one launch as in halves.
    ///
    /// ```
    /// use warpfuse::plan::scaling::Link;
    /// let link = Link::of_two_gpus((1_000_000, 60.0), (101_000_000, 360.0)).expect("more bytes take longer");
    /// assert!((link.gb_s - 333.3).abs() < 0.1 && (link.start_us - 57.0).abs() < 0.1);
    /// assert_eq!(Link::of_two_gpus((8, 5.0), (16, 4.0)), None);
    /// ```
    ///
    /// `None` where the larger sum took no longer.
    pub fn of_two_gpus(small: (u64, f64), large: (u64, f64)) -> Option<Link> {
        let (bytes, us) = (large.0.saturating_sub(small.0), large.1 - small.1);
        let is_line = bytes > 0 && us > 0.0 && us.is_finite();
        is_line.then(|| {
            let gb_s = bytes as f64 / us / 1e3;
            // A start below 0 is an error of measurement.
            let start_us = (small.1 - small.0 as f64 / (1e3 * gb_s)).max(0.0);
            Link { start_us, gb_s }
        })
    }
}

/// Microseconds of work by the number g of GPUs, sums over the GPUs not counted: `divided`/g + `constant` + `each`·(g − 1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Course {
    /// What the GPUs divide among them.
    pub divided_us: f64,
    /// What takes as long however many there are.
    pub constant_us: f64,
    /// What every further GPU adds.
    pub each_us: f64,
}

impl Course {
    /// Of as many rows in all, of the times of one GPU and of two without their sums.
    ///
    /// Two that need less than half of the time, whose caches hold more of what they have, divide all of it; two that need more
    /// than one does are taken to get in each other's way, as further ones will.
    ///
    /// ```
    /// use warpfuse::plan::scaling::Course;
    /// let course = Course::strong(110.0, 60.0);
    /// assert_eq!((course.us(1), course.us(2), course.us(4)), (110.0, 60.0, 35.0));
    /// assert_eq!(Course::strong(100.0, 40.0).us(4), 20.0);
    /// assert_eq!(Course::strong(100.0, 120.0).us(4), 160.0);
    /// ```
    pub fn strong(one_us: f64, two_us: f64) -> Course {
        if two_us >= one_us {
            return Course::weak(one_us, two_us);
        }
        let constant_us = (2.0 * two_us - one_us).max(0.0);
        Course {
            divided_us: 2.0 * (two_us - constant_us),
            constant_us,
            each_us: 0.0,
        }
    }

    /// Of as many rows of each GPU.
    ///
    /// ```
    /// use warpfuse::plan::scaling::Course;
    /// assert_eq!(Course::weak(100.0, 101.0).us(8), 107.0);
    /// assert_eq!(Course::weak(100.0, 99.0).us(8), 100.0);
    /// ```
    pub fn weak(one_us: f64, two_us: f64) -> Course {
        Course {
            divided_us: 0.0,
            constant_us: one_us,
            each_us: (two_us - one_us).max(0.0),
        }
    }

    /// Of this many GPUs, without their sums.
    pub fn us(&self, gpus: u32) -> f64 {
        let gpus = f64::from(gpus.max(1));
        self.divided_us / gpus + self.constant_us + self.each_us * (gpus - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Machines, NETWORK, NVLINK, ONE_LAUNCH};
    use super::*;

    #[test]
    fn a_course_goes_through_the_times_that_it_was_made_of() {
        for (one, two) in [(100.0, 50.0), (100.0, 70.0), (100.0, 99.9), (100.0, 130.0)] {
            let course = Course::strong(one, two);
            assert!((course.us(1) - one).abs() < 1e-9, "{one} {two}");
            assert!((course.us(2) - two).abs() < 1e-9, "{one} {two}");
        }
    }

    #[test]
    fn more_gpus_never_take_longer_where_two_did_not() {
        for two in [30.0, 50.0, 75.0, 99.0] {
            let course = Course::strong(100.0, two);
            let times: Vec<f64> = (2..=64).map(|gpus| course.us(gpus)).collect();
            assert!(times.is_sorted_by(|more, fewer| more >= fewer), "{two}");
        }
    }

    #[test]
    fn a_link_is_found_again_in_the_sums_that_it_predicts() {
        let two = Machines {
            gpus: 2,
            nodes: 1,
            link: NVLINK,
            one_launch: ONE_LAUNCH,
            network: NETWORK,
        };
        let of = |small: u64, large: u64| {
            let time = |bytes| (bytes, two.sum_us(bytes));
            Link::of_two_gpus(time(small), time(large)).expect("a link")
        };
        for (found, expected) in [
            (of(64 << 20, 1 << 30), NVLINK),
            (of(224, 256 << 10), ONE_LAUNCH.link),
        ] {
            assert!((found.gb_s / expected.gb_s - 1.0).abs() < 1e-6);
            assert!((found.start_us - expected.start_us).abs() < 1e-3);
        }
    }
}
