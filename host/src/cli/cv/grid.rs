//! What is compared: strengths of the penalty, and shares of ‖w‖₁ in it.

use anyhow::{Result, ensure};

use crate::cli::args::{FoldArgs, PathName};
use crate::cli::targets::Known;
use crate::cli::trainers::{Job, Penalised};
use crate::learning::{Estimator, ResidentDataset};
use crate::ops::Number;

/// All points, neighbours beside each other: strengths within a share.
///
/// # Errors
/// When shares are given to a trainer without them, or a path cannot be made for the data.
pub(super) fn points<T: Number>(
    job: &Job<'_>,
    args: &FoldArgs,
    (data, known, weights): (&ResidentDataset<T>, &Known<T>, Option<&[f64]>),
) -> Result<Vec<Penalised>> {
    let shares = shares(job, args)?;
    let (name, typed) = job.own.strength();
    let mut points = Vec::new();
    for l1_ratio in shares {
        let at = |strength: f64| Penalised { strength, l1_ratio };
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
fn shares(job: &Job<'_>, args: &FoldArgs) -> Result<Vec<Option<f64>>> {
    if args.l1_ratios.is_empty() {
        return Ok(vec![None]);
    }
    ensure!(
        job.own.has_l1_ratio(),
        "--l1-ratios: expected elasticnet, glm, or logreg with --penalty elasticnet, found {}",
        job.name
    );
    Ok(args.l1_ratios.iter().copied().map(Some).collect())
}
