//! Launches of the fused pattern `w = Xᵀ(X·y)`.

use std::sync::Arc;

use super::super::{Point, Refusal, Subject, TuneError};
use super::{Launches, answers, expect_launches, median_us, numbers, wide};
use crate::device::{Buffer, Device};
use crate::matrix::{Dtype, Element, Features};
use crate::ops::{Matrix, MatrixOptions, Number, OpError, Terms};
use crate::plan::fused::{Forced, Plan, Product, Trial};
use crate::plan::tuned::{Launch, class};
use crate::reference::fused as reference;

/// One matrix, and the fused product without optional terms.
pub struct FusedSubject<T: Number> {
    matrix: Matrix<T>,
    options: MatrixOptions,
    y: Buffer<T>,
    w: Buffer<T>,
    /// w in f64, and how far each element may be from it.
    truth: (Vec<f64>, Vec<f64>),
    launches: Launches<Forced>,
}

impl<T: Number> std::fmt::Debug for FusedSubject<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FusedSubject")
            .field("problem", self.matrix.problem())
            .field("points", &self.launches.points.len())
            .finish_non_exhaustive()
    }
}

impl<T: Number> FusedSubject<T> {
    /// The launches over `features` on a device that launches, with X stored as it is.
    ///
    /// # Errors
    /// [`TuneError::NoLaunches`] on the CPU; what [`Matrix::new`] and planning return.
    pub fn new(
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
    ) -> Result<FusedSubject<T>, TuneError> {
        expect_launches(device)?;
        let features = features.into();
        let options = MatrixOptions::default();
        let matrix = Matrix::with_options(device, features.clone(), options)?;
        let y = numbers::<T>(matrix.cols(), 3);
        let truth = truth(&features, &y);
        let trials = matrix.launches_of(Product::Fused)?;
        let chosen = matrix
            .plan(Product::Fused)?
            .expect("a device that launches has plans");
        let same = |trial: &Trial| {
            trial.kernel == chosen.kernel && (trial.bs, trial.grid) == (chosen.bs, chosen.grid)
        };
        // Two products, or a chain of launches, are none of the trials.
        let found = trials.iter().position(same);
        let planners = || {
            let Plan {
                kernel, bs, grid, ..
            } = &chosen;
            let name = format!("the planner's: {kernel} bs{bs} grid{grid}");
            let point = Point::new(name, vec![0.0; AXES]);
            let point = Point {
                predicted_us: chosen.predicted_us(),
                ..point
            };
            (point, Forced::default())
        };
        let launches = Launches::new(trials.iter().map(point).collect(), found, planners);
        Ok(FusedSubject {
            y: device.upload(&y)?,
            w: device.zeros(matrix.cols())?,
            matrix,
            options,
            truth,
            launches,
        })
    }

    fn multiply(&mut self) -> Result<(), OpError> {
        self.matrix.fused(&self.y, &Terms::default(), &mut self.w)
    }
}

/// Coordinates of a launch.
const AXES: usize = 7;

fn point(trial: &Trial) -> (Point, Forced) {
    let Trial {
        kernel,
        vs,
        bs,
        tl,
        rows_in_flight,
        width,
        blocks_per_sm,
        grid,
        prediction,
        strategy,
        ..
    } = trial;
    let power = |value: &u32| f64::from((*value).max(1)).log2();
    let numbers = [vs, bs, tl, rows_in_flight, width, blocks_per_sm].map(power);
    // Strategies that are not alike are far from one another.
    let strategy = strategy.name().bytes().map(f64::from).sum::<f64>();
    let name = format!("{kernel} bs{bs} c{tl} b{blocks_per_sm} grid{grid}");
    let point = Point::new(name, numbers.into_iter().chain([strategy]).collect())
        .predicted(prediction.total_ns as f64 / 1e3)
        .launched_by(Launch::Fused(trial.forced()));
    (point, trial.forced())
}

/// λ of the probabilistic bound of rounding errors (N. Higham, T. Mary, 2019): it fails for less than one element in 10¹³.
const LAMBDA: f64 = 8.0;

/// w in f64, and the bounds of its elements.
fn truth<T: Number>(features: &Features<T>, y: &[T]) -> (Vec<f64>, Vec<f64>) {
    let unit = match T::DTYPE {
        Dtype::F32 => f64::from(f32::EPSILON) / 2.0,
        Dtype::F64 => f64::EPSILON / 2.0,
    };
    let terms = reference::Terms::scaled(<T as Element>::from_f64(1.0), T::default());
    let roundings = reference::roundings(features) as f64;
    // Both bounds hold; that of signs that do not conspire is the smaller one for long sums.
    let worst = match roundings * unit {
        small if small < 0.5 => small / (1.0 - small),
        _ => f64::INFINITY,
    };
    let growth = (LAMBDA * roundings.sqrt() * unit).exp_m1().min(worst);
    let sizes = reference::fused_magnitude(features, y, &terms);
    let bounds = sizes.into_iter().map(|size| growth * size).collect();
    (reference::fused(features, y, &terms), bounds)
}

impl<T: Number> Subject for FusedSubject<T> {
    fn class(&self) -> String {
        class::fused(self.matrix.problem())
    }

    fn points(&self) -> &[Point] {
        &self.launches.points
    }

    fn incumbent(&self) -> usize {
        self.launches.incumbent
    }

    fn is_usable(&self) -> bool {
        answers(self.matrix.device())
    }

    fn check(&mut self, point: usize) -> Result<(), Refusal> {
        self.launches.checked = None;
        let forced = self.launches.all[point];
        self.matrix.replan(MatrixOptions {
            forced,
            ..self.options
        });
        let nan = vec![<T as Element>::from_f64(f64::NAN); self.w.len()];
        self.w.copy_from_slice(&nan)?;
        self.multiply()?;
        judge(&self.w.to_vec()?, &self.truth)?;
        self.launches.checked = Some(point);
        Ok(())
    }

    fn time(&mut self, point: usize, hopeless_us: f64) -> Result<f64, Refusal> {
        self.launches.expect_checked(point)?;
        let device = self.matrix.device().clone();
        median_us::<OpError>(&device, hopeless_us, || self.multiply())
    }
}

fn judge<T: Number>(w: &[T], (sums, bounds): &(Vec<f64>, Vec<f64>)) -> Result<(), Refusal> {
    for (i, (w, (sum, bound))) in w.iter().zip(sums.iter().zip(bounds)).enumerate() {
        let error = (wide(*w) - sum).abs();
        if error > *bound || error.is_nan() {
            let text = format!("w[{i}] is off by {error:.1e} of {bound:.1e}");
            return Err(Refusal::Wrong(text));
        }
    }
    Ok(())
}
