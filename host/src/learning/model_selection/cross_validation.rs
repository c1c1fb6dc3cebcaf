//! Cross-validation of a path of estimators.

use super::Folds;
use super::held_out::HeldOut;
use super::points::{FoldProgress, PathPoint};
use super::together::{self, Path};
use crate::learning::batched::{self, Member};
use crate::learning::checkpoint::{self, Identity, Record, session};
use crate::learning::fit::Training;
use crate::learning::identity::{digest, digest_of_bytes, with_checkpoint_of_folds};
use crate::learning::{
    Checkpoint, Estimator, Evaluation, FitError, FitOptions, Model, ResidentDataset, Targets,
};
use crate::ops::objective::Loss;
use crate::ops::{Number, OpError};

/// Fits each estimator of `path` once per fold, to the rows that the fold leaves in, and scores it on those that
/// it holds out.
///
/// X is on the device once: rows are left out by a weight of 0. Ridge regression, lasso and elastic net, generalised linear
/// models, support vector regression, and logistic regression and support vector classification of two classes are fitted
/// eight at a time, whatever fold and point they belong to: X is read once per product for all of them
/// ([`Matrix::fused_many`](crate::ops::Matrix::fused_many)), and once for their scores. Other estimators, those that take
/// L-BFGS, and matrices with reproducible sums are fitted one after the other. Either way a fit starts from the coefficients
/// of the last point of the path that has been fitted on the same rows, so that neighbouring penalties should be
/// neighbours in the path.
///
/// Estimators that standardise divide by the deviations of the rows that a fold learns from, which `data` has to know:
/// see [`ResidentDataset::with_folds`].
///
/// # Errors
/// As the estimators'; [`FitError::Length`] when the folds, weights and targets are not as many as the rows;
/// [`FitError::Combination`] for an estimator that standardises and data that were made without folds.
///
/// ```
/// use ndarray::Array2;
/// use warpfuse::device::Device;
/// use warpfuse::learning::{Estimator, Folds, ResidentDataset, Ridge, Targets, cross_validate};
/// use warpfuse::matrix::Features;
/// use warpfuse::ops::MatrixOptions;
///
/// let x = Features::Dense(Array2::from_shape_fn((20, 1), |(i, _)| i as f64));
/// let t: Vec<f64> = (0..20).map(|i| 3.0 * i as f64 + 1.0).collect();
/// let data = ResidentDataset::new(&Device::cpu(), x, MatrixOptions::default())?;
/// let path = [0.0, 1e4].map(|alpha| Estimator::Ridge(Ridge::params().alpha(alpha)));
/// let folds = Folds::shuffled(20, 4, 1).expect("4 folds of 20 rows");
/// let points = cross_validate(&data, Targets::Numbers(&t), None, &folds, &path, |_| {})?;
/// assert!(points[0].mean_score() > 0.999 && points[1].mean_score() < 0.5);
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
pub fn cross_validate<T: Number>(
    data: &ResidentDataset<T>,
    targets: Targets<'_, T>,
    sample_weight: Option<&[f64]>,
    folds: &Folds,
    path: &[Estimator],
    watch: impl FnMut(FoldProgress),
) -> Result<Vec<PathPoint>, FitError> {
    let given = FoldOptions {
        sample_weight,
        ..FoldOptions::default()
    };
    cross_validate_with(data, targets, given, folds, path, watch)
}

/// What every fit of a cross-validation is given: see [`FitOptions`].
#[derive(Debug, Clone, Copy, Default)]
pub struct FoldOptions<'a> {
    /// One weight per row.
    pub sample_weight: Option<&'a [f64]>,
    /// One per row, added to its linear predictor, in scores too.
    pub offset: Option<&'a [f64]>,
    /// What the penalties of each column are multiplied by.
    pub penalty_factors: Option<&'a [f64]>,
    /// Where the comparison writes which fits have been made, so that it goes on with the next: figures of all, and the
    /// coefficients with which each fold goes on.
    pub checkpoint: Option<&'a Checkpoint>,
}

impl<'a> FoldOptions<'a> {
    /// For a fit to all rows, without a checkpoint.
    pub fn of_fit(self) -> FitOptions<'a> {
        let FoldOptions {
            sample_weight,
            offset,
            penalty_factors,
            checkpoint: _,
        } = self;
        FitOptions {
            sample_weight,
            offset,
            penalty_factors,
            ..FitOptions::default()
        }
    }
}

