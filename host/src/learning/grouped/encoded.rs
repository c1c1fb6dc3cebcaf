//! Groups, and labels of classes, that others have numbered.

use super::{GroupedModel, fit_labelled, fit_numbers};
use crate::device::Device;
use crate::learning::error::mismatch;
use crate::learning::estimators::Params;
use crate::learning::problem::{Labelled, Stated};
use crate::learning::{Classes, Codes, Estimator, FitError, FitOptions};
use crate::matrix::Features;
use crate::ops::Number;

impl Estimator {
    /// [`Estimator::fit_groups`] of a regression to groups that have been encoded ([`Classes::encode`]): numbers (m) say which of
    /// `groups` each row is of. They are read where they lie, and not encoded again.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::learning::{Classes, Estimator, FitOptions, GroupedModel, LinearRegression};
    /// use warpfuse::matrix::Features;
    ///
    /// let x = Features::Dense(array![[0.0], [0.0], [1.0], [1.0]]);
    /// let groups = (&Classes::Text(vec!["north".into(), "south".into()]), &[0_u8, 1, 0, 1][..]);
    /// let estimator = Estimator::from(LinearRegression::params());
    /// let (y, options) = ([1.0, 5.0, 3.0, 4.0], FitOptions::default());
    /// let model = estimator.fit_encoded_groups(&Device::cpu(), &x, &y, groups, options)?;
    /// let GroupedModel::Regressor(model) = model else { unreachable!() };
    /// assert!((model.member(&["south"][..])?.coef()[0] + 1.0).abs() < 1e-9);
    /// # Ok::<(), warpfuse::learning::FitError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Estimator::fit_groups`]; [`LabelError::Unknown`](crate::learning::LabelError::Unknown) for a number that is no
    /// group's.
    pub fn fit_encoded_groups<'g, T: Number>(
        &self,
        device: &Device,
        features: &Features<T>,
        targets: &[T],
        (groups, numbers): (&Classes, impl Into<Codes<'g>>),
        options: FitOptions<'_>,
    ) -> Result<GroupedModel, FitError> {
        let (Stated::Regression(of), Params::Regressor(params)) = (self.stated(), self.params())
        else {
            return Err(mismatch("numbers", "a classifier", "give labels"));
        };
        let groups = Labelled::of_codes(groups, numbers.into())?;
        let given = (targets, groups.into());
        fit_numbers(of, params, device, features, given, options).map(GroupedModel::Regressor)
    }

    /// [`Estimator::fit_encoded_groups`] of a classifier to labels that have been encoded too: codes (m) number the class of
    /// each row.
    ///
    /// # Errors
    /// As [`Estimator::fit_encoded_groups`].
    pub fn fit_encoded_labels_of_groups<'c, 'g, T: Number>(
        &self,
        device: &Device,
        features: &Features<T>,
        (classes, codes): (&Classes, impl Into<Codes<'c>>),
        (groups, numbers): (&Classes, impl Into<Codes<'g>>),
        options: FitOptions<'_>,
    ) -> Result<GroupedModel, FitError> {
        let (Stated::Classification(of), Params::Classifier(params)) =
            (self.stated(), self.params())
        else {
            return Err(mismatch("labels", "a regression", "give numbers"));
        };
        let labels = Labelled::of_codes(classes, codes.into())?;
        let groups = Labelled::of_codes(groups, numbers.into())?;
        let given = (labels, groups.into());
        fit_labelled(of, params, device, features, given, options).map(GroupedModel::Classifier)
    }
}
