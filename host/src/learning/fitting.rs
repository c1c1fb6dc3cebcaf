//! Fits: from an estimator and data to a model.

use std::sync::Arc;

use super::checks;
use super::controls::HasControls;
use super::error::mismatch;
use super::estimators::{ClassifierParams, Params, RegressorParams, estimators};
use super::fit::Training;
use super::fitted::Fitted;
use super::huber;
use super::identity::with_checkpoint;
use super::problem::{
    self, Classification, Labelled, Regression, Stated, Task, classification_tasks, regression_task,
};
use super::report::{FitReport, Summary};
use super::row_targets::RowTargets;
use super::weights::Weights;
use super::{
    Classes, Classifier, Codes, Estimator, FitError, FitOptions, LabelSlice, Model, Regressor,
    ResidentDataset, Targets,
};
use crate::device::Device;
use crate::matrix::Features;
use crate::ops::Number;

/// One problem, with the classes of its labels if it has labels.
type Classified<'a, T> = (Task<'a, T>, Option<Classes>);

impl Estimator {
    /// Fits to `features` (m × n) and `targets` (m) on `device`.
    ///
    /// # Errors
    /// As the estimator's own; [`FitError::Combination`] for labels in a regression and the reverse.
    pub fn fit_with<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        targets: Targets<'_, T>,
        options: FitOptions<'_>,
    ) -> Result<Model, FitError> {
        match targets {
            Targets::Labels(labels) => self.fit_labels(device, features, labels, options),
            Targets::Numbers(_) => {
                let data = self.place(device, features, targets)?;
                self.fit_on(&data, targets, options)
            }
        }
    }

    /// Puts `features` on `device`, in the forms that pay for one [`Estimator::fit_on`]: for those who go on with them
    /// afterwards, such as with [`Model::evaluate_on`].
    ///
    /// # Errors
    /// As [`ResidentDataset::new`].
    pub fn place<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        targets: Targets<'_, T>,
    ) -> Result<ResidentDataset<T>, FitError> {
        let reads = match (self.stated(), targets) {
            (Stated::Classification(of), Targets::Labels(labels)) => {
                problem::evaluations(of, &Labelled::new(labels)?.classes)
            }
            _ => self.controls().evaluations(),
        };
        let device = &solving_device(&self.stated(), device)?;
        ResidentDataset::for_evaluations(device, features, self.controls().matrix, reads)
    }

    /// [`Estimator::fit_with`] on features that are on a device already.
    ///
    /// # Errors
    /// As [`Estimator::fit_with`].
    pub fn fit_on<T: Number>(
        &self,
        data: &ResidentDataset<T>,
        targets: Targets<'_, T>,
        options: FitOptions<'_>,
    ) -> Result<Model, FitError> {
        match (self.stated(), self.params(), targets) {
            (Stated::Regression(of), Params::Regressor(params), Targets::Numbers(targets)) => {
                fit_numbers(of, params, data, targets, options).map(Model::Regressor)
            }
            (Stated::Classification(_), _, Targets::Labels(labels)) => {
                self.fit_labels_on(data, labels, options)
            }
            (.., targets) => Err(targets.mismatch()),
        }
    }

    /// [`Estimator::fit_with`] of a classifier to labels of any type ([`LabelSlice`]), read where they lie.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::learning::{Classes, Estimator, FitOptions, LogisticRegression, Model};
    /// use warpfuse::matrix::Features;
    ///
    /// let x = Features::Dense(array![[0.0], [1.0], [2.0], [3.0]]);
    /// let estimator = Estimator::LogisticRegression(LogisticRegression::params());
    /// let labels = &[3_u8, 3, 5, 5][..];
    /// let model = estimator.fit_labels(&Device::cpu(), x, labels, FitOptions::default())?;
    /// let Model::Classifier(model) = model else { unreachable!() };
    /// assert_eq!(*model.classes(), Classes::Numbers(vec![3.0, 5.0]));
    /// # Ok::<(), warpfuse::learning::FitError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Estimator::fit_with`].
    pub fn fit_labels<'l, T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        labels: impl Into<LabelSlice<'l>>,
        options: FitOptions<'_>,
    ) -> Result<Model, FitError> {
        self.expect_classifier()?;
        self.fit_classes(device, features, Labelled::new(labels)?, options)
    }

    /// [`Estimator::fit_labels`] on features that are on a device already.
    ///
    /// # Errors
    /// As [`Estimator::fit_with`].
    pub fn fit_labels_on<'l, T: Number>(
        &self,
        data: &ResidentDataset<T>,
        labels: impl Into<LabelSlice<'l>>,
        options: FitOptions<'_>,
    ) -> Result<Model, FitError> {
        self.expect_classifier()?;
        self.fit_classes_on(data, Labelled::new(labels)?, options)
    }

    /// [`Estimator::fit_with`] of a classifier to labels that have been encoded ([`Classes::encode`]): `codes` (m) number the
    /// class of each row. They are read where they lie, and not encoded again.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::learning::{Classes, Estimator, FitOptions, LogisticRegression};
    /// use warpfuse::matrix::Features;
    ///
    /// let x = Features::Dense(array![[0.0], [1.0], [2.0], [3.0]]);
    /// let classes = Classes::Text(vec!["no".into(), "yes".into()]);
    /// let estimator = Estimator::LogisticRegression(LogisticRegression::params());
    /// let labels = (&classes, &[0_u8, 0, 1, 1][..]);
    /// let model = estimator.fit_encoded(&Device::cpu(), x, labels, FitOptions::default())?;
    /// assert!(model.coef()[0][0] > 0.0);
    /// # Ok::<(), warpfuse::learning::FitError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Estimator::fit_with`]; [`LabelError::Unknown`](super::LabelError::Unknown) for a code that is no class's.
    pub fn fit_encoded<'c, T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        (classes, codes): (&Classes, impl Into<Codes<'c>>),
        options: FitOptions<'_>,
    ) -> Result<Model, FitError> {
        self.expect_classifier()?;
        let labels = Labelled::of_codes(classes, codes.into())?;
        self.fit_classes(device, features, labels, options)
    }

    /// [`Estimator::fit_encoded`] on features that are on a device already.
    ///
    /// # Errors
    /// As [`Estimator::fit_encoded`].
    pub fn fit_encoded_on<'c, T: Number>(
        &self,
        data: &ResidentDataset<T>,
        (classes, codes): (&Classes, impl Into<Codes<'c>>),
        options: FitOptions<'_>,
    ) -> Result<Model, FitError> {
        self.expect_classifier()?;
        self.fit_classes_on(data, Labelled::of_codes(classes, codes.into())?, options)
    }

    /// Whether this is an estimator of labels.
    fn expect_classifier(&self) -> Result<(), FitError> {
        match self.is_classifier() {
            true => Ok(()),
            false => Err(mismatch("labels", "a regression", "give numbers")),
        }
    }

    fn fit_classes<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        labels: Labelled<'_>,
        options: FitOptions<'_>,
    ) -> Result<Model, FitError> {
        let reads = match self.stated() {
            Stated::Classification(of) => problem::evaluations(of, &labels.classes),
            Stated::Regression(of) => of.controls().evaluations(),
        };
        let device = &solving_device(&self.stated(), device)?;
        let matrix = self.controls().matrix;
        let data = ResidentDataset::for_evaluations(device, features, matrix, reads)?;
        self.fit_classes_on(&data, labels, options)
    }

    fn fit_classes_on<T: Number>(
        &self,
        data: &ResidentDataset<T>,
        labels: Labelled<'_>,
        options: FitOptions<'_>,
    ) -> Result<Model, FitError> {
        match (self.stated(), self.params()) {
            (Stated::Classification(of), Params::Classifier(params)) => {
                fit_labelled(of, params, data, labels, options).map(Model::Classifier)
            }
            _ => Err(mismatch("labels", "a regression", "give numbers")),
        }
    }

    /// [`Estimator::fit_with`] of a regression to targets in f64, whatever the precision of X: each is rounded to it on its
    /// way to the device, so that they are not copied.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::learning::{Estimator, FitOptions, Ridge};
    /// use warpfuse::matrix::Features;
    ///
    /// let x = Features::Dense(array![[0.0_f32], [1.0], [2.0]]);
    /// let estimator = Estimator::Ridge(Ridge::params().alpha(2.0));
    /// let y = [0.0_f64, 2.0, 4.0];
    /// let model = estimator.fit_wide(&Device::cpu(), x, &y, FitOptions::default())?;
    /// assert!((model.coef()[0][0] - 1.0).abs() < 1e-6);
    /// # Ok::<(), warpfuse::learning::FitError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Estimator::fit_with`].
    pub fn fit_wide<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        targets: &[f64],
        options: FitOptions<'_>,
    ) -> Result<Model, FitError> {
        let data = self.place(device, features, Targets::Numbers(&[]))?;
        self.fit_wide_on(&data, targets, options)
    }

    /// [`Estimator::fit_wide`] on features that are on a device already.
    ///
    /// # Errors
    /// As [`Estimator::fit_with`].
    pub fn fit_wide_on<T: Number>(
        &self,
        data: &ResidentDataset<T>,
        targets: &[f64],
        options: FitOptions<'_>,
    ) -> Result<Model, FitError> {
        match (self.stated(), self.params()) {
            (Stated::Regression(of), Params::Regressor(params)) => {
                let targets = RowTargets::Wide(targets);
                fit_numbers(of, params, data, targets, options).map(Model::Regressor)
            }
            _ => Err(mismatch("numbers", "a classifier", "give labels")),
        }
    }

    /// What is to be solved, with the classes of labels; `None` where that are several problems.
    pub(super) fn task<'a, T: Number>(
        &self,
        rows: usize,
        targets: Targets<'a, T>,
        options: &FitOptions<'_>,
    ) -> Result<Option<Classified<'a, T>>, FitError> {
        match (self.stated(), targets) {
            (Stated::Regression(of), Targets::Numbers(_)) if of.scaled().is_some() => Ok(None),
            (Stated::Regression(of), Targets::Numbers(targets)) => {
                let task = regression_task(of, rows, targets.into(), options)?;
                Ok(Some((task, None)))
            }
            (Stated::Classification(of), Targets::Labels(labels)) => {
                let labels = Labelled::new(labels)?;
                let (classes, mut tasks) = classification_tasks(of, rows, labels, options)?;
                let task = tasks.pop().filter(|_| tasks.is_empty());
                Ok(task.map(|task| (task, Some(classes))))
            }
            (_, targets) => Err(targets.mismatch()),
        }
    }
}

