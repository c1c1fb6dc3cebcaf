//! Linear and ridge regression.

use std::sync::Arc;
use std::time::Instant;

use super::cg::{CgOptions, CgStart, Convergence, Progress, conjugate_gradient};
use super::{FitError, FitReport, LinearModel, RegressionMetrics};
use crate::device::{Buffer, Device};
use crate::matrix::{ColumnMoments, Element, Features};
use crate::ops::{Matrix, MatrixOptions, Number, Terms, vector};

/// Share of a column's Σx² below which its centred square sum is taken for rounding noise.
const NOISE: f64 = 1e-10;

/// Linear regression: minimises `Σ (tᵢ − xᵢ·w − b)² + λ·‖w‖²`, the intercept b unpenalised.
///
/// λ is scikit-learn's `alpha` of `Ridge`; λ = 0 is ordinary least squares. Solved by conjugate gradients on
/// the normal equations, with one fused pass over X per iteration; columns are centred around the product,
/// never in X. Where the solution is not unique, the one nearest to zero (in the norm of the preconditioner)
/// is approached.
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `l2` (λ) | 0 | `LinearRegression` has none; `alpha` of `Ridge` |
/// | `fit_intercept` | yes | `fit_intercept=True` |
/// | `tolerance` | 1e-6, of the gradient's norm over that at the start | `tol=1e-6` (sparse X); dense X by SVD |
/// | `max_iter` | 1000 | – |
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::LinearRegression;
/// use warpfuse::matrix::Features;
///
/// let x = Features::Dense(array![[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]);
/// let model = LinearRegression::params().l2(0.5).fit(&Device::auto(), x, &[1.0, 2.0, 3.0, 4.0])?;
/// assert_eq!(model.coef().len(), 2);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LinearRegression {
    /// λ.
    pub(super) l2: f64,
    /// Relative norm of the gradient at which to stop.
    pub(super) tolerance: f64,
    /// The most iterations.
    pub(super) max_iter: usize,
    /// Whether b is fitted.
    pub(super) fit_intercept: bool,
    #[serde(skip)]
    matrix: MatrixOptions,
}

impl Default for LinearRegression {
    fn default() -> Self {
        LinearRegression {
            l2: 0.0,
            tolerance: 1e-6,
            max_iter: 1000,
            fit_intercept: true,
            matrix: MatrixOptions::default(),
        }
    }
}

impl LinearRegression {
    /// λ = 0, tolerance 1e-6, at most 1000 iterations, with intercept.
    pub fn params() -> Self {
        Self::default()
    }

    /// Sets λ ≥ 0, the weight of ‖w‖².
    pub fn l2(self, l2: f64) -> Self {
        Self { l2, ..self }
    }

    /// Sets the relative norm of the gradient, ‖Xᵀ(X·w − t) + λw‖ / ‖Xᵀt‖, at which to stop.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Sets the most iterations.
    pub fn max_iter(self, max_iter: usize) -> Self {
        Self { max_iter, ..self }
    }

    /// Sets whether an intercept is fitted.
    pub fn fit_intercept(self, fit_intercept: bool) -> Self {
        Self {
            fit_intercept,
            ..self
        }
    }

    /// Sets how products are planned on a GPU.
    pub fn matrix_options(self, matrix: MatrixOptions) -> Self {
        Self { matrix, ..self }
    }

