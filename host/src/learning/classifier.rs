//! A fitted classifier.

use std::sync::Arc;

use ndarray::Array2;
use rayon::prelude::*;

use super::FitError;
use super::estimators::ClassifierParams;
use super::fitted::{Fitted, Predicts};
use super::labels::{Classes, Labels};
use super::multinomial::softmax;
use super::sigmoid::sigmoids;
use crate::device::{Buffer, Device};
use crate::matrix::{Element, Features};
use crate::ops::objective::Probabilities;
use crate::ops::{Matrix, Number};
use crate::parallel;

/// A linear classifier: the class with the greatest linear predictor.
///
/// Two classes have one predictor, `x·coef + intercept`, positive for the second class; k > 2 classes have one each.
pub type Classifier = Fitted<ClassifierParams>;

impl Predicts for ClassifierParams {
    type Meaning = Classes;
}

impl Classifier {
    /// The coefficients: one list of n for two classes, else one per class.
    pub fn coef(&self) -> &[Vec<f64>] {
        &self.weights.coef
    }

    /// One intercept for two classes, else one per class; 0 when none was fitted.
    pub fn intercept(&self) -> &[f64] {
        &self.weights.intercept
    }

    /// The classes, in ascending order of their labels.
    pub fn classes(&self) -> &Classes {
        &self.meaning
    }

    /// Linear predictors, m × 1 for two classes, else m × k, computed on `device`.
    ///
    /// # Errors
    /// [`FitError::Features`] when n differs (see [`Features::with_cols`] for sparse files that show fewer
    /// columns), [`FitError::Op`] when the device fails.
    pub fn decision_function<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
    ) -> Result<Array2<f64>, FitError> {
        Ok(by_rows(&self.weights.apply(device, features)?))
    }

    /// Linear predictors for a matrix that is on a device already, left there: m × k by rows.
    pub(super) fn predictors_on<T: Number>(&self, x: &Matrix<T>) -> Result<Buffer<T>, FitError> {
        self.weights.predictors_on(x)
    }

    /// A copy of m × k linear predictors.
    pub(super) fn by_rows<T: Number>(
        &self,
        predictors: &Buffer<T>,
    ) -> Result<Array2<f64>, FitError> {
        Ok(self.rows_of(&predictors.to_vec()?))
    }

    /// m × k linear predictors, k beside each other.
    pub(super) fn rows_of<T: Element>(&self, values: &[T]) -> Array2<f64> {
        let columns = self.weights.coef.len();
        let shape = (values.len() / columns, columns);
        let wide = values.par_iter().map(|t| Element::to_f64(*t)).collect();
        Array2::from_shape_vec(shape, wide).expect("m lists of k")
    }

    /// What its linear predictors are made probabilities by.
    pub(super) fn probabilities(&self) -> Probabilities {
        match &self.params {
            _ if !self.is_probabilistic() => Probabilities::None,
            params if params.is_one_vs_rest() => Probabilities::OneVersusRest,
            _ => Probabilities::Softmax,
        }
    }

    /// Probabilities of the classes, m × k.
    ///
    /// # Errors
    /// As [`Classifier::decision_function`], and [`FitError::Combination`] for a support vector classifier, which
    /// has no probabilities.
    pub fn predict_proba<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
    ) -> Result<Array2<f64>, FitError> {
        self.expect_probabilities()?;
        Ok(self.probabilities_of(&self.decision_function(device, features)?))
    }

    /// Whether the classifier knows probabilities.
    pub fn is_probabilistic(&self) -> bool {
        self.params.is_probabilistic()
    }

    fn expect_probabilities(&self) -> Result<(), FitError> {
        if self.is_probabilistic() {
            return Ok(());
        }
        Err(FitError::Combination {
            first: "predict_proba",
            second: "a support vector classifier",
            remedy: "use decision_function, or fit LogisticRegression",
        })
    }

    /// Probabilities, m × k, of linear predictors.
    pub(super) fn probabilities_of(&self, decisions: &Array2<f64>) -> Array2<f64> {
        if decisions.ncols() == 1 {
            let predictors = decisions.as_standard_layout();
            let both = sigmoids(predictors.as_slice().expect("one after the other"));
            let both = Array2::from_shape_vec((decisions.nrows(), 2), both);
            return both.expect("two for each row");
        }
        let sigmoid = |t: f64| 1.0 / (1.0 + (-t).exp());
        let one_vs_rest = self.params.is_one_vs_rest();
        let mut probabilities = decisions.clone();
        for mut row in probabilities.rows_mut() {
            if one_vs_rest {
                row.mapv_inplace(sigmoid);
                let total = row.sum();
                row.mapv_inplace(|p| p / total);
                continue;
            }
            let mut values = row.to_vec();
            softmax(&mut values);
            row.iter_mut().zip(values).for_each(|(p, v)| *p = v);
        }
        probabilities
    }

    /// The number of each row's class, from 0 in the order of [`Classifier::classes`].
    ///
    /// # Errors
    /// As [`Classifier::decision_function`].
    pub fn predict_codes<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
    ) -> Result<Vec<u32>, FitError> {
        let decisions = self.decision_function(device, features)?;
        Ok(codes_of(&decisions))
    }

    /// The label of each row.
    ///
    /// # Errors
    /// As [`Classifier::decision_function`].
    pub fn predict<T: Number>(
        &self,
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
    ) -> Result<Labels, FitError> {
        Ok(self.meaning.decode(&self.predict_codes(device, features)?))
    }
}

/// m × k, of k lists of m.
pub(super) fn by_rows<T: Element>(sides: &[impl AsRef<[T]>]) -> Array2<f64> {
    let sides: Vec<&[T]> = sides.iter().map(AsRef::as_ref).collect();
    let (rows, k) = (sides.first().map_or(0, |side| side.len()), sides.len());
    let wide = parallel::filled(rows * k, |place| sides[place % k][place / k].to_f64());
    Array2::from_shape_vec((rows, k), wide).expect("m rows of k")
}

/// The class of each row of linear predictors: the first of the greatest.
pub(super) fn codes_of(decisions: &Array2<f64>) -> Vec<u32> {
    let code = |row: usize| {
        let row = decisions.row(row);
        if row.len() == 1 {
            return u32::from(row[0] > 0.0);
        }
        let mut best = 0;
        for c in 1..row.len() {
            if row[c] > row[best] {
                best = c;
            }
        }
        best as u32
    };
    parallel::filled(decisions.nrows(), code)
}
