//! A model for each group of rows: thousands of small fits at once.
//!
//! Rows are brought in the order of their groups on their way to the device, where a launch makes all fits of a block of groups
//! while the next one crosses ([`crate::ops::fits`]), each as the estimator alone would. What that launch does not do is fitted by itself on the CPU, a
//! core for each group: all groups of an estimator with an l1 term or a loss with kinks, of more than
//! [`MOST_COLUMNS`](crate::ops::fits::MOST_COLUMNS) columns or by a solver that was requested, and single groups whose columns
//! depend on each other or whose fit found no way on.

mod alone;
mod batch;
mod doors;
mod encoded;
mod member;
mod model;
mod order;
mod predictors;
#[cfg(test)]
mod tests;
mod together;

pub use member::{Ending, Member};
pub use model::{Grouped, GroupedClassifier, GroupedModel, GroupedRegressor};
pub use predictors::group_predictors;

use super::checks::expect_len;
use super::controls::Controls;
use super::error::mismatch;
use super::estimators::{ClassifierParams, Params, RegressorParams};
use super::given::check_rows_and_columns;
use super::penalty::ClassWeight;
use super::problem::{
    Classification, Labelled, Regression, Stated, classification_tasks, regression_task,
};
use super::row_targets::RowTargets;
use super::spec::ObjectiveSpec;
use super::{Estimator, FitError, FitOptions, LabelSlice, Targets};
use crate::device::Device;
use crate::matrix::Features;
use crate::ops::{Number, fits};
use batch::{Batch, GroupSums};
use order::Groups;
use together::SpecOf;

impl Estimator {
    /// Fits a model to each group of the rows of `features` (m × n) and `targets` (m); `groups` (m) are labels in any order.
    ///
    /// Every model is that of the estimator fitted to the group's rows alone. Of `options` there are sample weights, offsets,
    /// penalty factors and flags of columns; classifiers have two classes. A group that cannot be fitted, such as one with a
    /// NaN in its features, does not hinder the others: see [`Member::ending`].
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::learning::{Estimator, FitOptions, GroupedModel, LinearRegression, Targets};
    /// use warpfuse::matrix::Features;
    ///
    /// let x = Features::Dense(array![[0.0], [0.0], [1.0], [1.0], [2.0], [2.0]]);
    /// let groups = &["north", "south", "north", "south", "north", "south"][..];
    /// let y = [1.0, 5.0, 3.0, 4.0, 5.0, 3.0]; // 1 + 2x, 5 − x
    /// let estimator = Estimator::from(LinearRegression::params());
    /// let options = FitOptions::default();
    /// let model = estimator.fit_groups(&Device::auto(), &x, Targets::Numbers(&y), groups, options)?;
    /// let GroupedModel::Regressor(model) = model else { unreachable!() };
    /// let south = model.member(&["south"][..])?;
    /// assert!((south.intercept() - 5.0).abs() + (south.coef()[0] + 1.0).abs() < 1e-9);
    /// assert!((model.predict(&x, groups)?[5] - 3.0).abs() < 1e-9);
    /// # Ok::<(), warpfuse::learning::FitError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Estimator::fit_with`] for all rows together; [`FitError::Combination`] for options and parameters that groups do
    /// not have, [`FitError::Length`] when there is not one group for each row.
    pub fn fit_groups<'l, T: Number>(
        &self,
        device: &Device,
        features: &Features<T>,
        targets: Targets<'_, T>,
        groups: impl Into<LabelSlice<'l>>,
        options: FitOptions<'_>,
    ) -> Result<GroupedModel, FitError> {
        let groups = Groups::new(groups)?;
        match (self.stated(), self.params(), targets) {
            (Stated::Regression(of), Params::Regressor(params), Targets::Numbers(targets)) => {
                fit_numbers(of, params, device, features, (targets, groups), options)
                    .map(GroupedModel::Regressor)
            }
            (Stated::Classification(of), Params::Classifier(params), Targets::Labels(labels)) => {
                let labels = Labelled::new(labels)?;
                fit_labelled(of, params, device, features, (labels, groups), options)
                    .map(GroupedModel::Classifier)
            }
            (.., targets) => Err(targets.mismatch()),
        }
    }
}

/// Models of numbers.
fn fit_numbers<T: Number>(
    of: &dyn Regression,
    params: RegressorParams,
    device: &Device,
    features: &Features<T>,
    (targets, groups): (&[T], Groups),
    options: FitOptions<'_>,
) -> Result<GroupedRegressor, FitError> {
    check(features, &groups, &options)?;
    let task = regression_task(of, features.rows(), RowTargets::Given(targets), &options)?;
    let extras = Extras::of(&options);
    let batch = Batch {
        features,
        order: &groups.order,
        targets: task.targets,
        weights: task.weights,
        extras,
    };
    let is_scaled = of.scaled().is_some();
    let all = All {
        device,
        batch: &batch,
        controls: of.controls(),
        spec: &|total| of.spec(total),
        is_together: !is_scaled && !Stated::Regression(of).needs_host(),
        is_classifier: false,
        extras,
    };
    let members = all.fit(&|group| alone::numbers(of, &params, &batch, group))?;
    Ok(Grouped {
        groups: groups.labels,
        members,
        cols: features.cols(),
        meaning: (),
        params,
    })
}

