//! Features on a device, with what estimators must know about their columns.

use std::sync::Arc;

use super::compact::{self, Policy};
use super::options::FitOptions;
use super::weights::Weights;
use super::{FitError, Folds, RowMoments};
use crate::device::{Device, Phase, Phases};
use crate::matrix::{ColumnMoments, Features, SeenColumns};
use crate::ops::{DeviceFeatures, Matrix, MatrixOptions, Number, OpError, Preparation};
use crate::parallel;

/// Features on a device: uploaded once, read by as many fits as one likes (`fit_on` of the estimators).
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::{FitOptions, ResidentDataset, Ridge};
/// use warpfuse::matrix::Features;
/// use warpfuse::ops::MatrixOptions;
///
/// let x = Features::Dense(array![[0.0], [1.0], [2.0]]);
/// let resident = ResidentDataset::new(&Device::cpu(), x, MatrixOptions::default())?;
/// for alpha in [0.1, 1.0, 10.0] {
///     let model = Ridge::params().alpha(alpha).fit_on(&resident, &[0.0, 2.0, 4.0], FitOptions::default())?;
///     assert!((model.coef()[0] - 4.0 / (2.0 + alpha)).abs() < 1e-6);
/// }
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug)]
pub struct ResidentDataset<T: Number> {
    matrix: Matrix<T>,
    moments: RowMoments,
    of_folds: Vec<RowMoments>,
    phases: Phases,
    /// X on the host, where that costs nothing or little.
    host: Option<Arc<Features<T>>>,
    /// What fits read instead, where that pays.
    compact: Option<Box<Compact<T>>>,
}

/// X without the columns that have no entries.
#[derive(Debug)]
struct Compact<T: Number> {
    seen: SeenColumns,
    data: ResidentDataset<T>,
}

/// Entries up to which the host keeps X besides a GPU: small fits are solved there.
const KEPT: usize = 1 << 20;

impl<T: Number> ResidentDataset<T> {
    /// Checks `features` and puts them on `device`.
    ///
    /// # Errors
    /// [`FitError::NoRows`], [`FitError::ColumnNotFinite`], and when the device fails.
    pub fn new(
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        options: MatrixOptions,
    ) -> Result<Self, FitError> {
        Self::for_evaluations(device, features, options, 0)
    }

    /// [`ResidentDataset::new`] for fits that are expected to read X so often, each time for an objective of one linear predictor
    /// per row or its Hessian: stores a sparse X in a further form where the planner expects that to pay
    /// ([`Preparation::ForObjectives`]). Results differ from those without by rounding; those of
    /// [`Summation::Reproducible`](crate::plan::fused::Summation) do not.
    ///
    /// # Errors
    /// As [`ResidentDataset::new`].
    pub fn for_evaluations(
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        options: MatrixOptions,
        evaluations: u64,
    ) -> Result<Self, FitError> {
        Self::by_policy(
            (device, features.into()),
            options,
            evaluations,
            compact::pays,
        )
    }

    /// [`ResidentDataset::for_evaluations`], with fits over the columns that have entries where `policy` says so.
    pub(super) fn by_policy(
        (device, features): (&Device, Arc<Features<T>>),
        options: MatrixOptions,
        evaluations: u64,
        policy: Policy,
    ) -> Result<Self, FitError> {
        if device.group().is_some() {
            return Self::shared(device, features, (options, evaluations));
        }
        if features.rows() == 0 {
            return Err(FitError::NoRows);
        }
        let mut phases = Phases::default();
        let of_seen = || compacted((device, &features), (options, evaluations), policy);
        let compact = phases.time(Phase::Place, device, of_seen)?;
        // Fits are what further forms are for.
        let evaluations = if compact.is_some() { 0 } else { evaluations };
        let whole = Self::whole((device, features), (options, evaluations), phases)?;
        Ok(ResidentDataset { compact, ..whole })
    }

    /// Of all columns.
    fn whole(
        (device, features): (&Device, Arc<Features<T>>),
        (options, evaluations): (MatrixOptions, u64),
        mut phases: Phases,
    ) -> Result<Self, FitError> {
        let kept = stays(device, &features).then(|| features.clone());
        let (matrix, moments) = if is_worth_a_launch(device, &features) {
            let x = features.clone();
            let place = || placed(device, x, options, evaluations);
            let matrix = phases.time(Phase::Place, device, place)?;
            let of_placed = || moments_of_placed(&matrix, &features);
            let moments = phases.time(Phase::Statistics, device, of_placed)?;
            check_finite(&moments.columns)?;
            (matrix, moments)
        } else {
            let of_host = || moments_of_host(&features);
            let moments = phases.time(Phase::Statistics, device, of_host)?;
            check_finite(&moments.columns)?;
            let place = || placed(device, features, options, evaluations);
            (phases.time(Phase::Place, device, place)?, moments)
        };
        let host = kept.filter(|_| device.is_cpu() || !matrix.is_reproducible());
        Ok(ResidentDataset {
            matrix,
            moments,
            of_folds: Vec::new(),
            phases,
            host,
            compact: None,
        })
    }

