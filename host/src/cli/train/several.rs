//! `train` with several targets: X is read and placed once, and each column of the targets is a fit of its own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::linear::judge;
use crate::cli::data::{self, Loaded};
use crate::cli::exit::Exit;
use crate::cli::fitted::{FittedSummary, warn_undefined};
use crate::cli::memory::MemoryFacts;
use crate::cli::progress::Ui;
use crate::cli::targets::{Known, Task};
use crate::cli::trainers::{Beside, Job};
use crate::cli::{device, output};
use crate::device::{Device, Phase, Phases};
use crate::io;
use crate::learning::{Estimator, FitOptions, Model, ResidentDataset, Targets};
use crate::matrix::{Element, MatrixStats, Schema};
use crate::ops::Number;

/// Where the targets of several regressions are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sides<'a> {
    /// Columns of an array.
    Array(&'a Path),
    /// Columns of DATA.
    Columns(&'a [String]),
}

/// A target, and what the columns are where it is the target.
struct Side<T> {
    targets: Vec<T>,
    schema: Schema,
}

/// The targets, where they are those of several regressions.
///
/// # Errors
/// When their file cannot be read, or `--target-columns` are not those of several regressions.
pub(super) fn targets<'a>(job: &Job<'a>) -> Result<Option<Sides<'a>>> {
    let columns = &job.source.target_columns[..];
    if !columns.is_empty() {
        ensure!(
            columns.len() > 1,
            "--target-columns: expected two columns or more, found one; name it with --target-column"
        );
        ensure!(
            job.own.task() == Task::Numbers,
            "--target-columns: expected a regression, found a classifier; it learns one --target-column at a time"
        );
        return Ok(Some(Sides::Columns(columns)));
    }
    let target = job.source.target.as_deref();
    let arrays = target.filter(|path| output::extension(path) == "npy" && path.exists());
    let Some(path) = arrays.filter(|_| job.own.task() == Task::Numbers) else {
        return Ok(None);
    };
    Ok((io::npy_columns(path)? > 1).then_some(Sides::Array(path)))
}

/// Fits, saves, scores and reports one model after the other.
pub(super) fn run<T: Number>(job: &Job<'_>, from: Sides<'_>, ui: &Ui) -> Result<Exit> {
    check(job)?;
    let (mut phases, mut sides) = (Phases::default(), Vec::new());
    let read = || {
        let mut reading = job.outcome.reading()?;
        if let Sides::Columns([first, further @ ..]) = from {
            reading.first_target = Some(first.clone());
            reading.table.further = further.to_vec();
        }
        let mut data = data::load_as::<T>(&job.source.data, None, &reading, ui)?;
        sides = match from {
            Sides::Array(path) => read_sides::<T>(path, &data)?,
            Sides::Columns(_) => take_sides(&job.source.data, &mut data)?,
        };
        let first = Known::Numbers(sides[0].targets.clone());
        Ok((data, first))
    };
    let place = (
        job.source.device,
        job.source.data.as_path(),
        device::FIT_READS,
    );
    let (device, (data, first)) = device::open_beside(place, ui, &mut phases, read)?;
    for number in 0..sides.len() {
        if let Some(path) = &job.outcome.output {
            ensure!(
                !output::is_stdout(path),
                "-o -: expected the name of a file for several models, MODEL.0, MODEL.1, …"
            );
            output::check_place(&numbered(path, number))?;
        }
    }
    let weights = job.samples.sample_weight.as_deref();
    let weights = data::sample_weights(weights, data.stats.rows)?;
    let estimator = job.estimator(&first)?;
    let placing = ui.doing("placing the data");
    let resident = estimator.place(&device, data.features, first.targets())?;
    drop(placing);
    phases.extend(resident.phases());
    let mut several = Several {
        job,
        ui,
        device,
        phases,
        estimator,
        beside: job.beside((data.stats.rows, data.stats.cols))?,
        weights,
        parse_seconds: data.seconds,
    };
    let mut worst = Exit::Success;
    for (number, side) in sides.iter().enumerate() {
        let model = several
            .fit(&resident, &side.targets)?
            .with_schema(side.schema.clone());
        let exit = several.finish((number, &model), (&resident, &side.targets), &data.stats)?;
        if exit != Exit::Success {
            worst = exit;
        }
    }
    Ok(worst)
}

