//! What all estimators share: checks, the columns' transformation, the preconditioner, the solve, the report.

use std::time::Instant;

use super::cg::Convergence;
use super::checks::{expect_len, not_negative};
use super::controls::Controls;
use super::course::Course;
use super::design::{Columns, Design};
use super::early::EarlyStop;
use super::given::{Given, Warm, check_rows_and_columns};
use super::multinomial::Multinomial;
use super::options::FitOptions;
use super::report::{FitReport, Summary};
use super::restored::{restore, restore_from};
use super::row_targets::RowTargets;
use super::rows_objective::RowsObjective;
use super::sample_weights::SampleWeights;
use super::single::SingleRows;
use super::softmax::SoftmaxRows;
use super::solver::finish;
use super::solver::host::choice::products_worth;
use super::solver::orthant::L1;
use super::solver::{self, Begin, Iteration, Limits, Objective, Solved, Solver, Watch, ratio};
use super::spec::{ObjectiveSpec, SampleLoss};
use super::spread::Spreads;
use super::start::Start;
use super::weights::Weights;
use super::{FitError, ResidentDataset, RowMoments};
use super::{judge, least_norm, penalty};
use crate::device::Buffer;
use crate::matrix::{ColumnMeans, Element, Features};
use crate::ops::objective::Loss;
use crate::ops::{Matrix, Number, OpError, Terms};
use crate::parallel;

/// Columns of which one task computes the diagonal.
const COLUMNS: usize = 1 << 13;

/// What a solve is about, besides spec and targets.
pub(super) struct Prepared<'a> {
    pub(super) columns: Columns<'a>,
    /// v, which add up to 1.
    pub(super) weights: SampleWeights,
    /// Mean size of the slopes at the start.
    pub(super) slope: f64,
}

/// What a solve begins with.
pub(super) struct Setup<'a, T: Number> {
    pub(super) prepared: Prepared<'a>,
    /// The inverse of the Hessian's diagonal, about.
    pub(super) inverse: Vec<f64>,
    pub(super) begin: Begin<T>,
}

/// X on a device, and how it is learnt from.
#[derive(Clone)]
pub(super) struct Training<'a, T: Number> {
    pub(super) matrix: &'a Matrix<T>,
    pub(super) moments: &'a RowMoments,
    pub(super) controls: Controls,
    begun: Instant,
    has_offset: bool,
    transfer_seconds: f64,
    /// Of columns that lie far from 0, where X is at hand.
    pub(super) spreads: Spreads,
    /// X on the host, where it is at hand there.
    pub(super) host: Option<&'a Features<T>>,
}

impl<'a, T: Number> Training<'a, T> {
    /// Checks what is given besides the features.
    pub(super) fn new<'e: 'a>(
        data: &'a ResidentDataset<T>,
        controls: Controls,
        options: &FitOptions<'e>,
    ) -> Result<Self, FitError> {
        not_negative("tol", controls.tolerance)?;
        let (rows, cols) = (data.matrix().rows(), data.matrix().cols());
        expect_len(
            "sample weights",
            options.sample_weight.map(<[f64]>::len),
            rows,
        )?;
        expect_len("flags of columns", options.columns.map(<[bool]>::len), cols)?;
        check_rows_and_columns(options, (rows, cols))?;
        let moments = options.moments.unwrap_or(data.moments());
        Ok(Training {
            matrix: data.matrix(),
            moments,
            spreads: Spreads::at_hand(data, moments, options),
            controls,
            begun: Instant::now(),
            has_offset: options.offset.is_some(),
            transfer_seconds: data.transfer_seconds(),
            host: data.host_features(),
        })
    }

    /// The same X, learnt from in another way.
    pub(super) fn with(&self, controls: Controls) -> Self {
        Training {
            controls,
            ..self.clone()
        }
    }

