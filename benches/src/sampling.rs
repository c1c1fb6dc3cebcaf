//! Timing: warm up, then the median of many samples.

use serde::Serialize;
use warpfuse::device::{Device, DeviceError, Timer};

/// Calls before the first that counts: module load, first touch, clocks.
const WARM_UP: usize = 3;
/// Samples behind every median.
const FEWEST: usize = 11;
/// More do not make a median better.
const MOST: usize = 101;
/// What a sample lasts at least: calls follow each other without a gap, as in an iteration, so that neither
/// the resolution of events nor the time between a mark and the first launch counts.
const SAMPLE_US: f64 = 2_000.0;
/// Calls of one sample; more would fill the queue of the driver.
const MOST_CALLS: usize = 64;

/// Microseconds of one call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// The middle one of all samples.
    pub median_us: f64,
    /// The shortest.
    pub min_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Times {
    /// Summarises samples.
    ///
    /// # Panics
    /// When there are none.
    pub fn of(mut samples: Vec<f64>) -> Times {
        samples.sort_by(f64::total_cmp);
        let (&min_us, &max_us) = samples
            .first()
            .zip(samples.last())
            .expect("at least one sample");
        Times {
            median_us: samples[samples.len() / 2],
            min_us,
            max_us,
        }
    }

    /// 10⁹ bytes a second at the median.
    pub fn gbs(&self, bytes: usize) -> f64 {
        bytes as f64 / self.median_us / 1e3
    }
}

/// How long a case is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    budget_us: f64,
}

impl Sampler {
    /// Samples for about this many milliseconds, but 11 times at least.
    pub fn new(budget_ms: u32) -> Sampler {
        Sampler {
            budget_us: f64::from(budget_ms) * 1e3,
        }
    }

    /// As few samples as make a median, for comparisons of many launches.
    pub fn brief() -> Sampler {
        Sampler::new(0)
    }

    /// Times `work`, which submits to `device` (or works on the CPU).
    ///
    /// # Errors
    /// What `work` or the device's timer returns.
    pub fn time<E: From<DeviceError>>(
        &self,
        device: &Device,
        mut work: impl FnMut() -> Result<(), E>,
    ) -> Result<Times, E> {
        let mut timer = Timer::new(device)?;
        for _ in 0..WARM_UP {
            work()?;
        }
        let single = per_call(&mut timer, 1, &mut work)?;
        let calls = ((SAMPLE_US / single).ceil() as usize).clamp(1, MOST_CALLS);
        let samples = (self.budget_us / (single * calls as f64)) as usize;
        let samples =
            (0..samples.clamp(FEWEST, MOST)).map(|_| per_call(&mut timer, calls, &mut work));
        Ok(Times::of(samples.collect::<Result<_, E>>()?))
    }

    /// Times two pieces of work on the CPU in turns, so that whatever else the machine does meets both.
    ///
    /// # Errors
    /// What the timer or either piece returns.
    pub fn alternate<E: From<DeviceError>>(
        &self,
        mut first: impl FnMut() -> Result<(), E>,
        mut second: impl FnMut() -> Result<(), E>,
    ) -> Result<(Times, Times), E> {
        let mut timer = Timer::new(&Device::cpu())?;
        for _ in 0..WARM_UP {
            first()?;
            second()?;
        }
        let single = per_call(&mut timer, 1, &mut first)?;
        let calls = ((SAMPLE_US / single).ceil() as usize).clamp(1, MOST_CALLS);
        let samples = (self.budget_us / (single * calls as f64)) as usize;
        let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
        for _ in 0..samples.clamp(FEWEST, MOST) {
            firsts.push(per_call(&mut timer, calls, &mut first)?);
            seconds.push(per_call(&mut timer, calls, &mut second)?);
        }
        Ok((Times::of(firsts), Times::of(seconds)))
    }
}

/// Microseconds of one of `calls` calls.
fn per_call<E: From<DeviceError>>(
    timer: &mut Timer,
    calls: usize,
    work: &mut impl FnMut() -> Result<(), E>,
) -> Result<f64, E> {
    timer.start()?;
    for _ in 0..calls {
        work()?;
    }
    Ok(timer.stop()? / calls as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ordered_and_the_median_is_in_the_middle() {
        let times = Times::of(vec![9.0, 1.0, 5.0]);
        assert_eq!(
            times,
            Times {
                median_us: 5.0,
                min_us: 1.0,
                max_us: 9.0
            }
        );
        assert_eq!(times.gbs(5_000), 1.0);
    }

    #[test]
    fn two_pieces_of_work_take_turns() {
        let turns = std::cell::RefCell::new(Vec::new());
        let work = |name: char| -> Result<(), DeviceError> {
            turns.borrow_mut().push(name);
            // So long that a sample is one call.
            std::thread::sleep(std::time::Duration::from_micros(2_100));
            Ok(())
        };
        let (a, b) = Sampler::brief()
            .alternate(|| work('a'), || work('b'))
            .expect("no error");
        assert!(a.min_us >= 2_100.0 && b.min_us >= 2_100.0);
        let turns = turns.into_inner();
        assert!(
            turns[turns.len() - 2 * FEWEST..]
                .iter()
                .copied()
                .eq("ab".chars().cycle().take(2 * FEWEST))
        );
    }

    #[test]
    fn work_is_sampled_often_enough_and_its_error_comes_through() {
        let mut calls = 0;
        let device = Device::cpu();
        let count = |calls: &mut usize| -> Result<(), DeviceError> {
            *calls += 1;
            std::thread::sleep(std::time::Duration::from_millis(2));
            Ok(())
        };
        let times = Sampler::brief()
            .time(&device, || count(&mut calls))
            .expect("no error");
        assert!(calls >= WARM_UP + FEWEST && times.min_us >= 2_000.0);
        let error = DeviceError::UnknownDevice { text: "x".into() };
        let failed: Result<Times, DeviceError> =
            Sampler::brief().time(&device, || Err(error.clone()));
        assert_eq!(failed, Err(error));
    }
}
