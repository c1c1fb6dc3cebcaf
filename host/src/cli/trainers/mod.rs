//! The trainers of linear models: one list, from which `train` and `cv` have their subcommands.
//!
//! A trainer is a struct with the arguments that it alone has, which implements [`Own`], and a row of the list. What all
//! trainers share comes with [`TrainArgs`].

mod glm;
mod least_squares;
mod logreg;
mod ridge_classifier;
mod robust;
mod svm;

use anyhow::{Result, ensure};
use clap::{Args, Subcommand};

use super::args::{
    CheckpointArgs, CourseArgs, FoldArgs, OutcomeArgs, SampleArgs, SolveArgs, SourceArgs,
};
use super::data;
use super::targets::{Known, Task};
use crate::learning::{Classes, Classifier, Estimator, Model};
use crate::ops::Number;
use crate::report::Second;

pub(super) use glm::GlmArgs;
pub(super) use least_squares::{ElasticNetArgs, LassoArgs, LinregArgs, RidgeArgs};
pub(super) use logreg::LogregArgs;
pub(super) use ridge_classifier::RidgeClassifierArgs;
pub(super) use robust::{HuberArgs, QuantileArgs};
pub(super) use svm::{SvcArgs, SvrArgs};

/// A penalty, of all that might be typed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Penalised {
    /// As [`Own::strength`] calls it.
    pub(super) strength: f64,
    /// The other parameter, where another value than the typed one is meant.
    pub(super) second: Option<Second>,
}

impl Penalised {
    /// The value of the other parameter, or `typed`.
    pub(super) fn second_or(&self, typed: f64) -> f64 {
        self.second.map_or(typed, |second| second.value)
    }
}

/// What a trainer's own arguments say.
pub(super) trait Own {
    /// The head of the report.
    fn title(&self) -> &'static str;

    /// Whether numbers or labels are learnt.
    fn task(&self) -> Task {
        Task::Numbers
    }

    /// What the strength of the penalty is called, and what it was typed as.
    fn strength(&self) -> (&'static str, f64);

    /// Refuses options that would do nothing beside the others.
    ///
    /// # Errors
    /// Which one, and why.
    fn check(&self) -> Result<(), &'static str> {
        Ok(())
    }

    /// Whether means are exponentials of linear predictors, so that an exposure makes sense.
    fn has_link_log(&self) -> bool {
        false
    }

    /// The other parameter that `cv` can compare, as it is typed, without dashes.
    fn second(&self) -> Option<&'static str> {
        None
    }

    /// The estimator, with this penalty.
    ///
    /// # Errors
    /// When class weights name labels that the data do not have.
    fn estimator(&self, at: Penalised, classes: Option<&Classes>) -> Result<Estimator>;
}

/// The arguments of a trainer: its own, and those that all have.
#[derive(Debug, Args)]
pub(super) struct TrainArgs<P: Args> {
    #[command(flatten)]
    source: SourceArgs,

    #[command(flatten)]
    own: P,

    #[command(flatten)]
    solve: SolveArgs,

    #[command(flatten)]
    samples: SampleArgs,

    #[command(flatten)]
    outcome: OutcomeArgs,
}

/// A trainer's arguments, and those of a single fit.
#[derive(Debug, Args)]
pub(super) struct Single<P: Args> {
    #[command(flatten)]
    train: TrainArgs<P>,

    #[command(flatten)]
    course: CourseArgs,
}

/// A trainer's arguments, and those of the folds.
#[derive(Debug, Args)]
pub(super) struct Folded<P: Args> {
    #[command(flatten)]
    train: TrainArgs<P>,

    #[command(flatten)]
    folds: FoldArgs,
}

/// What a trainer is given, whatever it trains.
pub(super) struct Job<'a> {
    /// The subcommand, and `model` in JSON.
    pub(super) name: &'static str,
    pub(super) own: &'a dyn Own,
    pub(super) source: &'a SourceArgs,
    pub(super) solve: &'a SolveArgs,
    pub(super) samples: &'a SampleArgs,
    /// Nothing where rows are held out.
    pub(super) course: &'a CourseArgs,
    pub(super) outcome: &'a OutcomeArgs,
}

/// Of `cv`, whose folds hold out data of their own and start anew.
static NO_COURSE: CourseArgs = CourseArgs {
    start: None,
    validation: None,
    validation_target: None,
    patience: None,
    checkpoint: CheckpointArgs::NONE,
};

impl<P: Args + Own> TrainArgs<P> {
    fn job<'a>(&'a self, name: &'static str, course: &'a CourseArgs) -> Job<'a> {
        Job {
            name,
            course,
            own: &self.own,
            source: &self.source,
            solve: &self.solve,
            samples: &self.samples,
            outcome: &self.outcome,
        }
    }
}

