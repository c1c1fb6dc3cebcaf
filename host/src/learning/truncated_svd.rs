//! Truncated singular value decomposition, and principal components.

use std::sync::Arc;

use ndarray::Array2;

use super::cg::Progress;
use super::checkpoint::{Checkpoint, Identity};
use super::identity::with_checkpoint_of;
use super::lanczos::{LanczosOptions, leading_eigenvectors};
use super::resident::check_finite;
use super::spectral::{
    Clock, SpectralReport, check_tolerance, download, norm, spectral_fits, spectral_model, upload,
};
use super::{FitError, Operator, RowMoments};
use crate::device::{Buffer, Device};
use crate::matrix::{ColumnMoments, Features};
use crate::ops::{DeviceFeatures, Matrix, MatrixOptions, Number, Preparation, Terms, vector};

/// The k leading singular triplets of X (m × n): `X ≈ U·diag(σ)·Vᵀ`. X is neither densified nor copied.
///
/// Lanczos iteration on XᵀX with one fused pass over X per step, full reorthogonalisation and restarts, until
/// `‖XᵀX·v − σ²v‖ ≤ tol·σ²` for each of the k vectors. Squaring loses nothing of the large singular values; of
/// one that is σ₁·10⁻⁸ in f64 (10⁻⁴ in f32) it leaves nothing.
///
/// | parameter | default | scikit-learn |
/// |---|---|---|
/// | `components` (k) | none: always given | `n_components=2` |
/// | `centred` | no | `PCA` for yes |
/// | `tolerance` | 1e-8, of each residual over σ² | `n_iter=5` rounds of a randomised method, or `tol=0.0` of ARPACK |
/// | `max_iter` | 1000 products with XᵀX | – |
/// | `seed` | 0 | `random_state=None` |
///
/// [`TruncatedSvd::centred`] subtracts the column means around the product, never in X, and gives principal
/// components of sparse data. Signs are scikit-learn's: of each vector the entry of largest magnitude is
/// positive.
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::TruncatedSvd;
/// use warpfuse::matrix::Features;
///
/// let x = array![[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]];
/// let model = TruncatedSvd::params(1).fit(&Device::cpu(), Features::Dense(x))?;
/// assert!((model.singular_values()[0] - 3.0).abs() < 1e-12);
/// assert!((model.components()[[0, 0]] - 1.0).abs() < 1e-12);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TruncatedSvd {
    components: usize,
    centring: Centring,
    tolerance: f64,
    max_iter: usize,
    seed: u64,
    matrix: MatrixOptions,
}

/// Whether column means are subtracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Centring {
    None,
    Columns,
}

/// Vectors of the basis beyond twice those wanted: more passes before a restart, fewer in all.
const SPARE: usize = 20;

spectral_fits! {
    TruncatedSvd -> SvdModel, watched "whenever the basis is full";
    /// Decomposes `x` (m × n) on `device`.
    ///
    /// # Errors
    /// [`FitError::Parameter`] where the components are none or more than m or n,
    /// [`FitError::ColumnNotFinite`], and when the device fails. Not converging is no error: see
    /// [`SvdModel::report`].
}

impl TruncatedSvd {
    /// `components` triplets, tolerance 1e-8, at most 1000 products, seed 0, not centred.
    pub fn params(components: usize) -> Self {
        TruncatedSvd {
            components,
            centring: Centring::None,
            tolerance: 1e-8,
            max_iter: 1000,
            seed: 0,
            matrix: MatrixOptions::default(),
        }
    }

    /// Subtracts the column means: principal component analysis.
    pub fn centred(self) -> Self {
        let centring = Centring::Columns;
        Self { centring, ..self }
    }

    /// Sets the residual `‖XᵀX·v − σ²v‖ / σ²` at which to stop.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Sets the most products with XᵀX; it is looked at whenever the basis is full.
    pub fn max_iter(self, max_iter: usize) -> Self {
        Self { max_iter, ..self }
    }

    /// Sets the seed of the random start.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets how products are planned on a GPU.
    pub fn matrix_options(self, matrix: MatrixOptions) -> Self {
        Self { matrix, ..self }
    }

    fn facts(&self, identity: &mut Identity) {
        identity.fact("method", "singular vectors");
        identity.fact("components", self.components);
        identity.fact("centring", format_args!("{:?}", self.centring));
        identity.fact("tolerance", self.tolerance);
        identity.fact("max_iter", self.max_iter);
        identity.fact("seed", self.seed);
        identity.fact("sums", format_args!("{:?}", self.matrix.summation));
    }

