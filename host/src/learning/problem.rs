//! What an estimator says about itself, and the minimisation that comes of it for some data.
//!
//! An estimator is a set of parameters that implements [`Regression`] or [`Classification`]; everything else (fits, files,
//! dispatch, cross-validation) follows from that and from its row in the table of [`super::estimators`].

use std::sync::Arc;

use super::checks::{check_labels, check_targets, not_negative, sample_weights};
use super::controls::{Controls, HasControls};
use super::error::mismatch;
use super::family::{Family, Link};
use super::metrics::sums;
use super::options::FitOptions;
use super::penalty::ClassWeight;
use super::row_targets::RowTargets;
use super::sample_weights::SampleWeights;
use super::solver::Solver;
use super::spec::{ObjectiveSpec, SampleLoss};
use super::{Classes, Codes, FitError, Huber, LabelError, LabelSlice};
use crate::matrix::Element;
use crate::ops::Number;
use crate::ops::objective::Loss;

/// An estimator of numbers: one minimisation over targets.
pub(super) trait Regression: HasControls + Sync {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`FitError::Parameter`] or [`FitError::Combination`].
    fn check(&self) -> Result<(), FitError>;

    /// What is minimised over rows of this total weight, but for a constant that depends on the targets alone.
    fn spec(&self, total: f64) -> ObjectiveSpec;

    /// Whether the loss has kinks, so that the host alone can minimise it.
    fn is_kinked(&self) -> bool {
        false
    }

    /// The estimator, where the scale of its residuals is estimated along with the coefficients.
    fn scaled(&self) -> Option<&Huber> {
        None
    }

    /// Family and link of a generalised linear model; other models predict the linear predictor.
    fn glm(&self) -> Option<(Family, Link)> {
        None
    }
}

/// How classes become targets of minimisations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// The numbers of the classes, in one problem: a softmax, or a sigmoid of two.
    Numbers,
    /// ±1, in one problem for each class against the others; in one for two classes.
    Signs,
    /// 0 and 1, else as `Signs`.
    Indicators,
}

/// An estimator of labels.
pub(super) trait Classification: HasControls + Sync {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`FitError::Parameter`] or [`FitError::Combination`].
    fn check(&self) -> Result<(), FitError>;

    /// What rows of each class weigh.
    fn class_weight(&self) -> &ClassWeight;

    /// How classes become targets.
    fn coding(&self) -> Coding;

    /// What is minimised for this many classes over rows of this total weight.
    fn spec(&self, classes: usize, total: f64) -> ObjectiveSpec;

    /// Whether the loss has kinks, so that the host alone can minimise it.
    fn is_kinked(&self) -> bool {
        false
    }

    /// Whether linear predictors become probabilities.
    fn is_probabilistic(&self) -> bool {
        self.coding() != Coding::Signs
    }
}

/// Labels of a fit: their classes, and the number of each row's.
#[derive(Debug, Clone)]
pub(super) struct Labelled<'a> {
    pub(super) classes: Classes,
    /// Below the number of classes.
    pub(super) codes: Codes<'a>,
}

impl Labelled<'static> {
    /// Of labels as they came.
    pub(super) fn new<'l>(labels: impl Into<LabelSlice<'l>>) -> Result<Self, LabelError> {
        let (classes, codes) = Classes::encode(labels)?;
        Ok(Labelled { classes, codes })
    }
}

impl<'a> Labelled<'a> {
    /// Of numbers that others have given the classes.
    pub(super) fn of_codes(classes: &Classes, codes: Codes<'a>) -> Result<Self, LabelError> {
        if codes
            .most()
            .is_some_and(|most| most as usize >= classes.len())
        {
            let row = codes.position(|code| code as usize >= classes.len());
            let row = row.expect("there is one");
            return Err(LabelError::Unknown {
                row,
                label: format!("the code {}", codes.at(row)),
                known: classes.to_string(),
            });
        }
        let classes = classes.clone();
        Ok(Labelled { classes, codes })
    }
}

/// Either of both.
pub(super) enum Stated<'a> {
    Regression(&'a dyn Regression),
    Classification(&'a dyn Classification),
}

impl Stated<'_> {
    /// Whether the host alone can solve it.
    pub(super) fn needs_host(&self) -> bool {
        match self {
            Stated::Regression(of) => of.is_kinked() || of.controls().non_negative,
            Stated::Classification(of) => of.is_kinked() || of.controls().non_negative,
        }
    }
}

/// One minimisation.
pub(super) struct Task<'a, T> {
    pub(super) controls: Controls,
    pub(super) spec: ObjectiveSpec,
    pub(super) targets: RowTargets<'a, T>,
    /// One per row; they add up to anything positive.
    pub(super) weights: SampleWeights,
}

impl<T> Task<'_, T> {
    /// The loss, where several such tasks can be solved over one read of X: of one predictor per row, by Newton's method in
    /// a region or, with an l1 penalty, in an orthant.
    pub(super) fn shared_loss(&self) -> Option<Loss> {
        let batches = match self.controls.solver {
            Solver::Auto | Solver::NewtonCg | Solver::ConjugateGradient => true,
            _ => self.spec.l1 > 0.0,
        };
        match self.spec.loss {
            SampleLoss::Single(loss) if batches => Some(loss),
            _ => None,
        }
    }
}

