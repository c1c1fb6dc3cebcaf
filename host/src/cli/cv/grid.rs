//! What is compared: strengths of the penalty, and values of another parameter.

use anyhow::{Result, ensure};

use crate::cli::args::{FoldArgs, PathName};
use crate::cli::targets::Known;
use crate::cli::trainers::{Job, Penalised};
use crate::learning::{Estimator, ResidentDataset};
use crate::ops::Number;
use crate::report::Second;

/// All points, neighbours beside each other: strengths within a value of the other parameter.
///
/// # Errors
/// When values are given of a parameter that the trainer does not have, or a path cannot be made for the data.
pub(super) fn points<T: Number>(
    job: &Job<'_>,
    args: &FoldArgs,
    (data, known, weights): (&ResidentDataset<T>, &Known<T>, Option<&[f64]>),
) -> Result<Vec<Penalised>> {
    let (name, typed) = job.own.strength();
    let mut points = Vec::new();
    for second in seconds(job, args)? {
        let at = |strength: f64| Penalised { strength, second };
        match &args.path {
            None => points.push(at(typed)),
            Some(PathName::Given(strengths)) => points.extend(strengths.iter().copied().map(at)),
            Some(PathName::Auto(count)) => {
                let unit = job.at(at(1.0), known)?;
                let multiples = unit.penalty_path(data, known.targets(), weights, *count)?;
                // C is the inverse of the penalty's strength.
                let strength = |multiple: f64| {
                    if name == "c" {
                        1.0 / multiple
                    } else {
                        multiple
                    }
                };
                points.extend(multiples.into_iter().map(strength).map(at));
            }
        }
    }
    Ok(points)
}

/// An estimator for each point.
///
/// # Errors
/// As the trainer's.
pub(super) fn estimators<T: Number>(
    job: &Job<'_>,
    points: &[Penalised],
    known: &Known<T>,
) -> Result<Vec<Estimator>> {
    points.iter().map(|point| job.at(*point, known)).collect()
}

/// `None`: as typed.
fn seconds(job: &Job<'_>, args: &FoldArgs) -> Result<Vec<Option<Second>>> {
    let lists = [
        ("l1-ratio", "--l1-ratios", &args.l1_ratios),
        ("epsilon", "--epsilons", &args.epsilons),
    ];
    let Some((name, option, values)) = lists.into_iter().find(|(.., values)| !values.is_empty())
    else {
        return Ok(vec![None]);
    };
    ensure!(
        job.own.second() == Some(name),
        "{option}: expected a trainer with --{name}{}, found {}",
        match name {
            "epsilon" => ": svr or huber",
            _ => ": elasticnet, glm, or logreg with --penalty elasticnet",
        },
        job.name
    );
    let second = |value: &f64| {
        Some(Second {
            name,
            value: *value,
        })
    };
    Ok(values.iter().map(second).collect())
}
