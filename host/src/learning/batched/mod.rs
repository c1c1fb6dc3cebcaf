//! Several fits over one X, batched: one read of X serves all of them.

mod objective;

use std::borrow::Cow;

use objective::{BatchedObjective, MemberSpec};

use super::compact;
use super::estimators::Params;
use super::fit::Training;
use super::given::{Given, Warm};
use super::options::FitOptions;
use super::problem::Task;
use super::report::Summary;
use super::solver::batched::{self, Problem};
use super::solver::host::choice::Chosen;
use super::weights::Weights;
use super::{Classes, FitError, Model, ResidentDataset, RowMoments};
use crate::matrix::SeenColumns;
use crate::ops::objective::Loss;
use crate::ops::{Matrix, Number};

/// The most fits of a batch: one read of X by the products with several right-hand sides.
pub(super) const MOST: usize = 8;

/// One fit of a batch.
pub(super) struct Member<'a, T> {
    pub(super) task: Task<'a, T>,
    /// What the model keeps of the estimator, and the classes of labels.
    pub(super) params: (Params, Option<Classes>),
    /// By [`Task::shared_loss`].
    pub(super) loss: Loss,
    pub(super) warm: Option<Warm<'a>>,
    pub(super) moments: Option<&'a RowMoments>,
}

/// Of the columns with entries, where a fit reads those alone.
struct OfSeen {
    moments: Option<RowMoments>,
    warm: Option<(Vec<Vec<f64>>, Vec<f64>)>,
}

impl OfSeen {
    fn of<T: Number>(member: &Member<'_, T>, seen: &SeenColumns) -> OfSeen {
        let lists = |(coef, b): Warm<'_>| (compact::lists_of(seen, coef), b.to_vec());
        OfSeen {
            moments: member.moments.map(|all| compact::sums_of(seen, all)),
            warm: member.warm.map(lists),
        }
    }
}

/// What a member is given besides its task: its own, or what is left of it.
fn given_to<'m, T: Number>(
    member: &Member<'m, T>,
    of_seen: Option<&'m OfSeen>,
) -> (Option<&'m RowMoments>, Option<Warm<'m>>) {
    let Some(own) = of_seen else {
        return (member.moments, member.warm);
    };
    let warm = own.warm.as_ref().map(|(coef, b)| (&coef[..], &b[..]));
    (own.moments.as_ref(), warm)
}

/// What all members read: the columns with entries, unless one starts elsewhere than at 0 in another.
fn read_by<'d, T: Number>(
    data: &'d ResidentDataset<T>,
    all: &[Member<'_, T>],
) -> (&'d ResidentDataset<T>, Option<&'d SeenColumns>) {
    let suits = |member: &Member<'_, T>| {
        let options = FitOptions {
            moments: member.moments,
            start: member.warm,
            ..FitOptions::default()
        };
        data.seen_by(&options).is_some()
    };
    match all.iter().all(suits) {
        true => data.for_fits(),
        false => (data, None),
    }
}

/// Fits all of a batch: X is read once per Hessian product of all of them.
pub(super) fn fit<T: Number>(
    data: &ResidentDataset<T>,
    all: Vec<Member<'_, T>>,
) -> Result<Vec<Model>, FitError> {
    let (data, seen) = read_by(data, &all);
    let left = |member: &Member<'_, T>| seen.map(|seen| OfSeen::of(member, seen));
    let of_seen: Vec<Option<OfSeen>> = all.iter().map(left).collect();
    let mut members = Vec::new();
    let mut problems = Vec::new();
    for (member, of_seen) in all.into_iter().zip(&of_seen) {
        let (moments, warm) = given_to(&member, of_seen.as_ref());
        let options = FitOptions {
            moments,
            ..FitOptions::default()
        };
        let Member {
            task, params, loss, ..
        } = member;
        let training = Training::new(data, task.controls, &options)?;
        let own = (&task.targets, &task.weights);
        let given = Given {
            warm,
            ..Given::default()
        };
        let setup = training.setup(&task.spec, own, given)?;
        problems.push(Problem {
            begin: setup.begin,
            inverse_diagonal: training.upload(&setup.inverse)?,
            l1: training.l1(&task.spec),
            limits: training.limits(&task.spec),
        });
        let narrow = setup.prepared.weights.narrow::<T>();
        members.push((training, (task, params), (loss, narrow), setup.prepared));
    }
    let sides = members
        .iter()
        .map(|(_, (task, _), ..)| task.targets.whole());
    let sides: Vec<Cow<'_, [T]>> = sides.collect();
    let specs: Vec<MemberSpec<'_, T>> = members
        .iter()
        .zip(&sides)
        .map(
            |((_, (task, _), (loss, narrow), prepared), targets)| MemberSpec {
                columns: &prepared.columns,
                loss: *loss,
                ridge: task.spec.ridge(),
                targets,
                weights: narrow,
            },
        )
        .collect();
    let mut objectives = BatchedObjective::new(data.matrix(), &specs)?;
    let solved = batched::minimise(&mut objectives, problems)?;
    drop((objectives, specs));
    drop(sides);
    let ended = members.into_iter().zip(solved);
    ended
        .map(
            |((training, (task, params), _, prepared), (solved, history))| {
                let (fitted, solved) =
                    training.finish(&task.spec, &prepared, (&task.targets, None), solved)?;
                let history = history.into_iter().map(|i| task.spec.shown(i)).collect();
                let summary = Summary::of(&solved, Chosen::batched());
                let report = training.report(&summary, &task.spec, history);
                let fitted = compact::of_all_columns(seen, fitted);
                Ok(Model::new(T::DTYPE, params, fitted, report))
            },
        )
        .collect()
}

/// Linear predictors of models with one each, which read X once together.
pub(super) fn predictors<T: Number>(
    x: &Matrix<T>,
    models: &[Model],
) -> Result<Vec<Vec<T>>, FitError> {
    let coef = models.iter().map(|model| model.coef()[0].to_vec());
    let weights = Weights {
        coef: coef.collect(),
        intercept: models.iter().map(|model| model.intercept()[0]).collect(),
    };
    weights.apply_on(x)
}