    fn run<T: Number>(
        &self,
        device: &Device,
        features: Arc<Features<T>>,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<SvdModel, FitError> {
        let mut clock = Clock::start();
        let evaluations = self.evaluations(features.cols());
        if device.group().is_some() {
            return self.fit_shared(device, &features, clock, watch);
        }
        self.check((features.rows(), features.cols()))?;
        let moments = ColumnMoments::of(&features);
        check_finite(&moments)?;
        let to_come = Preparation::For { evaluations };
        let x = Matrix::prepared(device, features, self.matrix, to_come)?;
        clock.transferred();
        self.decompose(&x, &moments, clock, watch)
    }

    /// Of the rows of one member of a group.
    fn fit_shared<T: Number>(
        &self,
        device: &Device,
        features: &Arc<Features<T>>,
        mut clock: Clock,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<SvdModel, FitError> {
        let x = Matrix::with_options(device, features.clone(), self.matrix)?;
        self.check((x.rows(), x.cols()))?;
        let moments = RowMoments::of_shared(&x, features, |_| true)?.columns;
        check_finite(&moments)?;
        clock.transferred();
        self.decompose(&x, &moments, clock, watch)
    }

    /// [`TruncatedSvd::fit_watched`] of X that lies on its device already, read where it lies: nothing of it crosses the link,
    /// but for sums over its columns.
    ///
    /// # Errors
    /// As [`TruncatedSvd::fit`].
    pub fn fit_over<T: Number>(
        &self,
        features: DeviceFeatures<T>,
        mut watch: impl FnMut(Progress),
    ) -> Result<SvdModel, FitError> {
        let mut clock = Clock::start();
        self.check(features.shape())?;
        let moments = features.column_moments()?;
        check_finite(&moments)?;
        let x = Matrix::over(features, self.matrix)?;
        clock.transferred();
        self.decompose(&x, &moments, clock, &mut watch)
    }

    fn decompose<T: Number>(
        &self,
        x: &Matrix<T>,
        moments: &ColumnMoments,
        clock: Clock,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<SvdModel, FitError> {
        let device = x.device();
        let column_means = moments.means(x.rows());
        let means = match self.centring {
            Centring::None => None,
            Centring::Columns => Some(upload(device, &column_means)?),
        };
        let options = self.lanczos(x.cols());
        let (vectors, course) = leading_eigenvectors(x, means.as_ref(), &options, |course| {
            watch(Progress {
                iteration: course.n_iter,
                max_iter: self.max_iter,
                residual_ratio: course.change,
            });
        })?;
        let triplets = triplets(x, means.as_ref(), &vectors)?;
        let report = clock.report(x, course);
        Ok(SvdModel::new(triplets, self.centring, moments, report))
    }

    fn check(&self, (rows, cols): (usize, usize)) -> Result<(), FitError> {
        check_tolerance(self.tolerance)?;
        if rows == 0 {
            return Err(FitError::NoRows);
        }
        if self.components == 0 || self.components > rows.min(cols) {
            return Err(FitError::Parameter {
                name: "components",
                expected: "at least 1 and at most the rows and the columns of the data",
                found: self.components as f64,
            });
        }
        Ok(())
    }

    /// Products that are expected: a basis, and a restart that makes half of it anew.
    fn evaluations(&self, cols: usize) -> u64 {
        let size = self.lanczos(cols).size;
        (size + size / 2).min(self.max_iter) as u64
    }

    fn lanczos(&self, cols: usize) -> LanczosOptions {
        LanczosOptions {
            wanted: self.components,
            size: (2 * self.components + SPARE).min(cols),
            tolerance: self.tolerance,
            max_iter: self.max_iter,
            seed: self.seed,
        }
    }
}

/// σ and v, largest σ first.
struct Triplets(Vec<(f64, Vec<f64>)>);

/// σ = ‖X·v‖, which is more accurate for small σ than the root of the eigenvalue.
fn triplets<T: Number>(
    x: &impl Operator<T>,
    means: Option<&Buffer<T>>,
    vectors: &[Buffer<T>],
) -> Result<Triplets, FitError> {
    let mut product = x.device().zeros(x.rows())?;
    let mut found = Vec::with_capacity(vectors.len());
    for v in vectors {
        let shift = match means {
            Some(means) => Some(upload::<T>(x.device(), &[vector::dot(means, v)?])?),
            None => None,
        };
        let terms = Terms {
            shift: shift.as_ref(),
            ..Terms::default()
        };
        x.forward(v, &terms, &mut product)?;
        let mut v = download(v)?;
        orient(&mut v);
        found.push((norm(&product)?, v));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    Ok(Triplets(found))
}

/// Makes the entry of largest magnitude positive.
fn orient(v: &mut [f64]) {
    let largest = v.iter().copied().fold(0.0_f64, |most, value| {
        if value.abs() > most.abs() {
            value
        } else {
            most
        }
    });
    if largest < 0.0 {
        v.iter_mut().for_each(|value| *value = -*value);
    }
}

/// A truncated singular value decomposition.
#[derive(Debug, Clone, PartialEq)]
pub struct SvdModel {
    components: Array2<f64>,
    singular_values: Vec<f64>,
    explained_variance: Vec<f64>,
    total_variance: f64,
    means: Option<Vec<f64>>,
    report: SpectralReport,
}

spectral_model!(SvdModel, "Products with XᵀX.");

impl SvdModel {
    fn new(
        triplets: Triplets,
        centring: Centring,
        moments: &ColumnMoments,
        report: SpectralReport,
    ) -> Self {
        let rows = report.rows as f64;
        let column_means = moments.means(report.rows);
        let of_column = |(mean, squares): (&f64, &f64)| (squares / rows - mean * mean).max(0.0);
        let columns = column_means.iter().zip(&moments.sum_of_squares);
        let total_variance = columns.map(of_column).sum();
        // The variance of X·v: its mean is x̄·v, and its square sum σ², or less m·(x̄·v)² when centred.
        let variance = |(sigma, v): &(f64, Vec<f64>)| {
            let mean: f64 = column_means.iter().zip(v).map(|(mean, v)| mean * v).sum();
            match centring {
                Centring::None => (sigma * sigma / rows - mean * mean).max(0.0),
                Centring::Columns => sigma * sigma / rows,
            }
        };
        let Triplets(triplets) = triplets;
        let explained_variance = triplets.iter().map(variance).collect();
        let singular_values: Vec<f64> = triplets.iter().map(|(sigma, _)| *sigma).collect();
        let shape = (triplets.len(), column_means.len());
        let flat = triplets.into_iter().flat_map(|(_, v)| v).collect();
        SvdModel {
            components: Array2::from_shape_vec(shape, flat).expect("k vectors of n entries"),
            singular_values,
            explained_variance,
            total_variance,
            means: (centring == Centring::Columns).then_some(column_means),
            report,
        }
    }

    /// Vᵀ, k × n: a singular vector in each row.
    pub fn components(&self) -> &Array2<f64> {
        &self.components
    }

    /// σ, largest first.
    pub fn singular_values(&self) -> &[f64] {
        &self.singular_values
    }

    /// The variance of each coordinate of [`SvdModel::transform`], divided by m as in scikit-learn's
    /// `TruncatedSVD` (its `PCA` divides by m − 1).
    pub fn explained_variance(&self) -> &[f64] {
        &self.explained_variance
    }

    /// Means of the columns, where they were centred; n.
    pub fn means(&self) -> Option<&[f64]> {
        self.means.as_deref()
    }

    /// [`SvdModel::explained_variance`] as shares of the variance of all columns together.
    pub fn explained_variance_ratio(&self) -> Vec<f64> {
        let share = |variance: &f64| match self.total_variance {
            0.0 => 0.0,
            total => variance / total,
        };
        self.explained_variance.iter().map(share).collect()
    }

    /// Coordinates along the components: `X·V`, m × k (`(X − 1·x̄ᵀ)·V` when centred), computed on `device`.
    ///
    /// # Errors
    /// [`FitError::Features`] when n differs, and when the device fails.
    pub fn transform<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
    ) -> Result<Array2<T>, FitError> {
        let features = features.into();
        let (expected, found) = (self.components.ncols(), features.cols());
        if expected != found {
            return Err(FitError::Features { expected, found });
        }
        let x = Matrix::new(device, features)?;
        let mut coordinates = Array2::from_elem((x.rows(), self.components.nrows()), T::default());
        let mut product = device.zeros(x.rows())?;
        for (row, mut column) in self
            .components
            .rows()
            .into_iter()
            .zip(coordinates.columns_mut())
        {
            let v = row.to_vec();
            let shift = self
                .means
                .iter()
                .flatten()
                .zip(&v)
                .map(|(mean, v)| mean * v);
            let shift = upload::<T>(device, &[shift.sum()])?;
            let terms = Terms {
                shift: Some(&shift),
                ..Terms::default()
            };
            x.forward(&upload(device, &v)?, &terms, &mut product)?;
            column.assign(&ndarray::Array1::from(product.to_vec()?));
        }
        Ok(coordinates)
    }
}
