//! Bodies, blocks and slices of a sum over a kernel.

use gpu_kernels::kernel_sum::KernelFunction;
use ndarray::Array2;
use rayon::prelude::*;

use super::super::{Point, Refusal, Subject, TuneError};
use super::{Launches, answers, expect_launches, median_us, numbers, wide};
use crate::device::{Buffer, Device};
use crate::matrix::{Dtype, Element};
use crate::ops::{Kernel, KernelSum, Number, OpError};
use crate::plan::kernel_sum::{KernelSumPoint, Problem, plan, points};
use crate::plan::tuned::{Launch, class};
use crate::reference::kernel_sum::value;

/// Targets that are judged at most, spread over all.
const JUDGED: usize = 512;
/// ℓ: points lie in a unit cube, so that no term vanishes.
const LENGTH: f64 = 0.5;

/// The sizes of a sum over a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSumSize {
    /// M; `None` where targets are the sources.
    pub targets: Option<usize>,
    /// N.
    pub sources: usize,
    /// D.
    pub dims: usize,
}

/// `f(xᵢ) = Σⱼ k(xᵢ, yⱼ)·wⱼ` over pseudo-random points and weights.
#[derive(Debug)]
pub struct KernelSumSubject<T: Number> {
    sums: KernelSum<T>,
    problem: Problem,
    weights: Buffer<T>,
    out: Buffer<T>,
    truth: Truth,
    launches: Launches<KernelSumPoint>,
}

impl<T: Number> KernelSumSubject<T> {
    /// A sum of these sizes, none of which is zero, on a device that launches.
    ///
    /// # Errors
    /// [`TuneError::NoLaunches`] on the CPU, [`TuneError::Op`] when memory is short, or a size is zero or beyond a launch.
    pub fn new(
        device: &Device,
        function: KernelFunction,
        size: KernelSumSize,
    ) -> Result<KernelSumSubject<T>, TuneError> {
        expect_launches(device)?;
        let KernelSumSize {
            targets,
            sources,
            dims,
        } = size;
        expect_some(&[targets.unwrap_or(1), sources, dims])?;
        let (y, x) = (
            cloud::<T>(sources, dims, 1),
            targets.map(|m| cloud::<T>(m, dims, 2)),
        );
        let kernel = Kernel::new(function, LENGTH)?;
        let sums = match &x {
            Some(x) => KernelSum::new(device, kernel, x.view(), y.view())?,
            None => KernelSum::symmetric(device, kernel, y.view())?,
        };
        let weights = numbers::<T>(sources, 3);
        let problem = sums.problem_of_sum();
        let limits = device.limits().expect("it launches");
        let chosen = plan(&problem, limits).map_err(OpError::from)?;
        let points = points(&problem, limits);
        let found = points.iter().position(|point| point.plan == chosen);
        let own = || {
            let values = Vec::new();
            let plan = chosen;
            let planners = Point::new("the planner's", Vec::new());
            (planners, KernelSumPoint { values, plan })
        };
        Ok(KernelSumSubject {
            weights: device.upload(&weights)?,
            out: device.zeros(sums.targets())?,
            truth: Truth::of(function, (x.as_ref().unwrap_or(&y), &y), &weights),
            launches: Launches::new(points.into_iter().map(point).collect(), found, own),
            sums,
            problem,
        })
    }

    fn sum(&mut self, point: usize) -> Result<(), OpError> {
        let point = &self.launches.all[point];
        match point.values.is_empty() {
            true => self.sums.sum(&self.weights, &mut self.out),
            false => self.sums.sum_by(point, &self.weights, &mut self.out),
        }
    }
}

fn expect_some(sizes: &[usize]) -> Result<(), TuneError> {
    let what = "targets, sources and dimensions";
    let (expected, found) = (1, 0);
    match sizes.contains(&0) {
        false => Ok(()),
        true => Err(OpError::Length {
            what,
            expected,
            found,
        }
        .into()),
    }
}

fn cloud<T: Number>(len: usize, dims: usize, seed: u32) -> Array2<T> {
    let values = numbers::<T>(len * dims, seed);
    Array2::from_shape_vec((len, dims), values).expect("as many numbers as the shape has")
}

fn point(point: KernelSumPoint) -> (Point, KernelSumPoint) {
    let plan = &point.plan;
    let body = format!("{:?}", plan.variant).to_lowercase();
    let body = body.split(' ').next().unwrap_or_default();
    let name = format!("{body} bs{} slices{}", plan.bs, plan.slices);
    // Bodies that are not alike are far from one another.
    let power = |value: u32| f64::from(value.max(1)).log2();
    let body = 16.0 * point.values[0] as f64;
    let kept = Point::new(name, vec![body, power(plan.bs), power(plan.slices)]);
    let values = point.values.clone();
    (kept.launched_by(Launch::KernelSum { values }), point)
}

