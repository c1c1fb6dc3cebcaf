//! Ways to cut the sum of an array into chunks.

use std::any::type_name;

use gpu_kernels::reduce::{Statistic, Term};

use super::super::{Point, Refusal, Subject, TuneError};
use super::{Launches, answers, expect_launches, median_us, numbers, wide};
use crate::device::{Buffer, Device};
use crate::matrix::Element;
use crate::ops::OpError;
use crate::ops::reduce::{Reducer, Reducible};
use crate::plan::reduce::{Reproducibility, WholePlan, points, whole};
use crate::plan::tuned::{Launch, class};
use crate::reference::reduce::{Bounded, sum};

/// The sum of an array of pseudo-random numbers. Ways that differ in their chunks add in different orders: what is found is for
/// sums of which the same bits on every device are not promised.
#[derive(Debug)]
pub struct ReduceSubject<T: Reducible> {
    x: Buffer<T>,
    reducer: Reducer,
    truth: Bounded,
    launches: Launches<WholePlan>,
}

impl<T: Reducible<Sum = f64> + Element> ReduceSubject<T> {
    /// An array of `len` elements, one at least, on a device that launches.
    ///
    /// # Errors
    /// [`TuneError::NoLaunches`] on the CPU, [`TuneError::Op`] when memory is short or there are no elements.
    pub fn new(device: &Device, len: usize) -> Result<ReduceSubject<T>, TuneError> {
        expect_launches(device)?;
        if len == 0 {
            let (what, expected, found) = ("x", 1, 0);
            return Err(OpError::Length {
                what,
                expected,
                found,
            }
            .into());
        }
        let bytes = size_of::<T>() as u32;
        let limits = device.limits().expect("it launches");
        // What sums take a table for: those whose bits are of one device.
        let chosen = whole(len as u64, bytes, Reproducibility::Run, limits);
        let plans = points(len as u64, bytes, limits);
        let found = plans.iter().position(|plan| *plan == chosen);
        let plans = plans.into_iter().map(point).collect();
        let host = numbers::<T>(len, 1);
        Ok(ReduceSubject {
            x: device.upload(&host)?,
            reducer: Reducer::new(device)?,
            truth: sum(host.into_iter().map(wide)),
            launches: Launches::new(plans, found, || point(chosen)),
        })
    }
}

fn point(plan: WholePlan) -> (Point, WholePlan) {
    let WholePlan {
        chunks,
        rows_per_chunk,
        order,
        grid,
    } = plan;
    let power = |value: u64| (value.max(1) as f64).log2();
    let name = format!("{order:?} chunks{chunks} rows{rows_per_chunk} grid{grid}").to_lowercase();
    let coordinates = vec![order as u8 as f64, power(chunks), power(u64::from(grid))];
    let point = Point::new(name, coordinates).launched_by(Launch::Reduce(plan));
    (point, plan)
}

impl<T: Reducible<Sum = f64> + Element> Subject for ReduceSubject<T> {
    fn class(&self) -> String {
        class::reduce(type_name::<T>(), self.x.len())
    }

    fn points(&self) -> &[Point] {
        &self.launches.points
    }

    fn incumbent(&self) -> usize {
        self.launches.incumbent
    }

    fn is_usable(&self) -> bool {
        answers(&self.x.device())
    }

    fn check(&mut self, point: usize) -> Result<(), Refusal> {
        self.launches.checked = None;
        let found = self.reducer.sum_by(&self.x, &self.launches.all[point])?;
        let bound = self.truth.bound(self.x.len(), f64::EPSILON / 2.0);
        let error = (found - self.truth.value).abs();
        if error > bound || error.is_nan() {
            let text = format!("the sum is off by {error:.1e} of {bound:.1e}");
            return Err(Refusal::Wrong(text));
        }
        self.launches.checked = Some(point);
        Ok(())
    }

    fn time(&mut self, point: usize, hopeless_us: f64) -> Result<f64, Refusal> {
        self.launches.expect_checked(point)?;
        let device = self.x.device();
        let statistic = Statistic::Sum(Term::Value);
        let repeated = self
            .reducer
            .repeated_by(statistic, &self.x, &self.launches.all[point])?;
        median_us::<OpError>(&device, hopeless_us, || repeated.submit())
    }
}
