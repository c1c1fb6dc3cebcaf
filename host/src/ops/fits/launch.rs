//! Small fits on a device that launches.

use std::ops::Range;

use gpu_kernels::fits::{FitArgs, FitVariant, NUMBERS, PLACES, REPORT};
use gpu_kernels::objective::LossClass;
use gpu_kernels::{Entry, Family, In, Launch};

use super::given::too_large;
use super::values::{FitRows, FitRules, Minima, SmallFit};
use crate::device::{Buffer, Device};
use crate::ops::{Number, OpError};
use crate::plan::fits::{FitPlan, FitShape, plan};

/// The rows of a launch, on the device.
pub(super) struct Arrays<'a, T> {
    pub(super) rows: usize,
    pub(super) x: In<'a, T>,
    pub(super) targets: In<'a, T>,
    pub(super) weights: In<'a, T>,
    pub(super) offset: In<'a, T>,
}

impl<'a, T: Number> Arrays<'a, T> {
    pub(super) fn of(rows: &FitRows<'a, T>) -> Self {
        Arrays {
            rows: rows.rows,
            x: rows.x.input(),
            targets: rows.targets.input(),
            weights: rows.weights.map_or(In::none(), Buffer::input),
            offset: rows.offset.map_or(In::none(), Buffer::input),
        }
    }
}

/// Fits that are launched some at a time: what they are told and what they tell lies on the device.
pub(super) struct Launches<'a, T: Number> {
    device: Device,
    shape: FitShape,
    plan: FitPlan,
    rules: &'a FitRules<'a>,
    entry: &'static Entry<T::Fits>,
    places: Buffer<u64>,
    numbers: Buffer<f64>,
    factors: Option<Buffer<f64>>,
    theta: Buffer<f64>,
    report: Buffer<f64>,
    status: Buffer<u32>,
}

/// Of rows of this many columns, this far from each other.
pub(super) fn shape<T: Number>((cols, pitch): (usize, usize), fits: &[SmallFit]) -> FitShape {
    FitShape {
        rows: fits.iter().map(|fit| fit.rows as u64).max().unwrap_or(0),
        cols: cols as u64,
        pitch: pitch as u64,
        bytes: T::SIZE,
    }
}

/// A block for the largest of all fits.
pub(super) fn planned(device: &Device, shape: &FitShape) -> Result<FitPlan, OpError> {
    let limits = device.limits().expect("what launches has limits");
    plan(shape, limits).ok_or_else(|| OpError::Strategy {
        strategy: format!("a block for a fit of {} columns", shape.cols),
        device: device.to_string(),
    })
}

impl<'a, T: Number> Launches<'a, T> {
    /// Of all fits, whose places count from the first row of the launch that each is in.
    pub(super) fn new(
        device: &Device,
        (shape, rules): (FitShape, &'a FitRules<'a>),
        fits: &[SmallFit],
        start: &[f64],
    ) -> Result<Self, OpError> {
        let places: Vec<u64> = fits.iter().flat_map(words).collect();
        let numbers = |fit: &SmallFit| [fit.scale, fit.l2, fit.intercept_l2];
        let numbers: Vec<f64> = fits.iter().flat_map(numbers).collect();
        let factors = rules.factors.map(|factors| device.upload(factors));
        Ok(Launches {
            plan: planned(device, &shape)?,
            entry: entry::<T>(rules),
            places: device.upload(&places)?,
            numbers: device.upload(&numbers)?,
            factors: factors.transpose()?,
            theta: device.upload(start)?,
            report: device.zeros(fits.len() * REPORT as usize)?,
            status: device.zeros(fits.len())?,
            device: device.clone(),
            shape,
            rules,
        })
    }

    /// Launches some of the fits.
    pub(super) fn launch(
        &mut self,
        fits: Range<usize>,
        arrays: Arrays<'_, T>,
    ) -> Result<(), OpError> {
        let launch = Launch {
            grid: grid(fits.len())?,
            block: self.plan.block,
            shared_bytes: self.plan.shared_bytes,
        };
        let kernel = self.device.prepare(self.entry, launch)?;
        Ok(kernel.launch(self.args(fits.start as u64, arrays))?)
    }

    fn args<'b>(&'b mut self, first: u64, arrays: Arrays<'b, T>) -> FitArgs<'b, T> {
        let order = self.shape.cols + 1;
        FitArgs {
            loss: self.rules.loss.code(),
            x: arrays.x,
            rows: arrays.rows as u64,
            pitch: self.shape.pitch,
            cols: self.shape.cols as u32,
            area: self.plan.area,
            has_intercept: u32::from(self.rules.has_intercept),
            standardizes: u32::from(self.rules.standardizes),
            places: self.places.input().after(first * PLACES),
            numbers: self.numbers.input().after(first * NUMBERS),
            targets: arrays.targets,
            weights: arrays.weights,
            offset: arrays.offset,
            factors: self.factors.as_ref().map_or(In::none(), Buffer::input),
            tolerance: self.rules.tolerance,
            most_steps: self.rules.max_iter,
            theta: self.theta.output().after(first * order),
            report: self.report.output().after(first * REPORT),
            status: self.status.output().after(first),
        }
    }

    /// What became of all fits; waits for them.
    pub(super) fn minima(self) -> Result<Minima, OpError> {
        let (words, report) = (self.status.to_vec()?, self.report.to_vec()?);
        let (figures, _) = report.as_chunks::<3>();
        let ends = words.into_iter().zip(figures.iter().copied());
        Minima::new(self.shape.cols as usize + 1, self.theta.to_vec()?, ends)
    }
}

fn entry<T: Number>(rules: &FitRules<'_>) -> &'static Entry<T::Fits> {
    let variant = match rules.loss.class() {
        LossClass::Logistic => FitVariant::Logistic,
        LossClass::Squared | LossClass::Any => FitVariant::Any,
    };
    let mut entries = T::Fits::entries().iter();
    let entry = entries.find(|entry| entry.variant == variant);
    entry.expect("the table has both")
}

/// What a kernel is told of where a fit begins.
fn words(fit: &SmallFit) -> [u64; 4] {
    [fit.row, fit.rows, fit.target, fit.weight].map(|word| word as u64)
}

fn grid(fits: usize) -> Result<u32, OpError> {
    let limit = i32::MAX as u32;
    match u32::try_from(fits) {
        Ok(fits) if fits <= limit => Ok(fits),
        _ => Err(too_large("fits of a launch", limit.into(), fits)),
    }
}