    /// What is done to the columns.
    fn columns(&self, spec: &ObjectiveSpec, given: Given<'_>) -> Columns<'a> {
        let of_rows: &'a RowMoments = self.moments;
        let (rows, sums) = (of_rows.rows as f64, &of_rows.columns.sum);
        let centred = self.controls.fit_intercept && spec.intercept_l2 == 0.0;
        let deviation = |j: usize| match self.spread(j) {
            Some(centred) => 1.0 / (centred / rows).sqrt(),
            None => 1.0,
        };
        let scaling = |j: usize| given.scaling.map_or(1.0, |scaling| scaling[j]);
        let scale = |j: usize| match given.mask {
            Some(mask) if !mask[j] => 0.0,
            _ if self.controls.standardize => deviation(j) * scaling(j),
            _ => scaling(j),
        };
        let is_given = given.mask.is_some() || given.scaling.is_some();
        let scaled = self.controls.standardize || is_given;
        Columns {
            means: centred.then(|| ColumnMeans::of_sums(sums, of_rows.rows)),
            scales: scaled.then(|| parallel::filled(self.matrix.cols(), scale)),
            intercept: self.controls.fit_intercept,
        }
    }

    /// D⁻¹ of `curvature`·X̃ᵀX̃/m + λ, coordinates of θ in order; 0 for columns that are constant or left out.
    fn inverse_diagonal(
        &self,
        columns: &Columns,
        spec: &ObjectiveSpec,
        curvature: f64,
    ) -> Vec<f64> {
        let rows = self.moments.rows as f64;
        let k = spec.loss.predictors();
        let squares = &self.moments.columns.sum_of_squares;
        let of_column = |j: usize| {
            let scale = columns.scales.as_ref().map_or(1.0, |scales| scales[j]);
            let centred = match columns.means {
                Some(_) => self.spread(j),
                None => Some(squares[j]).filter(|squares| *squares > 0.0),
            };
            let diagonal = curvature * scale * scale * centred.unwrap_or(0.0) / rows + spec.l2;
            if scale == 0.0 || centred.is_none() || diagonal <= 0.0 {
                0.0
            } else {
                1.0 / diagonal
            }
        };
        let mut inverse = vec![0.0; k * self.matrix.cols()];
        let parts = inverse.chunks_mut(k * COLUMNS);
        parallel::for_each_item(parts, |number, part| {
            for (own, all) in part.chunks_mut(k).enumerate() {
                all.fill(of_column(number * COLUMNS + own));
            }
        });
        if columns.intercept {
            let diagonal = curvature + spec.intercept_l2;
            inverse.extend(std::iter::repeat_n(1.0 / diagonal, k));
        }
        inverse
    }

    /// Means of the columns over rows with these weights, which add up to 1: Xᵀv.
    pub(super) fn weighted_means(&self, weights: &SampleWeights) -> Result<Vec<f64>, FitError> {
        let device = self.matrix.device();
        let mut means = device.zeros(self.matrix.cols())?;
        let weights = weights.upload(device)?;
        self.matrix
            .transposed(&weights, &Terms::default(), &mut means)?;
        let means: Vec<T> = means.to_vec()?;
        Ok(means.iter().map(|mean| Element::to_f64(*mean)).collect())
    }

    /// Everything that a solve of `spec` over `targets` with `weights`, which add up to anything positive, begins with.
    pub(super) fn setup(
        &self,
        spec: &ObjectiveSpec,
        (targets, weights): (&RowTargets<'_, T>, &SampleWeights),
        given: Given<'_>,
    ) -> Result<Setup<'a, T>, FitError> {
        let weights = weights.normalised();
        let mut columns = self.columns(spec, given);
        let rows = (targets, &weights, given.offset);
        let start = Start::of(spec, rows, &self.controls);
        let mut inverse = self.inverse_diagonal(&columns, spec, start.curvature);
        let of_columns = self.matrix.cols() * spec.loss.predictors();
        if least_norm::is_wanted((spec.l1, spec.l2), &weights, &inverse[..of_columns]) {
            if columns.means.is_some() && weights.vary() {
                columns.means = Some(self.weighted_means(&weights)?.into());
            }
            least_norm::even(&mut inverse[..of_columns]);
        }
        let inside = self.inside(start.way_in, (targets.len(), &weights), given)?;
        let inside = inside.as_ref().map(Weights::lists);
        let cold = |_| self.theta(spec, &columns, &start, inside);
        let begin = Begin {
            theta: self.theta(spec, &columns, &start, given.warm.or(inside))?,
            cold: given.warm.map(cold).transpose()?,
        };
        let prepared = Prepared {
            columns,
            weights,
            slope: start.slope,
        };
        if inside.is_some() {
            self.expect_inside(spec, (&prepared, &begin), (targets, given.offset))?;
        }
        Ok(Setup {
            prepared,
            inverse,
            begin,
        })
    }

    /// Minimises `spec` over `targets` with `weights`, which add up to anything positive.
    pub(super) fn solve(
        &self,
        spec: &ObjectiveSpec,
        targets: &RowTargets<'_, T>,
        weights: &SampleWeights,
        options: &mut FitOptions<'_>,
        history: &mut Vec<Iteration>,
    ) -> Result<(Weights, Summary), FitError> {
        let shape = self.shape(spec, options.penalty_factors);
        let chosen = self.choose(&shape)?;
        if let (Some(method), Some(features)) = (chosen.direct, self.host) {
            let sides = (targets, weights);
            if let Some(most) = products_worth(&shape, &chosen)
                && let Some(found) = self.attempt((spec, most), sides, options, history)?
            {
                return Ok(found);
            }
            return self.solve_on_host((features, method, chosen), spec, sides, options, history);
        }
        if chosen.solver == Solver::Qr {
            let sides = (targets, weights);
            return self.solve_by_triangle((spec, chosen), sides, options, history);
        }
        let scaling = penalty::scaling(spec, options.penalty_factors);
        let given = Given {
            scaling: scaling.as_deref(),
            ..options.given()
        };
        let Setup {
            prepared,
            inverse,
            begin,
        } = self.setup(spec, (targets, weights), given)?;
        // The host's copy goes at once: vectors of n numbers are what a fit of many columns takes there.
        let inverse = self.upload(&{ inverse })?;
        let (prepared, k) = (&prepared, spec.loss.predictors());
        let rows = (targets, options.offset);
        let mut objective = self.objective(spec, prepared, rows)?;
        let mut course = Course::new(spec, options, history);
        let (mut failed, judged, stop) = (None, course.is_judged(), course.signal());
        let mut show = |iteration: Iteration, theta: Option<&Buffer<T>>| {
            let Some(theta) = theta else {
                return course.recall(iteration, k);
            };
            let weights = || Ok(restore(&prepared.columns, &theta.to_vec()?, k));
            let seen: Result<(), crate::device::DeviceError> = course.see(iteration, weights);
            failed = seen.err().or(failed.take());
        };
        let solved = EarlyStop::during(stop, || {
            let spec = (spec, chosen.solver, judged);
            self.minimise(spec, &mut *objective, begin, inverse, &mut show)
        });
        if let Some(error) = failed {
            return Err(OpError::from(error).into());
        }
        drop(objective);
        EarlyStop::settle(course.into_early(), chosen, || {
            let (fitted, solved) = self.finish(spec, prepared, rows, solved?)?;
            Ok((fitted, Summary::of(&solved, chosen)))
        })
    }

    /// Coefficients in the units of X, and how the solve really ended.
    pub(super) fn finish(
        &self,
        spec: &ObjectiveSpec,
        prepared: &Prepared<'_>,
        (targets, offset): (&RowTargets<'_, T>, Option<&[f64]>),
        solved: Solved<T>,
    ) -> Result<(Weights, Solved<T>), FitError> {
        if solved.convergence == Convergence::NotFinite {
            return Err(FitError::NotFinite {
                iterations: solved.n_iter,
            });
        }
        let ended = solved.convergence;
        let gradient = (solved.gradient_ratio, solved.gradient_norm);
        let solved = Solved {
            convergence: ended.of_gradient::<T>(gradient, prepared.slope),
            ..solved
        };
        let k = spec.loss.predictors();
        let Prepared {
            columns, weights, ..
        } = prepared;
        let design = Design::new(self.matrix, columns, k);
        let rows = judge::Rows {
            targets,
            weights,
            offset,
        };
        let solved = judge::settle(&design, spec, rows, solved)?;
        Ok((restore_from(columns, &solved.theta, k)?, solved))
    }

    /// Has the solver of these controls and penalties do it; `judged` says that coefficients of each iteration are wanted.
    fn minimise(
        &self,
        (spec, solver, judged): (&ObjectiveSpec, Solver, bool),
        objective: &mut dyn Objective<T>,
        begin: Begin<T>,
        inverse: Buffer<T>,
        show: &mut Watch<'_, T>,
    ) -> Result<Solved<T>, FitError> {
        let limits = self.limits(spec);
        if spec.l1 == 0.0 && solver == Solver::Lbfgs {
            let begun = (begin, inverse);
            return Ok(solver::lbfgs::minimise(objective, begun, &limits, show)?);
        }
        if let Some(l1) = self.l1(spec) {
            let scaled = (inverse, l1);
            return Ok(solver::orthant::minimise(
                objective, begin, scaled, &limits, show,
            )?);
        }
        let by = (&limits, (solver, judged));
        if !finish::is_worth::<T>() {
            return Ok(solver::smooth::minimise(
                objective, begin, inverse, by, show,
            )?);
        }
        let scale = finish::Scale {
            inverse: &inverse.try_clone().map_err(OpError::from)?,
            coefficients: self.matrix.cols() * spec.loss.predictors(),
        };
        let solved = solver::smooth::minimise(objective, begin, inverse, by, show)?;
        Ok(finish::approach(objective, solved, &scale, &limits, show)?)
    }

    /// The l1 penalty: it belongs to all coefficients, but to no intercept.
    pub(super) fn l1(&self, spec: &ObjectiveSpec) -> Option<L1> {
        (spec.l1 > 0.0).then(|| L1 {
            weight: spec.l1,
            penalised: self.matrix.cols() * spec.loss.predictors(),
        })
    }

    /// f64 values as T, on the device.
    pub(super) fn upload(&self, values: &[f64]) -> Result<Buffer<T>, FitError> {
        let device = self.matrix.device();
        Ok(device.upload_with(values.len(), |range, to: &mut [T]| {
            let pairs = to.iter_mut().zip(&values[range]);
            pairs.for_each(|(to, value)| *to = <T as Element>::from_f64(*value));
        })?)
    }

    /// On the device from end to end, but for many predictors per row where X is too wide for one pass.
    pub(super) fn objective<'s>(
        &'s self,
        spec: &ObjectiveSpec,
        prepared: &'s Prepared<'s>,
        (targets, offset): (&'s RowTargets<'s, T>, Option<&[f64]>),
    ) -> Result<Box<dyn Objective<T> + 's>, FitError> {
        let (matrix, ridge) = (self.matrix, spec.ridge());
        let (columns, data) = (&prepared.columns, (targets, &prepared.weights));
        let device = matrix.device();
        Ok(match spec.loss {
            SampleLoss::Single(loss) => {
                let rows = SingleRows::new(device, loss, data, offset)?;
                Box::new(RowsObjective::new(matrix, columns, ridge, rows)?)
            }
            SampleLoss::Kinked(_) => {
                unreachable!("checked to be minimised on the host, or refused")
            }
            SampleLoss::Multinomial { classes } if matrix.has_softmax(classes)? => {
                let rows = SoftmaxRows::new(device, classes, data)?;
                Box::new(RowsObjective::new(matrix, columns, ridge, rows)?)
            }
            SampleLoss::Multinomial { classes } => {
                let design = Design::new(matrix, columns, classes);
                let l2 = self.penalties(spec.l2, spec.intercept_l2, classes);
                Box::new(Multinomial::new(design, data, l2))
            }
        })
    }