    /// Of the rows of one member of a group. The host methods need all rows in one place, and are not used.
    fn shared(
        device: &Device,
        features: Arc<Features<T>>,
        (options, evaluations): (MatrixOptions, u64),
    ) -> Result<Self, FitError> {
        let mut phases = Phases::default();
        let place = || placed(device, features.clone(), options, evaluations);
        let matrix = phases.time(Phase::Place, device, place)?;
        if matrix.rows() == 0 {
            return Err(FitError::NoRows);
        }
        let of_all = || match matrix.column_moments()? {
            Some(columns) => Ok(RowMoments {
                columns,
                rows: matrix.rows(),
            }),
            None => features.reading(|| RowMoments::of_shared(&matrix, &features, |_| true))?,
        };
        let moments = phases.time(Phase::Statistics, device, of_all)?;
        check_finite(&moments.columns)?;
        Ok(ResidentDataset {
            matrix,
            moments,
            of_folds: Vec::new(),
            phases,
            host: None,
            compact: None,
        })
    }

    /// X that lies on its device already, read where it lies: nothing of it crosses the link, but for sums over its columns.
    /// What the host alone can fit (losses with kinks, coefficients that may not be negative) is refused.
    ///
    /// # Errors
    /// As [`ResidentDataset::new`].
    pub fn over(features: DeviceFeatures<T>, options: MatrixOptions) -> Result<Self, FitError> {
        let (device, rows) = (features.device(), features.shape().0);
        if rows == 0 {
            return Err(FitError::NoRows);
        }
        let mut phases = Phases::default();
        let of_all = || features.column_moments();
        let columns = phases.time(Phase::Statistics, &device, of_all)?;
        check_finite(&columns)?;
        let of_it = || Matrix::over(features, options);
        Ok(ResidentDataset {
            matrix: phases.time(Phase::Place, &device, of_it)?,
            moments: RowMoments { columns, rows },
            of_folds: Vec::new(),
            phases,
            host: None,
            compact: None,
        })
    }

    /// [`ResidentDataset::new`], and sums over the rows that each fold learns from, on which
    /// [`cross_validate`](super::cross_validate) standardises. They are squares, which no product with X gives, so they
    /// have to be added up here, while the host has X: once through X per fold.
    ///
    /// # Errors
    /// As [`ResidentDataset::new`]; [`FitError::Length`] when the folds are not of as many rows.
    pub fn with_folds(
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        options: MatrixOptions,
        folds: &Folds,
    ) -> Result<Self, FitError> {
        let features = features.into();
        let mut resident = ResidentDataset::new(device, features.clone(), options)?;
        let (expected, found) = (resident.matrix.rows(), folds.rows());
        if expected != found {
            let what = "rows of the folds";
            return Err(FitError::Length {
                what,
                expected,
                found,
            });
        }
        for fold in 0..folds.count() {
            let weights = folds.training_weights(fold, None);
            let takes = |row: usize| weights[row] > 0.0;
            let moments = RowMoments::of_shared(&resident.matrix, &features, takes)?;
            resident.of_folds.push(moments);
        }
        Ok(resident)
    }

    /// Sums over the rows that fold `fold` learns from, if it was made [`ResidentDataset::with_folds`].
    pub fn moments_of_fold(&self, fold: usize) -> Option<&RowMoments> {
        self.of_folds.get(fold)
    }

    /// X on its device.
    pub fn matrix(&self) -> &Matrix<T> {
        &self.matrix
    }

    /// Sums over its columns.
    pub fn moments(&self) -> &RowMoments {
        &self.moments
    }

    /// X on the host: on the CPU always, besides a GPU where it is small.
    pub(super) fn host_features(&self) -> Option<&Features<T>> {
        self.host.as_deref()
    }

    /// What fits read: X itself, or X over the columns that have entries.
    pub(super) fn for_fits(&self) -> (&ResidentDataset<T>, Option<&SeenColumns>) {
        match &self.compact {
            Some(compact) => (&compact.data, Some(&compact.seen)),
            None => (self, None),
        }
    }

    /// Those columns, where a fit with these options leaves out the others.
    pub(super) fn seen_by(&self, options: &FitOptions<'_>) -> Option<&SeenColumns> {
        let (_, seen) = self.for_fits();
        seen.filter(|seen| compact::suits(seen, self.matrix.rows(), options))
    }

