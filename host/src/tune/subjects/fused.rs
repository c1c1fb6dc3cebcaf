//! Launches of the fused pattern `w = Xᵀ(X·y)`.

use std::sync::Arc;

use super::super::{Point, Refusal, Subject, TuneError};
use super::{answers, expect_launches, median_us, numbers, wide};
use crate::device::{Buffer, Device};
use crate::matrix::{Dtype, Element, Features};
use crate::ops::{Matrix, MatrixOptions, Number, OpError, Terms};
use crate::plan::fused::{Forced, Product, Trial};
use crate::reference::fused as reference;

/// One matrix, and the fused product without optional terms.
pub struct FusedSubject<T: Number> {
    matrix: Matrix<T>,
    options: MatrixOptions,
    y: Buffer<T>,
    w: Buffer<T>,
    /// w in f64, and how far each element may be from it.
    truth: (Vec<f64>, Vec<f64>),
    points: Vec<Point>,
    forced: Vec<Forced>,
    incumbent: usize,
    checked: Option<usize>,
}

impl<T: Number> std::fmt::Debug for FusedSubject<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FusedSubject")
            .field("problem", self.matrix.problem())
            .field("points", &self.points.len())
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
        let mut points: Vec<Point> = trials.iter().map(point).collect();
        let mut forced: Vec<Forced> = trials.iter().map(Trial::forced).collect();
        // Two products, or a chain of launches, are none of the trials.
        let incumbent = trials.iter().position(same).unwrap_or(points.len());
        if incumbent == points.len() {
            points.push(Point {
                name: format!(
                    "the planner's: {} bs{} grid{}",
                    chosen.kernel, chosen.bs, chosen.grid
                ),
                predicted_us: chosen.predicted_us(),
                coordinates: vec![0.0; AXES],
            });
            forced.push(Forced::default());
        }
        Ok(FusedSubject {
            y: device.upload(&y)?,
            w: device.zeros(matrix.cols())?,
            matrix,
            options,
            truth,
            points,
            forced,
            incumbent,
            checked: None,
        })
    }

    fn multiply(&mut self) -> Result<(), OpError> {
        self.matrix.fused(&self.y, &Terms::default(), &mut self.w)
    }
}

/// Coordinates of a launch.
const AXES: usize = 7;

fn point(trial: &Trial) -> Point {
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
    Point {
        name: format!("{kernel} bs{bs} c{tl} b{blocks_per_sm} grid{grid}"),
        predicted_us: Some(prediction.total_ns as f64 / 1e3),
        coordinates: numbers.into_iter().chain([strategy]).collect(),
    }
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
        format!("fused {} {}", T::DTYPE, self.matrix.problem())
    }

    fn points(&self) -> &[Point] {
        &self.points
    }

    fn incumbent(&self) -> usize {
        self.incumbent
    }

    fn is_usable(&self) -> bool {
        answers(self.matrix.device())
    }

    fn check(&mut self, point: usize) -> Result<(), Refusal> {
        self.checked = None;
        let forced = self.forced[point];
        self.matrix.replan(MatrixOptions {
            forced,
            ..self.options
        });
        let nan = vec![<T as Element>::from_f64(f64::NAN); self.w.len()];
        self.w.copy_from_slice(&nan)?;
        self.multiply()?;
        judge(&self.w.to_vec()?, &self.truth)?;
        self.checked = Some(point);
        Ok(())
    }

    fn time(&mut self, point: usize, hopeless_us: f64) -> Result<f64, Refusal> {
        if self.checked != Some(point) {
            return Err(Refusal::Failed("it was not checked".into()));
        }
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
