//! The families that can be tuned.

mod conv1d;
mod fused;
mod kernel_sum;
mod matmul;
mod qr;
mod reduce;
mod sparse_conv;

pub use conv1d::Conv1dSubject;
pub use fused::FusedSubject;
pub use kernel_sum::{KernelSumSize, KernelSumSubject};
pub use matmul::MatmulSubject;
pub use qr::QrSubject;
pub use reduce::ReduceSubject;
pub use sparse_conv::SparseConvSubject;

use crate::device::{Device, DeviceError, Timer};
use crate::matrix::Element;

use super::{Point, Refusal, TuneError};

/// The launches of a subject's points, and which of them the planner makes.
#[derive(Debug)]
struct Launches<L> {
    points: Vec<Point>,
    all: Vec<L>,
    incumbent: usize,
    /// The point whose result was right, of the last that ran.
    checked: Option<usize>,
}

impl<L> Launches<L> {
    /// Those of a space, and where the planner's choice is `found` in none of them, that one besides.
    fn new(
        of_space: Vec<(Point, L)>,
        found: Option<usize>,
        own: impl FnOnce() -> (Point, L),
    ) -> Launches<L> {
        let (points, all): (Vec<Point>, Vec<L>) = of_space.into_iter().unzip();
        let incumbent = found.unwrap_or(points.len());
        let mut launches = Launches {
            points,
            all,
            incumbent,
            checked: None,
        };
        if found.is_none() {
            launches.push(own());
        }
        launches
    }

    fn push(&mut self, (point, launch): (Point, L)) {
        self.points.push(point);
        self.all.push(launch);
    }

    /// Fails for a point whose result was not found to be right just now.
    fn expect_checked(&self, point: usize) -> Result<(), Refusal> {
        match self.checked == Some(point) {
            true => Ok(()),
            false => Err(Refusal::Failed("it was not checked".into())),
        }
    }
}

/// What a sample lasts at least, microseconds: calls follow one another without a gap.
const SAMPLE_US: f64 = 1_000.0;
const MOST_CALLS: f64 = 64.0;
/// An odd number, so that there is a middle one.
const SAMPLES: usize = 7;

/// The median time of a call, microseconds; the first one's where that is above `hopeless_us`, and on an emulator, whose times say
/// nothing of a GPU's.
fn median_us<E: std::error::Error + From<DeviceError>>(
    device: &Device,
    hopeless_us: f64,
    mut call: impl FnMut() -> Result<(), E>,
) -> Result<f64, Refusal> {
    let mut timer = Timer::new(device)?;
    let mut of_calls = |calls: u32| -> Result<f64, Refusal> {
        timer.start()?;
        for _ in 0..calls {
            call()?;
        }
        Ok(timer.stop()? / f64::from(calls))
    };
    let single = of_calls(1)?;
    if single > hopeless_us || matches!(device, Device::Emulator(_)) {
        return Ok(single);
    }
    let calls = (SAMPLE_US / single).ceil().clamp(1.0, MOST_CALLS) as u32;
    let mut samples = [0.0; SAMPLES];
    for sample in &mut samples {
        *sample = of_calls(calls)?;
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[SAMPLES / 2])
}

/// Whether a device still answers.
fn answers(device: &Device) -> bool {
    let word = device.zeros::<u32>(1);
    word.and_then(|word| word.to_vec()).is_ok()
}

/// Fails on a device that launches nothing.
fn expect_launches(device: &Device) -> Result<(), TuneError> {
    match device.limits() {
        Some(_) => Ok(()),
        None => Err(TuneError::NoLaunches {
            device: device.to_string(),
        }),
    }
}

/// Numbers in [−½, ½) from a multiplicative hash, the same on every run.
fn numbers<T: Element>(len: usize, seed: u32) -> Vec<T> {
    let number = |i: usize| {
        let hash = (i as u32).wrapping_add(seed).wrapping_mul(2_654_435_761);
        let hash = (hash ^ (hash >> 15)).wrapping_mul(0x85eb_ca6b);
        T::from_f64(f64::from(hash ^ (hash >> 13)) / 4_294_967_296.0 - 0.5)
    };
    (0..len).map(number).collect()
}

/// In f64, without rounding.
fn wide<T: Element>(value: T) -> f64 {
    value.to_f64()
}