/// Refuses what is about one model.
fn check(job: &Job<'_>) -> Result<()> {
    let course = job.course;
    for (is_given, name) in [
        (course.start.is_some(), "--start"),
        (course.validation.is_some(), "--validation"),
        (course.checkpoint.checkpoint.is_some(), "--checkpoint"),
        (job.outcome.report.is_wanted(), "--report and --figures"),
        (job.outcome.standard_errors, "--standard-errors"),
        (
            job.outcome.output.as_deref().is_some_and(output::is_stdout),
            "-o -",
        ),
    ] {
        ensure!(
            !is_given,
            "{name}: expected one target, found several; fit them one by one"
        );
    }
    Ok(())
}

/// The columns of an array.
fn read_sides<T: Element>(path: &Path, data: &Loaded<T>) -> Result<Vec<Side<T>>> {
    let all = io::read_columns::<T>(path)?;
    let (rows, found) = (data.stats.rows, all.first().map_or(0, Vec::len));
    ensure!(
        found == rows,
        "{}: expected one row of targets for each of the {rows} rows, found {found}",
        path.display()
    );
    let side = |targets| Side {
        targets,
        schema: data.schema.clone(),
    };
    Ok(all.into_iter().map(side).collect())
}

/// The columns of DATA.
fn take_sides<T: Element>(path: &Path, data: &mut Loaded<T>) -> Result<Vec<Side<T>>> {
    let first = Side {
        targets: data.take_targets(path)?,
        schema: data.schema.clone(),
    };
    let further = std::mem::take(&mut data.further).into_iter();
    let further = further.map(|further| Side {
        targets: further.targets,
        schema: further.schema,
    });
    Ok(std::iter::once(first).chain(further).collect())
}

/// `model.safetensors` of target 2: `model.2.safetensors`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    match path.extension() {
        Some(extension) => path.with_extension(format!("{number}.{}", extension.to_string_lossy())),
        None => path.with_extension(number.to_string()),
    }
}

/// Fits under way.
struct Several<'a> {
    job: &'a Job<'a>,
    ui: &'a Ui,
    device: Device,
    phases: Phases,
    estimator: Estimator,
    beside: Beside,
    weights: Option<Vec<f64>>,
    parse_seconds: f64,
}

impl Several<'_> {
    fn fit<T: Number>(&mut self, resident: &ResidentDataset<T>, side: &[T]) -> Result<Model> {
        let bar = self.ui.iterations("gradient", self.job.solve.tol);
        let most = self.job.solve.max_iter.get();
        let mut watch = |iteration| bar.solver_iteration(iteration, most);
        let options = FitOptions {
            sample_weight: self.weights.as_deref(),
            offset: self.beside.offset.as_deref(),
            penalty_factors: self.beside.penalty_factors.as_deref(),
            watch: Some(&mut watch),
            ..FitOptions::default()
        };
        let estimator = &self.estimator;
        let solve = || estimator.fit_on(resident, Targets::Numbers(side), options);
        Ok(self.phases.time(Phase::Solve, &self.device, solve)?)
    }

    fn finish<T: Number>(
        &mut self,
        (number, model): (usize, &Model),
        (resident, side): (&ResidentDataset<T>, &[T]),
        stats: &MatrixStats,
    ) -> Result<Exit> {
        let job = self.job;
        let path = job.outcome.output.as_deref();
        let path = path.map(|path| numbered(path, number));
        if let Some(path) = &path {
            model.save(path)?;
        }
        let (x, targets) = (resident.matrix(), Targets::Numbers(side));
        let (weights, offset) = (self.weights.as_deref(), self.beside.offset.as_deref());
        let score = || match offset {
            None => model.evaluate_on(x, targets, weights),
            Some(offset) => model.evaluate_with_offset(x, targets, weights, offset),
        };
        let scoring = self.ui.doing("scoring");
        let training = self.phases.time(Phase::Evaluate, &self.device, score)?;
        drop(scoring);
        warn_undefined(&training, self.ui);
        let summary = FittedSummary {
            name: job.name,
            title: job.own.title(),
            model,
            stats,
            device: &self.device.to_string(),
            memory: MemoryFacts::of(&self.device),
            parse_seconds: self.parse_seconds,
            phases: &self.phases,
            training: &training,
            validation: None,
            saved: path.as_deref(),
            details: None,
        };
        if job.outcome.json {
            let mut all = summary.to_json()?;
            let object = all.as_object_mut().context("a summary is an object")?;
            object.insert("target".to_owned(), number.into());
            output::print_json(&all)?;
        } else {
            output::print(format!("target {number}\n{summary}\n"))?;
        }
        Ok(judge(model, job, self.ui))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_numbered_before_their_extension() {
        let of = |path: &str| numbered(Path::new(path), 2).display().to_string();
        assert_eq!(of("a/model.safetensors"), "a/model.2.safetensors");
        assert_eq!(of("model"), "model.2");
    }
}
