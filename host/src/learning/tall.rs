//! Least squares of a tall dense X on a GPU, by R of X itself.
//!
//! One read of X gives R of √v·[X̃, b] (TSQR), whose condition is that of X̃, where the normal equations have its square.
//! The rows of a ridge are appended on the host, in f64; singular values below the rounding of R count as 0, so that of columns
//! that depend on each other the coefficients are as small as they can be. What rounding left is taken away by steps
//! δ = −(RᵀR)⁻¹·gradient, each of which reads X once, as long as the gradient shrinks.
//!
//! Where the targets have no room beside the columns the first step begins at 0: the corrected seminormal equations.
//!
//! Sources: J. Demmel, L. Grigori, M. Hoemmen, J. Langou, "Communication-optimal parallel and sequential QR and LU
//! factorizations", SIAM J. Sci. Comput. 34, 2012; Å. Björck, "Stability analysis of the method of seminormal equations for
//! linear least squares problems", Linear Algebra Appl. 88/89, 1987.

use std::time::Instant;

use faer::Mat;

use super::cg::Convergence;
use super::course::Course;
use super::early::EarlyStop;
use super::fit::{Prepared, Setup, Training};
use super::given::Given;
use super::metrics::sums;
use super::options::FitOptions;
use super::report::Summary;
use super::restored::restore;
use super::row_targets::RowTargets;
use super::sample_weights::SampleWeights;
use super::solver::host::choice::Chosen;
use super::solver::{Iteration, Objective, Point, Solved, ratio};
use super::spec::ObjectiveSpec;
use super::weights::Weights;
use super::{FitError, penalty};
use crate::device::Buffer;
use crate::matrix::{Dtype, Element};
use crate::ops::qr::Dressing;
use crate::ops::qr::MOST_TALL;
use crate::ops::{Number, OpError, interrupt};

/// Steps at most: R of a precision that the columns allow takes away most of the gradient in each.
const MOST_STEPS: usize = 6;
/// A step has to shrink the gradient to this part at least: else rounding is all that is left of it.
const WORTHWHILE: f64 = 0.5;
/// Rows of a block of X, whose sums make the rounding of R.
const BLOCK: f64 = 512.0;

/// Called with where a step led, its number, and the gradient's norm at the start.
type Show<'a, T> = dyn FnMut((&Point<T>, usize), f64) -> Result<(), OpError> + 'a;

/// Targets and offset of the rows.
type Sides<'a, T> = (&'a RowTargets<'a, T>, Option<&'a [f64]>);

