//! Strategies and grids of a one-dimensional convolution.

use super::super::{Point, Refusal, Subject, TuneError};
use super::{Launches, answers, expect_launches, median_us, numbers, wide};
use crate::device::{Buffer, Device};
use crate::ops::OpError;
use crate::ops::conv1d::{Conv1dNumber, Conv1dPlan, Conv1dShape, conv1d, conv1d_by};
use crate::plan::conv1d::{plan, points};
use crate::plan::tuned::{Launch, class};

/// A convolution of pseudo-random numbers. All strategies give the same bits, so that they are compared with those of the CPU.
#[derive(Debug)]
pub struct Conv1dSubject<T: Conv1dNumber> {
    shape: Conv1dShape,
    x: Buffer<T>,
    filters: Buffer<T>,
    out: Buffer<T>,
    truth: Vec<T>,
    launches: Launches<Conv1dPlan>,
}

impl<T: Conv1dNumber> Conv1dSubject<T> {
    /// A convolution of this shape on a device that launches.
    ///
    /// # Errors
    /// [`TuneError::NoLaunches`] on the CPU, [`TuneError::Op`] for impossible shapes, and when memory is short.
    pub fn new(device: &Device, shape: Conv1dShape) -> Result<Conv1dSubject<T>, TuneError> {
        expect_launches(device)?;
        shape.check().map_err(OpError::from)?;
        let limits = device.limits().expect("it launches");
        let chosen = plan(&shape, T::SIZE, limits);
        let plans = points(&shape, T::SIZE, limits);
        let found = plans.iter().position(|plan| *plan == chosen);
        let plans = plans.into_iter().map(point).collect();
        let host = [
            numbers::<T>(shape.in_channels * shape.len, 1),
            numbers::<T>(shape.filter_elements(), 2),
        ];
        let outputs = shape.out_channels * shape.out_len();
        Ok(Conv1dSubject {
            shape,
            x: device.upload(&host[0])?,
            filters: device.upload(&host[1])?,
            out: device.zeros(outputs)?,
            truth: of_cpu(&shape, &host, outputs)?,
            launches: Launches::new(plans, found, || point(chosen)),
        })
    }

    fn convolve(&mut self, point: usize) -> Result<(), OpError> {
        let plan = &self.launches.all[point];
        conv1d_by(plan, &self.shape, &self.x, &self.filters, &mut self.out)
    }
}

fn of_cpu<T: Conv1dNumber>(
    shape: &Conv1dShape,
    [x, filters]: &[Vec<T>; 2],
    outputs: usize,
) -> Result<Vec<T>, OpError> {
    let cpu = Device::cpu();
    let mut out = cpu.zeros(outputs)?;
    conv1d(shape, &cpu.upload(x)?, &cpu.upload(filters)?, &mut out)?;
    Ok(out.to_vec()?)
}

fn point(plan: Conv1dPlan) -> (Point, Conv1dPlan) {
    let Conv1dPlan { strategy, grid, .. } = plan;
    // Strategies that are not alike are far from one another.
    let coordinates = vec![16.0 * f64::from(strategy as u8), f64::from(grid).log2()];
    let point = Point::new(
        format!("{strategy:?} grid{grid}").to_lowercase(),
        coordinates,
    );
    (point.launched_by(Launch::Conv1d(plan)), plan)
}

impl<T: Conv1dNumber> Subject for Conv1dSubject<T> {
    fn class(&self) -> String {
        class::conv1d(T::PRECISION, &self.shape)
    }

    fn points(&self) -> &[Point] {
        &self.launches.points
    }

    fn incumbent(&self) -> usize {
        self.launches.incumbent
    }

    fn is_usable(&self) -> bool {
        answers(&self.out.device())
    }

    fn check(&mut self, point: usize) -> Result<(), Refusal> {
        self.launches.checked = None;
        let nan = vec![T::from_f64(f64::NAN); self.out.len()];
        self.out.copy_from_slice(&nan)?;
        self.convolve(point)?;
        let found = self.out.to_vec()?;
        let differs = |(found, truth): (&T, &T)| wide(*found).to_bits() != wide(*truth).to_bits();
        if let Some(at) = found.iter().zip(&self.truth).position(differs) {
            let (found, truth) = (wide(found[at]), wide(self.truth[at]));
            return Err(Refusal::Wrong(format!(
                "output {at} is {found}, not {truth}"
            )));
        }
        self.launches.checked = Some(point);
        Ok(())
    }

    fn time(&mut self, point: usize, hopeless_us: f64) -> Result<f64, Refusal> {
        self.launches.expect_checked(point)?;
        let device = self.out.device();
        median_us::<OpError>(&device, hopeless_us, || self.convolve(point))
    }
}