/// Whether the solver that was requested can minimise this.
fn check_solver(controls: &Controls, spec: &ObjectiveSpec) -> Result<(), FitError> {
    not_negative("tol", controls.tolerance)?;
    let quadratic = spec.loss == SampleLoss::Single(Loss::Squared);
    let remedy = "use Newton's method (newton-cg)";
    match controls.solver {
        Solver::Lbfgs if spec.l1 > 0.0 => Err(mismatch("solver lbfgs", "an l1 penalty", remedy)),
        Solver::ConjugateGradient if spec.l1 > 0.0 || !quadratic => {
            let other = "an l1 penalty, or another loss than squared errors";
            Err(mismatch("solver conjugate-gradient", other, remedy))
        }
        _ => Ok(()),
    }
}

/// The minimisation of a regression over `rows` rows.
pub(super) fn regression_task<'a, T: Number>(
    of: &dyn Regression,
    rows: usize,
    targets: RowTargets<'a, T>,
    options: &FitOptions<'_>,
) -> Result<Task<'a, T>, FitError> {
    of.check()?;
    check_targets(rows, &targets)?;
    let family = of.glm().map(|(family, _)| family);
    if let Some(family) = family {
        check_domain(family, &targets)?;
    }
    let weights = sample_weights(targets.len(), options)?;
    let total = weights.total();
    let constant = family.map_or(0.0, |family| saturated(family, &targets, &weights) / total);
    let spec = of.spec(total);
    check_solver(of.controls(), &spec)?;
    Ok(Task {
        controls: *of.controls(),
        spec: ObjectiveSpec {
            constant: spec.constant - constant,
            ..spec
        },
        targets,
        weights,
    })
}

/// Every target is one that the family has.
fn check_domain<T: Number>(family: Family, targets: &RowTargets<'_, T>) -> Result<(), FitError> {
    let distribution = family.of_kernels();
    match targets.position(|b| !distribution.accepts(Element::to_f64(b))) {
        Some(row) => Err(FitError::TargetOutside {
            row,
            value: Element::to_f64(targets.at(row)),
            distribution: family.to_string(),
        }),
        None => Ok(()),
    }
}

/// What the losses of the kernels lack of half the deviance, over the rows with weight.
fn saturated<T: Number>(
    family: Family,
    targets: &RowTargets<'_, T>,
    weights: &SampleWeights,
) -> f64 {
    let [sum] = sums(targets.len(), |row| {
        let weight = weights.at(row);
        let b = Element::to_f64(targets.at(row));
        [if weight > 0.0 {
            weight * family.saturated(b)
        } else {
            0.0
        }]
    });
    sum
}

/// The classes of `rows` labels, and the minimisations over them: one, or one per class.
pub(super) fn classification_tasks<'a, T: Number>(
    of: &dyn Classification,
    rows: usize,
    labels: Labelled<'a>,
    options: &FitOptions<'_>,
) -> Result<(Classes, Vec<Task<'a, T>>), FitError> {
    of.check()?;
    check_labels(rows, &labels)?;
    let Labelled { classes, codes } = labels;
    let codes = Arc::new(codes);
    let weights = of.class_weight().weigh(&classes, &codes, options)?;
    let spec = of.spec(classes.len(), weights.total());
    check_solver(of.controls(), &spec)?;
    let numbers = 0..classes.len() as u32;
    let task = |target: &dyn Fn(u32) -> f64| Task {
        controls: *of.controls(),
        spec,
        targets: RowTargets::Coded {
            codes: codes.clone(),
            targets: numbers
                .clone()
                .map(|code| <T as Element>::from_f64(target(code)))
                .collect(),
        },
        weights: weights.clone(),
    };
    let others = if of.coding() == Coding::Signs {
        -1.0
    } else {
        0.0
    };
    let against = |class: u32| task(&|code| if code == class { 1.0 } else { others });
    let tasks = match (of.coding(), classes.len()) {
        (Coding::Numbers, 3..) if options.offset.is_some() => {
            let remedy =
                "it changes nothing there: leave it out, or fit one class against the rest";
            return Err(mismatch(
                "an offset",
                "a softmax of several classes",
                remedy,
            ));
        }
        (Coding::Numbers, _) => vec![task(&f64::from)],
        (_, 2) => vec![against(1)],
        (_, k) => (0..k as u32).map(against).collect(),
    };
    Ok((classes, tasks))
}

/// Expected reads of X by a classifier, each for one linear predictor per row. A softmax has kernels of its own: it
/// counts for nothing here.
pub(super) fn evaluations(of: &dyn Classification, classes: &Classes) -> u64 {
    let each = of.controls().evaluations();
    match of.coding() {
        Coding::Numbers if classes.len() > 2 => 0,
        Coding::Numbers => each,
        Coding::Signs | Coding::Indicators => match classes.len() {
            0..=2 => each,
            classes => each.saturating_mul(classes as u64),
        },
    }
}
