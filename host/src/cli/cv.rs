//! `warpfuse cv`: data → how well penalties do on rows that were held out.

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::args::{CvArgs, DtypeName, FoldArgs};
use super::exit::Exit;
use super::progress::Ui;
use super::report::{figure, indented, number, plain_table};
use super::targets::Known;
use super::trainers::Job;
use super::{data, device, output};
use crate::io::Columns;
use crate::learning::{
    Classes, Estimator, Evaluation, FitOptions, Folds, PathPoint, ResidentDataset, cross_validate,
};
use crate::ops::Number;

/// Compares penalties.
pub(super) fn run(args: &CvArgs, ui: &Ui) -> Result<Exit> {
    let (job, folds) = args.trainer.job();
    match job.source.dtype {
        DtypeName::F32 => compare::<f32>(&job, folds, ui),
        DtypeName::F64 => compare::<f64>(&job, folds, ui),
    }
}

fn compare<T: Number>(job: &Job<'_>, args: &FoldArgs, ui: &Ui) -> Result<Exit> {
    ensure!(
        job.samples.validation.is_none() && job.samples.start.is_none(),
        "--validation and --start: expected neither with cv, whose folds hold out data of their own and start anew"
    );
    let saved = job.outcome.output.as_deref();
    if let Some(path) = saved {
        ensure!(
            !output::is_stdout(path),
            "-o -: expected the name of a file; standard output has the comparison"
        );
        output::check_place(path)?;
    }
    let device = device::open(job.source.device, ui)?;
    let (data, known) = data::load_known::<T>(
        &job.source.data,
        job.source.target.as_deref(),
        job.own.task(),
        Columns::Infer,
        &job.outcome.read,
        ui,
    )?;
    let rows = data.stats.rows;
    let weights = data::sample_weights(job.samples.sample_weight.as_deref(), rows)?;
    let folds = folds(&known, rows, args)?;
    let strengths = strengths(job, args);
    let path = strengths
        .iter()
        .map(|strength| job.with_strength(*strength, &known))
        .collect::<Result<Vec<Estimator>>>()?;
    let matrix = job.outcome.matrix_options();
    let resident = if path.iter().any(Estimator::standardizes) {
        ResidentDataset::with_folds(&device, data.features, matrix, &folds)?
    } else {
        ResidentDataset::new(&device, data.features, matrix)?
    };
    let bar = ui.fits(path.len() * folds.count());
    let (targets, weights) = (known.targets(), weights.as_deref());
    let points = cross_validate(&resident, targets, weights, &folds, &path, |fit| {
        bar.fit(&fit)
    })?;
    drop(bar);
    let best = best(&points);
    if let Some(file) = saved {
        let options = FitOptions {
            sample_weight: weights,
            ..FitOptions::default()
        };
        let model = path[best].fit_on(&resident, targets, options)?;
        model.save(file)?;
    }
    tell((job, args), &strengths, (&points, best), ui)
}

/// Folds that spread classes evenly; of numbers, random ones.
fn folds<T: Number>(known: &Known<T>, rows: usize, args: &FoldArgs) -> Result<Folds> {
    Ok(match known {
        Known::Numbers(_) => Folds::shuffled(rows, args.folds.get(), args.seed)?,
        Known::Labels { labels, .. } => {
            let (_, codes) = Classes::encode(labels)?;
            Folds::stratified(&codes, args.folds.get(), args.seed)?
        }
    })
}

/// A trainer's arguments and those of the folds.
type Asked<'a> = (&'a Job<'a>, &'a FoldArgs);

fn strengths(job: &Job<'_>, args: &FoldArgs) -> Vec<f64> {
    if args.path.is_empty() {
        vec![job.own.strength().1]
    } else {
        args.path.clone()
    }
}

fn tell(
    asked: Asked<'_>,
    strengths: &[f64],
    (points, best): (&[PathPoint], usize),
    ui: &Ui,
) -> Result<Exit> {
    let job = asked.0;
    if job.outcome.json {
        output::print_json(&to_json(asked, strengths, points, best))?;
    } else {
        output::print(table(asked, strengths, points, best))?;
    }
    if points.iter().all(|point| point.converged) {
        return Ok(Exit::Success);
    }
    ui.warn("NOT CONVERGED: some fits stopped early; scale the features (--standardize), raise --max-iter, or raise --tol");
    Ok(if job.outcome.strict {
        Exit::NotConverged
    } else {
        Exit::Success
    })
}

/// The first of the best mean scores; scores that are NaN are no candidates.
fn best(points: &[PathPoint]) -> usize {
    let mut best = 0;
    for (index, point) in points.iter().enumerate() {
        let (score, most) = (point.mean_score(), points[best].mean_score());
        if score > most || most.is_nan() {
            best = index;
        }
    }
    best
}

fn to_json((job, args): Asked<'_>, strengths: &[f64], points: &[PathPoint], best: usize) -> Value {
    let name = job.own.strength().0;
    let point = |(strength, point): (&f64, &PathPoint)| {
        let scores: Vec<f64> = point.folds.iter().map(Evaluation::score).collect();
        json!({
            name: strength,
            "mean_score": point.mean_score(),
            "std_score": point.deviation(),
            "scores": scores,
            "folds": point.folds,
            "n_iter": point.n_iter,
            "converged": point.converged,
        })
    };
    json!({
        "model": job.name,
        "path": strengths.iter().zip(points).map(point).collect::<Vec<_>>(),
        "best": { name: strengths[best], "mean_score": points[best].mean_score() },
        "seed": args.seed,
        "saved": job.outcome.output,
    })
}

fn table((job, args): Asked<'_>, strengths: &[f64], points: &[PathPoint], best: usize) -> String {
    let name = job.own.strength().0;
    let mut rows = plain_table();
    rows.set_header([name, "mean score", "deviation", "iterations"]);
    for (strength, point) in strengths.iter().zip(points) {
        let iterations: Vec<String> = point.n_iter.iter().map(usize::to_string).collect();
        rows.add_row([
            number(strength),
            number(figure(point.mean_score())),
            number(figure(point.deviation())),
            number(iterations.join(" ")),
        ]);
    }
    let mut text = format!("{}, {} folds\n", job.own.title(), args.folds);
    text.push_str(&indented(&rows));
    // Writing to a String cannot fail.
    let _ = writeln!(text, "best: --{name} {}", strengths[best]);
    if let Some(path) = &job.outcome.output {
        let _ = writeln!(text, "saved: {}, fitted to all rows", path.display());
    }
    text
}