    /// Fits to `features` (m × n) and `targets` (m) on `device`.
    ///
    /// # Errors
    /// [`FitError`] when shapes, values or parameters do not fit, or the device fails. Not converging is not an
    /// error: see [`LinearModel::report`].
    pub fn fit<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        targets: &[T],
    ) -> Result<LinearModel, FitError> {
        self.fit_watched(device, features, targets, |_| {})
    }

    /// [`LinearRegression::fit`], calling `watch` after each iteration.
    ///
    /// # Errors
    /// As [`LinearRegression::fit`].
    pub fn fit_watched<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        targets: &[T],
        watch: impl FnMut(Progress),
    ) -> Result<LinearModel, FitError> {
        let start = Instant::now();
        let features = features.into();
        self.check(&features, targets)?;
        let problem = Centred::new(&features, targets, self)?;
        let matrix = Matrix::with_options(device, features, self.matrix)?;
        let transfer_seconds = start.elapsed().as_secs_f64();
        let targets = device.upload(&problem.targets)?;
        let cg = self.start(&matrix, &targets, &problem)?;
        let solution = conjugate_gradient(&matrix, cg, &self.options(), watch)?;
        if solution.convergence == Convergence::NotFinite {
            return Err(FitError::NotFinite {
                iterations: solution.iterations,
            });
        }
        let metrics = problem.metrics(&matrix, &targets, &solution.w)?;
        let coef: Vec<f64> = solution
            .w
            .to_vec()?
            .iter()
            .map(|w| Element::to_f64(*w))
            .collect();
        let report = FitReport {
            rows: matrix.rows(),
            nnz: matrix
                .problem()
                .nnz
                .unwrap_or(matrix.rows() as u64 * matrix.cols() as u64),
            n_iter: solution.iterations,
            convergence: solution.convergence,
            residual_ratio: solution.residual_ratio,
            metrics,
            device: device.name().to_owned(),
            transfer_seconds,
            seconds: start.elapsed().as_secs_f64(),
            peak_device_bytes: device.usage().peak_bytes as u64,
        };
        let intercept = problem.intercept(&coef);
        Ok(LinearModel::new(T::DTYPE, coef, intercept, *self, report))
    }

    fn options(&self) -> CgOptions {
        CgOptions {
            l2: self.l2,
            tolerance: self.tolerance,
            max_iter: self.max_iter,
        }
    }

    fn check<T: Number>(&self, features: &Features<T>, targets: &[T]) -> Result<(), FitError> {
        let rows = features.rows();
        if rows == 0 {
            return Err(FitError::NoRows);
        }
        if targets.len() != rows {
            return Err(FitError::Targets {
                rows,
                targets: targets.len(),
            });
        }
        if let Some(row) = targets
            .iter()
            .position(|target| !Element::is_finite(*target))
        {
            let value = Element::to_f64(targets[row]);
            return Err(FitError::TargetNotFinite { row, value });
        }
        for (name, found) in [("l2", self.l2), ("tol", self.tolerance)] {
            if !(found >= 0.0 && found.is_finite()) {
                let expected = "finite and not negative";
                return Err(FitError::Parameter {
                    name,
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }

    /// r₀ = −Xᵀt, with the diagonal and the means.
    fn start<T: Number>(
        &self,
        matrix: &Matrix<T>,
        targets: &Buffer<T>,
        problem: &Centred<T>,
    ) -> Result<CgStart<T>, FitError> {
        let device = matrix.device();
        let mut residual = device.zeros(matrix.cols())?;
        let terms = Terms {
            alpha: <T as Element>::from_f64(-1.0),
            ..Terms::default()
        };
        matrix.transposed(targets, &terms, &mut residual)?;
        let means = match &problem.means {
            Some(means) => Some(device.upload(&narrow::<T>(means))?),
            None => None,
        };
        let inverse_diagonal = Some(device.upload(&narrow::<T>(&problem.inverse_diagonal))?);
        Ok(CgStart {
            residual,
            inverse_diagonal,
            means,
        })
    }
}

/// The problem in centred form: what is known before the first iteration, in f64.
struct Centred<T> {
    /// t − t̄ (or t, without intercept).
    targets: Vec<T>,
    target_mean: f64,
    /// Σ (t − t̄)², the denominator of R² whether there is an intercept or not.
    total: f64,
    /// x̄, with an intercept.
    means: Option<Vec<f64>>,
    inverse_diagonal: Vec<f64>,
}

impl<T: Number> Centred<T> {
    fn new(
        features: &Features<T>,
        targets: &[T],
        params: &LinearRegression,
    ) -> Result<Self, FitError> {
        let rows = features.rows() as f64;
        let moments = ColumnMoments::of(features);
        if let Some(column) = moments.sum_of_squares.iter().position(|s| !s.is_finite()) {
            return Err(FitError::ColumnNotFinite { column });
        }
        let mean = targets.iter().map(|t| Element::to_f64(*t)).sum::<f64>() / rows;
        let total = targets
            .iter()
            .map(|t| (Element::to_f64(*t) - mean).powi(2))
            .sum();
        let offset = if params.fit_intercept { mean } else { 0.0 };
        let means = params
            .fit_intercept
            .then(|| moments.sum.iter().map(|s| s / rows).collect());
        let targets = targets
            .iter()
            .map(|t| <T as Element>::from_f64(Element::to_f64(*t) - offset))
            .collect();
        let inverse_diagonal = inverse_diagonal(&moments, rows, params);
        Ok(Centred {
            targets,
            target_mean: offset,
            total,
            means,
            inverse_diagonal,
        })
    }

    fn intercept(&self, coef: &[f64]) -> f64 {
        let shift: f64 = self
            .means
            .iter()
            .flatten()
            .zip(coef)
            .map(|(mean, w)| mean * w)
            .sum();
        self.target_mean - shift
    }

    /// R² and RMSE from the residual (X·w − x̄·w) − (t − t̄), which is formed on the device.
    fn metrics(
        &self,
        matrix: &Matrix<T>,
        targets: &Buffer<T>,
        w: &Buffer<T>,
    ) -> Result<RegressionMetrics, FitError> {
        let device = matrix.device();
        let coef = w.to_vec()?;
        let shift: f64 = self
            .means
            .iter()
            .flatten()
            .zip(&coef)
            .map(|(mean, w)| mean * Element::to_f64(*w))
            .sum();
        let shift = device.upload(&[<T as Element>::from_f64(shift)])?;
        let minus_one = <T as Element>::from_f64(-1.0);
        let terms = Terms {
            shift: Some(&shift),
            addend: Some((minus_one, targets)),
            ..Terms::default()
        };
        let mut residual = device.zeros(matrix.rows())?;
        matrix.forward(w, &terms, &mut residual)?;
        let sum = vector::dot(&residual, &residual)?;
        Ok(RegressionMetrics::of_sums(sum, self.total, matrix.rows()))
    }
}

/// 1 / (Σ(x − x̄)² + λ) per column; 0 for a column of zeros without penalty, which then keeps coefficient 0.
fn inverse_diagonal(moments: &ColumnMoments, rows: f64, params: &LinearRegression) -> Vec<f64> {
    let columns = moments.sum.iter().zip(&moments.sum_of_squares);
    columns
        .map(|(sum, squares)| {
            let centred = if params.fit_intercept {
                squares - sum * sum / rows
            } else {
                *squares
            };
            let diagonal = centred.max(NOISE * squares) + params.l2;
            if diagonal > 0.0 { 1.0 / diagonal } else { 0.0 }
        })
        .collect()
}

fn narrow<T: Number>(values: &[f64]) -> Vec<T> {
    values
        .iter()
        .map(|value| <T as Element>::from_f64(*value))
        .collect()
}
