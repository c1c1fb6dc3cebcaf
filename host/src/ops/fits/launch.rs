//! Small fits on a device that launches.

use gpu_kernels::fits::{FitArgs, FitVariant, REPORT};
use gpu_kernels::objective::LossClass;
use gpu_kernels::{Family, In, Launch};

use super::{FitRows, FitRules, Minima, SmallFit};
use crate::device::Buffer;
use crate::ops::{Number, OpError};
use crate::plan::fits::{FitPlan, FitShape, plan};

pub(super) fn minimise<T: Number>(
    rows: &FitRows<'_, T>,
    rules: &FitRules<'_>,
    fits: &[SmallFit],
    start: &[f64],
) -> Result<Minima, OpError> {
    let device = rows.x.device();
    let plan = planned(rows, fits)?;
    let places: Vec<u64> = fits.iter().flat_map(words).collect();
    let numbers: Vec<f64> = fits
        .iter()
        .flat_map(|fit| [fit.scale, fit.l2, fit.intercept_l2])
        .collect();
    let (places, numbers) = (device.upload(&places)?, device.upload(&numbers)?);
    let factors = rules
        .factors
        .map(|factors| device.upload(factors))
        .transpose()?;
    let mut theta = device.upload(start)?;
    let mut report = device.zeros::<f64>(fits.len() * REPORT as usize)?;
    let mut status = device.zeros::<u32>(fits.len())?;
    let args = FitArgs {
        loss: rules.loss.code(),
        x: rows.x.input(),
        rows: rows.rows as u64,
        pitch: rows.pitch as u64,
        cols: rows.cols as u32,
        area: plan.area,
        has_intercept: u32::from(rules.has_intercept),
        standardizes: u32::from(rules.standardizes),
        places: places.input(),
        numbers: numbers.input(),
        targets: rows.targets.input(),
        weights: rows.weights.map_or(In::none(), Buffer::input),
        offset: rows.offset.map_or(In::none(), Buffer::input),
        factors: factors.as_ref().map_or(In::none(), Buffer::input),
        tolerance: rules.tolerance,
        most_steps: rules.max_iter,
        theta: theta.output(),
        report: report.output(),
        status: status.output(),
    };
    let launch = Launch {
        grid: grid(fits.len())?,
        block: plan.block,
        shared_bytes: plan.shared_bytes,
    };
    let variant = match rules.loss.class() {
        LossClass::Logistic => FitVariant::Logistic,
        LossClass::Squared | LossClass::Any => FitVariant::Any,
    };
    let mut entries = T::Fits::entries().iter();
    let entry = entries.find(|entry| entry.variant == variant);
    let entry = entry.expect("the table has both");
    device.prepare(entry, launch)?.launch(args)?;
    let order = rows.cols + 1;
    Minima::new(order, theta.to_vec()?, &status.to_vec()?, &report.to_vec()?)
}

/// What a kernel is told of where a fit begins.
fn words(fit: &SmallFit) -> [u64; 4] {
    [fit.row, fit.rows, fit.target, fit.weight].map(|word| word as u64)
}

fn grid(fits: usize) -> Result<u32, OpError> {
    let limit = i32::MAX as u32;
    match u32::try_from(fits) {
        Ok(fits) if fits <= limit => Ok(fits),
        _ => Err(super::too_large("fits of a launch", limit.into(), fits)),
    }
}

fn planned<T: Number>(rows: &FitRows<'_, T>, fits: &[SmallFit]) -> Result<FitPlan, OpError> {
    let device = rows.x.device();
    let limits = device.limits().expect("what launches has limits");
    let shape = FitShape {
        rows: fits.iter().map(|fit| fit.rows as u64).max().unwrap_or(0),
        cols: rows.cols as u64,
        pitch: rows.pitch as u64,
        bytes: T::SIZE,
    };
    plan(&shape, limits).ok_or_else(|| OpError::Strategy {
        strategy: format!("a block for a fit of {} columns", rows.cols),
        device: device.to_string(),
    })
}
