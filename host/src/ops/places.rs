//! Passes over X in the places where they could be computed, timed: how predictions of
//! [`plan::alternatives`](crate::plan::alternatives) are judged.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use super::forms::host_share::fit;
use super::{
    HostShare, Matrix, MatrixOptions, Number, OpError, Preparation, Residency, Terms,
    problem_on_gpu,
};
use crate::cpu::Scalar;
use crate::device::{Buffer, Device};
use crate::matrix::Features;
use crate::plan::alternatives::{Alternative, Fit, FitPlace};
use crate::plan::streaming::{Beside, Footprint};

/// Passes that are timed at most; an odd number, so that there is a middle one.
const MOST_PASSES: u64 = 7;
/// Seconds after which no further pass is timed.
const ENOUGH_SECONDS: f64 = 2.0;

/// What `reads` passes over `features` would take on the CPU, on `device` and on both, once the device is open; `None` where
/// it is the CPU, and where no launch can be planned. X may take [`MatrixOptions::device_bytes`] of a GPU where it streams,
/// or as many as there is room for.
///
/// ```
/// use warpfuse::device::Device;
/// use warpfuse::matrix::Features;
/// use warpfuse::ops::{MatrixOptions, predicted_places};
///
/// let x = Features::Dense(ndarray::array![[1.0, 2.0], [3.0, 4.0]]);
/// assert_eq!(predicted_places(&Device::cpu(), &x, 100, MatrixOptions::default()), None);
/// ```
pub fn predicted_places<T: Number>(
    device: &Device,
    features: &Features<T>,
    reads: u64,
    options: MatrixOptions,
) -> Option<Fit> {
    let problem = problem_on_gpu(device.limits()?, features, options.values);
    let room = device.room().map_or(u64::MAX >> 1, |room| room as u64);
    let room = room - Footprint::of(&problem.as_stored()).reserve(room, Beside::Products);
    let room = options.device_bytes.map_or(room, |own| own.min(room));
    fit(device, (features, &problem), (reads, room), options)
}

/// What passes over X took in a place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredPlace {
    /// Where.
    pub place: FitPlace,
    /// Seconds of all passes, and of what comes before them: the time until X was placed, and as often the middle one of
    /// some passes as there are to be. Opening the device is not among them.
    pub seconds: f64,
    /// Seconds until X was placed and everything planned.
    pub place_seconds: f64,
    /// Seconds of a fused product, the middle one of some.
    pub pass_seconds: f64,
    /// Bytes that crossed the link in one of them.
    pub pass_bytes: u64,
    /// Where X lay.
    pub residency: Residency,
}

impl MeasuredPlace {
    /// Times `reads` passes over `features` where `alternative` says; `device` is the GPU, on which X may take `room` bytes
    /// where it streams.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::{MatrixOptions, MeasuredPlace};
    /// use warpfuse::plan::alternatives::{Alternative, FitPlace};
    ///
    /// let x = Arc::new(Features::Dense(ndarray::array![[1.0, 2.0], [3.0, 4.0]]));
    /// let cpu = Alternative { place: FitPlace::Cpu, seconds: 0.0, pass_seconds: 0.0, sent_bytes: 0, host_share: 1.0, fits: true };
    /// let measured = MeasuredPlace::of(&Device::cpu(), &x, (&cpu, 10, 0), MatrixOptions::default())?;
    /// assert!(measured.seconds > 0.0 && measured.pass_bytes == 0);
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Matrix::prepared`] and [`Matrix::fused`].
    pub fn of<T: Number>(
        device: &Device,
        features: &Arc<Features<T>>,
        (alternative, reads, room): (&Alternative, u64, u64),
        options: MatrixOptions,
    ) -> Result<MeasuredPlace, OpError> {
        let place = alternative.place;
        let (device, device_bytes) = match place {
            FitPlace::Cpu => (&Device::cpu(), None),
            FitPlace::Resident => (device, None),
            FitPlace::Streaming | FitPlace::Hybrid => (device, Some(room)),
        };
        let options = MatrixOptions {
            device_bytes,
            host_share: HostShare::Fixed(alternative.host_share),
            ..options
        };
        let begun = Instant::now();
        let to_come = Preparation::For { evaluations: reads };
        let x = Matrix::prepared(device, features.clone(), options, to_come)?;
        let mut pass = Pass::new(&x)?;
        // Plans, kernels, and what is page-locked when it first crosses.
        let first = pass.seconds()?;
        let place_seconds = begun.elapsed().as_secs_f64();
        let before = device.usage().sent_bytes;
        let mut passes = pass.repeated(reads.clamp(1, MOST_PASSES))?;
        let pass_bytes = (device.usage().sent_bytes - before) / passes.len() as u64;
        passes.sort_by(f64::total_cmp);
        let pass_seconds = passes[passes.len() / 2];
        // The first pass is one of those that are to be.
        let own = place_seconds - first.min(pass_seconds);
        Ok(MeasuredPlace {
            place,
            seconds: own + reads as f64 * pass_seconds,
            place_seconds,
            pass_seconds,
            pass_bytes,
            residency: x.residency(),
        })
    }
}

/// A fused product with its vectors.
struct Pass<'a, T: Number> {
    x: &'a Matrix<T>,
    y: Buffer<T>,
    w: Buffer<T>,
}

impl<'a, T: Number> Pass<'a, T> {
    fn new(x: &'a Matrix<T>) -> Result<Self, OpError> {
        let half = <T as Scalar>::narrow(0.5);
        Ok(Pass {
            x,
            y: x.device().upload(&vec![half; x.cols()])?,
            w: x.device().zeros(x.cols())?,
        })
    }

    fn seconds(&mut self) -> Result<f64, OpError> {
        self.x.device().synchronize()?;
        let begun = Instant::now();
        self.x.fused(&self.y, &Terms::default(), &mut self.w)?;
        self.x.device().synchronize()?;
        Ok(begun.elapsed().as_secs_f64())
    }

    /// `count` passes, or fewer where they take long.
    fn repeated(&mut self, count: u64) -> Result<Vec<f64>, OpError> {
        let begun = Instant::now();
        let mut all = Vec::new();
        while (all.len() as u64) < count {
            all.push(self.seconds()?);
            if begun.elapsed().as_secs_f64() > ENOUGH_SECONDS {
                break;
            }
        }
        Ok(all)
    }
}
