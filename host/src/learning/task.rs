//! A fit before it is made: what estimators have in common once their parameters and data are checked.

use super::classifier::ClassifierParams;
use super::fit::{Controls, FitOptions, ObjectiveSpec, SampleLoss, SolveReport, Summary, Training};
use super::regressor::RegressorParams;
use super::solver::Solver;
use super::weights::Weights;
use super::{Classes, Classifier, FitError, Model, Regressor, ResidentDataset};
use crate::ops::Number;
use crate::ops::objective::Loss;

/// One minimisation, and what becomes of it.
pub(super) struct Task<T, A> {
    pub(super) controls: Controls,
    pub(super) spec: ObjectiveSpec,
    pub(super) targets: Vec<T>,
    /// One per row; they add up to anything positive.
    pub(super) weights: Vec<f64>,
    pub(super) answer: A,
}

/// Of a classifier.
pub(super) type LabelTask<T> = Task<T, (Classes, ClassifierParams)>;

/// What a fitted model is made of besides coefficients.
pub(super) trait Answer {
    /// The model.
    type Model;

    /// With these coefficients.
    fn model<T: Number>(self, fitted: Weights, report: SolveReport) -> Self::Model;
}

impl Answer for RegressorParams {
    type Model = Regressor;

    fn model<T: Number>(self, fitted: Weights, report: SolveReport) -> Regressor {
        Regressor::new(T::DTYPE, fitted, self, report)
    }
}

impl Answer for (Classes, ClassifierParams) {
    type Model = Classifier;

    fn model<T: Number>(self, fitted: Weights, report: SolveReport) -> Classifier {
        Classifier::new(T::DTYPE, self.0, fitted, self.1, report)
    }
}

/// Any of both.
pub(super) enum AnyAnswer {
    Regressor(RegressorParams),
    Classifier(Classes, ClassifierParams),
}

impl Answer for AnyAnswer {
    type Model = Model;

    fn model<T: Number>(self, fitted: Weights, report: SolveReport) -> Model {
        match self {
            AnyAnswer::Regressor(params) => Model::Regressor(params.model::<T>(fitted, report)),
            AnyAnswer::Classifier(classes, params) => {
                Model::Classifier((classes, params).model::<T>(fitted, report))
            }
        }
    }
}

impl<T: Number, A: Answer> Task<T, A> {
    /// Solves it alone.
    pub(super) fn fit(
        self,
        data: &ResidentDataset<T>,
        options: &mut FitOptions<'_>,
    ) -> Result<A::Model, FitError> {
        let training = Training::new(data, self.controls, options)?;
        let (targets, weights) = (&self.targets, &self.weights);
        let mut history = Vec::new();
        let (fitted, solved) =
            training.solve(&self.spec, targets, weights, options, &mut history)?;
        let report = training.report(&Summary::of(&solved), &self.spec, history);
        Ok(self.answer.model::<T>(fitted, report))
    }

    /// The loss, where several such tasks can be solved over one read of X: of one predictor per row, by Newton's method in
    /// a region or, with an l1 penalty, in an orthant.
    pub(super) fn shared_loss(&self) -> Option<Loss> {
        match self.spec.loss {
            SampleLoss::Single(loss)
                if self.spec.l1 > 0.0 || self.controls.solver == Solver::NewtonCg =>
            {
                Some(loss)
            }
            _ => None,
        }
    }
}

impl<T> Task<T, RegressorParams> {
    pub(super) fn any(self) -> Task<T, AnyAnswer> {
        self.map(AnyAnswer::Regressor)
    }
}

impl<T> LabelTask<T> {
    pub(super) fn any(self) -> Task<T, AnyAnswer> {
        self.map(|(classes, params)| AnyAnswer::Classifier(classes, params))
    }
}

impl<T, A> Task<T, A> {
    fn map<B>(self, answer: impl FnOnce(A) -> B) -> Task<T, B> {
        Task {
            controls: self.controls,
            spec: self.spec,
            targets: self.targets,
            weights: self.weights,
            answer: answer(self.answer),
        }
    }
}
