//! Features on a device, with what estimators must know about their columns.

use std::sync::Arc;
use std::time::Instant;

use super::FitError;
use crate::device::Device;
use crate::matrix::{ColumnMoments, Features};
use crate::ops::objective::HeadSize;
use crate::ops::{Matrix, MatrixOptions, Number};

/// Features on a device: uploaded once, read by as many fits as one likes (`fit_on` of the estimators).
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::{Extras, Placed, Ridge};
/// use warpfuse::matrix::Features;
/// use warpfuse::ops::MatrixOptions;
///
/// let x = Features::Dense(array![[0.0], [1.0], [2.0]]);
/// let placed = Placed::new(&Device::cpu(), x, MatrixOptions::default())?;
/// for alpha in [0.1, 1.0, 10.0] {
///     let model = Ridge::params().alpha(alpha).fit_on(&placed, &[0.0, 2.0, 4.0], Extras::default())?;
///     assert!((model.coef()[0] - 4.0 / (2.0 + alpha)).abs() < 1e-6);
/// }
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug)]
pub struct Placed<T: Number> {
    matrix: Matrix<T>,
    moments: ColumnMoments,
    transfer_seconds: f64,
}

impl<T: Number> Placed<T> {
    /// Checks `features` and puts them on `device`.
    ///
    /// # Errors
    /// [`FitError::NoRows`], [`FitError::ColumnNotFinite`], and when the device fails.
    pub fn new(
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        options: MatrixOptions,
    ) -> Result<Self, FitError> {
        let begun = Instant::now();
        let features = features.into();
        if features.rows() == 0 {
            return Err(FitError::NoRows);
        }
        let moments = ColumnMoments::of(&features);
        if let Some(column) = moments.sum_of_squares.iter().position(|s| !s.is_finite()) {
            return Err(FitError::ColumnNotFinite { column });
        }
        let mut matrix = Matrix::with_options(device, features, options)?;
        if !matrix.is_reproducible() {
            matrix.tell_head(HeadSize::Planned)?;
        }
        Ok(Placed {
            matrix,
            moments,
            transfer_seconds: begun.elapsed().as_secs_f64(),
        })
    }

    /// X on its device.
    pub fn matrix(&self) -> &Matrix<T> {
        &self.matrix
    }

    /// Sums over its columns.
    pub fn moments(&self) -> &ColumnMoments {
        &self.moments
    }

    /// Seconds until X was on the device.
    pub fn transfer_seconds(&self) -> f64 {
        self.transfer_seconds
    }
}
