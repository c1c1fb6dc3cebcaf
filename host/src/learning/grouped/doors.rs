//! `fit_groups` of every estimator.

use super::order::Groups;
use super::{GroupedClassifier, GroupedRegressor, fit_labelled, fit_numbers};
use crate::device::Device;
use crate::learning::estimators::estimators;
use crate::learning::problem::Labelled;
use crate::learning::{FitError, FitOptions, LabelSlice};
use crate::matrix::Features;
use crate::ops::Number;

macro_rules! door {
    ($estimator:ident, ($read:path, $fit:ident), $targets:ident: $type:ty, $model:ident) => {
        impl crate::learning::$estimator {
            /// Fits a model to each group of rows, whose labels come in any order: see
            /// [`Estimator::fit_groups`](crate::learning::Estimator::fit_groups), which takes options besides.
            ///
            /// # Errors
            /// As there.
            pub fn fit_groups<'l, 'g, T: Number>(
                &self,
                device: &Device,
                features: &Features<T>,
                $targets: $type,
                groups: impl Into<LabelSlice<'g>>,
            ) -> Result<$model, FitError> {
                let given = ($read($targets)?, Groups::new(groups)?);
                let options = FitOptions::default();
                $fit(self, self.clone().into(), device, features, given, options)
            }
        }
    };
}

macro_rules! doors {
    (regressions { $($regression:ident),* } classifications { $($classification:ident),* }) => {
        $(door!($regression, (Ok::<_, FitError>, fit_numbers), targets: &'l [T], GroupedRegressor);)*
        $(door!(
            $classification, (Labelled::new, fit_labelled), labels: impl Into<LabelSlice<'l>>, GroupedClassifier
        );)*
    };
}

estimators!(doors);
