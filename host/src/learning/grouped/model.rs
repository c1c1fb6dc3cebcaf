//! Models of groups, and what they predict.

use super::ONE_A_ROW;
use super::batch::dot;
use super::member::{Ending, Member};
use crate::learning::checks::expect_len;
use crate::learning::fitted::Predicts;
use crate::learning::sigmoid::sigmoids;
use crate::learning::{
    Classes, ClassifierParams, FitError, LabelSlice, Labels, Link, RegressorParams,
};
use crate::matrix::Features;
use crate::ops::Number;
use crate::parallel;
use ndarray::Array2;

/// A linear model for each group of rows, by estimators whose parameters are `P`.
///
/// [`GroupedRegressor`] and [`GroupedClassifier`] are what predicts.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouped<P: Predicts> {
    pub(super) groups: Classes,
    pub(super) members: Vec<Member>,
    pub(super) cols: usize,
    pub(super) meaning: P::Meaning,
    pub(super) params: P,
}

/// Models of numbers, one for each group.
pub type GroupedRegressor = Grouped<RegressorParams>;

/// Models of two classes, one for each group.
pub type GroupedClassifier = Grouped<ClassifierParams>;

/// Models of groups, of any estimator.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupedModel {
    /// Of an estimator of numbers.
    Regressor(GroupedRegressor),
    /// Of a classifier.
    Classifier(GroupedClassifier),
}

impl<P: Predicts> Grouped<P> {
    /// The labels of the groups, in ascending order.
    pub fn groups(&self) -> &Classes {
        &self.groups
    }

    /// The models, in the order of [`Grouped::groups`].
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The estimator and its parameters.
    pub fn params(&self) -> &P {
        &self.params
    }

    /// n.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The model of the group with this label.
    ///
    /// # Errors
    /// [`FitError::Labels`] for a label that is no group's, and names it.
    pub fn member<'l>(&self, label: impl Into<LabelSlice<'l>>) -> Result<&Member, FitError> {
        let label = label.into();
        match self.groups.codes(label)?[..] {
            [group] => Ok(&self.members[group as usize]),
            ref all => Err(FitError::Length {
                what: "label of a group",
                expected: 1,
                found: all.len(),
            }),
        }
    }

    /// Linear predictors `x·coef + intercept` of rows by the models of their `groups`, on the CPU.
    ///
    /// # Errors
    /// [`FitError::Features`] when n differs, [`FitError::Length`] when there is not one group for each row,
    /// [`FitError::Labels`] for a label that is no group's, [`FitError::Group`] for a group without a model.
    pub fn decision_function<'l, T: Number>(
        &self,
        features: &Features<T>,
        groups: impl Into<LabelSlice<'l>>,
    ) -> Result<Vec<f64>, FitError> {
        let (expected, found) = (self.cols, features.cols());
        if expected != found {
            return Err(FitError::Features { expected, found });
        }
        let groups = self.groups.codes(groups)?;
        expect_len(ONE_A_ROW, Some(groups.len()), features.rows())?;
        self.expect_models(&groups)?;
        let members = &self.members;
        Ok(parallel::filled(groups.len(), |row| {
            let member = &members[groups[row] as usize];
            member.intercept + dot(features, row, &member.coef)
        }))
    }

    fn expect_models(&self, groups: &[u32]) -> Result<(), FitError> {
        let members = &self.members;
        let failed = |group: &u32| {
            let ending = &members[*group as usize].ending;
            matches!(ending, Ending::Failed(_))
        };
        let Some(at) = parallel::position(groups, failed) else {
            return Ok(());
        };
        let group = groups[at] as usize;
        match &members[group].ending {
            Ending::Failed(reason) => Err(FitError::Group {
                group: self.groups.label(group),
                reason: reason.clone(),
            }),
            _ => Ok(()),
        }
    }
}

impl GroupedRegressor {
    /// Predicted means of rows by the models of their groups.
    ///
    /// # Errors
    /// As [`Grouped::decision_function`].
    pub fn predict<'l, T: Number>(
        &self,
        features: &Features<T>,
        groups: impl Into<LabelSlice<'l>>,
    ) -> Result<Vec<f64>, FitError> {
        let mut predicted = self.decision_function(features, groups)?;
        let (_, link) = self.params.family_and_link();
        if link != Link::Identity {
            let link = link.of_kernels();
            parallel::update(&mut predicted, |_, t| *t = link.mean(*t));
        }
        Ok(predicted)
    }
}

impl GroupedClassifier {
    /// The two classes, in ascending order of their labels.
    pub fn classes(&self) -> &Classes {
        &self.meaning
    }

    /// The label of each row by the model of its group.
    ///
    /// # Errors
    /// As [`Grouped::decision_function`].
    pub fn predict<'l, T: Number>(
        &self,
        features: &Features<T>,
        groups: impl Into<LabelSlice<'l>>,
    ) -> Result<Labels, FitError> {
        let predictors = self.decision_function(features, groups)?;
        let codes: Vec<u32> = predictors.iter().map(|t| u32::from(*t > 0.0)).collect();
        Ok(self.meaning.decode(&codes))
    }

    /// Probabilities of the two classes, m × 2.
    ///
    /// # Errors
    /// As [`Grouped::decision_function`], and [`FitError::Combination`] for a classifier without probabilities.
    pub fn predict_proba<'l, T: Number>(
        &self,
        features: &Features<T>,
        groups: impl Into<LabelSlice<'l>>,
    ) -> Result<Array2<f64>, FitError> {
        if !self.params.is_probabilistic() {
            return Err(FitError::Combination {
                first: "predict_proba",
                second: "a support vector classifier",
                remedy: "use decision_function, or fit LogisticRegression",
            });
        }
        let both = sigmoids(&self.decision_function(features, groups)?);
        let both = Array2::from_shape_vec((both.len() / 2, 2), both);
        Ok(both.expect("two for each row"))
    }
}
