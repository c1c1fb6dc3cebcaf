//! Strategies of a convolutional layer with sparse filters.

use super::super::{Point, Refusal, Subject, TuneError};
use super::{Launches, answers, expect_launches, median_us, numbers};
use crate::device::{Buffer, Device};
use crate::matrix::filters::{FilterValue, SparseFilters};
use crate::ops::OpError;
use crate::ops::sparse_conv::{
    ConvElement, ConvPlan, ConvShape, ConvStrategy, ConvSum, ConvWork, Layer, MapLayout, Maps,
    SparseConv, SparseConvError, work_of,
};
use crate::plan::sparse_conv::{plan, points};
use crate::plan::tuned::{Launch, class};

/// Integers of filters and inputs are at most this: sums of 32 bits hold them.
const MOST_INTEGER: f64 = 7.0;

/// A layer over pseudo-random maps, without bias. The element type decides what strategies there are.
pub struct SparseConvSubject<E: ConvElement> {
    device: Device,
    shape: ConvShape,
    work: ConvWork,
    filters: SparseFilters<E::Value>,
    x: Maps<E>,
    out: Buffer<E::Sum>,
    truth: Truth,
    launches: Launches<ConvStrategy>,
    /// The layer of the point that was checked last.
    current: Option<SparseConv<E>>,
}

impl<E: ConvElement> std::fmt::Debug for SparseConvSubject<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparseConvSubject")
            .field("shape", &self.shape)
            .field("launches", &self.launches)
            .finish_non_exhaustive()
    }
}

impl<E: ConvElement> SparseConvSubject<E> {
    /// A layer of this shape, of whose weights `density`, from 0 to 1, are no zeros, on a device that launches.
    ///
    /// # Errors
    /// [`TuneError::NoLaunches`] on the CPU, [`TuneError::SparseConv`] for impossible shapes, [`TuneError::Op`] when memory is
    /// short.
    pub fn new(
        device: &Device,
        shape: ConvShape,
        density: f64,
    ) -> Result<SparseConvSubject<E>, TuneError> {
        expect_launches(device)?;
        shape.check().map_err(SparseConvError::from)?;
        let filters = filters::<E>(&shape, density)?;
        let x = values::<E>(shape.inputs(), 1);
        let limits = device.limits().expect("it launches");
        let work = work_of::<E>(limits, &shape, &filters, 0);
        let chosen = plan(&shape, &work, limits);
        let points = points(&shape, &work, limits);
        let found = points
            .iter()
            .position(|plan| plan.strategy == chosen.strategy);
        let points = points
            .into_iter()
            .map(|plan| point(&plan, &chosen))
            .collect();
        let launches = Launches::new(points, found, || point(&chosen, &chosen));
        Ok(SparseConvSubject {
            truth: Truth::of::<E>(&shape, &filters, &x)?,
            x: Maps::upload(device, &x)?,
            out: device.zeros(shape.results())?,
            device: device.clone(),
            shape,
            work,
            filters,
            launches,
            current: None,
        })
    }

    fn convolve(&mut self) -> Result<(), OpError> {
        let layer = self.current.as_ref().expect("it was just made");
        layer.run(&self.x, &mut self.out)
    }
}

/// What a model expects is what the planner expected of this strategy when it chose.
fn point(plan: &ConvPlan, chosen: &ConvPlan) -> (Point, ConvStrategy) {
    let strategy = plan.strategy;
    let mut predicted = chosen.predicted_us.iter();
    let us = predicted.find(|(known, _)| *known == strategy);
    let point = Point {
        predicted_us: us.map(|(_, us)| *us),
        ..Point::new(strategy.to_string(), vec![strategy as u8 as f64])
    };
    (point.launched_by(Launch::SparseConv { strategy }), strategy)
}

/// Numbers of the type: whole ones of integers, in [−½, ½) of floats.
fn values<E: ConvElement>(len: usize, seed: u32) -> Vec<E::Value> {
    let of = |number: f64| match E::MOST.is_finite() {
        true => (2.0 * MOST_INTEGER * number).round(),
        false => number,
    };
    let numbers = numbers::<f64>(len, seed).into_iter();
    numbers
        .map(|number| E::Value::from_f64(of(number)))
        .collect()
}

fn filters<E: ConvElement>(
    shape: &ConvShape,
    density: f64,
) -> Result<SparseFilters<E::Value>, TuneError> {
    let of_filters = shape.filter_shape();
    let mut weights = values::<E>(of_filters.weights(), 2);
    let drawn = numbers::<f64>(weights.len(), 3);
    for (weight, drawn) in weights.iter_mut().zip(drawn) {
        if drawn + 0.5 >= density {
            *weight = E::Value::default();
        }
    }
    SparseFilters::from_dense(of_filters, &weights)
        .map_err(|error| TuneError::SparseConv(error.into()))
}

impl<E: ConvElement> Subject for SparseConvSubject<E> {
    fn class(&self) -> String {
        class::sparse_conv(E::NAME, &self.shape, &self.work)
    }