impl<T: Number> Subject for KernelSumSubject<T> {
    fn class(&self) -> String {
        class::kernel_sum(&self.problem)
    }

    fn points(&self) -> &[Point] {
        &self.launches.points
    }

    fn incumbent(&self) -> usize {
        self.launches.incumbent
    }

    fn is_usable(&self) -> bool {
        answers(self.sums.device())
    }

    fn check(&mut self, point: usize) -> Result<(), Refusal> {
        self.launches.checked = None;
        let nan = vec![<T as Element>::from_f64(f64::NAN); self.out.len()];
        self.out.copy_from_slice(&nan)?;
        self.sum(point)?;
        self.truth.judge(&self.out.to_vec()?)?;
        self.launches.checked = Some(point);
        Ok(())
    }

    fn time(&mut self, point: usize, hopeless_us: f64) -> Result<f64, Refusal> {
        self.launches.expect_checked(point)?;
        let device = self.sums.device().clone();
        median_us::<OpError>(&device, hopeless_us, || self.sum(point))
    }
}

/// What some of the sums are in f64, and how far what is found may be from them.
#[derive(Debug)]
struct Truth {
    /// Target, sum, bound.
    judged: Vec<(usize, f64, f64)>,
}

impl Truth {
    /// Bounds are those that [`KernelSum`] promises: 10⁻⁵ in f32 and 10⁻¹² in f64 of `Σⱼ |k·wⱼ|`.
    fn of<T: Number>(
        function: KernelFunction,
        (x, y): (&Array2<T>, &Array2<T>),
        weights: &[T],
    ) -> Truth {
        let promised = match T::DTYPE {
            Dtype::F32 => 1e-5,
            Dtype::F64 => 1e-12,
        };
        let widened = |points: &Array2<T>| points.mapv(wide);
        let (x, y) = (widened(x), widened(y));
        let rows = JUDGED.min(x.nrows());
        let spread = |i: usize| i * (x.nrows() - 1) / rows.max(2).saturating_sub(1);
        let of_target = |i: usize| {
            let target = x.row(spread(i)).to_vec();
            let terms = y.rows().into_iter().zip(weights);
            let (mut sum, mut size) = (0.0, 0.0);
            for (source, w) in terms {
                let source = source.as_slice().expect("rows are contiguous");
                let term = value(function, LENGTH, &target, source) * wide(*w);
                sum += term;
                size += term.abs();
            }
            (spread(i), sum, promised * size)
        };
        Truth {
            judged: (0..rows).into_par_iter().map(of_target).collect(),
        }
    }

    fn judge<T: Number>(&self, found: &[T]) -> Result<(), Refusal> {
        if let Some(at) = found.iter().position(|sum| !wide(*sum).is_finite()) {
            return Err(Refusal::Wrong(format!("sum {at} is not finite")));
        }
        for (at, sum, bound) in &self.judged {
            let error = (wide(found[*at]) - sum).abs();
            if error > *bound || error.is_nan() {
                let text = format!("sum {at} is off by {error:.1e} of {bound:.1e}");
                return Err(Refusal::Wrong(text));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_twenty_planted_errors_twenty_are_refused() {
        let (x, y) = (cloud::<f64>(40, 3, 2), cloud::<f64>(70, 3, 1));
        let weights = numbers::<f64>(70, 3);
        let function = KernelFunction::Matern32;
        let truth = Truth::of(function, (&x, &y), &weights);
        let exact = |target: usize| -> f64 {
            let target = x.row(target).to_vec();
            let of = |(source, w): (ndarray::ArrayView1<'_, f64>, &f64)| {
                value(function, LENGTH, &target, &source.to_vec()) * w
            };
            y.rows().into_iter().zip(&weights).map(of).sum()
        };
        let right: Vec<f64> = (0..40).map(exact).collect();
        assert_eq!(truth.judge(&right), Ok(()));
        for planted in 0..20 {
            let mut wrong = right.clone();
            let at = [0, 39, planted, 2 * planted][planted % 4];
            wrong[at] = match planted % 5 {
                0 => f64::NAN,
                1 => wrong[at] + 1e-9,
                2 => f64::INFINITY,
                // A source that was left out.
                3 => {
                    wrong[at]
                        - value(
                            function,
                            LENGTH,
                            &x.row(at).to_vec(),
                            &y.row(planted).to_vec(),
                        ) * weights[planted]
                }
                _ => 0.0,
            };
            assert!(truth.judge(&wrong).is_err(), "error {planted}");
        }
    }

    #[test]
    fn sums_of_nothing_are_refused() {
        let size = KernelSumSize {
            targets: None,
            sources: 0,
            dims: 3,
        };
        let function = KernelFunction::Gaussian;
        let refused = KernelSumSubject::<f32>::new(&Device::cpu(), function, size);
        assert!(matches!(refused, Err(TuneError::NoLaunches { .. })));
        assert!(expect_some(&[1, 0, 3]).is_err());
    }
}
