//! Cross-validation of logistic regression over several penalties, by one and by several.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;
use serde_json::json;
use warpfuse::learning::{
    Estimator, Folds, LogisticRegression, ResidentDataset, Targets, cross_validate,
};
use warpfuse::ops::MatrixOptions;
use warpfuse::plan::fused::Summation;

use super::Wanted;
use super::known::Way;
use super::members::{Member, Members};
use super::shapes::{SHAPES, Shape};
use super::shared::Made;

/// Inverse strengths of penalties.
const PATH: [f64; 4] = [0.01, 0.1, 1.0, 10.0];
const FOLDS: usize = 5;
/// How many times smaller a data set is whose sums repeat bit by bit: fits are one after the other then.
const SMALLER: usize = 20;
/// Compared if nothing else is wanted, in this order.
const USUAL: [&str; 2] = ["rcv1", "higgs"];

/// Mean scores of the penalties by one member, by shape.
type Alone = Mutex<BTreeMap<String, Vec<f64>>>;

/// Times them, and compares scores with those of the first number of members.
pub fn run(wanted: &Wanted, members: &Members) -> Result<()> {
    let alone = Alone::default();
    let takes = |shape: &&Shape| match wanted.only.is_empty() {
        true => USUAL.contains(&shape.name),
        false => wanted.takes(shape.name),
    };
    let mut shapes: Vec<&Shape> = SHAPES.iter().filter(takes).collect();
    shapes.sort_by_key(|shape| USUAL.iter().position(|name| *name == shape.name));
    for shape in shapes {
        for (summation, divide) in [(Summation::Free, 1), (Summation::Reproducible, SMALLER)] {
            let whole = shape.divided(wanted.divide);
            let rows = whole.rows / divide;
            let made = Made::new(Shape { rows, ..whole })?;
            for size in &wanted.sizes {
                members.run(*size, |member| match member.is_late(wanted)? {
                    true => Ok(()),
                    false => compare((member, summation), &made, &alone),
                })?;
            }
        }
    }
    Ok(())
}

fn compare((member, summation): (&Member, Summation), made: &Made, alone: &Alone) -> Result<()> {
    let part = made.part(member, Way::Strong);
    let options = MatrixOptions {
        summation,
        ..MatrixOptions::default()
    };
    let numbers = part.numbers()?;
    let classes: Vec<u32> = numbers.iter().map(|label| *label as u32).collect();
    let folds = Folds::stratified(&classes, FOLDS, 1)?;
    let path = PATH.map(|c| {
        let estimator: Estimator = LogisticRegression::params().c(c).tolerance(1e-4).into();
        estimator.matrix_options(options)
    });
    let targets = Targets::<f32>::Labels(&part.labels);
    member.group.barrier()?;
    let begun = Instant::now();
    let data = ResidentDataset::new(&member.device, part.features.clone(), options)?;
    let placed = begun.elapsed().as_secs_f64();
    let points = cross_validate(&data, targets, None, &folds, &path, |_| {})?;
    let mut seconds = [begun.elapsed().as_secs_f64(), placed];
    member.group.max(&mut seconds)?;
    if !member.group.is_first() {
        return Ok(());
    }
    let scores: Vec<f64> = points.iter().map(|point| point.mean_score()).collect();
    let shape = &made.shape;
    let name = format!("{} {summation:?}", shape.name);
    let mut alone = alone.lock().unwrap_or_else(PoisonError::into_inner);
    let of_one = alone.entry(name).or_insert_with(|| scores.clone());
    let pairs = scores.iter().zip(of_one.iter());
    let largest = pairs
        .map(|(own, one)| (own - one).abs())
        .fold(0.0, f64::max);
    member.tell(&json!({
        "what": "cross-validation",
        "shape": shape.name,
        "rows": shape.rows,
        "cols": shape.cols,
        "members": member.group.size(),
        "summation": format!("{summation:?}").to_lowercase(),
        "fits": FOLDS * PATH.len(),
        "seconds": seconds[0],
        "placed_seconds": seconds[1],
        "scores": scores,
        "largest_difference_to_one": largest,
        "same": scores == *of_one,
    }));
    Ok(())
}
