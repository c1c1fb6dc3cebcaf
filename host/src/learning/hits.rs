//! Hubs and authorities.

use std::sync::Arc;

use super::cg::Progress;
use super::checkpoint::{Checkpoint, Identity};
use super::evaluations::steps;
use super::identity::with_checkpoint_of;
use super::spectral::{
    Clock, Course, SpectralReport, advance, check_edges, check_tolerance, download, iterate, norm,
    normalise_sum, spectral_fits, spectral_model,
};
use super::{FitError, Operator};
use crate::device::{Buffer, Device};
use crate::matrix::{Element, Features};
use crate::ops::{Matrix, MatrixOptions, Number, Preparation, Terms, vector};

/// By how many factors e a step is expected to bring hubs and authorities closer: two, as if the second of the
/// eigenvalues of XᵀX were half the first.
const RATE: f64 = std::f64::consts::LN_2;

/// Hyperlink-induced topic search: good hubs point to good authorities.
///
/// X is a graph's adjacency matrix: entry (i, j) is the weight of the edge from i to j. Authorities are the
/// principal right singular vector of X, hubs the left one. Power iteration `a ← Xᵀ(X·a) / ‖Xᵀ(X·a)‖`, with
/// one fused pass over X per step, until ‖aₖ − aₖ₋₁‖₂ ≤ tol; then hubs = X·a. Both are scaled to a sum of 1,
/// as networkx does. X need not be square: rows then point to columns. Members of a [group](crate::device::group) may share
/// its rows; each gets the scores of all.
///
/// | parameter | default | networkx `hits` |
/// |---|---|---|
/// | `tolerance` | 1e-8, of ‖aₖ − aₖ₋₁‖₂ | `tol=1e-8`, of its eigenvalue solver |
/// | `max_iter` | 100 | `max_iter=100` |
///
/// Source: Kleinberg 1999, "Authoritative sources in a hyperlinked environment".
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::Hits;
/// use warpfuse::matrix::Features;
///
/// // 0 → 2, 1 → 2: one authority, two hubs.
/// let graph = Features::Dense(array![[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]);
/// let model = Hits::params().fit(&Device::cpu(), graph)?;
/// assert_eq!(model.authorities(), [0.0, 0.0, 1.0]);
/// assert_eq!(model.hubs(), [0.5, 0.5, 0.0]);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hits {
    tolerance: f64,
    max_iter: usize,
    matrix: MatrixOptions,
}

/// Scores of rows and columns.
#[derive(Debug, Clone, PartialEq)]
pub struct HitsModel {
    hubs: Vec<f64>,
    authorities: Vec<f64>,
    report: SpectralReport,
}

spectral_fits! {
    Hits -> HitsModel, watched "after each step";
    /// Scores the nodes of the graph `x` on `device`.
    ///
    /// # Errors
    /// [`FitError::Edge`] for edges that are negative or not finite, [`FitError::NoEdges`] without any, and when
    /// the device fails. Not converging is no error: see [`HitsModel::report`].
}

impl Hits {
    /// Tolerance 1e-8 and at most 100 steps, as in networkx.
    pub fn params() -> Self {
        Hits {
            tolerance: 1e-8,
            max_iter: 100,
            matrix: MatrixOptions::default(),
        }
    }

    /// Sets the ‖aₖ − aₖ₋₁‖₂ at which to stop; ‖a‖₂ is 1.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Sets the most steps.
    pub fn max_iter(self, max_iter: usize) -> Self {
        Self { max_iter, ..self }
    }

    /// Sets how products are planned on a GPU.
    pub fn matrix_options(self, matrix: MatrixOptions) -> Self {
        Self { matrix, ..self }
    }

    fn facts(&self, identity: &mut Identity) {
        identity.fact("method", "hubs and authorities");
        identity.fact("tolerance", self.tolerance);
        identity.fact("max_iter", self.max_iter);
        identity.fact("sums", format_args!("{:?}", self.matrix.summation));
    }

    fn run<T: Number>(
        &self,
        device: &Device,
        graph: Arc<Features<T>>,
        watch: impl FnMut(Progress),
    ) -> Result<HitsModel, FitError> {
        let mut clock = Clock::start();
        check_tolerance(self.tolerance)?;
        check_edges(device, &graph)?;
        let evaluations = steps(self.tolerance, RATE).min(self.max_iter as u64);
        let to_come = Preparation::For { evaluations };
        let x = Matrix::prepared(device, graph, self.matrix, to_come)?;
        clock.transferred();
        let (a, course) = self.iterate(&x, watch)?;
        let mut hubs = device.zeros(x.rows())?;
        x.forward(&a, &Terms::default(), &mut hubs)?;
        let (mut hubs, mut authorities) = (download(&hubs)?, download(&a)?);
        normalise_sum(&mut hubs);
        normalise_sum(&mut authorities);
        Ok(HitsModel {
            hubs,
            authorities,
            report: clock.report(&x, course),
        })
    }

    fn iterate<T: Number>(
        &self,
        x: &impl Operator<T>,
        watch: impl FnMut(Progress),
    ) -> Result<(Buffer<T>, Course), FitError> {
        let narrow = <T as Element>::from_f64;
        let (device, cols) = (x.device(), x.cols());
        let mut a = device.zeros(cols)?;
        vector::fill(narrow(1.0 / (cols as f64).sqrt()), &mut a)?;
        let (mut product, mut next) = (device.zeros(cols)?, device.zeros(cols)?);
        let until = (self.tolerance, self.max_iter);
        let course = iterate(("hits", &mut a), until, watch, |a| {
            x.fused(a, &Terms::default(), &mut product)?;
            let length = norm(&product)?;
            if length == 0.0 {
                return Err(FitError::NoEdges);
            }
            if !length.is_finite() {
                return Ok(length);
            }
            vector::scaled_copy(narrow(1.0 / length), &product, &mut next)?;
            Ok(advance(a, &mut next)?)
        })?;
        Ok((a, course))
    }
}

impl HitsModel {
    /// m scores of the rows, adding up to 1: how good a list of authorities each is.
    pub fn hubs(&self) -> &[f64] {
        &self.hubs
    }

    /// n scores of the columns, adding up to 1.
    pub fn authorities(&self) -> &[f64] {
        &self.authorities
    }
}

spectral_model!(HitsModel, "Steps.");