impl Job<'_> {
    /// Coefficients and intercepts of the model that `--start` names, for data of this many columns and these classes.
    ///
    /// # Errors
    /// When it cannot be read, or is of other data.
    pub(super) fn start(&self, cols: usize, classes: Option<&Classes>) -> Result<Option<Start>> {
        let Some(path) = &self.course.start else {
            return Ok(None);
        };
        let model = Model::load(path)?;
        let (found, file) = (model.cols(), path.display());
        ensure!(
            found == cols,
            "--start {file}: expected a model of {cols} features, as the data have, found one of {found}"
        );
        let known = model.classifier().map(Classifier::classes);
        ensure!(
            known == classes,
            "--start {file}: expected a model of the same classes as the data ({}), found {}",
            listed(classes),
            listed(known)
        );
        let coef = model.coef().into_iter().map(<[f64]>::to_vec).collect();
        Ok(Some((coef, model.intercept())))
    }

    /// Offsets and penalty factors of the files that are named.
    ///
    /// # Errors
    /// When they do not fit the data, and for an exposure of means that are no exponentials.
    pub(super) fn beside(&self, (rows, cols): (usize, usize)) -> Result<Beside> {
        let samples = self.samples;
        ensure!(
            samples.exposure.is_none() || self.own.has_link_log(),
            "--exposure: expected a model with link log, to which the logarithm of an exposure is added; \
             train glm --link log has it"
        );
        let (offset, exposure) = (samples.offset.as_deref(), samples.exposure.as_deref());
        ensure!(
            self.course.validation.is_none() || (offset.is_none() && exposure.is_none()),
            "--validation: expected none beside --offset or --exposure, since those of its rows are not known; \
             use cv, whose folds have them"
        );
        Ok(Beside {
            offset: data::offsets(offset, exposure, rows)?,
            penalty_factors: data::penalty_factors(samples.penalty_factors.as_deref(), cols)?,
        })
    }

    /// The estimator as typed.
    ///
    /// # Errors
    /// As [`Own::estimator`].
    pub(super) fn estimator<T: Number>(&self, known: &Known<T>) -> Result<Estimator> {
        let typed = Penalised {
            strength: self.own.strength().1,
            second: None,
        };
        self.at(typed, known)
    }

    /// The estimator with this penalty.
    ///
    /// # Errors
    /// As [`Own::estimator`].
    pub(super) fn at<T: Number>(&self, at: Penalised, known: &Known<T>) -> Result<Estimator> {
        let estimator = self.own.estimator(at, known.classes())?;
        Ok(estimator
            .tolerance(self.solve.tol)
            .max_iter(self.solve.max_iter.get())
            .solver(self.solve.solver.into())
            .fit_intercept(!self.solve.no_intercept)
            .standardize(self.solve.standardize)
            .non_negative(self.solve.non_negative)
            .matrix_options(self.outcome.matrix_options()))
    }
}

/// What fits are given besides data and weights.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// One per row.
    pub(super) offset: Option<Vec<f64>>,
    /// One per column.
    pub(super) penalty_factors: Option<Vec<f64>>,
}

/// Coefficients, one list per linear predictor, and intercepts.
type Start = (Vec<Vec<f64>>, Vec<f64>);

fn listed(classes: Option<&Classes>) -> String {
    classes.map_or("a regression".to_owned(), Classes::to_string)
}

macro_rules! trainers {
    ($($(#[$about:meta])* $trainer:ident($own:ty) = $name:literal;)*) => {
        /// `train` with one of the trainers.
        #[derive(Debug, Subcommand)]
        pub(super) enum Trainer {
            $($(#[$about])* #[command(name = $name)] $trainer(Single<$own>),)*
        }

        /// `cv` with one of the trainers.
        #[derive(Debug, Subcommand)]
        pub(super) enum CvTrainer {
            $($(#[$about])* #[command(name = $name)] $trainer(Folded<$own>),)*
        }

        impl Trainer {
            pub(super) fn job(&self) -> Job<'_> {
                match self {
                    $(Trainer::$trainer(args) => args.train.job($name, &args.course),)*
                }
            }
        }

        impl CvTrainer {
            pub(super) fn job(&self) -> (Job<'_>, &FoldArgs) {
                match self {
                    $(CvTrainer::$trainer(args) => (args.train.job($name, &NO_COURSE), &args.folds),)*
                }
            }
        }
    };
}

trainers! {
    /// Linear regression, with a ridge if requested
    Linreg(LinregArgs) = "linreg";
    /// Ridge regression with scikit-learn's names and defaults
    Ridge(RidgeArgs) = "ridge";
    /// Least squares with an l1 penalty
    Lasso(LassoArgs) = "lasso";
    /// Least squares with an l1 and an l2 penalty
    ElasticNet(ElasticNetArgs) = "elasticnet";
    /// Logistic regression, of two classes or more
    Logreg(LogregArgs) = "logreg";
    /// Generalised linear models: Poisson, gamma, Tweedie and other targets
    Glm(GlmArgs) = "glm";
    /// Linear support vector classification
    Svc(SvcArgs) = "svc";
    /// Least squares on the signs of classes, with a ridge
    RidgeClassifier(RidgeClassifierArgs) = "ridge-classifier";
    /// Linear support vector regression
    Svr(SvrArgs) = "svr";
    /// Huber regression: rows that are far off pull no harder than others
    Huber(HuberArgs) = "huber";
    /// Quantile regression: medians and other quantiles
    Quantile(QuantileArgs) = "quantile";
}
