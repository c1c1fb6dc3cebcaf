//! Which penalties to compare where none are named.

use crate::learning::fit::Training;
use crate::learning::given::Given;
use crate::learning::problem::{Labelled, Stated, Task, classification_tasks, regression_task};
use crate::learning::{Estimator, FitError, FitOptions, ResidentDataset, Targets};
use crate::matrix::Element;
use crate::ops::Number;

/// The strongest ridge over the trace of the Hessian, which none of its eigenvalues exceeds.
const STRONGEST: f64 = 10.0;
/// The weakest penalty of a path over the strongest, with an l1 term and without one.
const SPAN: (f64, f64) = (1e-3, 1e-6);

impl Estimator {
    /// Multiples of this estimator's penalty, the strongest first, that a cross-validation should compare: from the least
    /// one that leaves every coefficient 0, down to a thousandth of it, each the same part of the one before. Without an l1
    /// term: from a ridge of ten times the trace of the Hessian where all coefficients are 0, down to a millionth.
    ///
    /// Source: J. Friedman, T. Hastie, R. Tibshirani, "Regularization paths for generalized linear models via coordinate
    /// descent", J. Stat. Softw. 33, 2010.
    ///
    /// # Errors
    /// As a fit's; [`FitError::Parameter`] for an estimator without a penalty, and for targets that depend on no column.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::learning::{Estimator, Lasso, ResidentDataset, Targets};
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::MatrixOptions;
    ///
    /// let x = Features::Dense(array![[-1.0], [0.0], [1.0]]);
    /// let data = ResidentDataset::new(&Device::cpu(), x, MatrixOptions::default())?;
    /// let lasso = Estimator::Lasso(Lasso::params().alpha(1.0));
    /// let path = lasso.penalty_path(&data, Targets::Numbers(&[-3.0, 0.0, 3.0]), None, 4)?;
    /// assert!((path[0] - 2.0).abs() < 1e-12 && (path[3] - 2e-3).abs() < 1e-12); // |Σ x·t| / m = 2
    /// # Ok::<(), warpfuse::learning::FitError>(())
    /// ```
    pub fn penalty_path<T: Number>(
        &self,
        data: &ResidentDataset<T>,
        targets: Targets<'_, T>,
        sample_weight: Option<&[f64]>,
        count: usize,
    ) -> Result<Vec<f64>, FitError> {
        let options = FitOptions {
            sample_weight,
            ..FitOptions::default()
        };
        let tasks = self.tasks(data.matrix().rows(), targets, &options)?;
        let spec = &tasks[0].spec;
        let training = Training::new(data.for_fits().0, tasks[0].controls, &options)?;
        let mut strongest = 0.0_f64;
        for task in &tasks {
            strongest = strongest.max(training.strongest(task)?);
        }
        if !(strongest > 0.0 && strongest.is_finite()) {
            return Err(FitError::Parameter {
                name: "the strongest penalty of a path",
                expected: "finite and above 0: a penalty, and targets that depend on a column",
                found: strongest,
            });
        }
        let span = if spec.l1 > 0.0 { SPAN.0 } else { SPAN.1 };
        let step = |i: usize| span.powf(i as f64 / count.max(2).saturating_sub(1) as f64);
        Ok((0..count).map(|i| strongest * step(i)).collect())
    }

    fn tasks<'a, T: Number>(
        &self,
        rows: usize,
        targets: Targets<'a, T>,
        options: &FitOptions<'_>,
    ) -> Result<Vec<Task<'a, T>>, FitError> {
        match (self.stated(), targets) {
            (Stated::Regression(of), Targets::Numbers(targets)) => {
                Ok(vec![regression_task(of, rows, targets.into(), options)?])
            }
            (Stated::Classification(of), Targets::Labels(labels)) => {
                Ok(classification_tasks(of, rows, Labelled::new(labels)?, options)?.1)
            }
            (_, targets) => Err(targets.mismatch()),
        }
    }
}

impl<T: Number> Training<'_, T> {
    /// The strongest multiple of the penalty that is worth a fit; NaN without a penalty.
    fn strongest(&self, task: &Task<'_, T>) -> Result<f64, FitError> {
        let (targets, weights) = (&task.targets, &task.weights);
        let setup = self.setup(&task.spec, (targets, weights), Given::default())?;
        let of_columns = self.matrix.cols() * task.spec.loss.predictors();
        // Columns that are held have no coefficient.
        let inverse = setup.inverse.iter().take(of_columns);
        if task.spec.l1 == 0.0 {
            let curvatures = inverse.filter(|inverse| **inverse > 0.0);
            let trace: f64 = curvatures
                .map(|inverse| inverse.recip() - task.spec.l2)
                .sum();
            let each = trace / task.spec.loss.predictors() as f64;
            return Ok(STRONGEST * each / task.spec.l2);
        }
        let mut objective = self.objective(&task.spec, &setup.prepared, (targets, None))?;
        let mut gradient = self.matrix.device().zeros(objective.len())?;
        objective.evaluate(&setup.begin.theta, &mut gradient)?;
        let gradient: Vec<T> = gradient.to_vec()?;
        let free = gradient
            .iter()
            .zip(inverse)
            .filter(|(_, inverse)| **inverse > 0.0);
        let steepest = free.fold(0.0_f64, |most, (g, _)| most.max(Element::to_f64(*g).abs()));
        Ok(steepest / task.spec.l1)
    }
}