/// [`cross_validate`] with an offset of each row or penalty factors of each column; fits are then one after the other.
///
/// # Errors
/// As [`cross_validate`].
pub fn cross_validate_with<T: Number>(
    data: &ResidentDataset<T>,
    targets: Targets<'_, T>,
    given: FoldOptions<'_>,
    folds: &Folds,
    path: &[Estimator],
    mut watch: impl FnMut(FoldProgress),
) -> Result<Vec<PathPoint>, FitError> {
    let rows = data.matrix().rows();
    let sample_weight = given.sample_weight;
    expect_rows("rows of the folds", folds.rows(), rows)?;
    let lists = [("sample weights", sample_weight), ("offsets", given.offset)];
    for (what, list) in lists {
        expect_rows(what, list.map_or(rows, <[f64]>::len), rows)?;
    }
    check_deviations(data, folds, path)?;
    let mut search = Search {
        data,
        targets,
        given,
        folds,
        path,
        found: vec![None; path.len() * folds.count()],
        last: vec![None; folds.count()],
        watch: &mut watch,
    };
    let facts = |identity: &mut Identity| identify(identity, given, folds, path);
    with_checkpoint_of_folds(given.checkpoint, (data, &targets), facts, || {
        if let Some(found) = session::begin("cross-validation")? {
            search.restore(&found)?;
        }
        match checkpoint::without(|| search.losses())? {
            Some(losses) => search.batched(&losses)?,
            None => {
                checkpoint::without(|| search.together())?;
                search.one_by_one()?;
            }
        }
        Ok(search.points())
    })
}

/// What is compared, on which rows.
fn identify(identity: &mut Identity, given: FoldOptions<'_>, folds: &Folds, path: &[Estimator]) {
    identity.fact("method", "cross-validation");
    identity.fact("estimators", path.len());
    let params: Vec<String> = path.iter().map(|of| format!("{of:?}")).collect();
    let params = digest_of_bytes(params.join("\n").as_bytes());
    identity.fact("a digest of the estimators", params);
    identity.fact("folds", folds.count());
    let rows = folds.of_each_row().iter().map(|fold| f64::from(*fold));
    identity.fact("a digest of the folds", digest(rows));
    let given = [
        ("a digest of the weights", given.sample_weight),
        ("a digest of the offsets", given.offset),
        ("a digest of the penalty factors", given.penalty_factors),
    ];
    for (what, list) in given {
        if let Some(list) = list {
            identity.fact(what, digest(list.iter().copied()));
        }
    }
}

/// What a fit came to.
#[derive(Clone)]
struct Found {
    evaluation: Evaluation,
    n_iter: usize,
    converged: bool,
    nonzero: usize,
    coef: Vec<f64>,
}

/// Of one fold, the weights with which it is trained, and what it holds out.
type FoldRows<T> = (Vec<f64>, HeldOut<T>);

/// Coefficients and intercepts of a fit.
type End = (Vec<Vec<f64>>, Vec<f64>);

/// A path with its folds, fit by fit.
struct Search<'a, T: Number> {
    data: &'a ResidentDataset<T>,
    targets: Targets<'a, T>,
    given: FoldOptions<'a>,
    folds: &'a Folds,
    path: &'a [Estimator],
    /// One per point and fold, the folds of a point together.
    found: Vec<Option<Found>>,
    /// Of each fold, where its last fit ended.
    last: Vec<Option<End>>,
    watch: &'a mut dyn FnMut(FoldProgress),
}

