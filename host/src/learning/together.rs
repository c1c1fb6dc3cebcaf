//! Several fits over one X at once.

use super::fit::{Extras, Setup, Summary, Training, Warm};
use super::singles::{SideGoal, Singles};
use super::solver::side_by_side::{self, Problem};
use super::task::{Answer, AnyAnswer, Task};
use super::weights::Weights;
use super::{FitError, Model, Placed};
use crate::ops::objective::Loss;
use crate::ops::{Matrix, Number};

/// Fits that are solved together: one read of X by the products with several right-hand sides.
pub(super) const MOST: usize = 8;

/// A task with where it starts.
pub(super) type Begun<'a, T> = (Task<T, AnyAnswer>, Option<Warm<'a>>);

/// Fits all tasks side by side: X is read once per Hessian product of all of them. Each has a loss of its own, given by
/// [`Task::shared_loss`].
pub(super) fn fit<T: Number>(
    data: &Placed<T>,
    tasks: Vec<(Begun<'_, T>, Loss)>,
) -> Result<Vec<Model>, FitError> {
    let mut sides = Vec::new();
    let mut problems = Vec::new();
    for ((task, warm), loss) in tasks {
        let training = Training::new(data, task.controls, &Extras::default())?;
        let own = (&task.targets[..], &task.weights[..]);
        let Setup {
            columns,
            exact,
            weights,
            inverse,
            begin,
        } = training.setup(&task.goal, own, (None, warm))?;
        problems.push(Problem {
            begin,
            inverse_diagonal: training.upload(&inverse)?,
            limits: training.limits(&task.goal),
        });
        sides.push((training, task, loss, (columns, exact, weights)));
    }
    let goals: Vec<SideGoal<'_, T>> = sides
        .iter()
        .map(|(_, task, loss, (columns, _, weights))| SideGoal {
            columns,
            loss: *loss,
            ridge: task.goal.ridge(),
            targets: &task.targets,
            weights,
        })
        .collect();
    let mut objectives = Singles::new(data.matrix(), &goals)?;
    let solved = side_by_side::minimise(&mut objectives, problems)?;
    drop(objectives);
    let ended = sides.into_iter().zip(solved);
    ended
        .map(|((training, task, _, own), (solved, history))| {
            let (columns, exact, weights) = &own;
            let data = ((&task.targets[..], &weights[..]), &exact[..]);
            let (fitted, solved) = training.finish(&task.goal, columns, data, solved)?;
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
