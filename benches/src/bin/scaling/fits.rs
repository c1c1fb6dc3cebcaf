//! Whole fits of logistic regression, from rows in memory to coefficients, by one and by several.

use std::time::Instant;

use anyhow::Result;
use serde_json::json;
use warpfuse::learning::{Estimator, FitOptions, LogisticRegression, Targets};
use warpfuse::ops::MatrixOptions;

use super::known::Case;
use super::products::extend;
use super::shared::{Job, Part};

/// Seconds after which a fit is not made once more.
const SECONDS: f64 = 1.0;
/// Fits at most.
const MOST: usize = 3;

/// One fit's seconds, and what it found.
struct Fit {
    seconds: f64,
    placed_seconds: f64,
    phases: String,
    iterations: usize,
    objective: f64,
}

/// Times the fastest of some.
pub fn time(job: &Job<'_>, part: &Part) -> Result<()> {
    let (member, shape) = (job.member, &job.made.shape);
    let mut best = fit(job, part)?;
    let mut spent = best.seconds;
    for _ in 1..MOST {
        if spent > SECONDS {
            break;
        }
        let next = fit(job, part)?;
        spent += next.seconds;
        if next.seconds < best.seconds {
            best = next;
        }
    }
    let solve = best.seconds - best.placed_seconds;
    let mut line = json!({
        "what": "fit",
        "shape": shape.name,
        "rows": part.labels.len(),
        "cols": shape.cols,
        "members": member.group.size(),
        "scaling": part.way.name(),
        "summation": format!("{:?}", job.wanted.summation).to_lowercase(),
        "seconds": best.seconds,
        "placed_seconds": best.placed_seconds,
        "solve_seconds": solve,
        "phases": best.phases,
        "iterations": best.iterations,
        "objective": best.objective,
    });
    if member.group.is_first() {
        let case = Case {
            shape: format!("{} {:?}", shape.name, job.wanted.summation).to_lowercase(),
            way: part.way,
            members: member.group.size(),
        };
        // How many sums a fit takes is its own affair: what they add to two is part of what they add to more.
        let times = [
            ("fit", 1e6 * best.seconds, None),
            ("solve", 1e6 * solve, None),
        ];
        extend(&mut line, job.known.note(&case, &times));
    }
    member.tell(&line);
    Ok(())
}

/// Seconds are the longest of all members, so that each makes as many fits.
fn fit(job: &Job<'_>, part: &Part) -> Result<Fit> {
    let member = job.member;
    let options = MatrixOptions {
        summation: job.wanted.summation,
        ..MatrixOptions::default()
    };
    let estimator: Estimator = LogisticRegression::params().tolerance(1e-4).into();
    let estimator = estimator.matrix_options(options);
    let targets = Targets::<f32>::Labels(&part.labels);
    member.group.barrier()?;
    let begun = Instant::now();
    let placed = estimator.place(&member.device, part.features.clone(), targets)?;
    let after_placing = begun.elapsed().as_secs_f64();
    let model = estimator.fit_on(&placed, targets, FitOptions::default())?;
    let mut seconds = [begun.elapsed().as_secs_f64(), after_placing];
    member.group.max(&mut seconds)?;
    let report = model.report();
    Ok(Fit {
        seconds: seconds[0],
        placed_seconds: seconds[1],
        phases: placed.phases().to_string(),
        iterations: report.n_iter,
        objective: report.objective,
    })
}