/// Where a problem is solved: losses with kinks and coefficients that may not be negative on the CPU, whatever `device` is.
/// They need all rows in one place, and are refused where members of a group share them.
fn solving_device(stated: &Stated<'_>, device: &Device) -> Result<Device, FitError> {
    if !stated.needs_host() {
        return Ok(device.clone());
    }
    checks::whole(
        device,
        "a loss with kinks, or coefficients that may not be negative,",
    )?;
    Ok(Device::cpu())
}

pub(super) fn fit_numbers<'a, T: Number>(
    of: &dyn Regression,
    params: RegressorParams,
    data: &ResidentDataset<T>,
    targets: impl Into<RowTargets<'a, T>>,
    options: FitOptions<'_>,
) -> Result<Regressor, FitError> {
    let targets = targets.into();
    if let Some(huber) = of.scaled() {
        return huber::fit(huber, data, &targets.whole(), options);
    }
    let task = regression_task(of, data.matrix().rows(), targets, &options)?;
    let (weights, report) = solve(&params, data, vec![task], options)?;
    Ok(Fitted::new(T::DTYPE, weights, (), params, report))
}

pub(super) fn fit_labelled<T: Number>(
    of: &dyn Classification,
    params: ClassifierParams,
    data: &ResidentDataset<T>,
    labels: Labelled<'_>,
    options: FitOptions<'_>,
) -> Result<Classifier, FitError> {
    let (classes, tasks) = classification_tasks(of, data.matrix().rows(), labels, &options)?;
    let (weights, report) = solve(&params, data, tasks, options)?;
    Ok(Fitted::new(T::DTYPE, weights, classes, params, report))
}