    fn points(&self) -> &[Point] {
        &self.launches.points
    }

    fn incumbent(&self) -> usize {
        self.launches.incumbent
    }

    fn is_usable(&self) -> bool {
        answers(&self.device)
    }

    fn check(&mut self, point: usize) -> Result<(), Refusal> {
        self.launches.checked = None;
        let layer = Layer {
            strategy: Some(self.launches.all[point]),
            ..Layer::default()
        };
        self.current = None;
        let layer = SparseConv::new(&self.device, &self.shape, &self.filters, layer)?;
        self.current = Some(layer);
        // Nothing of what another point has left.
        self.out = self.device.zeros(self.shape.results())?;
        self.convolve()?;
        let found: Vec<f64> = self
            .out
            .to_vec()?
            .into_iter()
            .map(ConvSum::to_f64)
            .collect();
        self.truth.judge(&found)?;
        self.launches.checked = Some(point);
        Ok(())
    }

    fn time(&mut self, point: usize, hopeless_us: f64) -> Result<f64, Refusal> {
        self.launches.expect_checked(point)?;
        let device = self.device.clone();
        median_us::<OpError>(&device, hopeless_us, || self.convolve())
    }
}

/// The results of the CPU, and how far those of a filter may be from them: nothing for integers; for floats 3·n roundings of
/// Σ |w|·max |x| on each side, n the nonzeros of the filter.
#[derive(Debug)]
struct Truth {
    results: Vec<f64>,
    bounds: Vec<f64>,
    /// Results of one filter that follow one another, and whether filters follow then.
    plane: usize,
}

impl Truth {
    fn of<E: ConvElement>(
        shape: &ConvShape,
        filters: &SparseFilters<E::Value>,
        x: &[E::Value],
    ) -> Result<Truth, TuneError> {
        let layer = SparseConv::<E>::new(&Device::cpu(), shape, filters, Layer::default())?;
        let results = layer.run_on_host_arrays(x)?;
        let unit = match (E::MOST.is_finite(), size_of::<E::Sum>()) {
            (true, _) => 0.0,
            (false, 4) => f64::from(f32::EPSILON) / 2.0,
            (false, _) => f64::EPSILON / 2.0,
        };
        let largest = x.iter().map(|x| x.magnitude()).fold(0.0, f64::max);
        let bound = |filter: usize| {
            let (mut count, mut size) = (0.0, 0.0);
            for (_, nonzero) in filters.of_filter(filter) {
                count += 1.0;
                size += nonzero.value.magnitude();
            }
            2.0 * 3.0 * (count + 2.0) * unit * size * largest
        };
        let bounds: Vec<f64> = (0..shape.filters).map(bound).collect();
        let plane = match shape.layout {
            MapLayout::Nhwc => 1,
            MapLayout::Nchw => results.len() / (shape.batch * shape.filters).max(1),
        };
        let results = results.into_iter().map(ConvSum::to_f64).collect();
        Ok(Truth {
            results,
            bounds,
            plane,
        })
    }

    fn judge(&self, found: &[f64]) -> Result<(), Refusal> {
        for (at, (found, truth)) in found.iter().zip(&self.results).enumerate() {
            let bound = self.bounds[at / self.plane % self.bounds.len()];
            let error = (found - truth).abs();
            if error > bound || error.is_nan() {
                let text = format!("result {at} is off by {error:.1e} of {bound:.1e}");
                return Err(Refusal::Wrong(text));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::sparse_conv::I16;

    fn truth<E: ConvElement>(layout: MapLayout) -> Truth {
        let shape = ConvShape {
            batch: 2,
            layout,
            ..ConvShape::new(3, [9, 7], 5, [3; 2])
        };
        let filters = filters::<E>(&shape, 0.3).expect("filters");
        let x = values::<E>(shape.inputs(), 1);
        Truth::of::<E>(&shape, &filters, &x).expect("the CPU computes it")
    }

    #[test]
    fn of_twenty_planted_errors_twenty_are_refused() {
        for truth in [
            truth::<I16>(MapLayout::Nchw),
            truth::<f32>(MapLayout::Nhwc),
            truth::<f64>(MapLayout::Nchw),
        ] {
            let right = truth.results.clone();
            assert_eq!(truth.judge(&right), Ok(()));
            for planted in 0..20 {
                let mut wrong = right.clone();
                let at = [0, right.len() - 1, 17 * planted % right.len()][planted % 3];
                wrong[at] = match planted % 4 {
                    0 => f64::NAN,
                    1 => wrong[at] + 1.0,
                    2 => f64::INFINITY,
                    _ => -wrong[at] + 1e-2,
                };
                assert!(truth.judge(&wrong).is_err(), "error {planted} of {at}");
            }
        }
    }

    #[test]
    fn the_cpu_has_nothing_to_choose() {
        let shape = ConvShape::new(1, [3; 2], 1, [2; 2]);
        let refused = SparseConvSubject::<f32>::new(&Device::cpu(), shape, 0.5);
        assert!(matches!(refused, Err(TuneError::NoLaunches { .. })));
    }
}