impl<T: Number> Search<'_, T> {
    /// The loss of each point where all fits can share their products.
    fn losses(&self) -> Result<Option<Vec<Loss>>, FitError> {
        let plain = self.given.offset.is_none() && self.given.penalty_factors.is_none();
        if self.data.matrix().is_reproducible() || !plain {
            return Ok(None);
        }
        let training = self.folds.training_weights(0, self.given.sample_weight);
        let mut losses = Vec::new();
        for estimator in self.path {
            let task = estimator.task(self.rows(), self.targets, &weighted(&training))?;
            let Some((task, _)) = task else {
                return Ok(None);
            };
            let (data, _) = self.data.for_fits();
            let training = Training::new(data, task.controls, &FitOptions::default())?;
            let direct = training
                .choose(&training.shape(&task.spec, None))?
                .direct
                .is_some();
            match task.shared_loss() {
                Some(loss) if !direct => losses.push(loss),
                _ => return Ok(None),
            }
        }
        Ok(Some(losses))
    }

    /// Fits groups of equal size, the folds of a point one after the other.
    fn batched(&mut self, losses: &[Loss]) -> Result<(), FitError> {
        let all: Vec<usize> = (0..self.found.len()).collect();
        let groups = all.len().div_ceil(batched::MOST);
        let weights = self.given.sample_weight;
        let held_out = HeldOut::of_all(self.folds, self.targets, weights);
        let of_fold = |fold| self.folds.training_weights(fold, weights);
        let rows: Vec<FoldRows<T>> = (0..).map(of_fold).zip(held_out).collect();
        for group in all.chunks(all.len().div_ceil(groups.max(1)).max(1)) {
            if group.iter().any(|place| self.found[*place].is_none()) {
                checkpoint::without(|| self.fit_group(group, losses, &rows))?;
                self.save_if_due()?;
            }
        }
        Ok(())
    }

    fn fit_group(
        &mut self,
        group: &[usize],
        losses: &[Loss],
        rows: &[FoldRows<T>],
    ) -> Result<(), FitError> {
        let mut members = Vec::new();
        for place in group {
            let (point, fold) = self.point_and_fold(*place);
            let (training, _) = &rows[fold];
            let estimator = &self.path[point];
            let task = estimator.task(self.rows(), self.targets, &weighted(training))?;
            let (task, classes) = task.expect("all points have one problem each");
            let start = self.last[fold].as_ref();
            members.push(Member {
                task,
                params: (estimator.params(), classes),
                loss: losses[point],
                warm: start.map(|(coef, intercept)| (&coef[..], &intercept[..])),
                moments: self.data.moments_of_fold(fold),
            });
        }
        let models = batched::fit(self.data, members)?;
        let predictors = batched::predictors(self.data.matrix(), &models)?;
        for ((place, model), predictors) in group.iter().zip(&models).zip(predictors) {
            let (_, fold) = self.point_and_fold(*place);
            let evaluation = rows[fold].1.evaluate(model, &predictors)?;
            self.keep(*place, model, evaluation);
        }
        Ok(())
    }

    /// Makes small fits in one launch, as far as that goes.
    fn together(&mut self) -> Result<(), FitError> {
        let (folds, weights) = (0..self.folds.count(), self.given.sample_weight);
        if self.found.iter().any(Option::is_some) {
            return Ok(());
        }
        let training = folds.map(|fold| self.folds.training_weights(fold, weights));
        let path = Path {
            estimators: self.path,
            targets: self.targets,
            training: &training.collect::<Vec<_>>(),
            sample_weight: weights,
            offset: self.given.offset,
            penalty_factors: self.given.penalty_factors,
        };
        let Some(models) = together::fit(self.data, &path)? else {
            return Ok(());
        };
        for (place, model) in models.iter().enumerate() {
            if let Some(model) = model {
                let evaluation = self.evaluated(place, model)?;
                self.keep(place, model, evaluation);
            }
        }
        Ok(())
    }

    fn one_by_one(&mut self) -> Result<(), FitError> {
        for fold in 0..self.folds.count() {
            let training = self.folds.training_weights(fold, self.given.sample_weight);
            for (point, estimator) in self.path.iter().enumerate() {
                let place = point * self.folds.count() + fold;
                if self.found[place].is_some() {
                    continue;
                }
                let start = self.last[fold].as_ref();
                let options = FitOptions {
                    start: start.map(|(coef, intercept)| (&coef[..], &intercept[..])),
                    moments: self.data.moments_of_fold(fold),
                    offset: self.given.offset,
                    penalty_factors: self.given.penalty_factors,
                    ..weighted(&training)
                };
                let fit = || estimator.fit_on(self.data, self.targets, options);
                let model = checkpoint::without(fit)?;
                let evaluation = self.evaluated(place, &model)?;
                self.keep(place, &model, evaluation);
                self.save_if_due()?;
            }
        }
        Ok(())
    }

    /// The figures of a model on the rows that its fold holds out.
    fn evaluated(&self, place: usize, model: &Model) -> Result<Evaluation, FitError> {
        let held_out = self.held_out(place);
        let (matrix, held_out) = (self.data.matrix(), Some(&held_out[..]));
        match self.given.offset {
            None => model.evaluate_on(matrix, self.targets, held_out),
            Some(offset) => model.evaluate_with_offset(matrix, self.targets, held_out, offset),
        }
    }

    fn save_if_due(&self) -> Result<(), OpError> {
        match session::is_due() {
            true => session::save(|record| {
                self.save(record);
                Ok(())
            }),
            false => Ok(()),
        }
    }

    /// Adds what has been found to a record, and where each fold goes on.
    fn save(&self, to: &mut Record) {
        for (place, found) in self.found.iter().enumerate() {
            let Some(found) = found else { continue };
            let counts = [found.n_iter, usize::from(found.converged), found.nonzero];
            let counts = counts.map(|count| count as f64);
            to.numbers(&format!("fit.{place}"), &counts);
            to.numbers(&format!("figures.{place}"), &found.evaluation.to_numbers());
            to.numbers(&format!("coef.{place}"), &found.coef);
        }
        for (fold, last) in self.last.iter().enumerate() {
            let Some((coef, intercept)) = last else {
                continue;
            };
            to.numbers(&format!("last.intercept.{fold}"), intercept);
            to.numbers(&format!("last.coef.{fold}"), &coef.concat());
        }
    }

    /// Puts back what a record tells of; it counts as seen again.
    fn restore(&mut self, from: &Record) -> Result<(), OpError> {
        for place in 0..self.found.len() {
            let name = format!("fit.{place}");
            if !from.has(&name) {
                continue;
            }
            let [n_iter, converged, nonzero] = from.array(&name)?;
            let evaluation = from.evaluation(&format!("figures.{place}"))?;
            let (point, fold) = self.point_and_fold(place);
            let score = evaluation.score();
            (self.watch)(FoldProgress { fold, point, score });
            self.found[place] = Some(Found {
                evaluation,
                n_iter: n_iter as usize,
                converged: converged != 0.0,
                nonzero: nonzero as usize,
                coef: from.list_of(&format!("coef.{place}"))?,
            });
        }
        for fold in 0..self.last.len() {
            let name = format!("last.intercept.{fold}");
            if !from.has(&name) {
                continue;
            }
            let intercept = from.list_of(&name)?;
            let coef = from.list_of(&format!("last.coef.{fold}"))?;
            // One intercept for each linear predictor.
            let each = (coef.len() / intercept.len().max(1)).max(1);
            let coef = coef.chunks(each).map(<[f64]>::to_vec).collect();
            self.last[fold] = Some((coef, intercept));
        }
        Ok(())
    }

    fn rows(&self) -> usize {
        self.data.matrix().rows()
    }

    fn point_and_fold(&self, place: usize) -> (usize, usize) {
        (place / self.folds.count(), place % self.folds.count())
    }

    fn held_out(&self, place: usize) -> Vec<f64> {
        let (_, fold) = self.point_and_fold(place);
        self.folds.held_out_weights(fold, self.given.sample_weight)
    }

    fn keep(&mut self, place: usize, model: &Model, evaluation: Evaluation) {
        let (point, fold) = self.point_and_fold(place);
        let score = evaluation.score();
        (self.watch)(FoldProgress { fold, point, score });
        self.found[place] = Some(Found {
            evaluation,
            n_iter: model.n_iter(),
            converged: model.converged(),
            nonzero: model
                .coef()
                .iter()
                .flat_map(|coef| coef.iter())
                .filter(|w| **w != 0.0)
                .count(),
            coef: kept(model),
        });
        let coef = model.coef().into_iter().map(<[f64]>::to_vec).collect();
        self.last[fold] = Some((coef, model.intercept()));
    }

    fn points(self) -> Vec<PathPoint> {
        let points = self.found.chunks(self.folds.count());
        points
            .map(|folds| {
                let folds: Vec<Found> = folds.iter().flatten().cloned().collect();
                PathPoint {
                    n_iter: folds.iter().map(|fold| fold.n_iter).collect(),
                    converged: folds.iter().all(|fold| fold.converged),
                    nonzero: folds.iter().map(|fold| fold.nonzero).collect(),
                    mean_coef: mean_of(&folds),
                    folds: folds.into_iter().map(|fold| fold.evaluation).collect(),
                }
            })
            .collect()
    }
}