impl<T: Number> Training<'_, T> {
    /// Minimises `spec`, a square without an l1 penalty, over `targets` with `weights`, by R of X on its device.
    pub(super) fn solve_by_triangle(
        &self,
        (spec, chosen): (&ObjectiveSpec, Chosen),
        (targets, weights): (&RowTargets<'_, T>, &SampleWeights),
        options: &mut FitOptions<'_>,
        history: &mut Vec<Iteration>,
    ) -> Result<(Weights, Summary), FitError> {
        let begun = Instant::now();
        let scaling = penalty::scaling(spec, options.penalty_factors);
        let given = Given {
            scaling: scaling.as_deref(),
            ..options.given()
        };
        let mut setup = self.setup(spec, (targets, weights), given)?;
        if setup.prepared.columns.means.is_some() && weights.vary() {
            // Columns that are centred so are orthogonal to the intercept's.
            let means = self.weighted_means(&setup.prepared.weights)?;
            setup.prepared.columns.means = Some(means.into());
        }
        let Setup {
            prepared,
            inverse,
            begin,
        } = setup;
        let rows = (targets, options.offset);
        let factor = self.factor((&prepared, spec), rows, &inverse)?;
        let mut objective = self.objective(spec, &prepared, rows)?;
        let mut course = Course::new(spec, options, history);
        let cold = begin.cold.unwrap_or(begin.theta);
        let mut show =
            |(point, step): (&Point<T>, usize), first_norm: f64| -> Result<(), OpError> {
                let iteration = Iteration {
                    objective: point.value,
                    gradient_ratio: ratio(point.norm, first_norm),
                    inner: step,
                    seconds: begun.elapsed().as_secs_f64(),
                    validation: None,
                };
                let weights = || Ok(restore(&prepared.columns, &point.theta.to_vec()?, 1));
                let seen: Result<(), crate::device::DeviceError> = course.see(iteration, weights);
                Ok(seen?)
            };
        let tolerance = self.limits(spec).tolerance;
        let solved = refined(&mut *objective, (&factor, cold), tolerance, &mut show)?;
        drop(objective);
        EarlyStop::settle(course.into_early(), chosen, || {
            let (fitted, solved) = self.finish(spec, &prepared, rows, solved)?;
            Ok((fitted, Summary::of(&solved, chosen)))
        })
    }

    /// R of √v·X̃ and of the rows of the ridge, and what it says of the targets.
    fn factor(
        &self,
        (prepared, spec): (&Prepared<'_>, &ObjectiveSpec),
        sides: Sides<'_, T>,
        inverse: &[f64],
    ) -> Result<Factor, FitError> {
        let n = self.matrix.cols();
        let (columns, weights) = (&prepared.columns, &prepared.weights);
        let means = columns.means.as_ref();
        let means: Option<Vec<f64>> = means.map(|means| (0..n).map(|j| means.at(j)).collect());
        let means = means.map(|means| self.upload(&means)).transpose()?;
        let roots = match weights.vary() {
            true => Some(self.of_rows(|row| weights.at(row).sqrt())?),
            false => None,
        };
        let centre = centre(sides, prepared);
        let targets = match n < MOST_TALL {
            true => Some(self.of_rows(|row| target(sides, row) - centre)?),
            false => None,
        };
        let dressing = Dressing {
            means: means.as_ref(),
            roots: roots.as_ref(),
            targets: targets.as_ref(),
        };
        interrupt::proceed()?;
        let tall = self.matrix.triangle(&dressing)?;
        let r = tall.r()?;
        if !r.iter().all(|x| Element::to_f64(*x).is_finite()) {
            return Err(FitError::NotFinite { iterations: 0 });
        }
        let even = if roots.is_some() {
            1.0
        } else {
            weights.at(0).sqrt()
        };
        let scale = |j: usize| columns.scales.as_ref().map_or(1.0, |scales| scales[j]);
        let scale = |j: usize| even * if j < n { scale(j) } else { 1.0 };
        let wide = |i: usize, j: usize| scale(j) * Element::to_f64(r[[i, j]]);
        let triangle = Mat::from_fn(r.nrows(), r.ncols(), wide);
        let free = (0..n).filter(|j| inverse[*j] != 0.0).collect();
        let intercept = columns.intercept.then_some(centre);
        let rounding = BLOCK * unit::<T>();
        Ok(Factor::new(
            &triangle,
            (n, free),
            (spec.l2, rounding),
            intercept,
        ))
    }

    /// A number for each row, on the device.
    fn of_rows(&self, number: impl Fn(usize) -> f64 + Sync) -> Result<Buffer<T>, FitError> {
        let rows = self.matrix.rows();
        let device = self.matrix.device();
        Ok(device.upload_with(rows, |range, to: &mut [T]| {
            let elements = to.iter_mut().zip(range);
            elements.for_each(|(to, row)| *to = <T as Element>::from_f64(number(row)));
        })?)
    }
}

/// What is to be predicted of a row, besides its offset.
fn target<T: Number>((targets, offset): Sides<'_, T>, row: usize) -> f64 {
    Element::to_f64(targets.at(row)) - offset.map_or(0.0, |offset| offset[row])
}

/// The mean of that, where an intercept has it.
fn centre<T: Number>(sides: Sides<'_, T>, prepared: &Prepared<'_>) -> f64 {
    if !prepared.columns.intercept {
        return 0.0;
    }
    let of_row = |row: usize| [prepared.weights.at(row) * target(sides, row)];
    let [mean] = sums(sides.0.len(), of_row);
    mean
}

fn unit<T: Number>() -> f64 {
    match T::DTYPE {
        Dtype::F32 => f64::from(f32::EPSILON),
        Dtype::F64 => f64::EPSILON,
    }
}

/// Singular values of R with the rows of the ridge.
struct Factor {
    /// n.
    cols: usize,
    /// Columns that move.
    free: Vec<usize>,
    values: Vec<f64>,
    /// Right singular vectors, in units of the columns.
    v: Mat<f64>,
    /// The solution, where the targets were a column.
    solution: Option<Vec<f64>>,
    /// The intercept's coordinate at the minimum, where there is one.
    intercept: Option<f64>,
}

impl Factor {
    /// Of a triangle of n columns, or one more with the targets; singular values below `rounding` of the largest are 0.
    fn new(
        triangle: &Mat<f64>,
        (cols, free): (usize, Vec<usize>),
        (l2, rounding): (f64, f64),
        intercept: Option<f64>,
    ) -> Factor {
        let (rows, count) = (triangle.nrows(), free.len());
        let has_target = triangle.ncols() > cols;
        let width = count + usize::from(has_target);
        let ridge = if l2 > 0.0 { count } else { 0 };
        let element = |i: usize, a: usize| match (i < rows, a < count) {
            (true, true) => triangle[(i, free[a])],
            (true, false) => triangle[(i, cols)],
            (false, _) if i - rows == a => l2.sqrt(),
            (false, _) => 0.0,
        };
        let all = Mat::from_fn(rows + ridge, width, element);
        let length = |a: usize| match all.col(a).norm_l2() {
            length if length > 0.0 => length,
            _ => 1.0,
        };
        let lengths: Vec<f64> = (0..count).map(length).collect();
        let ones = vec![1.0; count];
        // Columns of one length show whether they depend on each other; in units of X the shortest solution is meant.
        let (values, v, along) = match values_of(&all, &lengths, rounding) {
            found if found.0.len() == count => found,
            _ => values_of(&all, &ones, rounding),
        };
        let mut factor = Factor {
            cols,
            free,
            values,
            v,
            solution: None,
            intercept,
        };
        if has_target {
            let shares = along
                .iter()
                .zip(&factor.values)
                .map(|(along, value)| along / value);
            let shares: Vec<f64> = shares.collect();
            factor.solution = Some(factor.theta(&shares, intercept));
        }
        factor
    }

    /// θ of these shares of the right singular vectors.
    fn theta(&self, shares: &[f64], intercept: Option<f64>) -> Vec<f64> {
        let mut theta = vec![0.0; self.cols];
        for (a, share) in shares.iter().enumerate() {
            for (b, &j) in self.free.iter().enumerate() {
                theta[j] += share * self.v[(b, a)];
            }
        }
        theta.extend(intercept);
        theta
    }

    /// R⁻ᵀ·gradient, by singular vectors.
    fn turned<'g>(&'g self, gradient: &'g [f64]) -> impl Iterator<Item = f64> + 'g {
        self.values.iter().enumerate().map(|(a, value)| {
            let free = self.free.iter().enumerate();
            let along: f64 = free.map(|(b, &j)| self.v[(b, a)] * gradient[j]).sum();
            along / value
        })
    }

    /// The intercept's slope, whose curvature is 1.
    fn slope(&self, gradient: &[f64]) -> Option<f64> {
        self.intercept.map(|_| gradient[self.cols])
    }

    /// ‖R⁻ᵀ·gradient‖.
    fn size(&self, gradient: &[f64]) -> f64 {
        let all = self.turned(gradient).chain(self.slope(gradient));
        all.map(|x| x * x).sum::<f64>().sqrt()
    }

    /// −(RᵀR)⁻¹·gradient.
    fn step(&self, gradient: &[f64]) -> Vec<f64> {
        let turned = self.turned(gradient).zip(&self.values);
        let shares: Vec<f64> = turned.map(|(x, value)| -x / value).collect();
        self.theta(&shares, self.slope(gradient).map(|slope| -slope))
    }
}

/// Singular values above `rounding` of the largest of the first columns of `all` divided by `lengths`; their right vectors,
/// divided again, and what their left vectors are along the last column, where there is one more.
fn values_of(all: &Mat<f64>, lengths: &[f64], rounding: f64) -> (Vec<f64>, Mat<f64>, Vec<f64>) {
    let count = lengths.len();
    let left = Mat::from_fn(all.nrows(), count, |i, a| all[(i, a)] / lengths[a]);
    let none = || (Vec::new(), Mat::zeros(count, 0), Vec::new());
    let Ok(svd) = left.thin_svd() else {
        return none();
    };
    let every: Vec<f64> = (0..count.min(all.nrows())).map(|a| svd.S()[a]).collect();
    let top = every.first().copied().unwrap_or(0.0);
    let values: Vec<f64> = every
        .into_iter()
        .filter(|value| *value > rounding * top)
        .collect();
    let v = Mat::from_fn(count, values.len(), |b, a| svd.V()[(b, a)] / lengths[b]);
    let of_last = |a: usize| -> f64 {
        let terms = (0..all.nrows()).map(|i| svd.U()[(i, a)] * all[(i, count)]);
        terms.sum()
    };
    let along = match all.ncols() > count {
        true => (0..values.len()).map(of_last).collect(),
        false => Vec::new(),
    };
    (values, v, along)
}

/// A point, and its gradient as R sees it.
struct Seen<T: Number> {
    point: Point<T>,
    gradient: Vec<f64>,
    size: f64,
}

impl<T: Number> Seen<T> {
    fn at(
        objective: &mut dyn Objective<T>,
        theta: Buffer<T>,
        factor: &Factor,
    ) -> Result<Seen<T>, FitError> {
        let point = Point::start(objective, theta)?;
        let gradient: Vec<T> = point.gradient.to_vec()?;
        let gradient: Vec<f64> = gradient.into_iter().map(Element::to_f64).collect();
        let size = factor.size(&gradient);
        Ok(Seen {
            point,
            gradient,
            size,
        })
    }

    /// θ and a step.
    fn stepped(&self, factor: &Factor) -> Result<Vec<f64>, FitError> {
        let theta: Vec<T> = self.point.theta.to_vec()?;
        let moved = theta.into_iter().zip(factor.step(&self.gradient));
        Ok(moved.map(|(x, d)| Element::to_f64(x) + d).collect())
    }
}

/// The minimum from the factor, and steps from there as long as they gain something: in units of R, in which a column that is
/// small or nearly dependent counts as much as others.
fn refined<T: Number>(
    objective: &mut dyn Objective<T>,
    (factor, cold): (&Factor, Buffer<T>),
    tolerance: f64,
    show: &mut Show<'_, T>,
) -> Result<Solved<T>, FitError> {
    let mut seen = Seen::at(objective, cold, factor)?;
    let (first_norm, first_size) = (seen.point.norm, seen.size);
    let mut next = match &factor.solution {
        Some(solution) => solution.clone(),
        None => seen.stepped(factor)?,
    };
    let mut n_iter = 0;
    while n_iter < MOST_STEPS {
        interrupt::proceed()?;
        let theta: Vec<T> = next.iter().map(|x| <T as Element>::from_f64(*x)).collect();
        let theta = objective.device().upload(&theta)?;
        let trial = Seen::at(objective, theta, factor)?;
        let gains = trial.size < WORTHWHILE * seen.size;
        if n_iter > 0 && !gains {
            break;
        }
        seen = trial;
        n_iter += 1;
        show((&seen.point, n_iter), first_norm)?;
        let is_small = seen.point.norm <= tolerance * first_norm;
        if !seen.point.is_finite() || is_small && seen.size <= tolerance * first_size {
            break;
        }
        next = seen.stepped(factor)?;
    }
    let point = seen.point;
    let convergence = match point.is_finite() {
        false => Convergence::NotFinite,
        true if point.norm <= tolerance * first_norm => Convergence::Converged,
        true => Convergence::PrecisionLimit,
    };
    Ok(Solved {
        objective: point.value,
        gradient_ratio: ratio(point.norm, first_norm),
        gradient_norm: point.norm,
        theta: point.theta,
        n_iter,
        convergence,
    })
}