/// Models of two classes.
fn fit_labelled<T: Number>(
    of: &dyn Classification,
    params: ClassifierParams,
    device: &Device,
    features: &Features<T>,
    (labels, groups): (Labelled<'_>, Groups),
    options: FitOptions<'_>,
) -> Result<GroupedClassifier, FitError> {
    check(features, &groups, &options)?;
    if labels.classes.len() > 2 {
        let remedy = "fit one class against the rest, each with labels of its own";
        return Err(mismatch("more than two classes", "groups", remedy));
    }
    if *of.class_weight() == ClassWeight::Balanced {
        let remedy = "give each class a weight";
        return Err(mismatch("balanced class weights", "groups", remedy));
    }
    let (classes, mut tasks) = classification_tasks(of, features.rows(), labels, &options)?;
    let task = tasks.swap_remove(0);
    let extras = Extras::of(&options);
    let batch = Batch {
        features,
        order: &groups.order,
        targets: task.targets,
        weights: task.weights,
        extras,
    };
    let all = All {
        device,
        batch: &batch,
        controls: of.controls(),
        spec: &|total| of.spec(2, total),
        is_together: !Stated::Classification(of).needs_host(),
        is_classifier: true,
        extras,
    };
    let members = all.fit(&|group| alone::labelled(of, &params, &batch, (group, &classes)))?;
    Ok(Grouped {
        groups: groups.labels,
        members,
        cols: features.cols(),
        meaning: classes,
        params,
    })
}

/// What labels of groups are, in the error that says there are too many or too few.
const ONE_A_ROW: &str = "groups, one for each row";

/// Fails for what groups do not have.
fn check<T: Number>(
    features: &Features<T>,
    groups: &Groups,
    options: &FitOptions<'_>,
) -> Result<(), FitError> {
    check_rows_and_columns(options, (features.rows(), features.cols()))?;
    let of_one = [
        (options.start.is_some(), "a start"),
        (options.evaluate.is_some(), "a figure on other data"),
        (options.checkpoint.is_some(), "a checkpoint"),
        (options.watch.is_some(), "someone who watches"),
        (options.moments.is_some(), "moments of rows"),
    ];
    if let Some((_, what)) = of_one.into_iter().find(|(is_there, _)| *is_there) {
        return Err(mismatch(what, "groups", "fit the groups one by one"));
    }
    expect_len(ONE_A_ROW, Some(groups.order.len()), features.rows())
}

/// What a fit of groups may be given besides features and targets.
#[derive(Clone, Copy)]
struct Extras<'a> {
    sample_weight: Option<&'a [f64]>,
    offset: Option<&'a [f64]>,
    penalty_factors: Option<&'a [f64]>,
    columns: Option<&'a [bool]>,
}

impl<'a> Extras<'a> {
    fn of(options: &FitOptions<'a>) -> Self {
        Extras {
            sample_weight: options.sample_weight,
            offset: options.offset,
            penalty_factors: options.penalty_factors,
            columns: options.columns,
        }
    }
}

/// All groups of an estimator.
struct All<'a, T> {
    device: &'a Device,
    batch: &'a Batch<'a, T>,
    controls: &'a Controls,
    spec: SpecOf<'a>,
    /// Whether the estimator lets a launch fit them.
    is_together: bool,
    is_classifier: bool,
    extras: Extras<'a>,
}

impl<T: Number> All<'_, T> {
    /// Fits them, together as far as that goes; `alone` fits one by itself.
    fn fit(&self, alone: &(dyn Fn(usize) -> Member + Sync)) -> Result<Vec<Member>, FitError> {
        let sums = self.batch.sums();
        let of_all: ObjectiveSpec = (self.spec)(1.0);
        let asked = (&of_all, self.controls);
        let loss = together::loss_of(self.batch.features, asked, &self.extras);
        let loss = loss.filter(|_| self.is_together && fits::are_possible_on::<T>(self.device));
        let together = match loss {
            Some(loss) => together::fit(
                self.device,
                self.batch,
                (loss, self.spec, self.controls),
                (&sums, self.extras.penalty_factors),
            )?,
            None => vec![None; sums.len()],
        };
        Ok(crate::parallel::map_items(
            together,
            |group, found| match self.without_fit(&sums[group]) {
                Some(member) => member,
                None => found.unwrap_or_else(|| alone(group)),
            },
        ))
    }

    /// The model of a group in which there is nothing to fit.
    fn without_fit(&self, sums: &GroupSums) -> Option<Member> {
        let cols = self.batch.features.cols();
        let [least, most] = sums.range;
        if sums.weight == 0.0 {
            let why = "none of its rows has a weight".to_owned();
            return Some(Member::failed(cols, why));
        }
        let is_alone = self.is_classifier && least == most;
        is_alone.then(|| Member::of_class(cols, least > 0.0))
    }
}