/// One problem after the other, at least one.
fn solve<T: Number>(
    params: &impl serde::Serialize,
    data: &ResidentDataset<T>,
    tasks: Vec<Task<'_, T>>,
    options: FitOptions<'_>,
) -> Result<(Weights, FitReport), FitError> {
    let (targets, weights) = (tasks[0].targets.clone(), tasks[0].weights.clone());
    with_checkpoint(params, (data, &targets, &weights), options, |options| {
        data.fitted(options, |data, options| solve_each(data, tasks, options))
    })
}

/// One problem after the other; of several each has its own part of the start.
fn solve_each<T: Number>(
    data: &ResidentDataset<T>,
    tasks: Vec<Task<'_, T>>,
    mut options: FitOptions<'_>,
) -> Result<(Weights, FitReport), FitError> {
    let (problems, spec) = (tasks.len(), tasks[0].spec);
    let training = Training::new(data, tasks[0].controls, &options)?;
    let start = options.start;
    let mut history = Vec::new();
    let mut solved: Option<(Weights, Summary)> = None;
    for (problem, task) in tasks.into_iter().enumerate() {
        if problems > 1 {
            options.start = start
                .filter(|(coef, intercepts)| coef.len().min(intercepts.len()) > problem)
                .map(|(coef, intercepts)| {
                    let own = problem..problem + 1;
                    (&coef[own.clone()], &intercepts[own])
                });
        }
        let (targets, weights) = (&task.targets, &task.weights);
        let (weights, summary) =
            training.solve(&task.spec, targets, weights, &mut options, &mut history)?;
        solved = Some(match solved {
            Some((all, before)) => (all.and(weights), before.and(summary)),
            None => (weights, summary),
        });
    }
    let (weights, summary) = solved.expect("there is one problem at least");
    Ok((weights, training.report(&summary, &spec, history)))
}

