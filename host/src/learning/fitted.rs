//! A fitted linear model, whatever it predicts.

use super::report::FitReport;
use super::solver::Iteration;
use super::weights::Weights;
use crate::matrix::{Dtype, Schema};

/// Parameters of estimators whose models predict the same kind of thing.
pub trait Predicts {
    /// What a model knows about that besides its coefficients.
    type Meaning: Clone + std::fmt::Debug + PartialEq;
}

/// A fitted linear model of an estimator whose parameters are `P`.
///
/// [`Regressor`](super::Regressor) and [`Classifier`](super::Classifier) are what predicts.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted<P: Predicts> {
    pub(super) dtype: Dtype,
    pub(super) weights: Weights,
    pub(super) meaning: P::Meaning,
    pub(super) params: P,
    pub(super) report: FitReport,
    pub(super) schema: Schema,
}

impl<P: Predicts> Fitted<P> {
    pub(super) fn new(
        dtype: Dtype,
        weights: Weights,
        meaning: P::Meaning,
        params: P,
        report: FitReport,
    ) -> Self {
        Fitted {
            dtype,
            weights,
            meaning,
            params,
            report,
            schema: Schema::default(),
        }
    }

    /// n.
    pub fn cols(&self) -> usize {
        self.weights.cols()
    }

    /// The type that the model was fitted in.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The estimator and its parameters.
    pub fn params(&self) -> &P {
        &self.params
    }

    /// What is known about the columns that it was trained on: their names, where the data had them.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The model with what is known about its columns, which its file keeps.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::learning::LinearRegression;
    /// use warpfuse::matrix::{Features, Schema};
    /// let x = Features::Dense(array![[0.0], [1.0], [2.0]]);
    /// let model = LinearRegression::params().fit(&Device::cpu(), x, &[1.0, 3.0, 5.0])?;
    /// let model = model.with_schema(Schema::named(["hours"]));
    /// assert_eq!(model.schema().label(0), "hours");
    /// # Ok::<(), warpfuse::learning::FitError>(())
    /// ```
    #[must_use]
    pub fn with_schema(mut self, schema: Schema) -> Self {
        self.schema = schema;
        self
    }

    /// Outer iterations of the fit.
    pub fn n_iter(&self) -> usize {
        self.report.n_iter
    }

    /// Whether the fit reached its tolerance, or what the precision allows.
    pub fn converged(&self) -> bool {
        self.report.convergence.is_success()
    }

    /// Objective and gradient of each outer iteration.
    pub fn history(&self) -> &[Iteration] {
        &self.report.history
    }

    /// How the fit went.
    pub fn report(&self) -> &FitReport {
        &self.report
    }
}