/// The coefficients of one linear predictor of few columns.
fn kept(model: &Model) -> Vec<f64> {
    match model.coef().as_slice() {
        [coef] if coef.len() <= PathPoint::KEPT => coef.to_vec(),
        _ => Vec::new(),
    }
}

fn mean_of(folds: &[Found]) -> Vec<f64> {
    let columns = folds.first().map_or(0, |fold| fold.coef.len());
    let mean = |j: usize| folds.iter().map(|fold| fold.coef[j]).sum::<f64>() / folds.len() as f64;
    (0..columns).map(mean).collect()
}

/// Fails where deviations of folds are needed and not there.
fn check_deviations<T: Number>(
    data: &ResidentDataset<T>,
    folds: &Folds,
    path: &[Estimator],
) -> Result<(), FitError> {
    let missing = (0..folds.count()).any(|fold| data.moments_of_fold(fold).is_none());
    if missing && path.iter().any(Estimator::standardizes) {
        return Err(FitError::Combination {
            first: "standardize",
            second: "cross-validation of data that know no folds",
            remedy: "make them with ResidentDataset::with_folds",
        });
    }
    Ok(())
}

fn weighted(weights: &[f64]) -> FitOptions<'_> {
    FitOptions {
        sample_weight: Some(weights),
        ..FitOptions::default()
    }
}

fn expect_rows(what: &'static str, found: usize, expected: usize) -> Result<(), FitError> {
    if found == expected {
        return Ok(());
    }
    Err(FitError::Length {
        what,
        expected,
        found,
    })
}
