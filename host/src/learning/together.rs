//! Several fits over one X at once.

use super::fit::{Extras, Summary, Training, Warm};
use super::singles::{SideGoal, Singles};
use super::solver::side_by_side::{self, Problem};
use super::task::{Answer, AnyAnswer, Task};
use super::weights::Weights;
use super::{FitError, Model, Placed, RowMoments};
use crate::ops::objective::Loss;
use crate::ops::{Matrix, Number};

/// Fits that are solved together: one read of X by the products with several right-hand sides.
pub(super) const MOST: usize = 8;

/// One of several fits.
pub(super) struct Side<'a, T> {
    pub(super) task: Task<T, AnyAnswer>,
    /// By [`Task::shared_loss`].
    pub(super) loss: Loss,
    pub(super) warm: Option<Warm<'a>>,
    pub(super) moments: Option<&'a RowMoments>,
}

/// Fits all side by side: X is read once per Hessian product of all of them.
pub(super) fn fit<T: Number>(
    data: &Placed<T>,
    all: Vec<Side<'_, T>>,
) -> Result<Vec<Model>, FitError> {
    let mut sides = Vec::new();
    let mut problems = Vec::new();
    for side in all {
        let extras = Extras {
            moments: side.moments,
            ..Extras::default()
        };
        let Side { task, loss, .. } = side;
        let training = Training::new(data, task.controls, &extras)?;
        let own = (&task.targets[..], &task.weights[..]);
        let setup = training.setup(&task.goal, own, (None, side.warm))?;
        problems.push(Problem {
            begin: setup.begin,
            inverse_diagonal: training.upload(&setup.inverse)?,
            l1: training.l1(&task.goal),
            limits: training.limits(&task.goal),
        });
        sides.push((training, task, loss, setup.prepared));
    }
    let goals: Vec<SideGoal<'_, T>> = sides
        .iter()
        .map(|(_, task, loss, prepared)| SideGoal {
            columns: &prepared.columns,
            loss: *loss,
            ridge: task.goal.ridge(),
            targets: &task.targets,
            weights: &prepared.weights,
        })
        .collect();
    let mut objectives = Singles::new(data.matrix(), &goals)?;
    let solved = side_by_side::minimise(&mut objectives, problems)?;
    drop(objectives);
    let ended = sides.into_iter().zip(solved);
    ended
        .map(|((training, task, _, prepared), (solved, history))| {
            let (fitted, solved) = training.finish(&task.goal, &prepared, &task.targets, solved)?;
            let history = history.into_iter().map(|i| task.goal.shown(i)).collect();
            let report = training.report(&Summary::of(&solved), &task.goal, history);
            Ok(task.answer.model::<T>(fitted, report))
        })
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
