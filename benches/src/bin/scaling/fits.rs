//! Whole fits, by one and by several.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use serde_json::json;
use warpfuse::learning::{Estimator, FitOptions, Labels, LogisticRegression, Targets};

use super::Wanted;
use super::members::{Member, Members};
use super::shapes::{SHAPES, Shape};

/// Times them; strong, since nothing but the wait grows with equal shares.
pub fn run(wanted: &Wanted, members: &Members) -> Result<()> {
    for shape in SHAPES.iter().filter(|shape| wanted.takes(shape.name)) {
        let shape = shape.divided(wanted.divide);
        for size in &wanted.sizes {
            members.run(*size, |member| fit(member, &shape))?;
        }
    }
    Ok(())
}

fn fit(member: &Member, shape: &Shape) -> Result<()> {
    let own = Arc::new(shape.features(member.rows(shape.rows))?);
    let labels = Labels::Numbers(shape.labels());
    let estimator: Estimator = LogisticRegression::params().tolerance(1e-4).into();
    let targets = Targets::<f32>::Labels(&labels);
    member.group.barrier()?;
    let begun = Instant::now();
    let placed = estimator.place(&member.device, own, targets)?;
    let after_placing = begun.elapsed().as_secs_f64();
    let model = estimator.fit_on(&placed, targets, FitOptions::default())?;
    let mut seconds = [begun.elapsed().as_secs_f64()];
    member.group.max(&mut seconds)?;
    let report = model.report();
    member.tell(&json!({
        "what": "fit",
        "shape": shape.name,
        "rows": shape.rows,
        "cols": shape.cols,
        "members": member.group.size(),
        "seconds": seconds[0],
        "placed_seconds": after_placing,
        "phases": placed.phases().to_string(),
        "iterations": report.n_iter,
        "objective": report.objective,
    }));
    Ok(())
}
