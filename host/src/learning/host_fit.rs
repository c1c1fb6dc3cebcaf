//! Fits by the direct methods of the host.

use std::ops::ControlFlow;

use super::cg::Convergence;
use super::checkpoint::{Record, session};
use super::course::Course;
use super::design::Columns;
use super::early::EarlyStop;
use super::fit::{Setup, Training};
use super::given::Given;
use super::options::FitOptions;
use super::report::Summary;
use super::restored::restore;
use super::row_targets::RowTargets;
use super::sample_weights::SampleWeights;
use super::solver::host::choice::{self, Chosen, Constraint, Direct, Place, Shape};
use super::solver::host::design::HostDesign;
use super::solver::host::refusals;
use super::solver::host::{self, Problem, Solved, Start};
use super::solver::{Iteration, stops};
use super::spec::{ObjectiveSpec, SampleLoss};
use super::weights::Weights;
use super::{FitError, penalty};
use crate::matrix::{Dtype, Element, Features};
use crate::ops::objective::Loss;
use crate::ops::{Number, OpError, interrupt};

impl<T: Number> Training<'_, T> {
    /// What solves it, and why.
    ///
    /// # Errors
    /// [`FitError::Combination`] where the solver that was requested cannot.
    pub(super) fn choose(&self, shape: &Shape) -> Result<Chosen, FitError> {
        refusals::check(shape, self.controls.solver)?;
        Ok(choice::choose(shape, self.controls.solver))
    }

    /// What the choice depends on.
    pub(super) fn shape(&self, spec: &ObjectiveSpec, factors: Option<&[f64]>) -> Shape {
        let cells = self.matrix.rows() as u64 * self.matrix.cols() as u64;
        Shape {
            rows: self.matrix.rows(),
            cols: self.matrix.cols(),
            entries: self.matrix.problem().nnz.unwrap_or(cells),
            sparse: self.matrix.problem().nnz.is_some(),
            predictors: spec.loss.predictors(),
            quadratic: spec.loss == SampleLoss::Single(Loss::Squared),
            has_l1: spec.l1 > 0.0,
            has_l2: !self.is_rounding(spec),
            kinked: matches!(spec.loss, SampleLoss::Kinked(_)),
            constraint: match factors {
                _ if self.controls.non_negative => Constraint::NonNegative,
                Some(_) if penalty::exact_factors(spec, factors).is_some() => Constraint::Factors,
                _ => Constraint::None,
            },
            place: self.place(),
            no_triangle: self.matrix.no_triangle(),
        }
    }

    /// Whether a ridge is below the rounding of the Hessian of a square, so that it is as good as none: no eigenvalue is
    /// larger than the mean of ‖x̃‖² over the rows.
    fn is_rounding(&self, spec: &ObjectiveSpec) -> bool {
        spec.l2 <= f64::EPSILON * self.mean_square(spec)
    }

    /// How a fit ends whose coefficients were rounded to values of T.
    fn after_rounding(
        &self,
        features: &Features<T>,
        (problem, solved): (&Problem<'_>, &Solved),
        (weights, setup): (&Weights, &Setup<T>),
        summary: &Summary,
    ) -> Result<Convergence, FitError> {
        let is_rounded = summary.convergence == Convergence::Converged && T::DTYPE == Dtype::F32;
        if !is_rounded {
            return Ok(summary.convergence);
        }
        let even = problem.weights.iter().all(|v| *v == problem.weights[0]);
        if even && !self.may_rounding_matter(weights, &problem.spec, solved.objective) {
            return Ok(summary.convergence);
        }
        let theta = adopted(&setup.prepared.columns, weights);
        let ended = features.reading(|| of_rounded(problem, solved, &theta));
        Ok(ended.map_err(OpError::from)?)
    }

    /// Whether the rounding of coefficients to f32 might cost more than [`ROUNDED`] of the objective, of rows that weigh the
    /// same. It moves a linear predictor by u·(Σ|x·w| + |b|) at most, in the root mean square by the same of the columns'
    /// (Minkowski), and an objective at its minimum by half the square of that times the greatest curvature of a loss: 2.
    fn may_rounding_matter(&self, weights: &Weights, spec: &ObjectiveSpec, objective: f64) -> bool {
        if matches!(spec.loss, SampleLoss::Single(Loss::Glm { .. })) {
            return true;
        }
        let rows = self.moments.rows.max(1) as f64;
        let squares = &self.moments.columns.sum_of_squares;
        let reach = |coef: &[f64], b: f64| -> f64 {
            let each = coef.iter().zip(squares);
            each.map(|(w, square)| w.abs() * (square / rows).sqrt())
                .sum::<f64>()
                + b.abs()
        };
        let sides = weights.coef.iter().zip(&weights.intercept);
        let moved: f64 = sides
            .map(|(coef, b)| (0.5 * f64::from(f32::EPSILON) * reach(coef, *b)).powi(2))
            .sum();
        // A NaN is looked at.
        moved.is_nan() || moved > ROUNDED * objective.abs()
    }

    fn place(&self) -> Place {
        match self.host {
            None if self.matrix.device().group().is_some() => Place::Shared,
            None => Place::Device,
            Some(_) if !self.matrix.device().is_cpu() => Place::Both,
            Some(_) if self.matrix.is_reproducible() => Place::Reproducible,
            Some(_) => Place::Host,
        }
    }

    /// Minimises `spec` over `targets` with `weights` on the host, in f64.
    pub(super) fn solve_on_host(
        &self,
        (features, method, chosen): (&Features<T>, Direct, Chosen),
        spec: &ObjectiveSpec,
        (targets, weights): (&RowTargets<'_, T>, &SampleWeights),
        options: &mut FitOptions<'_>,
        history: &mut Vec<Iteration>,
    ) -> Result<(Weights, Summary), FitError> {
        // Singular values at rounding would be kept by it, and divide the rounding of the targets.
        let without = ObjectiveSpec { l2: 0.0, ..*spec };
        let by_factors = matches!(method, Direct::Svd | Direct::Qr | Direct::LeastSquares);
        let is_as_good_as_none = by_factors && self.is_rounding(spec);
        let spec = if is_as_good_as_none { &without } else { spec };
        let factors = options.penalty_factors;
        let scaling = penalty::scaling(spec, factors);
        let given = Given {
            scaling: scaling.as_deref(),
            ..options.given()
        };
        let setup = self.setup(spec, (targets, weights), given)?;
        let rows = 0..targets.len();
        let wide: Vec<f64> = rows.map(|row| Element::to_f64(targets.at(row))).collect();
        let of_rows = setup.prepared.weights.in_f64();
        let problem = Problem {
            offset: options.offset,
            factors: penalty::exact_factors(spec, factors),
            non_negative: self.controls.non_negative,
            ..problem((features, method), &setup, spec, (&wide, &of_rows))
        };
        let k = spec.loss.predictors();
        interrupt::proceed()?;
        let mut ended = Ok(());
        let mut course = Course::new(spec, options, history);
        let found = session::begin("host")?;
        for told in found.iter().map(stops::told) {
            told?.into_iter().for_each(|told| course.recall(told, k));
        }
        let recalled = found.as_ref().map(Solved::recall).transpose()?.flatten();
        let start = start(&setup, &problem, found)?;
        let mut show = |iteration: Iteration, theta: &dyn Fn() -> Vec<f64>| {
            let weights = || Ok(restored::<T>(&setup.prepared.columns, &theta(), k));
            let seen: Result<(), OpError> = course.see(iteration, weights);
            ended = seen.and_then(|()| interrupt::proceed());
            match ended {
                Ok(()) if !course.is_over() => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        };
        let limits = self.limits(spec);
        let minimise = || host::minimise(&problem, method, start, &limits, &mut show);
        let solved = match recalled {
            Some(solved) => solved,
            None => features.reading(minimise).map_err(OpError::from)?,
        };
        ended?;
        solved.keep()?;
        let known = (&problem, &solved);
        EarlyStop::settle(course.into_early(), chosen, || {
            self.finished(features, known, &setup, chosen)
        })
    }

    /// Coefficients as values of T, and how the fit ended.
    fn finished(
        &self,
        features: &Features<T>,
        (problem, solved): (&Problem<'_>, &Solved),
        setup: &Setup<T>,
        chosen: Chosen,
    ) -> Result<(Weights, Summary), FitError> {
        let summary = summary(problem, solved, chosen);
        if summary.convergence == Convergence::NotFinite {
            let iterations = solved.n_iter;
            return Err(FitError::NotFinite { iterations });
        }
        let k = problem.spec.loss.predictors();
        let weights = restored::<T>(&setup.prepared.columns, &solved.theta, k);
        let known = (problem, solved);
        let convergence = self.after_rounding(features, known, (&weights, setup), &summary)?;
        let summary = Summary {
            convergence,
            ..summary
        };
        Ok((weights, summary))
    }
}

fn problem<'a, T: Number>(
    (features, method): (&'a Features<T>, Direct),
    setup: &'a Setup<T>,
    spec: &ObjectiveSpec,
    (targets, weights): (&'a [f64], &'a [f64]),
) -> Problem<'a> {
    let columns = &setup.prepared.columns;
    let k = spec.loss.predictors();
    let quadratic = spec.loss == SampleLoss::Single(Loss::Squared);
    let reads = host::reads((features.rows(), features.cols()), method, quadratic);
    Problem {
        design: HostDesign::new(features, columns, reads),
        spec: *spec,
        targets,
        weights,
        intercept: columns.intercept,
        held: setup.inverse.iter().step_by(k).map(|d| *d == 0.0).collect(),
        offset: None,
        factors: None,
        non_negative: false,
    }
}

fn start<T: Number>(
    setup: &Setup<T>,
    problem: &Problem<'_>,
    found: Option<Record>,
) -> Result<Start, FitError> {
    let wide = |theta: &crate::device::Buffer<T>| -> Result<Vec<f64>, FitError> {
        let mut theta: Vec<f64> = theta.to_vec()?.into_iter().map(Element::to_f64).collect();
        if problem.non_negative {
            let coefficients = problem.columns() * problem.spec.loss.predictors();
            let coefficients = theta[..coefficients].iter_mut();
            coefficients.for_each(|w| *w = w.max(0.0));
        }
        Ok(theta)
    };
    Ok(Start {
        theta: wide(&setup.begin.theta)?,
        cold: setup.begin.cold.as_ref().map(wide).transpose()?,
        found,
    })
}

/// Tells an unpenalised logistic fit to separable classes from one that converged.
fn summary(problem: &Problem<'_>, solved: &Solved, chosen: Chosen) -> Summary {
    let convergence = if problem.is_apart(&solved.theta) {
        Convergence::Separable
    } else {
        solved.convergence
    };
    Summary {
        n_iter: solved.n_iter,
        convergence,
        gradient_ratio: solved.gradient_ratio,
        objective: solved.objective,
        gap: solved.gap,
        chosen: solved.instead.unwrap_or(chosen),
    }
}

/// How far above the minimum an objective may be that is called one, of coefficients with fewer digits than those that were
/// computed: what the guide promises of f32.
const ROUNDED: f64 = 1e-5;

/// How a fit ends whose coefficients were rounded to `theta` after they had converged: columns that are nearly sums of
/// others have large ones of both signs, whose roundings do not cancel. A perfect fit is measured by a part of the
/// objective without coefficients: half the digits of f32 are left of residuals.
fn of_rounded(problem: &Problem<'_>, solved: &Solved, theta: &[f64]) -> Convergence {
    let excess = problem.value(theta) - solved.objective;
    let is_small = |scale: f64| excess <= ROUNDED * scale;
    // Infinite where 0 is outside the domain of a link.
    let without = || Some(problem.value(&vec![0.0; theta.len()]).abs()).filter(|f| f.is_finite());
    let of_residuals = || without().map_or(0.0, |without| f64::from(f32::EPSILON) * without);
    if is_small(solved.objective.abs()) || is_small(of_residuals()) {
        Convergence::Converged
    } else {
        Convergence::PrecisionLimit
    }
}

/// θ of coefficients in the units of X.
fn adopted(columns: &Columns, weights: &Weights) -> Vec<f64> {
    let k = weights.coef.len();
    let sides = weights.coef.iter().zip(&weights.intercept);
    let sides: Vec<(Vec<f64>, f64)> = sides.map(|(coef, b)| columns.adopt(coef, *b)).collect();
    let width = sides.first().map_or(0, |(coef, _)| coef.len()) + usize::from(columns.intercept);
    let element = |i: usize| {
        let (coef, intercept) = &sides[i % k];
        coef.get(i / k).copied().unwrap_or(*intercept)
    };
    (0..width * k).map(element).collect()
}

/// Coefficients in the units of X, as values of T.
fn restored<T: Number>(columns: &Columns, theta: &[f64], k: usize) -> Weights {
    let mut weights = restore(columns, theta, k);
    let narrow = |value: &mut f64| *value = Element::to_f64(<T as Element>::from_f64(*value));
    weights.coef.iter_mut().flatten().for_each(narrow);
    weights.intercept.iter_mut().for_each(narrow);
    weights
}