fn number_reads<T>(of: &dyn Regression, _: &[T]) -> u64 {
    of.controls().evaluations()
}

fn label_reads(of: &dyn Classification, labels: &Labelled<'_>) -> u64 {
    problem::evaluations(of, &labels.classes)
}

/// `fit`, `fit_with` and `fit_on` of an estimator.
macro_rules! fit_methods {
    ($estimator:ident, $stated:ident, ($read:path, $fit:ident, $reads:ident), $targets:ident: $type:ty, $model:ident) => {
        impl super::$estimator {
            #[doc = concat!("Fits to `features` (m × n) and `", stringify!($targets), "` (m) on `device`.")]
            ///
            /// # Errors
            /// [`FitError`] when shapes, values or parameters do not fit, or the device fails.
            #[doc = concat!("Not converging is not an error: see [`", stringify!($model), "::converged`].")]
            pub fn fit<'l, T: Number>(
                &self,
                device: &Device,
                features: impl Into<Arc<Features<T>>>,
                $targets: $type,
            ) -> Result<$model, FitError> {
                self.fit_with(device, features, $targets, FitOptions::default())
            }

            /// [`Self::fit`] with sample weights, a mask of columns, a warm start or someone watching.
            ///
            /// # Errors
            /// As [`Self::fit`].
            pub fn fit_with<'l, T: Number>(
                &self,
                device: &Device,
                features: impl Into<Arc<Features<T>>>,
                $targets: $type,
                options: FitOptions<'_>,
            ) -> Result<$model, FitError> {
                $stated::check(self)?;
                let $targets = $read($targets)?;
                let (matrix, reads) = (self.controls().matrix, $reads(self, &$targets));
                let device = &solving_device(&Stated::$stated(self), device)?;
                let data = ResidentDataset::for_evaluations(device, features, matrix, reads)?;
                $fit(self, self.clone().into(), &data, $targets, options)
            }

            /// [`Self::fit_with`] on features that are on a device already.
            ///
            /// # Errors
            /// As [`Self::fit`].
            pub fn fit_on<'l, T: Number>(
                &self,
                data: &ResidentDataset<T>,
                $targets: $type,
                options: FitOptions<'_>,
            ) -> Result<$model, FitError> {
                $fit(self, self.clone().into(), data, $read($targets)?, options)
            }
        }
    };
}

macro_rules! fits {
    (regressions { $($regression:ident),* } classifications { $($classification:ident),* }) => {
        $(fit_methods!(
            $regression, Regression, (Ok::<_, FitError>, fit_numbers, number_reads), targets: &'l [T], Regressor
        );)*
        $(fit_methods!(
            $classification, Classification, (Labelled::new, fit_labelled, label_reads), labels: impl Into<LabelSlice<'l>>, Classifier
        );)*
    };
}

estimators!(fits);
