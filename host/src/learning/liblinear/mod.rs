//! LIBLINEAR's model files: text that its `train` writes and its `predict` reads.
//!
//! ```text
//! solver_type L2R_LR
//! nr_class 3
//! label 1 2 3
//! nr_feature 2
//! bias -1
//! w
//! 0.1 -0.2 0.3
//! 0.4 0.5 -0.6
//! ```
//!
//! A line of `w` per feature, one number per decision function, and a line more for the constant feature `bias`
//! where that is not negative. With two classes there is one decision function, positive for the first label.
//!
//! Source: R.-E. Fan et al. 2008, "LIBLINEAR: A Library for Large Linear Classification", JMLR 9; the README of
//! its version 2.47.

mod convert;
mod read;
#[cfg(test)]
mod tests;
mod write;

use thiserror::Error;

/// How LIBLINEAR names what was minimised; of importance here is what follows for predictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SolverType {
    /// L2-regularised logistic regression.
    L2rLr,
    /// The same, solved in the dual.
    L2rLrDual,
    /// L1-regularised logistic regression.
    L1rLr,
    /// L2-regularised classification with squared hinge loss.
    L2rL2lossSvc,
    /// The same, solved in the dual.
    L2rL2lossSvcDual,
    /// L2-regularised classification with hinge loss, solved in the dual.
    L2rL1lossSvcDual,
    /// L1-regularised classification with squared hinge loss.
    L1rL2lossSvc,
    /// Crammer and Singer's multi-class machine.
    McsvmCs,
    /// L2-regularised regression with squared ε-insensitive loss.
    L2rL2lossSvr,
    /// The same, solved in the dual.
    L2rL2lossSvrDual,
    /// L2-regularised regression with ε-insensitive loss, solved in the dual.
    L2rL1lossSvrDual,
}

/// What the file's solver type means for predictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Decision values that a sigmoid turns into probabilities.
    LogisticRegression,
    /// Decision values only.
    Classification,
    /// A number.
    Regression,
}

const NAMES: [(SolverType, &str); 11] = [
    (SolverType::L2rLr, "L2R_LR"),
    (SolverType::L2rLrDual, "L2R_LR_DUAL"),
    (SolverType::L1rLr, "L1R_LR"),
    (SolverType::L2rL2lossSvc, "L2R_L2LOSS_SVC"),
    (SolverType::L2rL2lossSvcDual, "L2R_L2LOSS_SVC_DUAL"),
    (SolverType::L2rL1lossSvcDual, "L2R_L1LOSS_SVC_DUAL"),
    (SolverType::L1rL2lossSvc, "L1R_L2LOSS_SVC"),
    (SolverType::McsvmCs, "MCSVM_CS"),
    (SolverType::L2rL2lossSvr, "L2R_L2LOSS_SVR"),
    (SolverType::L2rL2lossSvrDual, "L2R_L2LOSS_SVR_DUAL"),
    (SolverType::L2rL1lossSvrDual, "L2R_L1LOSS_SVR_DUAL"),
];

impl SolverType {
    /// The name in the file.
    pub fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(solver, _)| *solver == self);
        found.map_or("", |(_, name)| name)
    }

    fn of_name(name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(solver, _)| *solver)
    }

    /// What it means for predictions.
    pub fn task(self) -> Task {
        use SolverType::{
            L1rLr, L2rL1lossSvrDual, L2rL2lossSvr, L2rL2lossSvrDual, L2rLr, L2rLrDual,
        };
        match self {
            L2rLr | L2rLrDual | L1rLr => Task::LogisticRegression,
            L2rL2lossSvr | L2rL2lossSvrDual | L2rL1lossSvrDual => Task::Regression,
            _ => Task::Classification,
        }
    }
}

/// A linear model as a LIBLINEAR file holds it.
///
/// ```
/// use warpfuse::learning::liblinear::{LiblinearModel, SolverType};
/// let model = LiblinearModel {
///     solver: SolverType::L2rLr,
///     labels: vec![-1, 1],
///     coef: vec![vec![0.5, -2.0]],
///     intercept: vec![0.25],
/// };
/// let text = model.to_text()?;
/// assert_eq!(LiblinearModel::of_text(&text)?, model);
/// # Ok::<(), warpfuse::learning::liblinear::LiblinearError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LiblinearModel {
    /// What was minimised.
    pub solver: SolverType,
    /// Labels of the classes, ascending; none for a regression.
    pub labels: Vec<i32>,
    /// Coefficients, one list per decision function: one for a regression, one for two classes, which is
    /// positive for the **second** (larger) label as in scikit-learn, and else one per class.
    pub coef: Vec<Vec<f64>>,
    /// Intercepts, one per decision function.
    pub intercept: Vec<f64>,
}

/// Why a LIBLINEAR model was not read or written.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum LiblinearError {
    /// The text breaks the format.
    #[error("line {line}: expected {expected}, found {found}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// What would have been right.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// The format has no place for such a model.
    #[error("expected {expected} for a LIBLINEAR model, found {found}")]
    Unsupported {
        /// What it can hold.
        expected: &'static str,
        /// What was given.
        found: String,
    },
}

impl LiblinearModel {
    /// n.
    pub fn features(&self) -> usize {
        self.coef.first().map_or(0, Vec::len)
    }
}

/// Decision functions of a file with this many classes.
fn decisions(solver: SolverType, classes: usize) -> usize {
    if classes == 2 && solver != SolverType::McsvmCs {
        1
    } else {
        classes
    }
}