    /// What `fit` makes of what a fit with these options reads, with coefficients of all columns.
    ///
    /// # Errors
    /// Those of `fit`.
    pub(super) fn fitted<R>(
        &self,
        options: FitOptions<'_>,
        fit: impl FnOnce(&ResidentDataset<T>, FitOptions<'_>) -> Result<(Weights, R), FitError>,
    ) -> Result<(Weights, R), FitError> {
        match self.seen_by(&options) {
            Some(seen) => compact::over(seen, options, |own| fit(self.for_fits().0, own)),
            None => fit(self, options),
        }
    }

    /// Seconds until X was on the device.
    pub fn transfer_seconds(&self) -> f64 {
        self.phases.iter().map(|(_, cost)| cost.seconds).sum()
    }

    /// What it took to get X there.
    pub fn phases(&self) -> &Phases {
        &self.phases
    }
}

/// X over the columns that have entries, where `policy` leaves out the others; not of reproducible sums, whose order depends
/// on n.
fn compacted<T: Number>(
    (device, features): (&Device, &Features<T>),
    (options, evaluations): (MatrixOptions, u64),
    policy: Policy,
) -> Result<Option<Box<Compact<T>>>, FitError> {
    let Some(x) = features.csr_arrays() else {
        return Ok(None);
    };
    let (cols, entries) = (x.shape.1, x.indices.len() as u64);
    if options.is_reproducible() || !policy(cols, entries, 0) {
        return Ok(None);
    }
    let of_entries = || {
        let seen = SeenColumns::of(&x);
        let pays = policy(cols, entries, seen.count());
        pays.then(|| (seen.only(&x), seen))
    };
    let found = features.reading(of_entries).map_err(OpError::from)?;
    let Some((own, seen)) = found else {
        return Ok(None);
    };
    let own = (device, Arc::new(own));
    let data = ResidentDataset::whole(own, (options, evaluations), Phases::default())?;
    Ok(Some(Box::new(Compact { seen, data })))
}

/// Fails where a column has an element that is no number, or squares that overflow.
pub(super) fn check_finite(columns: &ColumnMoments) -> Result<(), FitError> {
    match parallel::position(&columns.sum_of_squares, |sum| !sum.is_finite()) {
        Some(column) => Err(FitError::ColumnNotFinite { column }),
        None => Ok(()),
    }
}

/// Columns of a sparse X whose sums the caches of the host's threads hold.
const FEW_COLUMNS: usize = 1 << 14;

/// Whether sums over the columns are added on the device once X is there, which does so up to a hundred times as fast as the
/// host; not where that is as fast.
fn is_worth_a_launch<T: Number>(device: &Device, features: &Features<T>) -> bool {
    let host_is_slow = !features.is_sparse() || features.cols() > FEW_COLUMNS;
    !device.is_cpu() && features.nnz() > KEPT && host_is_slow
}

/// Sums over the columns of an X that has been placed; the host adds them where the device does not.
fn moments_of_placed<T: Number>(
    matrix: &Matrix<T>,
    features: &Features<T>,
) -> Result<RowMoments, OpError> {
    match matrix.column_moments()? {
        Some(columns) => Ok(RowMoments {
            columns,
            rows: features.rows(),
        }),
        None => moments_of_host(features),
    }
}

fn moments_of_host<T: Number>(features: &Features<T>) -> Result<RowMoments, OpError> {
    Ok(features.reading(|| RowMoments::of_all(features))?)
}

/// X on `device`, in the forms that pay.
fn placed<T: Number>(
    device: &Device,
    features: Arc<Features<T>>,
    options: MatrixOptions,
    evaluations: u64,
) -> Result<Matrix<T>, FitError> {
    let to_come = Preparation::ForObjectives { evaluations };
    Ok(Matrix::prepared(device, features, options, to_come)?)
}

/// Whether the host keeps X besides the device, unless the same bits are promised of every device. An emulator is there to
/// run kernels.
fn stays<T: Number>(device: &Device, features: &Features<T>) -> bool {
    match device {
        Device::Cpu(_) => true,
        Device::Cuda(_) => features.nnz() <= KEPT,
        Device::Emulator(_) => false,
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::device::EmulatorOptions;
    use crate::learning::{Estimator, FitOptions, Ridge};
    use crate::matrix::NarrowCsr;

    #[test]
    fn a_device_takes_offsets_of_32_bits_as_they_are() {
        // Two ascending columns of five in each of 3,000 rows.
        let rows = 3_000_u32;
        let pair = |row: u32| [row % 2, 2 + row % 3];
        let offsets: Vec<u32> = (0..=rows).map(|row| 2 * row).collect();
        let indices: Vec<u32> = (0..rows).flat_map(pair).collect();
        let values: Vec<f32> = (0..2 * rows).map(|i| (i % 7) as f32 - 3.0).collect();
        let x = NarrowCsr::new(
            (rows as usize, 5),
            offsets.into(),
            indices.into(),
            values.into(),
        );
        let x = Arc::new(Features::Narrow(x.expect("a matrix")));
        let y: Vec<f64> = (0..rows).map(|row| f64::from(row % 11)).collect();
        let device = Device::emulator(EmulatorOptions::default());
        let ridge = Estimator::Ridge(Ridge::params());
        ridge
            .fit_wide(&device, x.clone(), &y, FitOptions::default())
            .expect("fits");
        let Features::Narrow(x) = &*x else {
            unreachable!("made above");
        };
        assert!(!x.is_widened(), "8 bytes a row of the host's memory");
    }
}
