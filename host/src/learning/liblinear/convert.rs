//! Between LIBLINEAR's models and ours.

use super::{LiblinearError, LiblinearModel, SolverType, Task};
use crate::learning::fitted::Fitted;
use crate::learning::report::FitReport;
use crate::learning::weights::Weights;
use crate::learning::{
    Classes, Classifier, ClassifierParams, Link, Model, Regressor, RegressorParams,
};
use crate::matrix::Dtype;

impl LiblinearModel {
    /// What a LIBLINEAR file can hold of `model`: predictions are the same, and of two classes probabilities too.
    /// Those of a multinomial model are not, because LIBLINEAR has a sigmoid for each class of its own.
    ///
    /// # Errors
    /// [`LiblinearError::Unsupported`] for labels that are not whole numbers, and for models with a link that is
    /// not the identity.
    pub fn of_model(model: &Model) -> Result<Self, LiblinearError> {
        let (solver, labels) = match model {
            Model::Regressor(regressor) => (solver_of_regressor(regressor)?, Vec::new()),
            Model::Classifier(classifier) => (
                solver_of_classifier(classifier),
                whole_labels(classifier.classes())?,
            ),
        };
        Ok(LiblinearModel {
            solver,
            labels,
            coef: model.coef().into_iter().map(<[f64]>::to_vec).collect(),
            intercept: model.intercept(),
        })
    }

    /// The same model, ready to predict.
    pub fn into_model(self) -> Model {
        let LiblinearModel {
            solver,
            labels,
            coef,
            intercept,
        } = self;
        let weights = Weights { coef, intercept };
        let report = FitReport::of_import("LIBLINEAR");
        if solver.task() == Task::Regression {
            let params = RegressorParams::Liblinear { solver };
            return Model::Regressor(Fitted::new(Dtype::F64, weights, (), params, report));
        }
        let classes = Classes::Numbers(labels.into_iter().map(f64::from).collect());
        let params = ClassifierParams::Liblinear { solver };
        Model::Classifier(Fitted::new(Dtype::F64, weights, classes, params, report))
    }
}

fn solver_of_classifier(classifier: &Classifier) -> SolverType {
    match classifier.params() {
        ClassifierParams::Liblinear { solver } => *solver,
        params if params.is_probabilistic() => SolverType::L2rLr,
        _ => SolverType::L2rL2lossSvc,
    }
}

fn solver_of_regressor(regressor: &Regressor) -> Result<SolverType, LiblinearError> {
    match regressor.params() {
        RegressorParams::Liblinear { solver } => Ok(*solver),
        params => match params.family_and_link() {
            (_, Link::Identity) => Ok(SolverType::L2rL2lossSvr),
            (family, link) => Err(LiblinearError::Unsupported {
                expected: "predictions without a link",
                found: format!("{family} with link {link:?}").to_lowercase(),
            }),
        },
    }
}

fn whole_labels(classes: &Classes) -> Result<Vec<i32>, LiblinearError> {
    let whole = |label: &f64| {
        let rounded = *label as i32;
        (f64::from(rounded) == *label).then_some(rounded)
    };
    let labels = match classes {
        Classes::Numbers(labels) => labels.iter().map(whole).collect(),
        Classes::Text(_) => None,
    };
    labels.ok_or_else(|| LiblinearError::Unsupported {
        expected: "labels that are whole numbers",
        found: classes.to_string(),
    })
}