    pub(super) fn limits(&self, spec: &ObjectiveSpec) -> Limits {
        Limits {
            tolerance: self.controls.tolerance,
            max_iter: self.controls.max_iter,
            quadratic: spec.loss == SampleLoss::Single(Loss::Squared),
        }
    }

    /// `value` for each coefficient, `intercept` for each intercept.
    fn penalties(&self, value: f64, intercept: f64, k: usize) -> Vec<f64> {
        let mut all = vec![value; self.matrix.cols() * k];
        if self.controls.fit_intercept {
            all.extend(std::iter::repeat_n(intercept, k));
        }
        all
    }

    /// The start, in the order of θ, on the device.
    fn theta(
        &self,
        spec: &ObjectiveSpec,
        columns: &Columns,
        start: &Start,
        warm: Option<Warm<'_>>,
    ) -> Result<Buffer<T>, FitError> {
        let (n, k) = (self.matrix.cols(), spec.loss.predictors());
        let len = (n + usize::from(columns.intercept)) * k;
        let mut sides: Vec<(Vec<f64>, f64)> = Vec::with_capacity(k);
        for c in 0..k {
            sides.push(match warm {
                Some((coef, intercepts)) => {
                    expect_len("coefficients to start from", Some(coef.len()), k)?;
                    expect_len("intercepts to start from", Some(intercepts.len()), k)?;
                    expect_len("coefficients to start from", Some(coef[c].len()), n)?;
                    columns.adopt(&coef[c], intercepts[c])
                }
                // Of zeros.
                None => (Vec::new(), start.intercepts[c]),
            });
        }
        let element = |i: usize| match &sides[i % k] {
            (_, intercept) if i >= n * k => *intercept,
            (coef, _) => coef.get(i / k).copied().unwrap_or(0.0),
        };
        let device = self.matrix.device();
        Ok(device.upload_with(len, |range, to: &mut [T]| {
            let elements = to.iter_mut().zip(range);
            elements.for_each(|(to, i)| *to = <T as Element>::from_f64(element(i)));
        })?)
    }

    /// The report of one solve, or of several of which `solved` is the worst.
    pub(super) fn report(
        &self,
        solved: &Summary,
        spec: &ObjectiveSpec,
        history: Vec<Iteration>,
    ) -> FitReport {
        let matrix = self.matrix;
        let cells = matrix.rows() as u64 * matrix.cols() as u64;
        FitReport {
            rows: matrix.rows(),
            nnz: matrix.problem().nnz.unwrap_or(cells),
            n_iter: solved.n_iter,
            convergence: solved.convergence,
            gradient_ratio: solved.gradient_ratio,
            objective: spec.factor * solved.objective + spec.constant,
            solver: solved.chosen.solver,
            solver_reason: solved.chosen.reason.to_owned(),
            relative_gap: solved.gap.map(|gap| ratio(gap, solved.objective.abs())),
            history,
            device: matrix.device().name().to_owned(),
            transfer_seconds: self.transfer_seconds,
            seconds: self.transfer_seconds + self.begun.elapsed().as_secs_f64(),
            peak_device_bytes: matrix.device().usage().peak_bytes as u64,
            reproducible: matrix.is_reproducible(),
            has_offset: self.has_offset,
        }
    }
}
